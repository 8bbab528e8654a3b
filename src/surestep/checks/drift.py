"""Blocks of episodes in time: where pairs lead, and what transitions pay.

The log is cut into 2, 4, … 128 blocks in its own order, which is that of time where rows were
written as they came; all are one test. The pair is given, so it does not matter that whoever
decided has changed in between.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import BoolArray, IntArray
from surestep.checks.check import Check
from surestep.checks.memory import check_of, episode_of_rows, reward_check_of, transitions
from surestep.checks.shuffling import compared_rows, label_test, number_test
from surestep.model.log import DecisionLog

BLOCKS = (2, 4, 8, 16, 32, 64, 128)  # each a part of one before
LEAST_IN_BLOCK = 25  # episodes, but for halves


def next_state_drift(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the block of the log tells the next state, beyond state and action."""
    rows, apart = compared_rows(log, log.pair, seed)
    half, *finer = (block[rows] for block in blocks(log))
    outcome = log.next_state[rows].astype(np.int64)
    tested = label_test(log.pair[rows], half, outcome, seed=seed, level=level, finer=finer)
    return check_of("drift-next-state", tested, level, apart)


def reward_drift(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the block of the log tells the reward, beyond the whole transition."""
    rows, apart = compared_rows(log, log.pair, seed)
    half, *finer = (block[rows] for block in blocks(log))
    group, reward = transitions(log)[rows], log.reward[rows]
    tested = number_test(group, half, reward, seed=seed, level=level, finer=finer)
    return reward_check_of("drift-reward", tested, log, level, apart)


def practice_check(
    log: DecisionLog, late: BoolArray, gain: float | None, *, seed: int, level: float
) -> Check:
    """Checks whether late rows [N] differ from those before in actions, beyond the state.

    `gain` is the estimated one over the practice of the late ones; None where there is none.
    """
    rows, apart = compared_rows(log, log.state.astype(np.int64), seed)
    group, action = log.state[rows].astype(np.int64), log.action[rows].astype(np.int64)
    tested = label_test(group, late[rows].astype(np.int64), action, seed=seed, level=level)
    figures = {"gain": 0.0 if gain is None else gain, "has_gain": float(gain is not None)}
    return check_of("practice-changed", tested, level, apart, figures)


def blocks(log: DecisionLog) -> list[IntArray]:
    """Returns the block of each row [N]: in halves of the episodes, and in shorter blocks.

    A log of one episode is cut by its rows.
    """
    place, size = episode_of_rows(log), log.num_episodes
    if size == 1:
        place, size = np.arange(log.num_steps), log.num_steps
    return [place * n // size for n in BLOCKS if n == BLOCKS[0] or LEAST_IN_BLOCK * n <= size]
