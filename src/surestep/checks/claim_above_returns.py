"""Is a larger gain claimed than any episode earned?"""

from __future__ import annotations

from surestep.checks.check import Check, GivenResult, Kind
from surestep.checks.claim_above_estimate import highest


def check(result: GivenResult) -> Check | None:
    """Holds the largest claim against the returns of the episodes.

    Who earns something may earn more; who only pays can gain no more than all of it.
    """
    if result.returns is None:
        return None
    claim, (low, high) = highest(result), result.returns
    fails = claim > max(high, 0.0) - min(low, 0.0)
    return Check.failing(KIND.code, fails, claim=claim, low=low, high=high)


KIND = Kind(
    code="claim-above-returns",
    title="No claimed gain exceeds what episodes earned",
    failed="A gain of at least {claim} is claimed, but episodes earned only {low} to {high}.",
    figures=("claim", "low", "high"),
    of_result=check,
)
