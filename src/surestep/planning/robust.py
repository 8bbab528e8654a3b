"""The worst and the best that a set of MDPs around an estimate allows.

The set is rectangular: each row may be any distribution within an L1 radius of the estimated one,
whatever the others are. Its worst case under a policy is then the fixed point of
T v = Σ_a π(a|s) min_p Σ p (R + Γ v), a contraction like the ordinary operator, so that
|V − v| ≤ max |Tv − v| / (1 − γ).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surestep._arrays import FloatArray, freeze, refuse_where, restore_frozen
from surestep.errors import InvalidParameter, NotConverged
from surestep.kernels.backup import expected_values
from surestep.kernels.extremes import difference_range
from surestep.kernels.greedy import greedy
from surestep.kernels.robust import worst_pair_values
from surestep.model.mdp import FiniteMDP
from surestep.model.plan import Plan
from surestep.model.policy import Policy
from surestep.planning.chain import largest
from surestep.planning.iteration import sweep_limit
from surestep.planning.proof import TIE_TOLERANCE, Judge


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
        return self._worst(value, 1.0, self.lowest)

    def best(self, value: FloatArray) -> FloatArray:
        """max_p Σ p (R + Γ v) for every pair [K]."""
        return -self._worst(-value, -1.0, -self.highest)

    def _worst(self, value: FloatArray, sign: float, ending: FloatArray) -> FloatArray:
        mdp, q = self.center, np.empty(self.center.num_pairs)
        worst_pair_values(
            mdp.offsets,
            mdp.successor,
            mdp.probability,
            sign * mdp.reward,
            mdp.discount,
            self.radius,
            sign * self.outside_reward,
            ending,
            value,
            np.argsort(value, kind="stable"),
            q,
        )
        return q


def robust_optimal(ball: L1Ball) -> Plan:
    """The policy with the best worst case, and that worst case as its value."""

    def step(value: FloatArray) -> tuple[FloatArray, FloatArray]:
        q, policy = ball.worst(value), np.empty(ball.center.num_pairs)
        greedy(ball.center.pairs.offsets, q, TIE_TOLERANCE * float(np.abs(q).max()), policy)
        return q, policy

    return fixed_point(ball, step)


def worst_value(ball: L1Ball, policy: Policy) -> Plan:
    """The policy with its worst case over the ball."""
    return fixed_point(ball, lambda value: (ball.worst(value), policy.probability))


def best_value(ball: L1Ball, policy: Policy) -> Plan:
    """The policy with its best case over the ball."""
    return fixed_point(ball, lambda value: (ball.best(value), policy.probability))


def fixed_point(ball: L1Ball, step: Callable[[FloatArray], tuple[FloatArray, FloatArray]]) -> Plan:
    """Sweeps v ↦ Σ_a π q until v is proven near the fixed point; `step(v)` gives q and π [K]."""
    mdp, judge = ball.center, judge_of(ball)
    value: FloatArray = np.zeros(mdp.num_states)
    limit = sweep_limit(judge, None)
    for sweep in range(1, limit + 1):
        q, policy = step(value)
        after = np.empty(mdp.num_states)
        expected_values(mdp.pairs.offsets, policy, q, after)
        residuals = difference_range(after, value)
        verdict = judge.verdict(residuals, float(np.abs(value).max()), TIE_TOLERANCE)
        if verdict.good:
            chosen = Policy(mdp.pairs, policy)
            return Plan(chosen, value, sweep, largest(residuals), verdict.error)
        if largest(residuals) <= verdict.floor:
            judge.refuse(verdict)
        value = after
        if judge.horizon.uniform:  # all states are off by nearly the same number
            value = value + (verdict.middle - sum(residuals) / 2)
    raise NotConverged(f"robust evaluation stopped after {limit} sweeps, the limit")


def judge_of(ball: L1Ball) -> Judge:
    """The judge for residuals of worst-case backups, which add up each row twice."""
    judge = Judge.of(ball.center, None)
    ends = np.concatenate([ball.outside_reward, ball.lowest, ball.highest])
    scale = max(judge.reward_scale, float(np.abs(ends).max()))
    return dataclasses.replace(judge, reward_scale=scale, terms=2 * judge.terms)
