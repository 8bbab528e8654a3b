"""Discounted returns along episodes."""

from __future__ import annotations

from surestep._arrays import FloatArray, IntArray
from surestep.kernels._compile import F64, FLOATS_IN, FLOATS_OUT, INTS_IN, kernel


@kernel(INTS_IN, FLOATS_IN, F64, FLOATS_OUT)
def discounted_returns(
    episode_offsets: IntArray, reward: FloatArray, discount: float, returns: FloatArray
) -> None:
    """G_t = r_t + γ G_{t+1} within each episode, into `returns` [N]."""
    for episode in range(episode_offsets.size - 1):
        total = 0.0
        for back in range(episode_offsets[episode + 1] - episode_offsets[episode]):
            step = episode_offsets[episode + 1] - 1 - back
            total = reward[step] + discount * total
            returns[step] = total
