"""Worst cases of a row over an L1 ball, in closed form."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INTS_IN,
    SWEEP_THREADS,
    helper,
    kernel,
)


@helper
def worst_elsewhere(
    stored: IndexArray,
    reward: float,
    discount: float,
    value: FloatArray,
    by_value: IntArray,
    floor: float,
) -> float:
    """The smallest reward + γ v of the states that are not stored; ∞ if none is below `floor`."""
    if reward + discount * value[by_value[0]] >= floor:
        return np.inf
    known = np.sort(stored)
    for s in by_value:
        worth = reward + discount * value[s]
        if worth >= floor:
            break
        place = np.searchsorted(known, s)
        if place == known.size or known[place] != s:
            return float(worth)
    return np.inf


@kernel(
    INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN,
    FLOATS_IN, INTS_IN, FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)  # fmt: skip
def worst_pair_values(
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    reward: FloatArray,
    discount: FloatArray,
    radius: FloatArray,
    outside_reward: FloatArray,
    ending: FloatArray,
    value: FloatArray,
    by_value: IntArray,
    q: FloatArray,
) -> None:
    """min over ‖p − P̂‖₁ ≤ radius of Σ p (reward + Γ v), for all pairs, into `q` [K].

    The mass radius/2 goes to the worst outcome, taken from the best ones downward. Outcomes are the
    stored successors, and any other state: those are worth `outside_reward` + Γ v. `by_value` [S]
    lists the states by rising v. A pair without successors is worth `ending`.
    """
    for k in prange(q.size):
        first, last = offsets[k], offsets[k + 1]
        if first == last:
            q[k] = ending[k]
        else:
            worth = np.empty(last - first)
            floor, expected = np.inf, 0.0
            for t in range(first, last):
                worth[t - first] = reward[t] + discount[k] * value[successor[t]]
                floor = min(floor, worth[t - first])
                expected += probability[t] * worth[t - first]
            floor = min(
                floor,
                worst_elsewhere(
                    successor[first:last], outside_reward[k], discount[k], value, by_value, floor
                ),
            )
            moving = radius[k] / 2.0
            for i in np.argsort(-worth):
                moved = min(moving, probability[first + i])
                expected -= moved * (worth[i] - floor)
                moving -= moved
                if moving <= 0.0:
                    break
            q[k] = expected
