"""Computes the worst-case and best-case values of policies over a rectangular set of MDPs.

The worst case under a policy is the fixed point of T v = Σ_a π(a|s) min_p Σ p (R + Γ v), a monotone
contraction like the ordinary operator, so that |V − v| ≤ max |Tv − v| / (1 − γ). If it is known
that no value is below a `floor`, max(Tv, floor) replaces Tv, and is a contraction too.

Sweeps v ← Tv are slow for γ near 1. So the worst rows for v are held fixed, and their chain is
solved: this is policy iteration of nature, which brings v down to the worst case in steps whose
number does not grow with 1/(1 − γ). If a policy is sought at the same time, or a floor binds, there
are two sides. We choose the policy and the states in which we hold the floor; nature chooses the
rows. Both move at once for as long as that brings v much nearer. If it does not, they take turns:
nature answers our choice until nothing is left to gain, and only then we choose anew, so that v
only rises from one choice to the next (A. J. Hoffman and R. M. Karp, "On nonterminating stochastic
games", Management Science 12, 1966).

Without a discount the operator is no contraction, but with a known floor it is enough that it is
monotone: if v ≤ V, then max(Tv, floor) ≤ max(TV, floor) = V, the worst case being V ≥ floor. So
sweeps from the floor on rise, and each of them is a lower bound, even before they converge.

**Many sets over the same pairs.** Small sets of one kind are joined, one after the other in all
arrays, and solved by one compiled loop on all cores (see `kernels.robust_batch`). The loop only
finds values; their errors are proven from their residuals, as for one set. Large sets, and sets for
which the loop finds no good values, are solved one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, first_where, run_lengths
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.backup import difference_range
from surestep.kernels.robust import ExtremeRows, Step, Trees
from surestep.kernels.robust_batch import ENOUGH, MOST_ROUNDS, Answer, Game
from surestep.kernels.types import RoomSize
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Plan, Policy, negated
from surestep.planning.backups import FixedRows, averaged, best_of
from surestep.planning.chain import Chain, largest, policy_chain, solve_to
from surestep.planning.horizons import discounted_horizon
from surestep.planning.proof import (
    DEFAULT_TOLERANCE,
    LOOSEST_DEFAULT,
    TIE_TOLERANCE,
    Horizon,
    StoppingRule,
    refuse,
)
from surestep.planning.rectangular import (
    SETTLE,
    Earnings,
    RectangularSet,
    empty_rows,
    joined_rows,
    rows_in_balls,
)

INEXACT = 0.01  # the part of the residual that an iterative solution leaves: rounds are dear
MOST_SWEEPS = 10_000  # without a discount: more sweeps hardly raise a lower bound
SMALL = 128  # states up to which a set is one task, with a dense elimination


def l1_ball(
    center: FiniteMDP,
    radius: FloatArray,
    outside_reward: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> RectangularSet:
    """Returns all MDPs whose rows lie within `radius` [K] of the rows of `center`, in L1 distance.

    Mass may go to any state; a step to a state that is not stored earns `outside_reward` [K]. A
    pair without successors is worth `lowest` [K] at worst and `highest` [K] at best. Refuses
    discounts under which the worst case need not be finite.
    """
    for k, others in first_where(center.discount == 1.0, "pair"):
        raise InvalidParameter(
            f"discount of {center.pairs.pair_name(k)} is 1, expected less: mass may go to any "
            f"state, so that at worst episodes never end{others}"
        )
    ends = run_lengths(center.offsets) == 0
    low, high = (Earnings(center.reward, outside_reward, ending) for ending in (lowest, highest))
    return RectangularSet(
        center.pairs,
        center.discount,
        rows_in_balls(center.offsets, center.successor, center.probability, radius, ends),
        low,
        high,
    )


def robust_optimal(models: RectangularSet) -> Plan:
    """Returns the policy with the best worst case, and that worst case as its value."""
    return worst_value(models, None)


def best_value(models: RectangularSet, policy: Policy, ceiling: FloatArray | None = None) -> Plan:
    """Evaluates a policy in its best case over the set; `ceiling` is a known upper bound."""
    return negated(worst_value(models.mirrored(), policy, None if ceiling is None else -ceiling))


def worst_value(
    models: RectangularSet, policy: Policy | None, floor: FloatArray | None = None
) -> Plan:
    """Evaluates a policy, or the best one, in its worst case over the set.

    The value is near the fixed point of v ↦ max(Σ_a π q, floor), with a proven error; `floor` is a
    known lower bound on all values. Without a discount, v is a lower bound only.
    """
    if models.discount.max() == 1.0:
        return risen(models, policy, floor)
    rule = rule_of(models, policy, floor)
    states = models.pairs.num_states
    operator = Operator(models, policy, np.full(states, -np.inf) if floor is None else floor)
    step = operator.at(np.zeros(states))
    ours = step.choice
    together = True
    before = np.inf
    for used in range(1, MOST_ROUNDS + 1):
        bracket = rule.bracket(step.residuals, float(np.abs(step.value).max()), ties_of(rule))
        if bracket.good:
            return Plan(
                policy or Policy(models.pairs, step.choice.policy),
                step.value,
                used,
                step.residual,
                bracket.error,
            )
        if step.residual <= bracket.floor:
            refuse(bracket, rule.tolerance)
        together = together and step.residual <= ENOUGH * before
        before = wanted = step.residual
        gained = operator.gained(step, ours)  # by nature, against our last choice
        if together:
            ours = step.choice
        elif gained > bracket.floor:
            wanted = gained
        else:
            ours = operator.improved(ours, step)
        step = operator.at(
            solve_to(operator.chain(step.extreme, ours), step.after, INEXACT * wanted, rule.horizon)
        )
    raise NotConverged(f"robust evaluation stopped after {MOST_ROUNDS} rounds, the limit")


def risen(models: RectangularSet, policy: Policy | None, floor: FloatArray | None) -> Plan:
    """Computes proven lower bounds on values, by sweeps from the floor until they rise no more.

    Each sweep is lowered by its largest possible rounding error.
    """
    if policy is None or floor is None:
        raise InvalidParameter(
            "the discount is 1, so that the worst case has a bound only under a policy, and where "
            "values have one; expected both, or discounts below 1"
        )
    rule = rule_of(models, policy, floor)
    operator = Operator(models, policy, floor)
    scale = rule.reward_scale + float(np.abs(floor).max())
    value = floor
    sweeps = 0
    rise = np.inf
    while rise > DEFAULT_TOLERANCE * scale and sweeps < MOST_SWEEPS:
        risen_value = np.maximum(value, swept(operator, rule, value))
        rise = float((risen_value - value).max())
        sweeps = sweeps + 1
        value = risen_value
    return Plan(policy, value, sweeps, rise, 0.0)


def swept(operator: "Operator", rule: StoppingRule, value: FloatArray) -> FloatArray:
    """Returns max(Tv, floor), lowered by its largest possible rounding error."""
    after = operator.at(value).after
    scale = rule.reward_scale + float(np.abs(operator.floor).max())
    return after - rule.terms * 2.0**-52 * (scale + float(np.abs(after).max()))


class WorstChoice(NamedTuple):
    """Our side of the game: a policy, and the states in which the floor replaces going on."""

    policy: FloatArray  # [K]
    held: BoolArray  # [S]


@dataclass(frozen=True, slots=True, eq=False)
class WorstBackup:
    """One application of the operator to v: Tv, with its worst rows and its choice."""

    value: FloatArray  # [S] v
    after: FloatArray  # [S] Tv
    extreme: ExtremeRows
    choice: WorstChoice
    residuals: tuple[float, float]

    @property
    def residual(self) -> float:
        """Returns max |Tv − v|."""
        return largest(self.residuals)


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """v ↦ max(Σ_a π q, floor), with q from the worst rows for v, and π given or the best for q."""

    models: RectangularSet
    policy: Policy | None
    floor: FloatArray  # [S] −∞ for none

    def at(self, value: FloatArray) -> WorstBackup:
        """Returns the operator applied to v."""
        extreme = self.models.worst(value)
        policy = self.policy.probability if self.policy else best_of(self.models.pairs, extreme.q)
        going_on = averaged(self.models.pairs, policy, extreme.q)
        choice = WorstChoice(policy, going_on <= self.floor)
        after = np.maximum(going_on, self.floor)
        return WorstBackup(value, after, extreme, choice, difference_range(after, value))

    def gained(self, step: WorstBackup, ours: WorstChoice) -> float:
        """Returns max (v − Σ_a π q) over states not held: the loss by the worst rows for v."""
        lost = step.value - averaged(self.models.pairs, ours.policy, step.extreme.q)
        return float(lost[~ours.held].max(initial=0.0))

    def improved(self, ours: WorstChoice, step: WorstBackup) -> WorstChoice:
        """Returns the best choice for q; keeps the old one in ties, so that they make no cycle."""
        q = step.extreme.q
        best = step.choice
        tie = TIE_TOLERANCE * float(np.abs(q).max())
        before, after = (averaged(self.models.pairs, side.policy, q) for side in (ours, best))
        kept = before >= after - tie
        return WorstChoice(
            np.where(kept[self.models.pairs.state], ours.policy, best.policy),
            np.where(kept, before, after)
            <= np.where(ours.held, self.floor + tie, self.floor - tie),
        )

    def chain(self, extreme: ExtremeRows, ours: WorstChoice) -> Chain:
        """Returns the chain of the rows and our policy; it ends in states that hold the floor."""
        models = self.models
        rows = FixedRows(
            models.pairs,
            models.discount,
            models.rows.room,
            extreme.successor,
            extreme.probability,
            extreme.earned,
        )
        chain = policy_chain(rows, ours.policy)
        chain.weight[np.repeat(ours.held, run_lengths(chain.offsets))] = 0.0
        return replace(chain, reward=np.where(ours.held, self.floor, chain.reward))


def rule_of(
    models: RectangularSet, policy: Policy | None, floor: FloatArray | None
) -> StoppingRule:
    """Returns the rule for residuals of worst-case backups, under a policy or under the best one.

    Each row is written with as many roundings as it has places, added up once for its mass and once
    for its worth. Under a given policy no ties are broken, and the error is smaller by their cost;
    the residual to stop at is the same.
    """
    room = run_lengths(models.rows.room)
    least, most = float(models.discount.min()), float(models.discount.max())
    endless = floor is None and bool((room > 0).all())
    bounds = [np.abs(part).max(initial=0.0) for part in (*models.low, *models.high)]
    if floor is not None:
        bounds.append(np.abs(floor).max())
    return StoppingRule(
        discounted_horizon(least, most, endless)
        if most < 1
        else Horizon(1.0, np.inf, uniform=False),
        float(max(bounds)),
        3 * int(room.max()) + int(run_lengths(models.pairs.offsets).max()) + 8,
        None,
        leeway=TIE_TOLERANCE if policy else 0.0,
    )


def ties_of(rule: StoppingRule) -> float:
    """Returns the most that ties may cost, relative to max |q|; 0 under a given policy."""
    return TIE_TOLERANCE - rule.leeway


def worst_values(
    sets: Sequence[RectangularSet], policies: Sequence[Policy], floors: Sequence[FloatArray]
) -> list[Plan]:
    """Returns the `worst_value` of each set, under its policy and its floor [S]."""
    cases = [*zip(sets, policies, floors, strict=True)]
    plans: dict[int, Plan] = {}
    for group in groups_of_one_kind(sets):
        some = [cases[place] for place in group]
        rules = [rule_of(*case) for case in some]
        answers = zip(*settle_together(some, rules), strict=True)
        for place, rule, (value, residuals, rounds) in zip(group, rules, answers, strict=True):
            low, high = residuals.tolist()
            bracket = rule.bracket((low, high), float(np.abs(value).max()), ties_of(rule))
            if bracket.good:
                residual = largest((low, high))
                plans[place] = Plan(policies[place], value, int(rounds), residual, bracket.error)
    return [plans.get(place) or worst_value(*case) for place, case in enumerate(cases)]


def best_values(
    sets: Sequence[RectangularSet], policies: Sequence[Policy], ceilings: Sequence[FloatArray]
) -> list[Plan]:
    """Returns the `best_value` of each set, under its policy and its ceiling [S]."""
    plans = worst_values(
        [models.mirrored() for models in sets], policies, [-ceiling for ceiling in ceilings]
    )
    return [negated(plan) for plan in plans]


def groups_of_one_kind(sets: Sequence[RectangularSet]) -> list[list[int]]:
    """Groups small sets of one kind over the same pairs; returns their places in `sets`."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, models in enumerate(sets):
        if models.discount.max() < 1 and models.pairs.num_states <= SMALL:
            groups.setdefault((type(models.rows), models.pairs.offsets.tobytes()), []).append(place)
    return [*groups.values()]


