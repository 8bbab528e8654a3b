"""Problem and Improvement: what an algorithm is given, and what it gives back.

Estimates lead from counts to the MLE-MDP, and to the policy that made them where nobody wrote it
down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray
from surestep._reprs import short_html, short_repr
from surestep._settings import Each, Settings, check_settings, read_arrays
from surestep.errors import InvalidParameter, ShapeMismatch
from surestep.model.counts import Counts
from surestep.model.log import DecisionLog, least_and_greatest
from surestep.model.mdp import FiniteMDP, spread_discount
from surestep.model.pairs import Pairs, check_same_pairs, transition_name, united
from surestep.model.policy import Plan, Policy
from surestep.model.signals import Reach, Signal
from surestep.model.statements import Statement, read_statements
from surestep.model.successors import Successors, check_support

UnseenRule = Literal["terminal", "pessimistic"]

SUM_SLACK = 1e-9  # of the largest reward, a visit: more than any order of adding can change


def estimate_mdp(counts: Counts, discount: float | FloatArray) -> FiniteMDP:
    """Returns the maximum-likelihood MDP: P̂(s'|s,a) = #_D(s,a,s') / #_D(s,a).

    A pair that was never visited gets no successor, and the known reward or none. `discount` is one
    number, or one a pair [K]. Episodes end where the log says so: what goes on for ever without a
    discount has no value, even where it earns nothing.
    """
    arrays.expect("counts", counts, Counts)
    visited = np.repeat(counts.visits, arrays.run_lengths(counts.offsets))
    seen = counts.times > 0
    offsets = counts.offsets
    if not seen.all():
        offsets = arrays.offsets_of(arrays.run_sums(seen.astype(np.int64), counts.offsets))
    return FiniteMDP(
        counts.pairs,
        offsets,
        counts.successor[seen],
        probability=arrays.own(counts.times[seen] / visited[seen]),
        reward=arrays.own(counts.mean_reward()[seen]),
        discount=spread_discount(counts.pairs, discount),
        initial=counts.starts / counts.starts.sum(),
        ending_reward=counts.unseen_reward(),
        endless=None,
    )


def estimate_behavior(counts: Counts, smoothing: float = 0.0) -> Policy:
    """The maximum-likelihood behavior policy π̂_b(a|s) = #_D(s,a) / #_D(s), marked as estimated.

    `smoothing` is a pseudo-count that every enabled action gets; a state never visited gets the
    uniform distribution (Simão, Laroche, Tachet des Combes 2020).
    """
    arrays.expect("counts", counts, Counts)
    if not (arrays.is_number(smoothing) and 0 <= smoothing < np.inf):
        raise InvalidParameter(f"smoothing is {smoothing!r}, expected a finite number of 0 or more")
    pairs = counts.pairs
    lengths = arrays.run_lengths(pairs.offsets)
    weight = counts.visits + float(smoothing)
    largest = np.maximum.reduceat(weight, pairs.offsets[:-1])
    unknown = np.repeat(largest == 0, lengths)
    # Each state's weights are scaled by their largest, so that no sum of them overflows.
    share = np.where(
        unknown, 1.0, weight / np.repeat(np.where(largest == 0, 1.0, largest), lengths)
    )
    return Policy(
        pairs, share / np.repeat(arrays.run_sums(share, pairs.offsets), lengths), estimated=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A safe-policy-improvement problem: the data D, the policy π_b that made it, and the terms.

    `value_bounds` = (low, high) bound every value V^π(s) of the true MDP. `unseen` says what a
    pair is worth that the data never visits: "terminal" means its known reward, or none, and then
    nothing; "pessimistic" means the lower value bound. `log` is needed by methods that look at
    whole episodes; the counts must be its counts. `premises` state what was taken for granted when
    the problem was put together, a text in words of one's own; every certificate repeats them among
    its assumptions. `support` says which states each pair may lead to, where that is known before
    the data; None means any. `closed` are the pairs that no algorithm may give more chance than π_b
    does; None means none. `signals` are further numbers that must not get worse; the problem of one
    that is the chance to `reach` states has these.
    """

    counts: Counts
    behavior: Policy  # π_b
    discount: float | FloatArray  # γ, or one a pair [K], as split counts have
    value_bounds: tuple[float, float]
    unseen: UnseenRule = "terminal"
    log: DecisionLog | None = None
    premises: tuple[Statement, ...] = ()
    support: Successors | None = None
    closed: Annotated[BoolArray | None, Each("K")] = None
    name: str = "reward"  # of the signal that is improved
    cost: bool = False  # people see it with the other sign
    signals: tuple[Signal, ...] = ()
    reach: Reach | None = None

    __repr__ = short_repr(
        "num_states", "num_actions", "counts.visits", "discount", "value_bounds", "unseen"
    )
    _repr_html_ = short_html(
        "num_states", "num_actions", "counts.visits", "discount", "value_bounds", "unseen"
    )

    def __post_init__(self) -> None:
        """Checks that the parts belong together."""
        check_settings(self)
        pairs, (low, high) = self.counts.pairs, self.value_bounds
        check_same_pairs("the counts", pairs, "the behavior policy", self.behavior.pairs)
        if low > high:
            raise InvalidParameter(f"value_bounds is {(low, high)}, expected the lower one first")
        if self.log is not None:
            check_counts_of_log(self.counts, self.log)
        if self.support is not None:
            check_support(self.counts, self.support)
        for signal in self.signals:
            arrays.expect("signals", signal, Signal)
            ours, theirs = self.counts, signal.problem.counts
            check_same_pairs("the problem", ours.pairs, f"signal {signal.name!r}", theirs.pairs)
        read_arrays(self, InvalidParameter, {"K": pairs.num_pairs}, {})
        arrays.keep(
            self,
            discount=read_discounts(pairs, self.discount),
            value_bounds=(float(low), float(high)),
            premises=read_statements("premises", self.premises, InvalidParameter),
        )

    @property
    def num_states(self) -> int:
        """Returns |S|, ends of episodes included."""
        return self.counts.pairs.num_states

    @property
    def num_actions(self) -> int:
        """Returns |A|, the largest number of enabled actions of a state."""
        return most_actions(self.counts.pairs)

    @property
    def single_discount(self) -> float:
        """Returns γ, for formulas that have only one."""
        return one_discount(self.discount)

    @property
    def behavior_is_estimated(self) -> bool:
        """Tells whether π_b was estimated from a log: claims then hold relative to the estimate."""
        return self.behavior.estimated

    @property
    def alone(self) -> bool:
        """Tells whether claims are of ρ(π_I) itself, not of what it gains over π_b."""
        return self.reach is not None and self.reach.alone

    @property
    def horizon(self) -> int | None:
        """Returns the number of steps that count; None where all do."""
        return None if self.reach is None else self.reach.within

    @property
    def value_bound(self) -> float:
        """Returns V_max of the paper: the larger magnitude of the two value bounds."""
        return max(abs(bound) for bound in self.value_bounds)

    def within(self, closed: BoolArray) -> Problem:
        """Returns the problem with these pairs [K] closed, and those that are closed already.

        All else was checked before, and that takes its time with a long log.
        """
        return arrays.altered(self, closed=closed | ~self.open_pairs())

    def with_behavior(self, behavior: Policy) -> Problem:
        """Returns the problem with another π_b, for all of its signals."""
        return self.moved(lambda part: replace(part, behavior=behavior))

    def moved(self, change: Callable[[Problem], Problem]) -> Problem:
        """Returns what a change makes of the problem, and of that of each signal."""
        signals = tuple(signal.moved(change) for signal in self.signals)
        return arrays.altered(change(arrays.altered(self, signals=())), signals=signals)

    def open_pairs(self) -> BoolArray:
        """Returns the pairs [K] that a policy may take more often than π_b."""
        if self.closed is None:
            return np.ones(self.counts.pairs.num_pairs, np.bool_)
        return ~self.closed

    def support_sizes(self) -> IntArray:
        """Counts the states that each pair may lead to [K]."""
        if self.support is not None:
            return self.support.sizes
        return np.full(self.counts.pairs.num_pairs, self.num_states)

    def possible(self) -> BoolArray:
        """Returns the transitions [T] that the counts store and that may come."""
        if self.support is None:
            return np.ones(self.counts.successor.size, np.bool_)
        inside: BoolArray = self.support.places(self.counts) >= 0
        return inside

    def stored_sizes(self) -> IntArray:
        """Counts, of the states that each pair may lead to, those that the counts store [K]."""
        return arrays.run_sums(self.possible().astype(np.int64), self.counts.offsets)

    def estimate(self) -> FiniteMDP:
        """Returns the MLE-MDP of the counts, with unseen pairs worth what `unseen` says.

        States that are known to end episodes are not unseen: they are worth their known reward, or
        nothing, under either rule.
        """
        if self.unseen == "terminal":
            return estimate_mdp(self.counts, self.discount)
        return self.estimate_with_unseen_worth(self.value_bounds[0])

    def estimate_with_unseen_worth(self, value: float) -> FiniteMDP:
        """Returns the MLE-MDP of the counts, with unseen pairs, but no ends, worth `value`."""
        estimated = estimate_mdp(self.counts, self.discount)
        worth = np.where(self.unseen_pairs(), value, estimated.ending_reward)
        return replace(estimated, ending_reward=worth)

    def unseen_pairs(self) -> BoolArray:
        """Returns the pairs [K] that the data never visits, without those of known ends."""
        unseen: BoolArray = (self.counts.visits == 0) & ~self.counts.terminal[
            self.counts.pairs.state
        ]
        return unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement(Settings):
    """The answer of `improve`: π_I, and what is known about it in the estimated MDP.

    The value of `plan` is that of π_I in `problem.estimate()`, whatever model the algorithm itself
    planned in. An algorithm that looks at limits of further signals says which of them keeps a pair
    from being taken more often, and which of them no policy that it could find keeps.
    """

    policy: Policy
    plan: Plan
    n_wedge: int | None = None  # the N∧ that was used, where there is one
    behavior_is_estimated: bool = False  # π_b was estimated: claims hold relative to the estimate
    kept_by: tuple[str, ...] | None = None  # [K] names of signals, with semicolons; None: no limits
    unmet: tuple[str, ...] = ()  # names of signals

    __repr__ = short_repr("policy.pairs.num_states", "n_wedge", "behavior_is_estimated")

    @classmethod
    def of(cls, problem: Problem, plan: Plan, n_wedge: int | None = None) -> Improvement:
        """Returns the improvement of a problem by the policy of the plan."""
        return cls(
            policy=plan.policy,
            plan=plan,
            n_wedge=n_wedge,
            behavior_is_estimated=problem.behavior_is_estimated,
        )


