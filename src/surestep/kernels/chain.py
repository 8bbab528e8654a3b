"""The Markov chain that a policy makes of a model: rows of weights W = Γ_π P_π and rewards r_π."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep.kernels._compile import SWEEP_THREADS, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IndicesIn, IndicesOut, IntsIn, IntsOut
from surestep.kernels.records import Model
from surestep.kernels.rows import BLOCK_ROWS, row_sums


@kernel(threads_from=SWEEP_THREADS)
def chain_sizes(model: Model, policy: FloatsIn, lengths: IntsOut, chain_reward: FloatsOut) -> None:
    """Counts the weights that each row will have (pairs that the policy takes); r_π(s)."""
    pair_offsets, offsets, _, _, discount, reward = model
    for s in prange(lengths.size):
        length, total = 0, 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            total += policy[k] * reward[k]
            if policy[k] > 0.0 and discount[k] > 0.0:
                length += offsets[k + 1] - offsets[k]
        lengths[s] = length
        chain_reward[s] = total


@kernel(threads_from=SWEEP_THREADS)
def chain_rows(
    model: Model,
    policy: FloatsIn,
    chain_offsets: IntsIn,
    chain_successor: IndicesOut,
    weight: FloatsOut,
) -> None:
    """Fills the rows: weight π(a|s) Γ(s,a) P(s'|s,a) for each transition that the policy takes."""
    pair_offsets, offsets, successor, probability, discount, _ = model
    for s in prange(chain_offsets.size - 1):
        position = np.uint64(chain_offsets[s])
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0 and discount[k] > 0.0:
                share = policy[k] * discount[k]
                for t in range(np.uint64(offsets[k]), np.uint64(offsets[k + 1])):
                    chain_successor[position] = successor[t]
                    weight[position] = share * probability[t]
                    position += np.uint64(1)


@kernel(threads_from=SWEEP_THREADS)
def chain_step(
    offsets: IntsIn,
    successor: IndicesIn,
    weight: FloatsIn,
    reward: FloatsIn,
    value: FloatsIn,
    result: FloatsOut,
) -> None:
    """r_π + W v for all states, into `result` [S]."""
    for b in prange((result.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, result.size)
        row_sums(first, last, offsets, successor, weight, value, result[first:last])
        for s in range(first, last):
            result[s] += reward[s]
