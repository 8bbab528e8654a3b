"""Sums over rows of weighted successors, the inner loop of every sweep.

A sweep waits for memory, since the values of successors lie anywhere; what helps is a loop so short
that the processor has many loads under way at once. So there is one running position for all rows
of a block, and it is unsigned: signed indices are tested for being negative at every access, which
makes a sweep over 10⁶ states half as fast.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import helper

BLOCK_ROWS = 1024  # rows that one thread does in one go


@helper
def row_sums(
    first: int,
    last: int,
    offsets: IntArray,
    successor: IndexArray,
    weight: FloatArray,
    value: FloatArray,
    sums: FloatArray,
) -> None:
    """Σ_t weight(t) value(successor(t)) for the rows `first` … `last − 1`, into `sums`."""
    targets = successor.view(np.uint32)
    one = np.uint64(1)
    t = np.uint64(offsets[first])
    for row in range(first, last):
        end = np.uint64(offsets[row + 1])
        total = 0.0
        while t < end:
            total += weight[t] * value[targets[t]]
            t += one
        sums[row - first] = total
