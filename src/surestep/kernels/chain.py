"""The Markov chain that a policy makes of a model: rows of weights W = Γ_π P_π and rewards r_π."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INDICES_OUT,
    INTS_IN,
    INTS_OUT,
    SWEEP_THREADS,
    kernel,
)
from surestep.kernels.rows import BLOCK_ROWS, row_sums


@kernel(
    INTS_IN,
    INTS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    INTS_OUT,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def chain_sizes(
    pair_offsets: IntArray,
    offsets: IntArray,
    discount: FloatArray,
    reward: FloatArray,
    policy: FloatArray,
    lengths: IntArray,
    chain_reward: FloatArray,
) -> None:
    """How many weights each row will have (pairs that the policy takes), and r_π(s)."""
    for s in prange(lengths.size):
        length, total = 0, 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            total += policy[k] * reward[k]
            if policy[k] > 0.0 and discount[k] > 0.0:
                length += offsets[k + 1] - offsets[k]
        lengths[s] = length
        chain_reward[s] = total


@kernel(
    INTS_IN,
    INTS_IN,
    INDICES_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    INTS_IN,
    INDICES_OUT,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def chain_rows(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    policy: FloatArray,
    chain_offsets: IntArray,
    chain_successor: IndexArray,
    weight: FloatArray,
) -> None:
    """Fills the rows: weight π(a|s) Γ(s,a) P(s'|s,a) for each transition that the policy takes."""
    for s in prange(chain_offsets.size - 1):
        position = np.uint64(chain_offsets[s])
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0 and discount[k] > 0.0:
                share = policy[k] * discount[k]
                for t in range(np.uint64(offsets[k]), np.uint64(offsets[k + 1])):
                    chain_successor[position] = successor[t]
                    weight[position] = share * probability[t]
                    position += np.uint64(1)


@kernel(
    INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_OUT, threads_from=SWEEP_THREADS
)
def chain_step(
    offsets: IntArray,
    successor: IndexArray,
    weight: FloatArray,
    reward: FloatArray,
    value: FloatArray,
    result: FloatArray,
) -> None:
    """r_π + W v for all states, into `result` [S]."""
    for b in prange((result.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, result.size)
        row_sums(first, last, offsets, successor, weight, value, result[first:last])
        for s in range(first, last):
            result[s] += reward[s]