def settle_together(
    cases: Sequence[tuple[RectangularSet, Policy, FloatArray]], rules: Sequence[StoppingRule]
) -> Answer:
    """Returns values near the fixed point of each set, under its policy and its floor."""
    sets, policies, floors = zip(*cases, strict=True)
    steps = zip(*((*models.low, models.discount) for models in sets), strict=True)
    step = Step._make(map(np.concatenate, steps))
    game = Game(
        sets[0].pairs.offsets,
        np.stack([policy.probability for policy in policies]),
        np.stack(floors),
        np.array([enough_for(rule) for rule in rules]),
        np.array([rule.reward_scale for rule in rules]),
        TIE_TOLERANCE,
    )
    size = len(sets)
    answer = Answer(
        np.empty((size, sets[0].pairs.num_states)), np.empty((size, 2)), np.empty(size, np.int64)
    )
    rows = joined_rows([models.rows for models in sets])
    room = RoomSize(ints=rows.first.size if isinstance(rows, Trees) else answer.value.shape[1])
    SETTLE[type(rows)].all(size, room, game, rows, step, empty_rows(rows.room), answer)
    return answer


def enough_for(rule: StoppingRule) -> float:
    """Returns the residual, as a part of max |R| + max |v|, that proves the required error."""
    slack = rule.terms * 2.0**-52 + TIE_TOLERANCE
    goal = min(max(DEFAULT_TOLERANCE, 4 * slack * rule.horizon.high), LOOSEST_DEFAULT)
    return (1 - 1e-9) * (goal / rule.horizon.high - slack + rule.leeway)
