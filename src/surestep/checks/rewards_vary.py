"""Does a claim take rewards for exact that vary?"""

from __future__ import annotations

from surestep.certificates import find_kind
from surestep.checks.check import Check, GivenResult, Kind
from surestep.model import Certificate


def check(result: GivenResult) -> Check | None:
    """Looks for a claimed gain that takes mean rewards for exact, where rewards vary."""
    fails = result.rewards_vary and any(map(takes_means, result.certificates))
    return Check.failing(KIND.code, fails)


def takes_means(claim: Certificate) -> bool:
    """Tells whether a certificate claims a gain and takes mean rewards for exact."""
    known = find_kind(claim.kind)
    return (claim.lower or 0.0) > 0 and known is not None and known.needs.exact_rewards


KIND = Kind(
    code="rewards-vary",
    title="Rewards are fixed where a claim takes them for exact",
    failed="Rewards vary, but a claim takes their means for exact.",
    of_result=check,
)
