"""Does the previous step help to predict the action, beyond the state?

π_b sees only the state: π(a_t | s_t, s_{t−1}, a_{t−1}, r_{t−1}) = π_b(a_t | s_t). The previous
reward counts as above or below the mean of its state, action and next state. Actions are compared
within parts of the log. So a logger whose policy slowly changes, but depends on the state alone,
does not fail the test.
"""

import numpy as np

from surestep._arrays import run_owners
from surestep.checks.check import Check, CheckKind, GivenLog
from surestep.checks.shuffling import (
    above_usual,
    permutation_check,
    shifted,
    steps_before,
)

EPISODES_A_PART = 50  # on average; parts follow the order of the log
MOST_PARTS = 10


def check(given: GivenLog) -> Check:
    """Tests whether the previous step predicts the action, in each state and part of the log."""
    log = given.log
    state = log.state.astype(np.int64)
    parts = min(max(log.num_episodes // EPISODES_A_PART, 1), MOST_PARTS)
    part = run_owners(log.episode_offsets) * parts // log.num_episodes
    paid = shifted(log, above_usual(log))
    return permutation_check(
        KIND.code,
        given,
        state,
        log.action,
        [past for step in steps_before(log) for past in (2 * step + paid, step)],
        group=part * np.int64(log.pairs.num_states) + state,
        seed=4,
    )


KIND = CheckKind(
    code="behavior-memory",
    title="Decisions depended only on the recorded situation",
    broken="Decisions depended on more than the recorded situation",
    passed="No sign that the previous step helps to predict the action.",
    failed="The previous step helps to predict the action: whoever decided saw more than the log "
    "shows, or learnt over time. What they saw may also have caused the outcome: "
    "ask those who decide, and record it.",
    noticed="Had the previous step alone decided {noticed:%} of all actions, four of five such "
    "logs would show it.",
    against="no-hidden-causes",
    of_log=check,
)
