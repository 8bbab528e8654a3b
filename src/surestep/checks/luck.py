"""By how much luck may have moved an estimate: standard errors of values in an estimated model.

To first order (the delta method) the value ρ of a policy in a model that is estimated from a log
differs from the true one by a sum over rows i and episodes e,

    ρ̂ − ρ ≈ Σ_i c(s_i, a_i) (t_i − Q(s_i, a_i)) + Σ_e (V(s_e) − ρ)/E,   t_i = r_i + γV(s'_i),

where c = d/n are the discounted visits d of a pair under the policy over its visits n in the log,
and s_e is where episode e began. If states are Markov these terms are uncorrelated, also within an
episode, so that the variance is the sum of their squares. Where they are not, sums over whole
episodes are still independent of each other: of both variances the larger one is taken.

A pair that was seen once has no spread of its own, and would look certain. So every pair counts as
if it had been seen twice more, once with the highest t of all rows and once with the lowest, as
Agresti and Coull (1998) do for shares of few: its variance is (Σ_i (t_i − Q)² + R²/2) / (n + 2)
with R their distance. So do starts, with the highest and the lowest V.

Intervals from that are right in the limit of many rows, and for a policy that was not chosen by
them. How often they miss in small logs is tested by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, run_owners, run_sums
from surestep.model.counts import Counts
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.planning.evaluation import evaluate, occupancy


def interval(
    value: float, error: float, level: float, ends: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """Returns the interval that misses with about the chance `level`, cut at the `ends`."""
    room = NormalDist().inv_cdf(1 - level / 2) * error
    return max(value - room, ends[0]), min(value + room, ends[1])


def variance_of(
    squares: FloatArray | float, visits: IntArray | int, spread: FloatArray | float
) -> float:
    """Returns the variance that pairs, or starts, bring: each counted as if seen twice more.

    `squares` [K] are Σ(c(t − Q))² over the visits of a pair, and `spread` [K] is cR.
    """
    return float(np.sum((squares + spread**2 / 2) * visits / (visits + 2)))


@dataclass(frozen=True)
class TimeInStates:
    """The time that a policy spends in each state of an estimated model, where somebody decides."""

    model: FiniteMDP
    counts: Counts  # that the model is estimated from
    policy: Policy
    decided: BoolArray  # [S]

    @property
    def rows(self) -> int:
        """Counts the rows that the model is estimated from."""
        return int(self.counts.visits.sum())

    @cached_property
    def visits(self) -> FloatArray:
        """Returns the discounted visits [K] of each pair."""
        return occupancy(self.model, self.policy)

    @cached_property
    def in_states(self) -> FloatArray:
        """Returns the discounted visits [S] of each state; 0 where nothing is decided."""
        return np.where(self.decided, run_sums(self.visits, self.model.pairs.offsets), 0.0)

    @cached_property
    def shares(self) -> FloatArray:
        """Returns the share of the time [S] in each state; 0 everywhere where there is none."""
        total = float(self.in_states.sum())
        return self.in_states / total if total > 0 else np.zeros(self.in_states.size)

    def standard_error(self, there: BoolArray) -> float:
        """Returns the standard error of the share of the time in the states that are `there` [S].

        A share p = ρ(1 there) / ρ(1) moves as the value of the reward (1 there − p) / ρ(1) does,
        which is known in every state, so that only next states and starts are left to luck.
        """
        total = float(self.in_states.sum())
        if total <= 0 or not there.any():
            return 0.0
        share = float(self.shares[there].sum())
        paid = np.where(self.decided, (there - share) / total, 0.0)
        model, number = self.model, np.maximum(self.counts.visits, 1)
        value = evaluate(model.with_rewards(paid[model.pairs.state]), self.policy)
        owner = run_owners(model.offsets)
        ahead = model.discount[owner] * value[model.successor]
        mean = run_sums(model.probability * ahead, model.offsets)
        variance = run_sums(model.probability * (ahead - mean[owner]) ** 2, model.offsets)
        spread = float(np.ptp(ahead)) if ahead.size else 0.0
        # Where nothing is decided nothing is left to luck; a pair that nobody tried is all luck.
        weight = np.where(self.decided[model.pairs.state], self.visits / number, 0.0)
        of_pairs = variance_of(weight**2 * variance * number, number, weight * spread)
        episodes, begun = int(self.counts.starts.sum()), model.initial
        squares = float(begun @ (value - begun @ value) ** 2) / episodes
        return math.sqrt(of_pairs + variance_of(squares, episodes, float(np.ptp(value)) / episodes))
