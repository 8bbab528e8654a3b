"""The chance to reach some states, ever or within N steps: of a policy, or over all policies.

**Within N steps**, backwards: v_0 = 1 on the target G and 0 elsewhere, and

    v_n(s) = 1 on G,    v_n(s) = opt_a Σ_s' P(s'|s,a) v_{n−1}(s')  elsewhere,

with opt the largest, the least, or the mean under a policy. All terms are 0 or more, so that the
rounding of a sweep is a small part ε of its result, and that of N sweeps at most exp(Nε) − 1 of it.

**Ever**, by graph first (C. Baier and J.-P. Katoen, "Principles of model checking", 2008, section
10.6). The most is 0 where no way leads to G; the least is 0 where some policy stays outside for
ever. What is left may still hold end components when the most is sought. Their states reach each
other for certain, so that each is made into one state (S. Haddad and B. Monmege, "Interval
iteration algorithm for MDPs and IMDPs", Theoretical Computer Science 735, 2018). The most then is 1
where some policy avoids all states of chance 0, the least where every policy does. In the rest all
policies end for certain: chances are total rewards, 1 for an end in G, and `planning.proof` turns
the residual of any v into bounds on them. Steps back to the same state change no chance, and are
left out.

A row that sums to 1 only within rounding stands for the distribution that it is proportional to.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp, fsum
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep._reprs import short_repr
from surestep._settings import check_setting
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.backup import best_values, greedy
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import PolicyLike
from surestep.planning.chain import (
    SINGULAR,
    Chain,
    Components,
    change_range,
    policy_chain,
    solve,
)
from surestep.planning.ends import EndComponents, ending_policy, lasting, staying, steps_towards
from surestep.planning.evaluation import check_inputs
from surestep.planning.horizons import EXACT, EXCESS, MOST_ROUNDS, chain_steps, changed
from surestep.planning.proof import SMALLEST_NORMAL, Horizon, most_terms
from surestep.planning.pruning import Backup, averaged, best_of
from surestep.planning.total import Quotient

Goal = Literal["most", "least"]
Bounds = tuple[FloatArray, FloatArray]
SMALLEST = 2.0**-1074  # the smallest double above 0
NEAR = 1e-13  # the residual of values, while the best policy is sought
PATIENT = Horizon(1.0, 1e3, uniform=False)  # 40,000 sweeps, where nothing else is left to try
HOPELESS = 1e3  # how far an upper bound may be from the tolerance before it is given up
DEAREST = -1e9  # that a step may cost, in steps


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """The chance to reach a target: low(s) ≤ chance from s ≤ high(s), proven for every state."""

    low: FloatArray  # [S]
    high: FloatArray  # [S]
    chance: tuple[float, float]  # (low, high) from the initial distribution

    __repr__ = short_repr("low", "high", "chance")

    @classmethod
    def of(cls, initial: FloatArray, low: FloatArray, high: FloatArray) -> Reach:
        """Averages the bounds of states over where episodes begin, rounding outwards."""
        begins = initial > 0
        least, most = (fsum(initial * bound) / fsum(initial) for bound in (low, high))
        least = max(least * (1 - 2.0**-50), float(low[begins].min()))
        most = min(most * (1 + 2.0**-50), float(high[begins].max()))
        return cls(arrays.own(low), arrays.own(high), (least, most))


def reachability(
    mdp: FiniteMDP,
    target: object,
    policy: PolicyLike | None = None,
    *,
    goal: Goal = "most",
    within: int | None = None,
    tolerance: float = 1e-9,
) -> Reach:
    """Bounds P(s_t ∈ target for some t), the chance to reach the target from each state.

    `target` is a mask [S], such as `mdp.marks["goal"]`, or state numbers; its own states have
    reached it. The chance is that of `policy`, given as for `evaluate`; without one it is the most
    over all policies, or the least (`goal`). `within` allows so many steps only, t ≤ within.
    Discounts and rewards do not count, and a pair without successors ends the episode.

    States have chance 0 or 1 exactly where the graph of the model says so. Elsewhere high − low ≤
    `tolerance`; one that cannot be proved raises NotConverged, whose `evaluation` is what was
    reached. So it may be where ways are long, or where policies can put off the end at next to no
    price. With `within` the bounds differ by rounding alone.
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    check_setting("goal", goal, Goal)
    check_setting("tolerance", arrays.plain(tolerance), Annotated[float, Meta(gt=0)])
    check_setting("within", arrays.plain(within), Annotated[int | None, Meta(ge=0)])
    reached, model = read_target(mdp, target), mdp
    if policy is not None:  # one pair a state: the least is the most
        model = chain_of(mdp, check_inputs(mdp, policy).probability)
        reached, goal = np.append(reached, False), "least"
    asked = model, reached, goal
    bounds = ever(*asked, tolerance) if within is None else in_steps(*asked, within)
    answer = Reach.of(mdp.initial, *(bound[: mdp.num_states] for bound in bounds))
    width = float((answer.high - answer.low).max())
    if within is None and width > tolerance:
        raise NotConverged(
            f"the chances are proven to within {width:.3g}, expected {tolerance:.3g}; give a "
            "larger tolerance, or a number of steps (within)",
            evaluation=answer,
        )
    return answer


