"""Greedy steps: from values of pairs to a policy."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray
from surestep.kernels._compile import LIGHT_THREADS, helper, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IntsIn


@helper
def highest_within(first: int, last: int, q: FloatArray, width: float) -> float:
    """Returns the largest q of the pairs `first` … `last − 1`, less `width`."""
    highest = -np.inf
    for k in range(first, last):
        highest = max(highest, q[k])
    return float(highest - width)


@kernel(threads_from=LIGHT_THREADS)
def greedy(pair_offsets: IntsIn, q: FloatsIn, tie: float, probability: FloatsOut) -> None:
    """Writes all mass on the best pair of each state, the lowest action among those within `tie`.

    Without branches, which for a few pairs a state would cost more than all else. Where q is no
    number, the first action gets what is left.
    """
    for s in prange(pair_offsets.size - 1):
        first, last = np.uint64(pair_offsets[s]), np.uint64(pair_offsets[s + 1])
        highest, left = -np.inf, 1.0
        for k in range(first, last):
            highest = max(highest, q[k])
        for k in range(first, last):
            taken = left if q[k] >= highest - tie else 0.0
            probability[k] = taken
            left -= taken
        probability[first] += left
