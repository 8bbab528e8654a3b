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
from surestep.planning.rectangular import RectangularSet, joined_rows
from surestep.planning.robust import ENOUGH, MOST_ROUNDS, rule_of, ties_of, worst_value

SMALL = 128  # states up to which a set is one task, with a dense elimination


def worst_values(
    sets: Sequence[RectangularSet], policies: Sequence[Policy], floors: Sequence[FloatArray]
) -> list[Plan]:
    """Returns the `worst_value` of each set, under its policy and its floor [S]."""
    cases = [*zip(sets, policies, floors, strict=True)]
    if not joinable(sets):
        return [worst_value(*case) for case in cases]
    rules = [rule_of(*case) for case in cases]
    answers = zip(*settled(sets, rules, policies, floors), strict=True)
    return [
        plan_of(case[1], rule, *answer) or worst_value(*case)
        for case, rule, answer in zip(cases, rules, answers, strict=True)
    ]


def best_values(
    sets: Sequence[RectangularSet], policies: Sequence[Policy], ceilings: Sequence[FloatArray]
) -> list[Plan]:
    """Returns the `best_value` of each set, under its policy and its ceiling [S]."""
    mirrored = [models.mirrored() for models in sets]
    plans = worst_values(mirrored, policies, [-ceiling for ceiling in ceilings])
    return [negated(plan) for plan in plans]


def joinable(sets: Sequence[RectangularSet]) -> bool:
    """Tells whether the sets are small, of one kind and over the same pairs."""
    return bool(sets) and all(
        models.discount.max() < 1
        and models.pairs.num_states <= SMALL
        and type(models.rows) is type(sets[0].rows)
        and (models.pairs is sets[0].pairs or models.pairs == sets[0].pairs)
        for models in sets
    )


def plan_of(
    policy: Policy, rule: StoppingRule, value: FloatArray, residuals: FloatArray, rounds: int
) -> Plan | None:
    """Returns the plan of one set, or None where its values are not proven to be good."""
    low, high = residuals.tolist()
    bracket = rule.bracket((low, high), float(np.abs(value).max()), ties_of(rule))
    if not bracket.good:
        return None
    return Plan(policy, value, int(rounds), max(-low, high), bracket.error)


def settled(
    sets: Sequence[RectangularSet],
    rules: Sequence[StoppingRule],
    policies: Sequence[Policy],
    floors: Sequence[FloatArray],
) -> Answer:
    """Values near the fixed point of each set."""
    steps = zip(*((*models.low, models.discount) for models in sets), strict=True)
    step = Step._make(map(np.concatenate, steps))
    game = Game(
        sets[0].pairs.offsets,
        np.stack([policy.probability for policy in policies]),
        np.stack(floors),
        np.array([enough_for(rule) for rule in rules]),
        np.array([rule.reward_scale for rule in rules]),
        ENOUGH,
        TIE_TOLERANCE,
        MOST_ROUNDS,
    )
    size = len(sets)
    value = np.empty((size, sets[0].pairs.num_states))
    answer = Answer(value, np.empty((size, 2)), np.empty(size, np.int64))
    joined_rows([models.rows for models in sets]).settle(game, step, answer)
    return answer


def enough_for(rule: StoppingRule) -> float:
    """Returns the residual, as a part of max |R| + max |v|, that proves the error asked for."""
    slack = rule.terms * 2.0**-52 + TIE_TOLERANCE
    goal = min(max(DEFAULT_TOLERANCE, 4 * slack * rule.horizon.high), LOOSEST_DEFAULT)
    return (1 - 1e-9) * (goal / rule.horizon.high - slack + rule.leeway)
