"""Leaving out pairs that are proven not to be best: a smaller model with the same best values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from surestep.kernels._compile import SWEEP_THREADS, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IndicesOut, IntsIn, IntsOut
from surestep.kernels.greedy import highest_within
from surestep.kernels.records import Model


class KeptModel(NamedTuple):
    """A model to be written, whose states know their pairs already; see `Model`."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsOut  # [K+1]
    successor: IndicesOut  # [T]
    probability: FloatsOut  # [T]
    discount: FloatsOut  # [K]
    reward: FloatsOut  # [K]


@kernel(threads_from=SWEEP_THREADS)
def count_kept(
    model: Model, q: FloatsIn, width: float, pairs: IntsOut, transitions: IntsOut
) -> None:
    """Counts the pairs of each state within `width` of the best, and their transitions."""
    pair_offsets, offsets = model.pair_offsets, model.offsets
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


@kernel(threads_from=SWEEP_THREADS)
def copy_kept(
    model: Model, q: FloatsIn, width: float, first_transition: IntsIn, kept: KeptModel
) -> None:
    """Copies the pairs within `width` of the best; `first_transition` [S] says where to."""
    pair_offsets, offsets, successor, probability, discount, reward = model
    kept_pairs, kept_offsets, kept_successor, kept_probability, kept_discount, kept_reward = kept
    for s in prange(kept_pairs.size - 1):
        first, last = pair_offsets[s], pair_offsets[s + 1]
        lowest = highest_within(first, last, q, width)
        pair, position = kept_pairs[s], np.uint64(first_transition[s])
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
