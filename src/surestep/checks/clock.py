"""Does anything in the log support that a clock stopped its recordings?"""

from collections.abc import Container

from surestep.checks.check import Check, CheckKind
from surestep.io.logs.loading import UNEXPLAINED


def check(reasons: Container[str]) -> list[Check]:
    """Returns a failed check if nothing explains why episodes stop, by the reasons of counts."""
    return [Check(code=KIND.code, outcome="failed")] if UNEXPLAINED in reasons else []


KIND = CheckKind(
    code="clock-unsupported",
    title="Episodes of different lengths were stopped, and nothing shows a clock",
    failed="Did a clock stop the recordings, or what happened in them? They have different "
    "lengths, and no date explains it. Each of these would: a column `truncated` that "
    "marks the last rows that a clock stopped; a column of times (`time`) by which these rows lie "
    "within one step of the last date; a `step` that is a calendar and has the same last number "
    "everywhere; or one greatest length, which 95 % of the episodes reach that began early "
    "enough. If something ended them, say so in a column `terminated`. If it is known that they "
    'stop at random, say ends = "random". Then repeat the analysis.',
    against="stopped-by-clock",
    asks=True,
    forbids_proof=lambda check, certificate: True,
)
