"""Logs written down step by step."""

import numpy as np

from surestep import DecisionLog


def log_of(pairs, *episodes, cut=()):
    """Episodes of steps (state, action, reward, next state), all over but those that are cut."""
    lengths = [len(episode) for episode in episodes]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    over, truncated = np.zeros((2, offsets[-1]), bool)
    truncated[offsets[1:][list(cut)] - 1] = True
    over[offsets[1:] - 1] = ~truncated[offsets[1:] - 1]
    state, action, reward, following = map(
        np.array, zip(*(step for episode in episodes for step in episode), strict=True)
    )
    return DecisionLog(pairs, state, action, reward, following, over, truncated, offsets)


def one_step_log(pairs, action, reward):
    """Episodes of one decision in state 0, each over in state 1 after it."""
    size, over = len(action), np.ones(len(action), bool)
    here = np.zeros(size, int)
    return DecisionLog(pairs, here, action, reward, here + 1, over, ~over, np.arange(size + 1))
