"""Do decisions change after the part of the log from which π_b was estimated?"""

import numpy as np

from surestep.checks.check import Check, CheckKind, GivenResult
from surestep.checks.shuffling import permutation_check
from surestep.checks.words import filled


def check(result: GivenResult) -> Check:
    """Tests whether late rows of a state have other actions than early ones; or says why not."""
    practice = result.practice
    if isinstance(practice, str):
        return Check.unchecked(KIND.code, practice)
    return permutation_check(
        KIND.code,
        practice.given,
        practice.given.log.state.astype(np.int64),
        practice.given.log.action,
        [practice.late.astype(np.int64)],
        figures={
            "gain": practice.gain or 0.0,
            "has_gain": float(practice.gain is not None),
        },
        seed=6,
    )


def words_of_failure(check: Check) -> str:
    """Returns the sentences of a failure, with the estimated gain over recent practice."""
    recent = "The gain over recent practice cannot be estimated: episodes may never end."
    if check.figures["has_gain"]:
        recent = "Over recent practice it gains an estimated {gain:+} per episode; not proved."
    return filled(
        "Practice has changed: later decisions differ from those that chose the new policy. Every "
        f"claim compares with the practice of that first part. {recent}",
        check,
    )


KIND = CheckKind(
    code="practice-changed",
    title="Decisions are still made as in the first part of the log",
    broken="Decisions are no longer made as in the first part of the log",
    passed="No sign that decisions have changed since the part of the log that chose the policy.",
    failed=words_of_failure,
    noticed="Had the part of the log alone decided {noticed:%} of all actions, four of five such "
    "logs would show it.",
    figures=("gain", "has_gain"),  # has_gain is 0 where nothing is estimated
    of_result=check,
)
