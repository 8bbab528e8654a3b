"""Early against late episodes: where pairs lead, and what transitions pay.

Halves of the log in its own order, which is that of time where rows were written as they came. The
pair is given, so it does not matter that whoever decided has changed in between.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import IntArray
from surestep.checks.check import Check
from surestep.checks.memory import check_of, episode_of_rows, reward_check_of, transitions
from surestep.checks.shuffling import compared_rows, label_test, number_test
from surestep.model.log import DecisionLog


def next_state_drift(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the half of the log tells the next state, beyond state and action."""
    rows, apart = compared_rows(log, log.pair, seed)
    outcome = log.next_state[rows].astype(np.int64)
    tested = label_test(log.pair[rows], halves(log)[rows], outcome, seed=seed, level=level)
    return check_of("drift-next-state", tested, level, apart)


def reward_drift(log: DecisionLog, *, seed: int, level: float) -> Check:
    """Checks whether the half of the log tells the reward, beyond the whole transition."""
    rows, apart = compared_rows(log, log.pair, seed)
    tested = number_test(
        transitions(log)[rows], halves(log)[rows], log.reward[rows], seed=seed, level=level
    )
    return reward_check_of("drift-reward", tested, log, level, apart)


def halves(log: DecisionLog) -> IntArray:
    """Returns 0 for the rows [N] of the first half of the episodes, 1 for the others.

    A log of one episode is cut in the middle of its rows.
    """
    if log.num_episodes == 1:
        return (2 * np.arange(log.num_steps) >= log.num_steps).astype(np.int64)
    return (2 * episode_of_rows(log) >= log.num_episodes).astype(np.int64)
