"""Tells what is left of a robust claim if hidden causes tilt the odds of decisions by at most Γ.

By `planning.tilted`, the law T that follows if an action is chosen whatever the cause is lies
within [αP, βP], where P is the law that the log shows; so where l ≤ P ≤ u, T lies within [αl, βu],
and with T = αP + (1 − α)Q a mean reward of at least r is at least αr + (1 − α) · reward_low. α and
β are 1 in states that go on as before. What π_b earns is what episodes earned: it has the laws P.

Write D = V^{π_I} − V^{π_b}, with T for the rows of π_I. As in `certificates.robust`,

    D(s) = Σ_a (π_I Q_T − π_b Q_P)(s, a) + γ Σ_a π_I(a|s) Σ_s' T(s'|s,a) D(s'),

where Q_T and Q_P are the backups of V^{π_b} by T and by P. A term of the first sum is at least
π_I min Q_T − π_b max Q_P, over both sets. It is also (α π_I − π_b) Q_P + (1 − α) π_I Q_Q, where Q_Q
is at least the worst that may follow; at Γ = 1 that is the term of the robust claim. The larger one
is taken, and with D ≥ f = V_low^{π_I} − V_high^{π_b} the claim follows as there.
"""

from collections.abc import Callable

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.robust import (
    BothPolicies,
    Case,
    Robust,
    backups,
    difference_models,
    floor_of,
    with_lower,
)
from surestep.kernels.robust import Intervals
from surestep.model import Policy, Problem
from surestep.planning.rectangular import Earnings, RectangularSet, rows_in_intervals
from surestep.planning.robust import best_value, worst_value
from surestep.planning.tilted import chance_taken

ANYTHING = 1e300  # a β that allows every law over what may come


def tilts(certifier: Robust, problem: Problem) -> bool:
    """Tells whether a claim can be tilted: intervals, and a gain over whole episodes."""
    return certifier.set == "interval" and problem.horizon is None and not problem.alone


def tilted_claim(certifier: Robust, problem: Problem, policy: Policy) -> Callable[[float], float]:
    """Returns the robust claim as a function of the odds Γ, which are at least 1."""
    case = Case.of(certifier, problem, policy)
    worlds = case.models.models
    behavior = case.problem.behavior
    low, high = case.problem.value_bounds
    lowest = np.full(case.problem.num_states, low)
    taken = chance_taken(policy, behavior)
    theirs = worst_value(worlds, behavior, lowest)
    best = best_value(worlds, behavior, np.full_like(lowest, high))
    their_low = np.maximum(theirs.value - theirs.error_bound, low)
    their_high = np.minimum(best.value + best.error_bound, high)
    least, most = backups(worlds, their_low, their_high)
    any_law = scaled(case, np.zeros_like(taken), np.full_like(taken, ANYTHING))
    least_of_all, _ = backups(any_law, their_low, their_high)

    def lower(odds: float) -> float:
        kept = taken + (1 - taken) / odds  # α
        tilted = scaled(case, kept, taken + (1 - taken) * odds)
        ours = worst_value(tilted, policy, lowest)
        our_low = np.maximum(ours.value - ours.error_bound, low)
        floor = floor_of(our_low, their_high)
        least_tilted, _ = backups(tilted, their_low, their_high)
        change = kept * policy.probability - behavior.probability
        terms = np.maximum(
            policy.probability * least_tilted - behavior.probability * most,
            np.where(change > 0, change * least, change * most)
            + (1 - kept) * policy.probability * least_of_all,
        )
        both = BothPolicies(
            case,
            our_low,
            their_high,
            floor,
            difference_models(tilted, arrays.run_sums(terms, worlds.pairs.offsets)),
            ours.error_bound + theirs.error_bound + best.error_bound,
        )
        return with_lower(both, worst_value(both.difference, policy, floor)).lower

    return lower


def scaled(case: Case, kept: arrays.FloatArray, most: arrays.FloatArray) -> RectangularSet:
    """Returns the set of all laws within [αl, βu], with the least rewards that α [K] allows."""
    worlds = case.models.models
    rows = worlds.rows
    assert isinstance(rows, Intervals)
    owner = arrays.run_owners(rows.offsets)
    low = worlds.low
    if not case.problem.counts.rewards.known and case.certifier.reward_low is not None:
        lost = (1 - kept) * case.certifier.reward_low
        low = Earnings(
            kept[owner] * low.stored + lost[owner],
            kept * low.outside + lost,
            kept * low.ending + lost,
        )
    wide = rows_in_intervals(
        rows.offsets,
        rows.successor,
        kept[owner] * rows.low,
        np.minimum(most[owner] * rows.high, 1.0),
        np.minimum(most * rows.elsewhere, 1.0),
        ends=arrays.run_lengths(rows.room) == 0,
        support=case.problem.support_sizes(),
    )
    return RectangularSet(worlds.pairs, worlds.discount, wide, low, worlds.high)
