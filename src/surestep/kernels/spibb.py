"""Computes greedy steps of the SPIBB family (the best policy near π_b for q), and of DUIPI."""

from typing import NamedTuple

import numpy as np
from numba import prange

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, kernel
from surestep.kernels.types import BoolsIn, FloatsIn, FloatsOut, IndicesIn, IntsIn


@helper
def best_trusted(
    first: int, last: int, q: FloatArray, trusted: BoolArray | IntArray, tie: float
) -> int:
    """Returns the first trusted pair within `tie` of the largest q; −1 if no pair is trusted."""
    best = -1
    for k in range(first, last):
        if trusted[k] and (best < 0 or q[k] > q[best]):
            best = k
    if best >= 0:
        lowest = q[best] - tie
        for k in range(first, best):
            if trusted[k] and q[k] >= lowest:
                return k
    return best


@helper
def free_mass(first: int, last: int, behavior: FloatArray, trusted: BoolArray | IntArray) -> float:
    """Returns the mass that π_b gives to trusted pairs; exactly 1 if it gives none to others."""
    free, kept = 0.0, 0.0
    for k in range(first, last):
        if trusted[k]:
            free += behavior[k]
        else:
            kept += behavior[k]
    return free if kept > 0.0 else 1.0


@kernel(threads_from=SWEEP_THREADS)
def move_free_mass(
    pair_offsets: IntsIn,
    q: FloatsIn,
    behavior: FloatsIn,
    trusted: BoolsIn,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Keeps π_b on untrusted pairs; moves its mass on trusted pairs to the best of them."""
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        best = best_trusted(first, last, q, trusted, tie)
        for k in range(first, last):
            probability[k] = 0.0 if trusted[k] else behavior[k]
        if best >= 0:
            probability[best] = free_mass(first, last, behavior, trusted)


@kernel(threads_from=SWEEP_THREADS)
def fill_by_value(
    pair_offsets: IntsIn,
    q: FloatsIn,
    behavior: FloatsIn,
    trusted: BoolsIn,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Fills pairs by falling q, untrusted ones up to π_b, until a trusted one takes the rest.

    If no pair of a state is trusted, only π_b itself sums to 1.
    """
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        sink = best_trusted(first, last, q, trusted, tie)
        if sink < 0:
            for k in range(first, last):
                probability[k] = behavior[k]
        else:
            # Pairs that are better than the sink, beyond a tie, are filled before it.
            rest = 1.0
            for k in range(first, last):
                probability[k] = 0.0
                if not trusted[k] and q[k] > q[sink] + tie:
                    probability[k] = min(behavior[k], rest)
                    rest -= probability[k]
            probability[sink] = rest


class UncertainModel(NamedTuple):
    """Chances and their variances, for stored successors [T] and for any other state [K]."""

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
    """Writes q = Σ P (R + γv) and Var q = γ² Σ P² w + Σ Var(P) (R + γv)², each [K].

    Sums over all states are formed once, so the cost grows with the stored successors only.
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
