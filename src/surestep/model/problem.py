"""Defines the input (`Problem`) and the output (`Improvement`) of every algorithm.

A problem may have further signals: numbers that must not get worse, such as a cost or the chance to
reach unsafe states. Each signal is a problem over the same steps, pairs and policy, with other
rewards (a cost has negated rewards), so planning and claims work for all of them alike.

**The chance to reach unsafe states** is such a problem. The episode is over in an unsafe state and
pays −1 there; all other steps pay nothing, nothing is discounted, and only the first N steps count.
So its ρ is minus the chance to reach these states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Each, Settings, check_setting, check_settings, read_arrays
from surestep.errors import InvalidParameter, ShapeMismatch
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.estimates import estimate_mdp
from surestep.model.known import Known
from surestep.model.log import DecisionLog, Excerpt, least_and_greatest
from surestep.model.mdp import FiniteMDP
from surestep.model.noun import noun
from surestep.model.pairs import Pairs, check_same_pairs, spread_rows, united
from surestep.model.policy import Plan, Policy, policy_of
from surestep.model.statements import Statement, read_statements
from surestep.model.successors import Successors, check_support

UnseenRule = Literal["terminal", "pessimistic"]

SUM_SLACK = 1e-9  # of the largest reward, per visit: no order of adding changes a sum by more
NOTHING_KNOWN = Known()
NEVER_TO_ALWAYS = (-1.0, 0.0)  # minus a chance


class Reach(NamedTuple):
    """The unsafe states, which are not to be reached.

    Parameters
    ----------
    states : array of bool [S]
        True for these states.
    within : int, optional
        The number of first steps that count; by default all steps of an episode.
    alone : bool, default False
        If True, claims are about the chance under π_I itself, not about its difference from the
        chance under π_b.

    Examples
    --------
    >>> from surestep.model import Reach
    >>> Reach(np.array([False, True]), within=5).within
    5
    """

    states: arrays.BoolArray  # [S]
    within: int | None = None
    alone: bool = False


@noun("name", "margin", "cost", "at_most", "problem.num_states")
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """A number that must not get worse than before by more than its margin.

    Parameters
    ----------
    name : str
        Its name in tables and messages.
    problem : Problem
        The same data and policy with the rewards of this signal; it has no signals itself.
    margin : float, default 0.0
        The loss that is allowed, 0 or more.
    cost : bool, default False
        People see the number with the other sign.
    at_most : float, optional
        The largest chance to reach unsafe states that is allowed; by default the chance under π_b
        plus the margin.
    known : Known
        Facts about its rewards that certificates need; by default none.

    Examples
    --------
    >>> from surestep.model import Signal
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[-1.0], [0.0]])
    >>> habit = surestep.Policy.uniform(counts)
    >>> paid = surestep.Problem(counts=counts, behavior=habit, discount=0.9, value_bounds=(-10, 0))
    >>> Signal(name="price", problem=paid, margin=0.5, cost=True)
    Signal(name='price', margin=0.5, cost=True, num_states=2)
    """

    name: str
    problem: Problem
    margin: float = 0.0
    cost: bool = False
    at_most: float | None = None
    known: Known = NOTHING_KNOWN

    def __post_init__(self) -> None:
        check_setting(f"the margin of {self.name!r}", self.margin, Annotated[float, Meta(ge=0)])
        if self.problem.signals:
            raise InvalidParameter(f"the signal {self.name!r} has signals, expected none")

    @property
    def is_chance(self) -> bool:
        """Tells whether it is the chance to reach unsafe states."""
        return self.problem.reach is not None

    def moved(self, change: Callable[[Problem], Problem]) -> Signal:
        """Returns the signal with its problem changed.

        Parameters
        ----------
        change : callable
            Takes a problem and returns one, such as the problem of a part of the data.

        Returns
        -------
        Signal
            The same name, margin and facts with the changed problem.
        """
        return replace(self, problem=change(self.problem))


@noun("num_states", "num_actions", "counts.visits", "discount", "value_bounds", "unseen")
@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A safe-policy-improvement problem: the data D, the policy π_b behind it, discount and bounds.

    Parameters
    ----------
    counts : Counts
        The number of times each transition was seen.
    behavior : Policy
        The behavior policy π_b; also an object that has a policy, or an array of probabilities
        [S, A] or [K].
    discount : float or array of float [K]
        The discount γ, or one for each pair, as in split models.
    value_bounds : tuple of float
        Bounds (low, high) of every value V^π(s) of the true MDP.
    unseen : {"terminal", "pessimistic"}, default "terminal"
        The worth of a pair that the data never visits: its known reward, or 0 without one; or the
        lower value bound.
    log : DecisionLog, optional
        The log of the counts, for methods that look at whole episodes.
    premises : tuple of Statement or str, default ()
        Assumptions behind the problem; every certificate repeats them. A text is a sentence in your
        own words.
    support : Successors, optional
        The states each pair may lead to, known before the data; by default any.
    closed : array of bool [K], optional
        Pairs that no algorithm may give more probability than π_b does; by default none.
    name : str, default "reward"
        The name of the signal that is improved.
    cost : bool, default False
        People see that signal with the other sign.
    signals : tuple of Signal, default ()
        Further numbers that must not get worse.
    reach : Reach, optional
        The unsafe states, if the problem is the chance to reach them.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range.
    ShapeMismatch
        If the parts have different pairs, or the log other counts.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[1.0], [0.0]])
    >>> problem = surestep.Problem(
    ...     counts=counts, behavior=np.ones((2, 1)), discount=0.9, value_bounds=(0, 10)
    ... )
    >>> problem.behavior, problem.value_bound, problem.estimate().num_transitions
    (Policy(num_states=2, num_pairs=2, estimated=False), 10.0, 2)
    """

    counts: Counts
    behavior: Policy  # π_b
    discount: float | arrays.FloatArray  # γ, or one a pair [K]
    value_bounds: tuple[float, float]
    unseen: UnseenRule = "terminal"
    log: DecisionLog | None = None
    premises: tuple[Statement, ...] = ()
    support: Successors | None = None
    closed: Annotated[arrays.BoolArray | None, Each("K")] = None
    name: str = "reward"
    cost: bool = False
    signals: tuple[Signal, ...] = ()
    reach: Reach | None = None

    def __post_init__(self) -> None:
        arrays.expect("counts", self.counts, Counts)
        pairs = self.counts.pairs
        arrays.keep(self, behavior=policy_of(self.behavior, pairs, "behavior"))
        check_settings(self)
        low, high = self.value_bounds
        check_same_pairs("the counts", pairs, "the behavior policy", self.behavior.pairs)
        if low > high:
            raise InvalidParameter(f"value_bounds is {(low, high)}, expected the lower one first")
        if self.log is not None:
            check_counts_of_log(self.counts, self.log)
        if self.support is not None:
            check_support(self.counts, self.support)
        for signal in self.signals:
            arrays.expect("signals", signal, Signal)
            check_same_pairs(
                "the problem", pairs, f"signal {signal.name!r}", signal.problem.counts.pairs
            )
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
        """Returns γ, for formulas that have only one; refuses a discount for each pair."""
        if isinstance(self.discount, float):
            return self.discount
        raise InvalidParameter(
            "the problem has a discount for each pair, but the formula asked for has only one γ; "
            "expected one number as discount"
        )

    @property
    def behavior_is_estimated(self) -> bool:
        """Tells whether π_b was estimated from a log: claims then hold relative to the estimate."""
        return self.behavior.estimated

    @property
    def episodes(self) -> DecisionLog | None:
        """Returns the log if its rows are episodes; None for entries of a log, or without a log."""
        return None if isinstance(self.log, Excerpt) else self.log

    @property
    def alone(self) -> bool:
        """Tells whether claims are about ρ(π_I) itself, not about its gain over π_b."""
        return self.reach is not None and self.reach.alone

    @property
    def horizon(self) -> int | None:
        """Returns the number of steps that count; None if all count."""
        return None if self.reach is None else self.reach.within

    @property
    def value_bound(self) -> float:
        """Returns V_max of the paper: the larger magnitude of the two value bounds."""
        return max(abs(bound) for bound in self.value_bounds)

    def within(self, closed: arrays.BoolArray) -> Problem:
        """Closes further pairs.

        Parameters
        ----------
        closed : array of bool [K]
            The pairs to close; pairs that are closed already stay closed.

        Returns
        -------
        Problem
            The problem with these pairs closed; it is not checked again, since that is slow.
        """
        return arrays.altered(self, closed=closed | ~self.open_pairs())

    def with_behavior(self, behavior: Policy) -> Problem:
        """Replaces π_b, also in the problems of all signals.

        Parameters
        ----------
        behavior : Policy
            The new behavior policy.

        Returns
        -------
        Problem
            The problem with it.
        """
        return self.moved(lambda part: replace(part, behavior=behavior))

    def moved(self, change: Callable[[Problem], Problem]) -> Problem:
        """Applies a change to the problem and to the problem of each signal.

        Parameters
        ----------
        change : callable
            Takes a problem without signals and returns one.

        Returns
        -------
        Problem
            The changed problem, with the changed signals.
        """
        return arrays.altered(
            change(arrays.altered(self, signals=())),
            signals=tuple(signal.moved(change) for signal in self.signals),
        )

    def open_pairs(self) -> arrays.BoolArray:
        """Finds the pairs that a policy may take more often than π_b.

        Returns
        -------
        array of bool [K]
            True for all pairs but the closed ones.
        """
        every = np.ones(self.counts.pairs.num_pairs, np.bool_)
        return every if self.closed is None else ~self.closed

    def support_sizes(self) -> arrays.IntArray:
        """Counts the states that each pair may lead to.

        Returns
        -------
        array of int [K]
            The sizes of the support; without a support, the number of all states.
        """
        every = np.full(self.counts.pairs.num_pairs, self.num_states)
        return every if self.support is None else self.support.sizes

    def possible(self) -> arrays.BoolArray:
        """Finds the stored transitions that the support allows.

        Returns
        -------
        array of bool [T]
            True for all transitions if there is no support.
        """
        if self.support is None:
            return np.ones(self.counts.successor.size, np.bool_)
        return self.support.places(self.counts) >= 0

    def stored_sizes(self) -> arrays.IntArray:
        """Counts the possible successors of each pair that the counts store.

        Returns
        -------
        array of int [K]
            At most `support_sizes()`.
        """
        return arrays.run_sums(self.possible().astype(np.int64), self.counts.offsets)

    def estimate(self) -> FiniteMDP:
        """Estimates the MLE-MDP; `unseen` gives the worth of unseen pairs.

        Returns
        -------
        FiniteMDP
            Pairs of known ends are not unseen: under either rule they are worth their known reward,
            or 0.
        """
        if self.unseen == "terminal":
            return estimate_mdp(self.counts, self.discount)
        return self.estimate_with_unseen_worth(self.value_bounds[0])

    def estimate_with_unseen_worth(self, value: float) -> FiniteMDP:
        """Estimates the MLE-MDP, with unseen pairs worth `value`.

        Parameters
        ----------
        value : float
            The worth of every pair that was never visited, except pairs of known ends.

        Returns
        -------
        FiniteMDP
            The estimate.
        """
        estimated = estimate_mdp(self.counts, self.discount)
        return replace(
            estimated, ending_reward=np.where(self.unseen_pairs(), value, estimated.ending_reward)
        )

    def unseen_pairs(self) -> arrays.BoolArray:
        """Finds the pairs that the data never visits, except pairs of known ends.

        Returns
        -------
        array of bool [K]
            True for these pairs.
        """
        counts = self.counts
        unseen: arrays.BoolArray = (counts.visits == 0) & ~counts.terminal[counts.pairs.state]
        return unseen


