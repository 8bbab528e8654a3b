"""The worst and the best that a rectangular set of MDPs allows.

The worst case under a policy is the fixed point of T v = Σ_a π(a|s) min_p Σ p (R + Γ v), a monotone
contraction like the ordinary operator, so that |V − v| ≤ max |Tv − v| / (1 − γ). Where it is known
that no value is below a `floor`, max(Tv, floor) takes its place, and is a contraction too.

Sweeps v ← Tv are slow for γ near 1. So the worst rows found for v are taken for fixed, and the
chain that they make is solved: this is policy iteration of nature. Where a policy is sought at the
same time, or a floor binds, that step need not bring v nearer; then it is taken back, and sweeps
follow, which always do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    FloatArray,
    IndexArray,
    IntArray,
    freeze,
    refuse_where,
    restore_frozen,
    run_lengths,
)
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.backup import expected_values
from surestep.kernels.extremes import difference_range
from surestep.kernels.greedy import greedy
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.plan import Plan
from surestep.model.policy import Policy
from surestep.planning.chain import Chain, largest, policy_chain
from surestep.planning.evaluation import Method, choose_method, solve
from surestep.planning.iteration import INEXACT, sweep_limit
from surestep.planning.proof import ROW_EXCESS, TIE_TOLERANCE, Horizon, Judge, longest_horizon
from surestep.planning.rectangular import Earnings, Extreme, L1Rows, RectangularSet

Choice = Callable[[FloatArray], FloatArray]  # q [K] to the probabilities of a policy [K]

ENOUGH = 0.5  # a step that leaves more of the residual than this is followed by sweeps


@dataclass(frozen=True, slots=True, eq=False)
class L1Ball:
    """All MDPs whose rows lie within `radius` of those of `center`, in the L1 distance.

    Mass may go to any state; to one that is no stored successor it earns `outside_reward`. A pair
    without successors is worth `lowest` at worst and `highest` at best.
    """

    center: FiniteMDP
    radius: FloatArray  # [K] 0 to 2
    outside_reward: FloatArray  # [K]
    lowest: FloatArray  # [K]
    highest: FloatArray  # [K]

    def __post_init__(self) -> None:
        """Freezes the arrays; refuses discounts under which the worst case need not be finite."""
        discount, pairs = self.center.discount, self.center.pairs
        refuse_where(
            discount == 1.0,
            lambda k: (
                f"discount of {pairs.pair_name(k)} is 1, expected less: mass may go to any state, "
                "so that at worst episodes never end"
            ),
            "pair",
            InvalidParameter,
        )
        for name in ("radius", "outside_reward", "lowest", "highest"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name), np.float64)))

    __setstate__ = restore_frozen

    def worst(self, value: FloatArray) -> FloatArray:
        """min_p Σ p (R + Γ v) for every pair [K]."""
        return self.rectangular().worst(value).q

    def best(self, value: FloatArray) -> FloatArray:
        """max_p Σ p (R + Γ v) for every pair [K]."""
        return -self.rectangular().mirrored().worst(-value).q

    def rectangular(self) -> RectangularSet:
        """The ball as a set of rows and rewards."""
        mdp = self.center
        ends = run_lengths(mdp.offsets) == 0
        low, high = (
            Earnings(mdp.reward, self.outside_reward, ending)
            for ending in (self.lowest, self.highest)
        )
        rows = L1Rows(mdp.offsets, mdp.successor, mdp.probability, self.radius, ends)
        return RectangularSet(mdp.pairs, mdp.discount, rows, low, high)


def robust_optimal(models: RectangularSet | L1Ball) -> Plan:
    """The policy with the best worst case, and that worst case as its value."""
    models = rectangular(models)

    def choose(q: FloatArray) -> FloatArray:
        policy = np.empty(q.size)
        greedy(models.pairs.offsets, q, TIE_TOLERANCE * float(np.abs(q).max()), policy)
        return policy

    return fixed_point(models, choose, None)


def worst_value(
    models: RectangularSet | L1Ball, policy: Policy, floor: FloatArray | None = None
) -> Plan:
    """The policy with its worst case over the set, where no value is known to be below `floor`."""
    return fixed_point(rectangular(models), lambda _: policy.probability, floor)


def best_value(
    models: RectangularSet | L1Ball, policy: Policy, ceiling: FloatArray | None = None
) -> Plan:
    """The policy with its best case over the set, where no value is known to be above `ceiling`."""
    mirrored = rectangular(models).mirrored()
    return mirrored_plan(worst_value(mirrored, policy, None if ceiling is None else -ceiling))


def mirrored_plan(plan: Plan) -> Plan:
    """The plan with the value of the other sign."""
    return dataclasses.replace(plan, value=-plan.value)


def rectangular(models: RectangularSet | L1Ball) -> RectangularSet:
    """The set itself, or the one that a ball is."""
    return models.rectangular() if isinstance(models, L1Ball) else models


def fixed_point(models: RectangularSet, choose: Choice, floor: FloatArray | None) -> Plan:
    """Brings v near the fixed point of v ↦ max(Σ_a π q, floor), with a proven error."""
    operator = Operator(models, choose, floor)
    judge = judge_of(models, floor)
    method: Method | None = None
    limit, sweeps = sweep_limit(judge, None), 1
    found = operator.at(np.zeros(models.pairs.num_states))
    before: Backup | None = None  # where the last solving step came from
    for used in range(1, limit + 1):
        verdict = judge.verdict(found.residuals, float(np.abs(found.value).max()), TIE_TOLERANCE)
        if verdict.good:
            chosen = Policy(models.pairs, found.policy)
            return Plan(chosen, found.value, used, found.residual, verdict.error)
        if found.residual <= verdict.floor:
            judge.refuse(verdict)
        if before is None or found.residual <= ENOUGH * before.residual:
            chain = operator.chain(found)
            method = method or choose_method(chain)
            before, found = found, operator.at(solved(chain, method, found, judge))
        else:
            if before.residual < found.residual:
                found = before
            for _ in range(sweeps):
                found = operator.at(found.after)
            sweeps, before = 2 * sweeps, None
    raise NotConverged(f"robust evaluation stopped after {limit} rounds, the limit")


def solved(chain: Chain, method: Method, found: Backup, judge: Judge) -> FloatArray:
    """The value of the chain: exactly where that is cheap, else to a tenth of the residual."""
    target = INEXACT * found.residual

    def good_enough(_: FloatArray, reached: float) -> bool:
        return reached <= target

    return solve(chain, method, found.after, target, judge.horizon, good_enough)[0]


@dataclass(frozen=True, slots=True, eq=False)
class Backup:
    """One application of the operator: what it makes of v, and the rows and policy it chose."""

    value: FloatArray  # [S] v
    after: FloatArray  # [S] Tv
    extreme: Extreme
    policy: FloatArray  # [K]
    residuals: tuple[float, float]

    @property
    def residual(self) -> float:
        """max |Tv − v|."""
        return largest(self.residuals)


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """v ↦ max(Σ_a π q, floor), with q from the worst rows for v and π chosen for q."""

    models: RectangularSet
    choose: Choice
    floor: FloatArray | None

    def at(self, value: FloatArray) -> Backup:
        """The operator applied to v."""
        extreme = self.models.worst(value)
        policy, after = self.choose(extreme.q), np.empty(value.size)
        expected_values(self.models.pairs.offsets, policy, extreme.q, after)
        if self.floor is not None:
            np.maximum(after, self.floor, out=after)
        return Backup(value, after, extreme, policy, difference_range(after, value))

    def chain(self, found: Backup) -> Chain:
        """The chain of the rows and the policy found; it ends where the floor binds."""
        chain = policy_chain(FixedRows.of(self.models, found.extreme), found.policy)
        if self.floor is None:
            return chain
        held = found.after <= self.floor
        chain.weight[np.repeat(held, run_lengths(chain.offsets))] = 0.0
        return dataclasses.replace(chain, reward=np.where(held, self.floor, chain.reward))


class FixedRows(NamedTuple):
    """One model of the set: the pairs and discounts of all, and one row a pair."""

    pairs: Pairs
    discount: FloatArray  # [K]
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [C]
    probability: FloatArray  # [C]
    expected_reward: FloatArray  # [K]

    @classmethod
    def of(cls, models: RectangularSet, extreme: Extreme) -> FixedRows:
        """The model of the rows found."""
        offsets, successor, probability, expected_reward, _ = extreme
        return cls(models.pairs, models.discount, offsets, successor, probability, expected_reward)


def judge_of(models: RectangularSet, floor: FloatArray | None) -> Judge:
    """The judge for residuals of worst-case backups.

    Each row is written with as many roundings as it has places, added up once for its mass and once
    for its worth.
    """
    room, discount = run_lengths(models.rows.room), models.discount
    endless = floor is None and bool((room > 0).all())
    bounds = [np.abs(part).max(initial=0.0) for part in (*models.low, *models.high)]
    if floor is not None:
        bounds.append(np.abs(floor).max())
    return Judge(
        Horizon(
            low=1 / (1 - float(discount.min()) * (1 - ROW_EXCESS)) if endless else 1.0,
            high=longest_horizon(float(discount.max())),
            uniform=endless and bool(discount.min() == discount.max()),
        ),
        float(max(bounds)),
        3 * int(room.max()) + int(run_lengths(models.pairs.offsets).max()) + 8,
        None,
    )
