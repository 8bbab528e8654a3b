"""Bounds the chance to reach some states, ever or within N steps: of one policy, or over all.

**Within N steps**, backwards: v_0 = 1 on the target G and 0 elsewhere, and

    v_n(s) = 1 on G,    v_n(s) = opt_a Σ_s' P(s'|s,a) v_{n−1}(s')  elsewhere,

with opt the largest, the least, or the mean under a policy. All terms are 0 or more, so that the
rounding of a sweep is a small part ε of its result, and of N sweeps at most exp(Nε) − 1 of it.

**Ever**, by graph first (C. Baier and J.-P. Katoen, "Principles of model checking", 2008, section
10.6). The most is 0 if no way leads to G; the least is 0 if some policy stays outside for ever. For
the most, the other states may still hold end components. The states of a component reach each other
for certain, so each component is merged into one state (S. Haddad and B. Monmege, "Interval
iteration algorithm for MDPs and IMDPs", Theoretical Computer Science 735, 2018). Then the most is 1
if some policy avoids all states of chance 0, and the least is 1 if every policy does. In the other
states all policies end for certain, and chances are best total rewards V: 1 for an end in G (−1 for
the least). Steps back to the same state change no chance, and are left out.

**Bounds** are vectors that a backup moves to one side only (C. Baier et al., "Ensuring the
reliability of your model checker", CAV 2017): v ≤ max_a (r + P_a v) gives v ≤ V, and u ≥ max_a (r +
P_a u) gives u ≥ V, since all policies end. To hold in spite of rounding by at most ε, v is the best
value if each step costs c ≥ 2ε, and u is the best value if each step earns c. Then

    v ≈ max_π (V^π − c N^π),    u ≈ max_π (V^π + c N^π),    N^π the expected number of steps.

**Hiding.** u is useless if some policy hides for 1/ε steps at next to no price. Then states of
nearly the same v are merged into one. Any such merger is safe: a u that is constant on a set C, and
has u(C) ≥ Σ_{s' ∉ C} P(s'|s,a) u(s') / P(not C|s,a) for all its pairs, has u ≥ P_a u in each state
of C.

A row that sums to 1 only within rounding means the distribution proportional to it.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from math import exp
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.backup import best_values, greedy
from surestep.model import FiniteMDP, Pairs
from surestep.model.noun import noun
from surestep.model.policy import PolicyLike
from surestep.planning.backups import Backup, averaged
from surestep.planning.chain import SINGULAR, policy_chain, settle, solve_to
from surestep.planning.ends import EndComponents, ending_policy, lasting, staying, steps_towards
from surestep.planning.evaluation import check_inputs
from surestep.planning.horizons import better_rows
from surestep.planning.proof import SMALLEST_NORMAL, Horizon, most_terms
from surestep.planning.total import Quotient

Goal = Literal["most", "least"]
Bounds = tuple[arrays.FloatArray, arrays.FloatArray]
SMALLEST = 2.0**-1074  # the smallest double above 0
PATIENT = Horizon(1.0, 25.0, uniform=False)  # 1,000 sweeps, if all other methods fail
PRICES = (2.0**30, 2.0**20, 2.0**10, 2.0**4, 2.0)  # of a step, in ε; high ones find short ways
MOST_ROUNDS = 50  # of policy iteration, which may never end if policies hide
LARGEST = 2.0  # larger values say nothing about chances
# States whose values are this near are merged, if policies hide; at first none are.
WIDTHS = (-1.0, 1e-13, 1e-11, 1e-9, 1e-7)


@noun("lower", "upper")
@dataclass(frozen=True, slots=True, eq=False)
class ReachChance:
    """The chance to reach a target: lower(s) ≤ chance from s ≤ upper(s), proven for every state.

    Parameters
    ----------
    lower : array of float [S]
        The least that the chance can be.
    upper : array of float [S]
        The most that the chance can be.

    Examples
    --------
    >>> from surestep.planning import ReachChance
    >>> ReachChance(np.array([0.4]), np.array([0.5])).upper
    array([0.5])
    """

    lower: arrays.FloatArray  # [S]
    upper: arrays.FloatArray  # [S]


def reachability(
    mdp: FiniteMDP,
    target: object,
    policy: PolicyLike | Goal = "most",
    *,
    within: int | None = None,
    tolerance: float = 1e-9,
) -> ReachChance:
    """Bounds the chance P(s_t ∈ target for some t) to reach the target from each state.

    Parameters
    ----------
    mdp : FiniteMDP
        The model. Its discounts and rewards do not count; a pair without successors ends the
        episode.
    target : array of bool [S] or of int
        The states to reach: a mask such as `mdp.marks["goal"]`, or state numbers. From a state of
        the target, the chance is 1.
    policy : {"most", "least"} or Policy, Plan, Improvement, Result or array of float [S, A]
        The policy, or the largest or the smallest chance over all policies.
    within : int, optional
        Count only the first steps, t ≤ within. By default all steps count.
    tolerance : float, default 1e-9
        The largest upper − lower to aim for.

    Returns
    -------
    ReachChance
        Lower and upper bounds. If the graph of the model shows that a chance is 0 or 1, both are
        exact. Otherwise they differ by at most `tolerance`. If ways are so long that rounding
        leaves more, they are wider, and still hold. With `within` they differ by rounding alone.

    Raises
    ------
    NotConverged
        If nothing can be proved.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, reachability
    >>> P = [[[0.5, 0.2, 0.3], [0.9, 0.0, 0.1]], [[0.0] * 3] * 2, [[0.0] * 3] * 2]
    >>> walk = FiniteMDP.from_dense(P, np.zeros((3, 2)), discount=0.5)
    >>> reach = reachability(walk, [1])  # the first action: 0.2 / (0.2 + 0.3)
    >>> reach.lower.round(6), reach.upper.round(6)
    (array([0.4, 1. , 0. ]), array([0.4, 1. , 0. ]))
    >>> reachability(walk, [1], "least").upper  # the second action never leads there
    array([0., 1., 0.])
    >>> reachability(walk, [1], Policy.uniform(walk), within=2).lower.round(6)  # 0.1 + 0.7 · 0.1
    array([0.17, 1.  , 0.  ])
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    check_setting("tolerance", arrays.as_python(tolerance), Annotated[float, Meta(gt=0)])
    check_setting("within", arrays.as_python(within), Annotated[int | None, Meta(ge=0)])
    reached = read_target(mdp, target)
    model = mdp
    longest = arrays.run_lengths(mdp.offsets)
    if isinstance(policy, str):
        check_setting("policy", policy, Goal)
    else:  # the chain has one pair a state, so the least and the most are equal
        model = chain_of(mdp, check_inputs(mdp, policy).probability)
        longest = arrays.run_lengths(mdp.offsets[mdp.pairs.offsets]) + 1
        reached = np.append(reached, False)
        policy = "least"
    bounds = (
        ever(model, reached, policy, tolerance, int(longest.max()))
        if within is None
        else in_steps(model, reached, policy, within)
    )
    return ReachChance(*(arrays.own(bound[: mdp.num_states]) for bound in bounds))


