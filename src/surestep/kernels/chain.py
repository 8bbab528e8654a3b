"""Builds and solves the Markov chain of a policy: weights W = Γ_π P_π by rows, rewards r_π.

BiCGSTAB solves (I − W) x = b, one iteration a call: H. A. van der Vorst, "Bi-CGSTAB" (SIAM J. Sci.
Stat. Comput. 13, 1992). Inner products are summed over fixed blocks, so the result is the same to
the last bit on any number of threads.
"""

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, inlined, kernel
from surestep.kernels.backup import BLOCK, BLOCK_ROWS, row_sums
from surestep.kernels.records import Model
from surestep.kernels.types import (
    FloatsIn,
    FloatsOut,
    IndicesIn,
    IndicesOut,
    IntsIn,
    IntsOut,
    TableOut,
)

RHO, ALPHA, OMEGA = 0, 1, 2  # the scalars that one iteration hands to the next


@kernel(threads_from=SWEEP_THREADS)
def chain_sizes(model: Model, policy: FloatsIn, lengths: IntsOut, chain_reward: FloatsOut) -> None:
    """Writes the number of weights of each row into `lengths`, and r_π into `chain_reward`."""
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


@inlined
def dot(first: FloatArray, second: FloatArray) -> float:
    """Σ_i first(i) second(i)."""
    blocks = (first.size + BLOCK - 1) // BLOCK
    partial = np.zeros(blocks)
    for b in prange(blocks):
        total = 0.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, first.size)):
            total += first[i] * second[i]
        partial[b] = total
    total = 0.0
    for b in range(blocks):  # not partial.sum(), which would be split among the threads
        total += partial[b]
    return total


@inlined
def multiply(
    offsets: IntArray,
    successor: IndexArray,
    weight: FloatArray,
    vector: FloatArray,
    result: FloatArray,
) -> None:
    """(I − W) vector, into `result`."""
    for b in prange((result.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, result.size)
        row_sums(first, last, offsets, successor, weight, vector, result[first:last])
        for s in range(first, last):
            result[s] = vector[s] - result[s]


@kernel(threads_from=SWEEP_THREADS)
def bicgstab_step(
    offsets: IntsIn,
    successor: IndicesIn,
    weight: FloatsIn,
    shadow: FloatsIn,
    solution: FloatsOut,
    work: TableOut,
    scalars: FloatsOut,
) -> float:
    """Iterates once; returns the largest entry of the new residual, or −1 on a breakdown.

    `work` [4, S] holds the residual, the direction, its image, and a scratch vector. `shadow` [S]
    is the first residual. Before the first call, direction and image are 0 and all scalars 1.
    """
    residual, direction, image, scratch = work[0], work[1], work[2], work[3]
    rho = dot(shadow, residual)
    if rho == 0.0 or scalars[OMEGA] == 0.0:
        return -1.0
    beta = (rho / scalars[RHO]) * (scalars[ALPHA] / scalars[OMEGA])
    omega = scalars[OMEGA]
    for i in prange(solution.size):
        direction[i] = residual[i] + beta * (direction[i] - omega * image[i])
    multiply(offsets, successor, weight, direction, image)
    bottom = dot(shadow, image)
    if bottom == 0.0:
        return -1.0
    alpha = rho / bottom
    for i in prange(solution.size):
        residual[i] -= alpha * image[i]
    multiply(offsets, successor, weight, residual, scratch)
    bottom = dot(scratch, scratch)
    omega = dot(scratch, residual) / bottom if bottom > 0.0 else 0.0
    blocks = (solution.size + BLOCK - 1) // BLOCK
    largest = np.zeros(blocks)
    for b in prange(blocks):
        highest = 0.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, solution.size)):
            solution[i] += alpha * direction[i] + omega * residual[i]
            residual[i] -= omega * scratch[i]
            highest = max(highest, abs(residual[i]))
        largest[b] = highest
    scalars[RHO], scalars[ALPHA], scalars[OMEGA] = rho, alpha, omega
    return float(largest.max())
