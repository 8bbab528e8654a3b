"""Importance-sampling estimators: what a policy would have earned, told from another one's log.

All of them estimate the expected discounted reward Σ_t γ^t r_t of π over as many steps as the log
records: until the process ends, or until the recording is cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep._reprs import short_repr
from surestep.errors import InvalidParameter
from surestep.offpolicy.estimate import Estimate, MeanEstimate, RatioEstimate
from surestep.offpolicy.weights import ImportanceWeights


class Estimator(Protocol):
    """An estimator: its settings, and one method."""

    def estimate(self, weights: ImportanceWeights, discount: float) -> Estimate:
        """Returns the estimate for the policy of the weights."""
        ...


@dataclass(frozen=True, slots=True)
class ImportanceSampling:
    """IS: the mean over the episodes of w · G, the whole weight times the discounted return."""

    def estimate(self, weights: ImportanceWeights, discount: float) -> MeanEstimate:
        """(1/E) Σ_i w_i G_i."""
        earned = returns(weights, discount)
        with np.errstate(over="ignore", invalid="ignore"):
            return MeanEstimate(weights.total * earned)


@dataclass(frozen=True, slots=True)
class PerDecision:
    """PDIS: each reward with the weight of the decisions before it (Precup, Sutton, Singh 2000)."""

    def estimate(self, weights: ImportanceWeights, discount: float) -> MeanEstimate:
        """(1/E) Σ_i Σ_t γ^t w_{i,0:t} r_it."""
        earned = discounted_rewards(weights, discount)
        with np.errstate(over="ignore", invalid="ignore"):
            return MeanEstimate(
                arrays.run_sums(weights.cumulative * earned, weights.log.episode_offsets)
            )


@dataclass(frozen=True, slots=True)
class WeightedImportanceSampling:
    """WIS: the mean of the returns weighted with w. Biased, but consistent, and rarely wild."""

    def estimate(self, weights: ImportanceWeights, discount: float) -> RatioEstimate:
        """Σ_i w_i G_i / Σ_i w_i."""
        earned = returns(weights, discount)
        with np.errstate(over="ignore", invalid="ignore"):
            weighted = weights.total * earned
        return RatioEstimate(np.arange(weights.log.num_episodes + 1), weighted, weights.total)


@dataclass(frozen=True, slots=True)
class WeightedPerDecision:
    """WPDIS: at each step a weighted mean of the rewards (CWPDIS in Thomas's thesis, 2015).

    An episode that is over goes on with reward 0 and its last weight: E[w_{0:t}] = 1 holds at every
    step only so, and a mean over the episodes still running would estimate E[r_t | still running].
    The older form that divides by one total over all steps is not consistent.
    """

    def estimate(self, weights: ImportanceWeights, discount: float) -> RatioEstimate:
        """Σ_t γ^t Σ_i w_{i,0:t} r_it / Σ_i w_{i,0:t}."""
        earned = discounted_rewards(weights, discount)
        with np.errstate(over="ignore"):
            weighted = weights.cumulative * earned
        return RatioEstimate(weights.log.episode_offsets, weighted, weights.cumulative)


@dataclass(frozen=True, slots=True, eq=False)
class DoublyRobust:
    """DR (Jiang and Li 2016): PDIS around a model's Q̂, which must not come from the same log.

    D_t = V̂(s_t) + ρ_t (r_t + γ D_{t+1} − Q̂(s_t,a_t)), with V̂(s) = Σ_a π(a|s) Q̂(s,a), so that it is
    unbiased for any Q̂; unrolled, D_0 = Σ_t γ^t w_{0:t−1} (V̂(s_t) + ρ_t (r_t − Q̂(s_t,a_t))).
    """

    q: FloatArray  # [K] or [S, A] Q̂

    __repr__ = short_repr("q")

    def estimate(self, weights: ImportanceWeights, discount: float) -> MeanEstimate:
        """(1/E) Σ_i D_i0."""
        powers = discount_powers(weights, discount)
        log, pairs = weights.log, weights.log.pairs
        q = pairs.flat("q", self.q, InvalidParameter)
        with np.errstate(over="ignore", invalid="ignore"):
            value = arrays.run_sums(weights.policy.probability * q, pairs.offsets)
            surprise = value[log.state] + weights.ratio * (log.reward - q[log.pair])
            before = np.roll(weights.cumulative, 1)
            before[log.episode_offsets[:-1]] = 1.0
            return MeanEstimate(arrays.run_sums(powers * before * surprise, log.episode_offsets))


ESTIMATORS: dict[str, type[Estimator]] = {
    "is": ImportanceSampling,
    "pdis": PerDecision,
    "wis": WeightedImportanceSampling,
    "wpdis": WeightedPerDecision,
    "dr": DoublyRobust,
}


def discount_powers(weights: ImportanceWeights, discount: float) -> FloatArray:
    """γ^t for every step of the log [N]."""
    arrays.expect("weights", weights, ImportanceWeights)
    gamma, step = arrays.read_discount(discount), weights.log.step
    powers: FloatArray = np.power(gamma, np.arange(int(step.max()) + 1))[step]
    return powers


def discounted_rewards(weights: ImportanceWeights, discount: float) -> FloatArray:
    """γ^t r_t for every step of the log [N]."""
    return discount_powers(weights, discount) * weights.log.reward


def returns(weights: ImportanceWeights, discount: float) -> FloatArray:
    """G = Σ_t γ^t r_t of every episode [E]."""
    earned = discounted_rewards(weights, discount)
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite estimate is refused
        return arrays.run_sums(earned, weights.log.episode_offsets)