@noun("policy.pairs.num_states", "n_wedge", "behavior_is_estimated")
@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement(Settings):
    """The answer of an algorithm: π_I, and its value in the estimated MDP.

    Parameters
    ----------
    policy : Policy
        The improved policy π_I.
    plan : Plan
        Its value in `problem.estimate()`, even if the algorithm planned in another model.
    n_wedge : int, optional
        The N∧ that was used, if there is one.
    behavior_is_estimated : bool, default False
        True if π_b was estimated: claims then hold relative to the estimate.
    kept_by : tuple of str, optional
        For each pair [K], the names of the signals whose limits keep it from being taken more
        often, joined by semicolons; None if the algorithm ignores limits.
    unmet : tuple of str, default ()
        The names of the signals whose limits the search could not meet.

    Examples
    --------
    >>> from surestep.algorithms import SPIBB
    >>> counts = surestep.Counts.from_dense([[[9], [9]]], reward_sums=[[0.0, 9.0]])
    >>> habit = surestep.Policy.uniform(counts)
    >>> problem = surestep.Problem(
    ...     counts=counts, behavior=habit, discount=0.5, value_bounds=(0, 2)
    ... )
    >>> answer = SPIBB(n_wedge=5).improve(problem)
    >>> answer.policy.dense(), answer.plan.value
    (array([[0., 1.]]), array([2.]))
    """

    policy: Policy
    plan: Plan
    n_wedge: int | None = None
    behavior_is_estimated: bool = False
    kept_by: tuple[str, ...] | None = None
    unmet: tuple[str, ...] = ()

    @classmethod
    def of(cls, problem: Problem, plan: Plan, n_wedge: int | None = None) -> Improvement:
        """Makes the improvement of a problem by the policy of a plan.

        Parameters
        ----------
        problem : Problem
            The problem.
        plan : Plan
            The policy with its value in the estimate.
        n_wedge : int, optional
            The N∧ that was used.

        Returns
        -------
        Improvement
            The improvement, with no information about limits.
        """
        return cls(
            policy=plan.policy,
            plan=plan,
            n_wedge=n_wedge,
            behavior_is_estimated=problem.behavior_is_estimated,
        )


