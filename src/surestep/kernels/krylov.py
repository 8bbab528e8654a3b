"""BiCGSTAB for (I − W) x = b, one iteration a call, on the rows of a Markov chain.

H. A. van der Vorst, "Bi-CGSTAB" (SIAM J. Sci. Stat. Comput. 13, 1992). Inner products are summed
over fixed blocks, so the result is the same to the last bit on any number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, inlined, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IndicesIn, IntsIn, TableOut
from surestep.kernels.rows import BLOCK_ROWS, row_sums

BLOCK = 4096
RHO, ALPHA, OMEGA = 0, 1, 2  # the scalars that one iteration hands to the next


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
    """Iterates once; the largest entry of the new residual, or −1 on a breakdown.

    `work` [4, S] holds residual, direction, the image of it, and a scratch vector; `shadow` [S] is
    the first residual. Before the first call: direction and image 0, all scalars 1.
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
