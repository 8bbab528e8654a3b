"""One round of DUIPI: values and their variances under the uncertainty of the transitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from surestep.kernels._compile import SWEEP_THREADS, kernel
from surestep.kernels._types import BoolsIn, FloatsIn, FloatsOut, IndicesIn, IntsIn
from surestep.kernels.spibb import best_trusted


class UncertainModel(NamedTuple):
    """Chances with their variances, for successors of known reward [T] and any other state [K]."""

    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    chance: FloatsIn  # [T]
    chance_variance: FloatsIn  # [T]
    reward: FloatsIn  # [T]
    other_chance: FloatsIn  # [K]
    other_variance: FloatsIn  # [K]
    other_reward: FloatsIn  # [K]
    discount: FloatsIn  # [K]


@kernel(threads_from=SWEEP_THREADS)
def uncertain_backup(
    model: UncertainModel,
    value: FloatsIn,
    variance: FloatsIn,
    q: FloatsOut,
    q_variance: FloatsOut,
) -> None:
    """q = Σ P (R + γv) and Var q = γ² Σ P² w + Σ Var(P) (R + γv)², into [K].

    Sums over all states are formed once, so that the cost is that of the stored successors.
    """
    offsets, successor, chance, chance_variance, reward = model[:5]
    other_chance, other_variance, other_reward, discount = model[5:]
    total = value.sum()
    squares = (value * value).sum()
    spread = variance.sum()
    for k in prange(q.size):
        gamma, away = discount[k], other_reward[k]
        # Sums over the states that are not stored: all states, less the stored ones.
        worth = value.size * away + gamma * total
        worth_squared = value.size * away**2 + 2 * away * gamma * total + gamma**2 * squares
        others = spread
        mean, risk, noise = 0.0, 0.0, 0.0
        for t in range(offsets[k], offsets[k + 1]):
            here = value[successor[t]]
            outcome, displaced = reward[t] + gamma * here, away + gamma * here
            mean += chance[t] * outcome
            noise += chance_variance[t] * outcome**2
            risk += chance[t] ** 2 * variance[successor[t]]
            worth -= displaced
            worth_squared -= displaced**2
            others -= variance[successor[t]]
        q[k] = mean + other_chance[k] * worth
        q_variance[k] = (
            gamma**2 * (risk + other_chance[k] ** 2 * max(others, 0.0))
            + noise
            + other_variance[k] * max(worth_squared, 0.0)
        )


@kernel(threads_from=SWEEP_THREADS)
def lean_towards_best(
    pair_offsets: IntsIn,
    q: FloatsIn,
    q_variance: FloatsIn,
    visited: BoolsIn,
    xi: float,
    step: float,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Moves up to `step` of the mass of each state to the visited pair of the best q − ξ√Var q."""
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        careful = np.empty(last - first)
        for k in range(first, last):
            careful[k - first] = q[k] - xi * np.sqrt(q_variance[k])
        best = best_trusted(0, last - first, careful, visited[first:last], tie)
        if best >= 0:
            before = probability[first + best]
            after = before + min(step, 1.0 - before)
            scale = (1.0 - after) / (1.0 - before) if after < 1.0 else 0.0
            for k in range(first, last):
                probability[k] = after if k == first + best else probability[k] * scale