def most_actions(pairs: Pairs) -> int:
    """Returns the largest number of enabled actions of a state."""
    return int(arrays.run_lengths(pairs.offsets).max())


def read_discounts(pairs: Pairs, discount: object) -> float | arrays.FloatArray:
    """Checks and returns one discount in [0, 1], or one for each pair."""
    if not (isinstance(discount, np.ndarray) and discount.ndim == 1):
        return arrays.read_discount(discount)
    return arrays.floats(
        "discount", discount, (pairs.num_pairs,), InvalidParameter, pairs.pair_name, least=0, most=1
    )


def check_counts_of_log(counts: Counts, log: DecisionLog) -> None:
    """Refuses counts that differ from the log's in visits, starts, ends, or sums of rewards.

    Sums may differ by rounding. The counts may know more than the log: rewards, and further states
    in which episodes end.
    """
    pairs = counts.pairs
    rewards = counts.rewards
    logged = log.counts()
    check_same_pairs("the counts", pairs, "the log", log.pairs)
    together, (ours, theirs) = united(pairs, (counts, logged))
    times = spread_rows([counts.times, logged.times], [ours, theirs], together.successor.size)
    check_against_log("count", together.transition_name, *times)
    check_against_log("starts", pairs.state_name, counts.starts, logged.starts)
    ended = logged.terminal & counts.terminal  # the counts may know of further ends
    check_against_log(
        "terminal", pairs.state_name, ended.view(np.int8), logged.terminal.view(np.int8)
    )
    if rewards.known:
        return
    place = arrays.run_owners(logged.offsets) if rewards.per == "pair" else np.argsort(ours)[theirs]
    slack = SUM_SLACK * float(np.abs(log.reward).max())
    check_against_log(
        "reward sum",
        counts.reward_name,
        rewards.values,
        np.bincount(place, logged.rewards.values, rewards.values.size),
        slack * counts.observed,
    )
    if rewards.least is not None and rewards.greatest is not None:
        least, greatest = (
            least_and_greatest(rewards_seen, place, rewards.values.size)
            for rewards_seen in logged.observed_rewards()
        )
        check_against_log("least reward", counts.reward_name, rewards.least, least[0], slack)
        check_against_log(
            "greatest reward", counts.reward_name, rewards.greatest, greatest[1], slack
        )


