"""Discounted returns along episodes."""

from __future__ import annotations

from surestep.kernels._compile import kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IntsIn


@kernel()
def discounted_returns(
    episode_offsets: IntsIn, reward: FloatsIn, discount: float, returns: FloatsOut
) -> None:
    """G_t = r_t + γ G_{t+1} within each episode, into `returns` [N]."""
    for episode in range(episode_offsets.size - 1):
        total = 0.0
        for back in range(episode_offsets[episode + 1] - episode_offsets[episode]):
            step = episode_offsets[episode + 1] - 1 - back
            total = reward[step] + discount * total
            returns[step] = total
