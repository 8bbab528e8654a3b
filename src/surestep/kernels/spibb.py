"""Greedy steps of the SPIBB family: the best policy near π_b, state by state, for values q."""

from __future__ import annotations

from numba import prange

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, kernel
from surestep.kernels._types import BoolsIn, FloatsIn, FloatsOut, IntsIn


@helper
def best_trusted(
    first: int, last: int, q: FloatArray, trusted: BoolArray | IntArray, tie: float
) -> int:
    """Returns the first trusted pair of the run within `tie` of the largest q; −1 if none is."""
    best = -1
    for k in range(first, last):
        if trusted[k] and (best < 0 or q[k] > q[best]):
            best = k
    if best >= 0:
        lowest = q[best] - tie
        for k in range(first, best):
            if trusted[k] and q[k] >= lowest:
                return k
    return best


@helper
def free_mass(first: int, last: int, behavior: FloatArray, trusted: BoolArray | IntArray) -> float:
    """Returns the mass that π_b gives to trusted pairs; exactly 1 where it gives none to others."""
    free, kept = 0.0, 0.0
    for k in range(first, last):
        if trusted[k]:
            free += behavior[k]
        else:
            kept += behavior[k]
    return free if kept > 0.0 else 1.0


@kernel(threads_from=SWEEP_THREADS)
def move_free_mass(
    pair_offsets: IntsIn,
    q: FloatsIn,
    behavior: FloatsIn,
    trusted: BoolsIn,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Keeps π_b on pairs not trusted; what it gives to trusted ones goes to the best of them."""
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        best = best_trusted(first, last, q, trusted, tie)
        for k in range(first, last):
            probability[k] = 0.0 if trusted[k] else behavior[k]
        if best >= 0:
            probability[best] = free_mass(first, last, behavior, trusted)


@kernel(threads_from=SWEEP_THREADS)
def fill_by_value(
    pair_offsets: IntsIn,
    q: FloatsIn,
    behavior: FloatsIn,
    trusted: BoolsIn,
    tie: float,
    probability: FloatsOut,
) -> None:
    """Fills pairs by falling q, those not trusted up to π_b, until a trusted one takes the rest.

    Where no pair of a state is trusted, nothing but π_b itself sums to 1.
    """
    for s in prange(pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        sink = best_trusted(first, last, q, trusted, tie)
        if sink < 0:
            for k in range(first, last):
                probability[k] = behavior[k]
        else:
            # Better than the sink, beyond a tie: worth filling before it.
            rest = 1.0
            for k in range(first, last):
                probability[k] = 0.0
                if not trusted[k] and q[k] > q[sink] + tie:
                    probability[k] = min(behavior[k], rest)
                    rest -= probability[k]
            probability[sink] = rest
