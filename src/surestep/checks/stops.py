"""Does recording stop more often after some actions than after others?

A clock stops recordings whatever is done. So among rows of one state, step and part of the log that
did not terminate, rows without a known outcome must be equally frequent under all actions. The log
is cut into parts because practice may change while a date stops recordings: into quarters, or
shorter parts if these have enough rows. A row that was cut off but has a next state is no such row.
"""

import numpy as np

from surestep._arrays import run_owners
from surestep.checks.check import Check, CheckKind, GivenLog
from surestep.checks.shuffling import check_of, shuffle_test
from surestep.model.log import UNKNOWN

PARTS = (64, 32, 16, 8, 4)  # numbers of parts; the first whose parts have enough rows is taken
ROWS_A_GROUP = 4  # on average


def check(given: GivenLog) -> Check | None:
    """Tests whether the action predicts stops, within each state, step and part of the log."""
    log = given.whole or given.log
    stopped = (log.next_state == UNKNOWN).astype(np.int64)
    if not stopped.any():
        return None
    rows = np.flatnonzero(~log.terminated)
    place = (log.state * np.int64(log.step.max() + 1) + log.step)[rows]  # at most once an episode
    enough = [n for n in PARTS if ROWS_A_GROUP * n * np.unique(place).size <= rows.size]
    parts = (*enough, PARTS[-1])[0]
    group = place * parts + (run_owners(log.episode_offsets) * parts // log.num_episodes)[rows]
    outcome = shuffle_test(
        group,
        log.action[rows].astype(np.int64),
        stopped[rows],
        seed=given.seed + 7,
        level=given.level,
    )
    return check_of(KIND.code, outcome, given.level, True)


KIND = CheckKind(
    code="stops-that-know",
    title="Recording stopped whatever was done",
    broken="Recording stopped more often after some actions than after others",
    passed="No sign that the action tells whether recording stops.",
    failed="In the same situation, at the same step, recording stopped more often after some "
    "actions than after others: no clock does that. What these actions led to, perhaps the worst, "
    "is missing. Find out why rows are the last ones, and record how they ended.",
    noticed="Had the action alone decided {noticed:%} of all stops, four of five such logs would "
    "show it.",
    against="stopped-by-clock",
    asks=True,
    forbids_proof=lambda check, certificate: True,
    of_log=check,
)