def most_actions(pairs: Pairs) -> int:
    """Returns the largest number of enabled actions of a state."""
    return int(arrays.run_lengths(pairs.offsets).max())


def read_discounts(pairs: Pairs, discount: object) -> float | FloatArray:
    """Returns one discount in [0, 1], or one a pair."""
    if not (isinstance(discount, np.ndarray) and discount.ndim == 1):
        return arrays.read_discount(discount)
    shape, name = (pairs.num_pairs,), pairs.pair_name
    return arrays.floats("discount", discount, shape, InvalidParameter, name, least=0, most=1)


def one_discount(discount: float | FloatArray) -> float:
    """Returns the discount, where there is one for all pairs."""
    if isinstance(discount, float):
        return discount
    raise InvalidParameter(
        "the problem has a discount for each pair, but the formula asked for has only one γ; "
        "expected one number as discount"
    )


def check_counts_of_log(counts: Counts, log: DecisionLog) -> None:
    """Refuses counts that are not those of the log: visits, starts, ends, and sums of rewards.

    Sums may differ by what the order of adding does to them. The counts may know more than the
    log: rewards, and further states in which episodes end.
    """
    pairs, rewards, logged = counts.pairs, counts.rewards, log.counts()
    check_same_pairs("the counts", pairs, "the log", log.pairs)
    offsets, successor, (ours, theirs) = united(pairs, (counts, logged))
    times = np.zeros((2, successor.size), np.int64)
    times[0, ours], times[1, theirs] = counts.times, logged.times
    must_agree("count", partial(transition_name, pairs, offsets, successor), *times)
    must_agree("starts", pairs.state_name, counts.starts, logged.starts)
    ended = logged.terminal & counts.terminal  # they may know of further ends
    must_agree("terminal", pairs.state_name, ended.view(np.int8), logged.terminal.view(np.int8))
    if rewards.known:
        return
    per_pair, size = rewards.per == "pair", rewards.values.size
    place = arrays.run_owners(logged.offsets) if per_pair else np.argsort(ours)[theirs]
    slack = SUM_SLACK * float(np.abs(log.reward).max())
    sums = np.bincount(place, logged.rewards.values, size)
    must_agree("reward sum", counts.reward_name, rewards.values, sums, slack * counts.observed)
    if rewards.least is not None and rewards.greatest is not None:
        least, greatest = (least_and_greatest(x, place, size) for x in logged.observed_rewards())
        must_agree("least reward", counts.reward_name, rewards.least, least[0], slack)
        must_agree("greatest reward", counts.reward_name, rewards.greatest, greatest[1], slack)


def must_agree(
    what: str,
    name: Callable[[int], str],
    counted: AnyArray,
    expected: AnyArray,
    slack: AnyArray | float = 0.0,
) -> None:
    """Refuses counts that say something else than the log, naming the first difference."""
    with np.errstate(over="ignore"):  # an infinite difference is one too
        differs = np.abs(counted - expected) > slack
    for i, others in arrays.first_where(differs, "value"):
        raise ShapeMismatch(
            f"{what} of {name(i)} is {counted[i]} in the counts, but {expected[i]} in the "
            f"log{others}"
        )
