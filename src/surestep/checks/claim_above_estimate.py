"""Is a larger gain claimed than the data estimate?"""

from __future__ import annotations

from surestep.checks.check import Check, GivenResult, Kind
from surestep.model import Certificate


def check(result: GivenResult) -> Check | None:
    """Holds the largest claim against the estimated gain."""
    claim = highest(result)
    fails = claim > max(result.gain, 0.0) + 1e-9 * abs(result.gain)
    return Check.failing(KIND.code, fails, claim=claim, estimate=result.gain)


def highest(result: GivenResult) -> float:
    """Returns the largest gain that is claimed; 0 without any claim."""
    lower = [claim.lower for claim in result.certificates if claim.lower is not None]
    return max(lower, default=0.0)


def exceeds(check: Check, certificate: Certificate) -> bool:
    """Tells whether a certificate itself claims more than the estimate."""
    return (certificate.lower or 0.0) > check.figures["estimate"]


KIND = Kind(
    code="claim-above-estimate",
    title="No claimed gain exceeds the estimated gain",
    failed="A gain of at least {claim} is claimed, but only {estimate} is estimated: one of the "
    "two is wrong.",
    figures=("claim", "estimate"),
    forbids_proof=exceeds,
    of_result=check,
)
