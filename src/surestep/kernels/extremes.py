"""The least and the largest entry of a difference, in one pass, and the largest magnitude."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray
from surestep.kernels._compile import LIGHT_THREADS, helper, kernel
from surestep.kernels._types import FloatsIn, is_there

BLOCK = 4096


def difference_range(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """(min, max) of first − second; (NaN, NaN) where one difference is NaN or infinite."""
    if is_there(first):  # on a GPU, whose library has such reductions
        difference = first - second
        doubt = (difference - difference).sum()
        return float(difference.min() + doubt), float(difference.max() + doubt)
    return range_of_difference(first, second)


@kernel(threads_from=LIGHT_THREADS)
def range_of_difference(first: FloatsIn, second: FloatsIn) -> tuple[float, float]:
    """(min, max) of first − second; (NaN, NaN) where one difference is NaN or infinite.

    `doubt` stays 0 as long as all differences are finite: x − x is NaN for the others.
    """
    blocks = (first.size + BLOCK - 1) // BLOCK
    lows, highs, doubts = np.empty(blocks), np.empty(blocks), np.empty(blocks)
    for b in prange(blocks):
        low, high, doubt = np.inf, -np.inf, 0.0
        for i in range(b * BLOCK, min((b + 1) * BLOCK, first.size)):
            difference = first[i] - second[i]
            low = difference if difference < low else low
            high = difference if difference > high else high
            doubt += difference - difference
        lows[b], highs[b], doubts[b] = low, high, doubt
    low, high, doubt = np.inf, -np.inf, 0.0
    for b in range(blocks):
        low, high, doubt = min(low, lows[b]), max(high, highs[b]), doubt + doubts[b]
    return low + doubt, high + doubt


@helper
def largest_of(values: FloatArray) -> float:
    """max_i |values_i|, or NaN where there is one."""
    most = 0.0
    for i in range(values.size):
        if abs(values[i]) > most or np.isnan(values[i]):
            most = abs(values[i])
    return most
