"""Steps along the Markov chain of a policy, with weights W = Γ_π P_π by rows and rewards r_π."""

from numba import prange

from surestep.kernels._compile import SWEEP_THREADS, kernel
from surestep.kernels.backup import BLOCK_ROWS, row_sums
from surestep.kernels.types import FloatsIn, FloatsOut, IndicesIn, IntsIn


@kernel(threads_from=SWEEP_THREADS)
def chain_step(
    offsets: IntsIn,
    successor: IndicesIn,
    weight: FloatsIn,
    reward: FloatsIn,
    value: FloatsIn,
    result: FloatsOut,
) -> None:
    """Writes r_π + W v for all states, into `result` [S]."""
    for b in prange((result.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, result.size)
        row_sums(first, last, offsets, successor, weight, value, result[first:last])
        for s in range(first, last):
            result[s] += reward[s]
