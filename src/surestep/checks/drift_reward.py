"""Do rewards differ between the first and second half of the log, or between shorter blocks?"""

from __future__ import annotations

from surestep.checks.check import Check, GivenLog, Kind
from surestep.checks.past import blocks, permutation_check, transitions


def check(given: GivenLog) -> Check:
    """Compares rewards among rows of the same transition, by blocks of the log."""
    log = given.log
    half, *finer = blocks(log)
    return permutation_check(
        *(KIND.code, given, log.pair, log.reward, [half]),
        group=transitions(log),
        finer=finer,
        seed=3,
    )


KIND = Kind(
    code="drift-reward",
    title="The rewards of steps did not change over time",
    passed="No sign that the same step earned something else in some parts of the log.",
    failed="The same step earned something else in some parts of the log than in others: the claim "
    "may hold only for the past.",
    noticed="Had rewards shifted by {noticed} of their standard deviation in the second half, four "
    "of five such logs would show it.",
    against="markov",
    of_log=check,
)
