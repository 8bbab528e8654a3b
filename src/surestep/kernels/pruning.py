"""Leaving out pairs that are proven not to be best: a smaller model with the same best values."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    F64,
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INDICES_OUT,
    INTS_IN,
    INTS_OUT,
    SWEEP_THREADS,
    kernel,
)
from surestep.kernels.greedy import highest_within


@kernel(INTS_IN, INTS_IN, FLOATS_IN, F64, INTS_OUT, INTS_OUT, threads_from=SWEEP_THREADS)
def count_kept(
    pair_offsets: IntArray,
    offsets: IntArray,
    q: FloatArray,
    width: float,
    pairs: IntArray,
    transitions: IntArray,
) -> None:
    """How many pairs within `width` of the best each state has, and how many transitions these."""
    for s in prange(pairs.size):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        lowest = highest_within(first, last, q, width)
        kept, entries = 0, 0
        for k in range(first, last):
            if q[k] >= lowest:
                kept += 1
                entries += offsets[k + 1] - offsets[k]
        pairs[s] = kept
        transitions[s] = entries


@kernel(
    INTS_IN,
    INTS_IN,
    INDICES_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    F64,
    INTS_IN,
    INTS_IN,
    INTS_OUT,
    INDICES_OUT,
    FLOATS_OUT,
    FLOATS_OUT,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def copy_kept(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    q: FloatArray,
    width: float,
    kept_pair_offsets: IntArray,
    first_transition: IntArray,
    kept_offsets: IntArray,
    kept_successor: IndexArray,
    kept_probability: FloatArray,
    kept_discount: FloatArray,
    kept_reward: FloatArray,
) -> None:
    """Copies the pairs within `width` of the best; `first_transition` [S] says where to."""
    for s in prange(kept_pair_offsets.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        lowest = highest_within(first, last, q, width)
        pair, position = kept_pair_offsets[s], np.uint64(first_transition[s])
        for k in range(first, last):
            if q[k] >= lowest:
                kept_discount[pair] = discount[k]
                kept_reward[pair] = reward[k]
                for t in range(np.uint64(offsets[k]), np.uint64(offsets[k + 1])):
                    kept_successor[position] = successor[t]
                    kept_probability[position] = probability[t]
                    position += np.uint64(1)
                pair += 1
                kept_offsets[pair] = position
