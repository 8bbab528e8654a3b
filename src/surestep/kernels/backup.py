"""Bellman backups: one pass over the transitions of a model."""

from __future__ import annotations

import numpy as np
from numba import prange, types

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INTS_IN,
    LIGHT_THREADS,
    SWEEP_THREADS,
    helper,
    kernel,
)
from surestep.kernels.rows import BLOCK_ROWS, row_sums


@kernel(
    INTS_IN,
    INDICES_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def pair_values(
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
    q: FloatArray,
) -> None:
    """q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for all pairs, into `q` [K]."""
    for b in prange((q.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, q.size)
        row_sums(first, last, offsets, successor, probability, value, q[first:last])
        for k in range(first, last):
            q[k] = reward[k] + discount[k] * q[k]


@kernel(
    INTS_IN,
    INTS_IN,
    INDICES_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def best_values(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
    best: FloatArray,
) -> None:
    """max_a q(s,a) for all states, into `best` [S]: a sweep of value iteration."""
    for b in prange((best.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, best.size)
        first_pair, last_pair = pair_offsets[first], pair_offsets[last]
        expected = np.empty(last_pair - first_pair)
        row_sums(first_pair, last_pair, offsets, successor, probability, value, expected)
        for s in range(first, last):
            highest = -np.inf
            for k in range(pair_offsets[s], pair_offsets[s + 1]):
                highest = max(highest, reward[k] + discount[k] * expected[k - first_pair])
            best[s] = highest


@helper
def pair_value(
    pair: int,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
) -> float:
    """r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for one pair."""
    total = 0.0
    for t in range(offsets[pair], offsets[pair + 1]):
        total += probability[t] * value[successor[t]]
    return float(reward[pair] + discount[pair] * total)


@kernel(INTS_IN, INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, types.boolean, FLOATS_OUT)
def gauss_seidel_sweep(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    rising: bool,
    value: FloatArray,
) -> None:
    """v(s) ← max_a q(s,a) in place, from the first state to the last, or the other way round."""
    for i in range(value.size):
        s = i if rising else value.size - 1 - i
        highest = -np.inf
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            q = pair_value(k, offsets, successor, probability, discount, reward, value)
            highest = max(highest, q)
        value[s] = highest


@kernel(INTS_IN, FLOATS_IN, FLOATS_IN, FLOATS_OUT, threads_from=LIGHT_THREADS)
def expected_values(
    pair_offsets: IntArray, probability: FloatArray, q: FloatArray, value: FloatArray
) -> None:
    """Σ_a π(a|s) q(s,a) for all states, into `value` [S]."""
    for s in prange(value.size):
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            total += probability[k] * q[k]
        value[s] = total
