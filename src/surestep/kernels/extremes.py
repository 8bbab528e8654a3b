"""The smallest and the largest entry of a difference, in one pass."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray
from surestep.kernels._compile import FLOAT_PAIR, FLOATS_IN, SWEEP_THREADS, kernel

BLOCK = 4096


@kernel(FLOATS_IN, FLOATS_IN, returns=FLOAT_PAIR, threads_from=SWEEP_THREADS)
def difference_range(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """(min, max) of first − second; (NaN, NaN) as soon as one difference is NaN."""
    blocks = (first.size + BLOCK - 1) // BLOCK
    lows, highs = np.empty(blocks), np.empty(blocks)
    for b in prange(blocks):
        low, high = np.inf, -np.inf
        for i in range(b * BLOCK, min((b + 1) * BLOCK, first.size)):
            difference = first[i] - second[i]
            low = min(low, difference) if difference == difference else np.nan
            high = max(high, difference) if difference == difference else np.nan
        lows[b], highs[b] = low, high
    return float(lows.min()), float(highs.max())
