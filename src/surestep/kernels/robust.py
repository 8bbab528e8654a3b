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

SHORT_ROW = 16  # up to here looking for the best again and again is faster than sorting


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
    for s in by_value:
        worth = reward + discount * value[s]
        if worth >= floor:
            break
        known = False
        for t in range(stored.size):  # the lowest states are seldom stored: few are looked at
            if stored[t] == s:
                known = True
                break
        if not known:
            return float(worth)
    return np.inf


@helper
def take_from_best(
    worth: FloatArray, probability: FloatArray, moving: float, floor: float
) -> float:
    """What a row loses when the mass `moving` goes from its best outcomes to one worth `floor`."""
    lost, left = 0.0, probability.copy()
    while moving > 0.0:
        best = -1
        for i in range(worth.size):
            if left[i] > 0.0 and (best < 0 or worth[i] > worth[best]):
                best = i
        if best < 0:
            break
        moved = min(moving, left[best])
        lost += moved * (worth[best] - floor)
        left[best] = 0.0
        moving -= moved
    return lost


@helper
def take_in_order(worth: FloatArray, probability: FloatArray, moving: float, floor: float) -> float:
    """`take_from_best` for long rows, which are sorted once."""
    lost = 0.0
    for i in np.argsort(-worth):
        moved = min(moving, probability[i])
        lost += moved * (worth[i] - floor)
        moving -= moved
        if moving <= 0.0:
            break
    return lost


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
            moving, chances = radius[k] / 2.0, probability[first:last]
            if last - first <= SHORT_ROW:
                q[k] = expected - take_from_best(worth, chances, moving, floor)
            else:
                q[k] = expected - take_in_order(worth, chances, moving, floor)