def read_target(mdp: FiniteMDP, target: object) -> arrays.BoolArray:
    """Returns the states to reach as a mask [S]; refuses a target without any."""
    states = mdp.num_states
    given = arrays.numbers("target", target, InvalidParameter)
    if given.dtype == np.bool_:
        mask = arrays.shaped("target", given, (states,), InvalidParameter).copy()
    else:
        places = arrays.indices("target", np.atleast_1d(given), states, InvalidParameter)
        mask = arrays.marked(places, states)
    if not mask.any():
        raise InvalidParameter(f"target has no states, expected at least one of the {states}")
    return mask


def chain_of(mdp: FiniteMDP, policy: arrays.FloatArray) -> FiniteMDP:
    """Returns the chain of a policy [K] as a model with one pair a state.

    Episodes that are over are in one more state, the last.
    """
    pairs = mdp.pairs
    size = mdp.num_states + 1
    row = arrays.run_owners(mdp.offsets)
    ends = np.flatnonzero((policy > 0) & (arrays.run_lengths(mdp.offsets) == 0))
    taken = (policy[row] > 0) & (mdp.probability > 0)
    share = policy[row] * (mdp.probability / arrays.run_sums(mdp.probability, mdp.offsets)[row])
    weight = np.append(np.maximum(share[taken], SMALLEST), policy[ends])
    source = np.append(pairs.state[row[taken]], pairs.state[ends])
    successor = np.append(mdp.successor[taken], np.full(ends.size, size - 1))
    key, place = np.unique(source * np.int64(size) + successor, return_inverse=True)
    return FiniteMDP(
        Pairs.full(size, 1),
        arrays.offsets_of(np.bincount(key // size, minlength=size)),
        key % size,
        np.bincount(place, weight, minlength=key.size).astype(np.float64),
        np.zeros(key.size),
        np.ones(size),
        np.append(mdp.initial, 0.0),
    )


def rebuilt(
    mdp: FiniteMDP, ends: arrays.BoolArray, worth: arrays.FloatArray, loops: bool = False
) -> FiniteMDP:
    """Returns the model in which episodes end in the states `ends` [S], and rows sum to 1.

    Pairs without successors earn the worth of their state [S], all others 0. Without `loops`, no
    state leads to itself.
    """
    row = arrays.run_owners(mdp.offsets)
    state = mdp.pairs.state
    kept = (mdp.probability > 0) & ~ends[state[row]]
    if not loops:
        kept &= mdp.successor != state[row]
    row = row[kept]
    probability = mdp.probability[kept]
    lengths = np.bincount(row, minlength=mdp.num_pairs)
    offsets = arrays.offsets_of(lengths)
    return FiniteMDP(
        mdp.pairs,
        offsets,
        mdp.successor[kept],
        probability / arrays.run_sums(probability, offsets)[row],
        np.zeros(row.size),
        np.ones(mdp.num_pairs),
        mdp.initial,
        np.where(lengths == 0, worth[state], 0.0),
    )


def in_steps(mdp: FiniteMDP, reached: arrays.BoolArray, goal: Goal, steps: int) -> Bounds:
    """Bounds the chances [S] to come to a state of `reached` [S] within `steps` steps."""
    model = rebuilt(mdp, reached, (1.0 if goal == "most" else -1.0) * reached, loops=True)
    backup = Backup.of(model)
    value = np.zeros(reached.size)
    after = np.empty(reached.size)
    for _ in range(steps + 1):  # the first gives v_0
        best_values(backup, value, after)
        if np.array_equal(value, after):
            break
        value, after = after, value
    terms = 2 * most_terms(mdp.offsets, mdp.pairs.offsets) * (steps + 1)
    growth = exp(min(terms * 2.0**-52, 700.0))
    chance = np.abs(value)
    # Any chance above 0 is at least the chance of one way without cycles.
    rarest = float(model.probability.min(initial=1.0)) ** min(steps, reached.size)
    lost = 0.0 if rarest > growth * SMALLEST_NORMAL else terms * SMALLEST
    return (
        np.where(reached, 1.0, np.maximum(chance / growth - lost, 0.0)),
        np.minimum((chance + lost) * growth, 1.0),
    )


def ever(
    mdp: FiniteMDP, reached: arrays.BoolArray, goal: Goal, tolerance: float, terms: int
) -> Bounds:
    """Bounds the chances [S] to come to a state of `reached` [S] at any time.

    A row has at most `terms` terms. It is made by two sums for a policy, scaled up to four times,
    merged up to three times, and summed in a backup.
    """
    rounding = (9 * terms + 10) * 2.0**-53
    sign = 1.0 if goal == "most" else -1.0
    pairs = mdp.pairs
    state: arrays.IntArray = np.arange(reached.size)
    model = rebuilt(mdp, reached, sign * reached)
    outside = ~reached[pairs.state]
    if goal == "most":
        never = (steps_towards(model, outside, reached) < 0) & ~reached
        model, state = collapsed(rebuilt(model, never, sign * reached))
        never = np.isin(np.arange(model.num_states), state[never])
        surely = staying(
            model, (arrays.run_lengths(model.offsets) > 0) | (model.ending_reward > 0)
        )[0]
    else:
        never = staying(model, outside)[0]
        model = rebuilt(model, never, sign * reached)
        surely = (steps_towards(model, np.ones(pairs.num_pairs, np.bool_), never) < 0) & ~never
    unknown = ~(surely | never)
    known = surely.astype(np.float64)
    if not unknown.any():
        return known[state], known[state]
    model = rebuilt(model, surely, sign * surely)
    low, high = np.full((2, surely.size), [[-np.inf], [np.inf]])
    if mdp.probability[mdp.probability > 0].min() >= SMALLEST_NORMAL:  # smaller ones lose digits
        low = proven(model, -rounding, tolerance, np.zeros(low.size))
    for width in WIDTHS:
        if low.min() > -np.inf and (high - low).max() > tolerance:
            merged, place = loosened(model, low, unknown, width)
            near = np.zeros(merged.num_states)
            near[place] = low
            high = np.minimum(high, proven(merged, rounding, tolerance, near)[place])
    lower, upper = np.where(unknown, np.clip(np.sort(sign * np.stack([low, high]), 0), 0, 1), known)
    if (upper - lower)[unknown].min() == 1:
        raise NotConverged(
            "ways to the target are so long that nothing can be proven in doubles; expected "
            "likelier steps, or a number of steps (within)"
        )
    return lower[state], upper[state]


def proven(
    model: FiniteMDP, rounding: float, tolerance: float, near: arrays.FloatArray
) -> arrays.FloatArray:
    """Bounds the best values [S] of a model in which all policies end: from below if ε < 0.

    Returns ±∞ if nothing is proven. The search starts from the vector `near` [S], and one backup
    proves the vector found. Prices fall until it changes little, or the lower bound is near enough.
    """
    backup = Backup.of(model)
    pairs = model.pairs
    after = np.empty(model.num_states)
    goes_on = arrays.run_lengths(model.offsets) > 0
    proved = nothing = np.full(model.num_states, np.copysign(np.inf, rounding))
    for price in PRICES if rounding < 0 else PRICES[2:]:
        priced = backup._replace(reward=backup.reward + price * rounding * goes_on)
        value = sought(
            model, priced, (near if proved is nothing else proved).copy(), price * abs(rounding) / 4
        )
        backup.best(value, after)
        # Ends are exact, so they need no room for rounding.
        needed = np.zeros(value.size)
        size = float(np.abs(value).max())
        needed[pairs.state[goes_on]] = max(size, 1.0)
        if size < LARGEST and ((after - value) / -rounding >= needed).all():
            before, proved = near if rounding > 0 else proved, value
            if np.abs(proved - before).max() <= tolerance:
                break
    return proved


def sought(
    model: FiniteMDP, priced: Backup, value: arrays.FloatArray, target: float
) -> arrays.FloatArray:
    """Approximates the best values [S] up to `target`: by policy iteration, after sweeps from 0."""
    pairs = model.pairs
    best = np.empty(model.num_pairs)
    policy = ending_policy(model, lasting(model)).probability
    with suppress(*SINGULAR):
        if not value.any():
            settle(priced, target, value)
        for number in range(MOST_ROUNDS):
            q = priced.q(value)
            greedy(pairs.offsets, q, 0.0, best)
            policy, better = better_rows(pairs, q, policy, best, target)
            if not (number == 0 or better) or not value.max() < LARGEST:
                break
            chain = replace(
                policy_chain(model, policy), reward=averaged(pairs, policy, priced.reward)
            )
            value = solve_to(chain, value, target, PATIENT, "components")
    return value


def collapsed(
    model: FiniteMDP, sets: EndComponents | None = None
) -> tuple[FiniteMDP, arrays.IntArray]:
    """Merges each end component, or set of `sets`, into one state; also returns new numbers [S]."""
    nothing = EndComponents(np.full(model.num_states, -1), np.zeros(model.num_pairs, np.bool_))
    quotient = Quotient.of(model, nothing, sets)
    return quotient.mdp, quotient.state


def loosened(
    model: FiniteMDP, value: arrays.FloatArray, open_states: arrays.BoolArray, width: float
) -> tuple[FiniteMDP, arrays.IntArray]:
    """Merges open states [S] of nearly the same value [S]; also returns their new numbers [S]."""
    order = np.argsort(value)
    level = np.empty(value.size, np.int64)
    level[order] = np.cumsum(np.diff(value[order], prepend=-np.inf) > width)
    level[~open_states] = -1  # ends stay alone
    merged, first = collapsed(model, EndComponents(level, np.zeros(model.num_pairs, np.bool_)))
    merged, second = collapsed(merged)  # the merger may have made new end components
    worth = np.zeros(merged.num_states)
    goes_on = merged.pairs.state[arrays.run_lengths(merged.offsets) > 0]
    ends = ~arrays.marked(goes_on, merged.num_states)
    worth[merged.pairs.state] = merged.ending_reward
    return rebuilt(merged, ends, worth), second[first]