def read_target(mdp: FiniteMDP, target: object) -> BoolArray:
    """Returns the states to reach as a mask [S]; refuses a target without any."""
    states, given = mdp.num_states, arrays.numbers("target", target, InvalidParameter)
    if given.dtype == np.bool_:
        mask = arrays.shaped("target", given, (states,), InvalidParameter).copy()
    else:
        mask = np.zeros(states, np.bool_)
        mask[arrays.indices("target", np.atleast_1d(given), states, InvalidParameter)] = True
    if not mask.any():
        raise InvalidParameter(f"target has no states, expected at least one of the {states}")
    return mask


def chain_of(mdp: FiniteMDP, policy: FloatArray) -> FiniteMDP:
    """Returns the model with one pair a state that a policy [K] makes of a model.

    One more state, the last, is where episodes are over.
    """
    pairs, size, row = mdp.pairs, mdp.num_states + 1, arrays.run_owners(mdp.offsets)
    ends = np.flatnonzero((policy > 0) & (arrays.run_lengths(mdp.offsets) == 0))
    taken = (policy[row] > 0) & (mdp.probability > 0)
    share = policy[row] * (mdp.probability / arrays.run_sums(mdp.probability, mdp.offsets)[row])
    weight = np.append(np.maximum(share[taken], SMALLEST), policy[ends])
    source = np.append(pairs.state[row[taken]], pairs.state[ends])
    successor = np.append(mdp.successor[taken], np.full(ends.size, size - 1))
    key, place = np.unique(source * np.int64(size) + successor, return_inverse=True)
    chance = np.bincount(place, weight, minlength=key.size).astype(np.float64)
    rows = arrays.offsets_of(np.bincount(key // size, minlength=size)), key % size, chance
    initial = np.append(mdp.initial, 0.0)
    return FiniteMDP(Pairs.full(size, 1), *rows, np.zeros(key.size), np.ones(size), initial)


def rebuilt(mdp: FiniteMDP, ends: BoolArray, worth: FloatArray, loops: bool = False) -> FiniteMDP:
    """Returns the model in which episodes end in some states [S], and rows sum to 1.

    Pairs that are left without successors earn the worth of their state [S], all others 0. Without
    `loops`, no state leads to itself.
    """
    row, state = arrays.run_owners(mdp.offsets), mdp.pairs.state
    kept = (mdp.probability > 0) & ~ends[state[row]]
    if not loops:
        kept &= mdp.successor != state[row]
    row, probability = row[kept], mdp.probability[kept]
    lengths = np.bincount(row, minlength=mdp.num_pairs)
    offsets = arrays.offsets_of(lengths)
    rows = offsets, mdp.successor[kept], probability / arrays.run_sums(probability, offsets)[row]
    ending = np.where(lengths == 0, worth[state], 0.0)
    rest = np.zeros(row.size), np.ones(mdp.num_pairs), mdp.initial, ending
    return FiniteMDP(mdp.pairs, *rows, *rest)


def in_steps(mdp: FiniteMDP, reached: BoolArray, goal: Goal, steps: int) -> Bounds:
    """Bounds the chances [S] to be in a state reached [S] within some steps."""
    sign = 1.0 if goal == "most" else -1.0
    model = rebuilt(mdp, reached, sign * reached, loops=True)
    backup, value, after = Backup.of(model), np.zeros(reached.size), np.empty(reached.size)
    for _ in range(steps + 1):  # the first gives v_0
        best_values(backup, value, after)
        if np.array_equal(value, after):
            break
        value, after = after, value
    terms = 2 * most_terms(mdp.offsets, mdp.pairs.offsets) * (steps + 1)
    growth, chance = exp(min(terms * 2.0**-52, 700.0)), np.abs(value)
    # No chance above 0 is smaller than that of a way without cycles.
    rarest = float(model.probability.min(initial=1.0)) ** min(steps, reached.size)
    lost = 0.0 if rarest > growth * SMALLEST_NORMAL else terms * SMALLEST
    low = np.where(reached, 1.0, np.maximum(chance / growth - lost, 0.0))
    return low, np.minimum((chance + lost) * growth, 1.0)


def ever(mdp: FiniteMDP, reached: BoolArray, goal: Goal, tolerance: float) -> Bounds:
    """Bounds the chances [S] to be in a state reached [S] at any time."""
    sign, pairs = 1.0 if goal == "most" else -1.0, mdp.pairs
    state: IntArray = np.arange(reached.size)
    model, outside = rebuilt(mdp, reached, sign * reached), ~reached[pairs.state]
    if goal == "most":
        never = (steps_towards(model, outside, reached) < 0) & ~reached
        nowhere = EndComponents(np.full(reached.size, -1), np.zeros(pairs.num_pairs, np.bool_))
        quotient = Quotient.of(rebuilt(model, never, sign * reached), nowhere)
        model, state = quotient.mdp, quotient.state
        never = np.isin(np.arange(model.num_states), state[never])
        going = (arrays.run_lengths(model.offsets) > 0) | (model.ending_reward > 0)
        surely = staying(model, going)[0]
    else:
        never = staying(model, outside)[0]
        model = rebuilt(model, never, sign * reached)
        surely = (steps_towards(model, np.ones(pairs.num_pairs, np.bool_), never) < 0) & ~never
    low, high, unknown = surely.astype(np.float64), 1.0 - never, ~(surely | never)
    if unknown.any():
        model = rebuilt(model, surely, sign * surely)
        terms = 2 * most_terms(mdp.offsets, model.pairs.offsets)
        with suppress(NotConverged):  # where the steps are too many for any proof
            ends = sign * np.stack(bracketed(model, terms, tolerance))
            low = np.where(unknown, np.clip(ends.min(axis=0), 0.0, 1.0), low)
            high = np.where(unknown, np.clip(ends.max(axis=0), 0.0, 1.0), high)
    return low[state], high[state]


def bracketed(model: FiniteMDP, terms: int, tolerance: float) -> Bounds:
    """Bounds the best values [S] of a model in which all policies end, from a policy near the best.

    Its own value is a lower bound. The upper one is that of `planning.total`: with D = v − (r + Pv)
    ≥ −ε for each pair, u = v + ε w/θ will do if w ≥ θ − M D⁺ + Pw and εM ≤ θ. So only steps that
    cost next to nothing count in w, and not those of policies that put off the end at a price.
    `terms` is how many roundings a backup may have, those of the rows included.
    """
    backup, pairs, share = Backup.of(model), model.pairs, terms * 2.0**-52
    target, components, reached = max(NEAR, 2 * share), Components.of(backup), -1
    value: FloatArray = np.zeros(model.num_states)
    while reached < components.number:  # a component that is slow is left as it is
        reached = components.settle(reached + 1, NEAR, value)
    policy = ending_policy(model, lasting(model)).probability
    for number in range(MOST_ROUNDS):
        q, best = backup.q(value), np.empty(pairs.num_pairs)
        greedy(pairs.offsets, q, 0.0, best)
        policy, better = changed(pairs, q, policy, best, 4 * target)
        if number > 0 and not better:
            break
        chain = policy_chain(model, policy)
        value = settled(chain, value, target)
    steps = chain_steps(chain)
    steps /= max(1 - share * steps, SMALLEST_NORMAL)  # w ≥ 1 + Pw also for rows off by rounding
    if target * steps > tolerance / 8:
        value = settled(chain, value, max(tolerance / 8 / steps, 2 * share))
    slack = share * (1 + float(np.abs(value).max()))
    low = value - max(slack - change_range(chain, value)[0], 0.0) * steps
    disadvantage = value[pairs.state] - backup.q(value)
    epsilon = slack + max(-float(disadvantage.min()), 0.0)
    clock = np.maximum(1 - np.maximum(disadvantage, 0.0) / (4 * epsilon), DEAREST)
    w: FloatArray = np.zeros(model.num_states)
    for _ in range(MOST_ROUNDS):
        chain = replace(policy_chain(model, policy), reward=averaged(pairs, policy, clock))
        w = settled(chain, w, EXACT)
        if not epsilon * w.max() < HOPELESS * tolerance:  # and it only grows
            break
        q = backup._replace(reward=clock).q(w)
        theta = 1 - float((q - w[pairs.state]).max()) - share * float(np.abs(w).max() - clock.min())
        if theta >= 1 - 2 * EXCESS:  # εM is 1/4
            return low, value + epsilon / theta * np.maximum(w, 0.0)
        policy, _ = changed(pairs, q, policy, best_of(pairs, q), EXCESS / 2)
    return low, np.full(model.num_states, np.inf)


def settled(chain: Chain, start: FloatArray, target: float) -> FloatArray:
    """Solves x = b + W x up to a residual of `target` where that is quick; ∞ if near singular."""
    try:
        return solve(chain, "auto", start, target, PATIENT, lambda _, reached: reached <= target)[0]
    except SINGULAR:
        return np.full_like(start, np.inf)
