"""Worst cases of a row over an L1 ball, in closed form."""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    F64,
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INTS_IN,
    SWEEP_THREADS,
    kernel,
)


@kernel(
    INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN,
    FLOATS_IN, F64, FLOATS_OUT,
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
    lowest: float,
    q: FloatArray,
) -> None:
    """min over ‖p − P̂‖₁ ≤ radius of Σ p (reward + Γ v), for all pairs, into `q` [K].

    The mass radius/2 goes to the worst outcome, taken from the best ones downward. Outcomes are the
    stored successors, and any other state: those are worth `outside_reward` + Γ · `lowest`, with
    `lowest` the smallest v of all. A pair without successors is worth `ending`.
    """
    for k in prange(q.size):
        first, last = offsets[k], offsets[k + 1]
        if first == last:
            q[k] = ending[k]
        else:
            worth = np.empty(last - first)
            floor = outside_reward[k] + discount[k] * lowest
            expected = 0.0
            for t in range(first, last):
                worth[t - first] = reward[t] + discount[k] * value[successor[t]]
                floor = min(floor, worth[t - first])
                expected += probability[t] * worth[t - first]
            moving = radius[k] / 2.0
            for i in np.argsort(-worth):
                moved = min(moving, probability[first + i])
                expected -= moved * (worth[i] - floor)
                moving -= moved
                if moving <= 0.0:
                    break
            q[k] = expected
