"""Bellman backups: one pass over the transitions of a model."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray
from surestep.kernels._compile import LIGHT_THREADS, SWEEP_THREADS, helper, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IntsIn
from surestep.kernels.records import Model
from surestep.kernels.rows import BLOCK_ROWS, row_sums


@kernel(threads_from=SWEEP_THREADS)
def pair_values(model: Model, value: FloatsIn, q: FloatsOut) -> None:
    """q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for all pairs, into `q` [K]."""
    _, offsets, successor, probability, discount, reward = model
    for b in prange((q.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, q.size)
        row_sums(first, last, offsets, successor, probability, value, q[first:last])
        for k in range(first, last):
            q[k] = reward[k] + discount[k] * q[k]


@kernel(threads_from=SWEEP_THREADS)
def best_values(model: Model, value: FloatsIn, best: FloatsOut) -> None:
    """max_a q(s,a) for all states, into `best` [S]: a sweep of value iteration.

    Positions run on from row to row and are unsigned; see `kernels.rows`.
    """
    pair_offsets, offsets, successor, probability, discount, reward = model
    targets, one = successor.view(np.uint32), np.uint64(1)
    for b in prange((best.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, best.size)
        k = np.uint64(pair_offsets[first])
        t = np.uint64(offsets[k])
        for s in range(first, last):
            highest, last_pair = -np.inf, np.uint64(pair_offsets[s + 1])
            while k < last_pair:
                total, end = 0.0, np.uint64(offsets[k + one])
                while t < end:
                    total += probability[t] * value[targets[t]]
                    t += one
                highest = max(highest, reward[k] + discount[k] * total)
                k += one
            best[s] = highest


@kernel(threads_from=LIGHT_THREADS)
def largest_values(pair_offsets: IntsIn, q: FloatsIn, best: FloatsOut) -> None:
    """max_a q(s,a) for all states, into `best` [S]."""
    for s in prange(best.size):
        highest = -np.inf
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            highest = max(highest, q[k])
        best[s] = highest


@helper
def pair_value(pair: int, model: Model, value: FloatArray) -> float:
    """r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for one pair."""
    _, offsets, successor, probability, discount, reward = model
    total = 0.0
    for t in range(offsets[pair], offsets[pair + 1]):
        total += probability[t] * value[successor[t]]
    return float(reward[pair] + discount[pair] * total)


@kernel()
def gauss_seidel_sweep(model: Model, rising: bool, value: FloatsOut) -> None:
    """v(s) ← max_a q(s,a) in place, from the first state to the last, or the other way round."""
    for i in range(value.size):
        s = i if rising else value.size - 1 - i
        highest = -np.inf
        for k in range(model.pair_offsets[s], model.pair_offsets[s + 1]):
            highest = max(highest, pair_value(k, model, value))
        value[s] = highest


@kernel(threads_from=LIGHT_THREADS)
def expected_values(
    pair_offsets: IntsIn, probability: FloatsIn, q: FloatsIn, value: FloatsOut
) -> None:
    """Σ_a π(a|s) q(s,a) for all states, into `value` [S]."""
    for s in prange(value.size):
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            total += probability[k] * q[k]
        value[s] = total
