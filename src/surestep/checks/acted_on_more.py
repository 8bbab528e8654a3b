"""Is a gain claimed for states, where whoever acted looked at more than these?"""

from __future__ import annotations

from surestep.checks.check import Check, GivenResult, Kind
from surestep.model import Certificate


def check(result: GivenResult) -> Check | None:
    """Looks for a claimed gain that excludes hidden causes, where recorded probabilities vary."""
    return Check.failing(KIND.code, any(map(may_be_confounded, result.certificates)))


def may_be_confounded(claim: Certificate) -> bool:
    """Tells whether a certificate claims a gain that what was seen besides may explain."""
    assumed = {said.code for said in claim.assumptions}
    return (claim.lower or 0.0) > 0 and {"acted-on-more", "no-hidden-causes"} <= assumed


KIND = Kind(
    code="acted-on-more",
    title="Recorded probabilities depend only on the recorded situation",
    failed="Whoever decided looked at more than the situation: the probabilities that the log "
    "names vary within it. If what they saw also affects the outcome, the claimed gain may not "
    "exist. Add it to the situation, or ask for a trajectory certificate, which allows for it.",
    against="no-hidden-causes",
    of_result=check,
)
