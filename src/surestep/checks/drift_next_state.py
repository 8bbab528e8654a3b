"""Do transitions differ between the first and second half of the log, or between shorter blocks?

The log is cut into 2, 4, … 128 blocks in its own order, which is that of time where rows were
written as they came; all are one test. The pair is given, so it does not matter that whoever
decided has changed in between.
"""

from __future__ import annotations

from surestep.checks.check import Check, GivenLog, Kind
from surestep.checks.past import blocks, permutation_check


def check(given: GivenLog) -> Check:
    """Compares next states among rows of the same pair, by blocks of the log."""
    log = given.log
    half, *finer = blocks(log)
    return permutation_check(
        KIND.code, given, log.pair, log.next_state, [half], finer=finer, seed=2
    )


KIND = Kind(
    code="drift-next-state",
    title="The effects of actions did not change over time",
    passed="No sign that the same action led elsewhere in some parts of the log.",
    failed="The same action in the same situation led elsewhere in some parts of the log than in "
    "others: the claim may hold only for the past.",
    noticed="Had {noticed:%} of all next situations been others in the second half, four of five "
    "such logs would show it.",
    against="markov",
    of_log=check,
)
