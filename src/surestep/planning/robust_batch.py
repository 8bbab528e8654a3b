"""The worst and the best that each of many rectangular sets over the same pairs allows.

Small sets of one kind are joined, one after the other in all arrays, and settled by one compiled
loop on all cores (see `kernels.robust_batch`). It only looks for values: how far they can be off is
proven as in `planning.robust`, from their residuals. Large sets, and those for which the loop finds
no good values, are left to `planning.robust`, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surestep._arrays import FloatArray
from surestep.kernels.robust import Step
from surestep.kernels.robust_batch import Answer, Game
from surestep.model.plan import Plan, negated
from surestep.model.policy import Policy
from surestep.planning.proof import DEFAULT_TOLERANCE, LOOSEST_DEFAULT, TIE_TOLERANCE, StoppingRule
from surestep.planning.rectangular import RectangularSet
from surestep.planning.robust import (
    ENOUGH,
    MOST_ROUNDS,
    robust_optimal,
    rule_of,
    ties_of,
    worst_value,
)

SMALL = 128  # states up to which a set is one task, with a dense elimination


def worst_values(
    sets: Sequence[RectangularSet], policies: Sequence[Policy], floors: Sequence[FloatArray]
) -> list[Plan]:
    """Returns the `worst_value` of each set, under its policy and its floor [S]."""
    if not joinable(sets):
        return [worst_value(*case) for case in zip(sets, policies, floors, strict=True)]
    chances = np.stack([policy.probability for policy in policies])
    rules = [rule_of(*case) for case in zip(sets, policies, floors, strict=True)]
    answer = settled(sets, rules, chances, np.stack(floors), choosing=False)
    return [
        plan_of(policy, b, rules[b], answer) or worst_value(sets[b], policy, floors[b])
        for b, policy in enumerate(policies)
    ]


def best_values(
    sets: Sequence[RectangularSet], policies: Sequence[Policy], ceilings: Sequence[FloatArray]
) -> list[Plan]:
    """Returns the `best_value` of each set, under its policy and its ceiling [S]."""
    mirrored = [models.mirrored() for models in sets]
    plans = worst_values(mirrored, policies, [-ceiling for ceiling in ceilings])
    return [negated(plan) for plan in plans]


def robust_optima(sets: Sequence[RectangularSet]) -> list[Plan]:
    """Returns the `robust_optimal` plan of each set."""
    if not joinable(sets):
        return [robust_optimal(models) for models in sets]
    pairs = sets[0].pairs
    chances = np.empty((len(sets), pairs.num_pairs))
    rules = [rule_of(models, None, None) for models in sets]
    unbounded = np.full((len(sets), pairs.num_states), -np.inf)
    answer = settled(sets, rules, chances, unbounded, choosing=True)
    return [
        plan_of(Policy(pairs, chances[b]), b, rules[b], answer) or robust_optimal(sets[b])
        for b in range(len(sets))
    ]


def joinable(sets: Sequence[RectangularSet]) -> bool:
    """Tells whether the sets are small, of one kind and over the same pairs."""

    def kind(models: RectangularSet) -> tuple[type, bool]:
        return type(models.rows), getattr(models.rows, "closed", False)

    return bool(sets) and all(
        models.discount.max() < 1
        and models.pairs.num_states <= SMALL
        and kind(models) == kind(sets[0])
        and (models.pairs is sets[0].pairs or models.pairs == sets[0].pairs)
        for models in sets
    )


def plan_of(policy: Policy, b: int, rule: StoppingRule, answer: Answer) -> Plan | None:
    """Returns the plan of one set, or None where its values are not proven to be good."""
    _, value, residuals, rounds = answer
    low, high = residuals[b].tolist()
    bracket = rule.bracket((low, high), float(np.abs(value[b]).max()), ties_of(rule))
    if not bracket.good:
        return None
    return Plan(policy, value[b], int(rounds[b]), max(-low, high), bracket.error)


def settled(
    sets: Sequence[RectangularSet],
    rules: Sequence[StoppingRule],
    chances: FloatArray,
    floors: FloatArray,
    *,
    choosing: bool,
) -> Answer:
    """Values near the fixed point of each set; where policies are sought, those too [B, K]."""
    size = len(sets)
    rows = type(sets[0].rows).joined([models.rows for models in sets])
    low = [models.low for models in sets]
    step = Step(
        np.concatenate([earnings.stored for earnings in low]),
        np.concatenate([earnings.outside for earnings in low]),
        np.concatenate([earnings.ending for earnings in low]),
        np.concatenate([models.discount for models in sets]),
    )
    game = Game(
        choosing,
        sets[0].pairs.offsets,
        floors,
        np.array([enough_for(rule) for rule in rules]),
        np.array([rule.reward_scale for rule in rules]),
        ENOUGH,
        TIE_TOLERANCE,
        MOST_ROUNDS,
    )
    value = np.empty((size, sets[0].pairs.num_states))
    answer = Answer(chances, value, np.empty((size, 2)), np.empty(size, np.int64))
    rows.settle(game, step, answer)
    return answer


def enough_for(rule: StoppingRule) -> float:
    """Returns the residual, as a part of max |R| + max |v|, that proves the error asked for."""
    slack = rule.terms * 2.0**-52 + TIE_TOLERANCE
    goal = min(max(DEFAULT_TOLERANCE, 4 * slack * rule.horizon.high), LOOSEST_DEFAULT)
    return (1 - 1e-9) * (goal / rule.horizon.high - slack + rule.leeway)