def check_against_log(
    what: str,
    name: Callable[[int], str],
    counted: arrays.AnyArray,
    expected: arrays.AnyArray,
    slack: arrays.AnyArray | float = 0.0,
) -> None:
    """Refuses counts that differ from the log by more than `slack`; names the first difference."""
    with np.errstate(over="ignore"):  # a difference may be infinite
        differs = np.abs(counted - expected) > slack
    for i, others in arrays.first_where(differs, "value"):
        raise ShapeMismatch(
            f"{what} of {name(i)} is {counted[i]} in the counts, but {expected[i]} in the "
            f"log{others}"
        )


def reaching(problem: Problem, reach: Reach) -> Problem:
    """Returns the problem of the chance to reach states, from the data of another problem.

    Parameters
    ----------
    problem : Problem
        The data, the behavior policy, and the possible successors.
    reach : Reach
        The states, and the number of steps that count.

    Returns
    -------
    Problem
        Its ρ is minus the chance. It has no discount and no signals.

    Examples
    --------
    >>> from surestep.model import Reach, reaching
    >>> counts = surestep.Counts.from_dense([[[3, 1]], [[0, 0]]], rewards=[[1.0], [0.0]])
    >>> habit = surestep.Policy.uniform(counts)
    >>> care = surestep.Problem(counts=counts, behavior=habit, discount=0.9, value_bounds=(0, 10))
    >>> reaching(care, Reach(np.array([False, True]), within=5)).value_bounds
    (-1.0, 0.0)
    """
    return arrays.altered(
        problem,
        discount=1.0,
        value_bounds=NEVER_TO_ALWAYS,
        unseen="pessimistic",
        signals=(),
        reach=reach._replace(states=arrays.freeze(reach.states)),
    )


def stopped(problem: Problem) -> Problem:
    """Returns the problem of a chance, with counts that end in unsafe states and pay −1 there.

    The counts leave out decisions in these states. The log keeps all its rows, with reward 0, since
    later visits of other pairs are still data. A problem without `reach` is returned unchanged.
    """
    if problem.reach is None:
        return problem
    counts = problem.counts
    unsafe = problem.reach.states
    state = counts.pairs.state
    kept = ~unsafe[state][arrays.run_owners(counts.offsets)]
    ended = Counts(
        counts.pairs,
        arrays.offsets_of(arrays.run_sums(kept.astype(np.int64), counts.offsets)),
        counts.successor[kept],
        counts.times[kept],
        LoggedRewards(np.where(unsafe[state], -1.0, 0.0), "pair", known=True),
        counts.starts,
        counts.terminal | unsafe,
    )
    log = problem.log
    if log is not None:
        log = arrays.altered(log, reward=np.zeros(log.num_steps))
    return arrays.altered(problem, counts=ended, log=log)
