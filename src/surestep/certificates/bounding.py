"""The claims of any certifier about several policies, and their lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from surestep._arrays import least_draws
from surestep.certificates.protocol import (
    Again,
    Believer,
    Bound,
    Certifier,
    Chooser,
    Claim,
    ClaimsTogether,
    believes,
)
from surestep.errors import CertificateRefused
from surestep.model.policy import Policy
from surestep.model.problem import Problem

FEW_DRAWS = 99
Kind = TypeVar("Kind", bound=Believer)


def claims_of(
    certifier: Certifier, problems: Sequence[Problem], policies: Sequence[Policy]
) -> list[Claim]:
    """Returns the claim about the policy of each problem, or its refusal; together if possible."""
    if isinstance(certifier, ClaimsTogether):
        return certifier.claims(problems, policies)
    return [
        claim_or_refusal(certifier, problem, policy)
        for problem, policy in zip(problems, policies, strict=True)
    ]


def claim_or_refusal(certifier: Certifier, problem: Problem, policy: Policy) -> Claim:
    """Returns the claim about one policy, or its refusal."""
    try:
        return certifier.certify(problem, policy)
    except CertificateRefused as refusal:
        return refusal


def lower_bounds(certifier: Certifier, problem: Problem, policies: Sequence[Policy]) -> list[Bound]:
    """Returns L of each policy, or why there is none; draws are the same for all policies."""
    if not believes(certifier):
        return [*map(bound_of, claims_of(certifier, [problem] * len(policies), policies))]
    try:
        gains = np.sort(certifier.gains(problem, policies), axis=1)
    except CertificateRefused as reason:
        return [reason] * len(policies)
    return [float(lower) for lower in gains[:, certifier.rank - 1]]


def bound_of(claim: Claim) -> Bound:
    """Returns L, or why there is none."""
    if isinstance(claim, CertificateRefused):
        return claim
    if claim.lower is None:
        return CertificateRefused(" ".join(map(str, claim.notes)), code="no-claim")
    return claim.lower


def choosing_bounds(
    certifier: Certifier, problem: Problem, policies: Sequence[Policy], again: Again
) -> list[Bound]:
    """Returns what a choice among policies of the problem goes by; see `Chooser`."""
    if isinstance(certifier, Chooser):
        return certifier.choosing_bounds(problem, policies, again)
    return lower_bounds(certifier, problem, policies)


def with_few_draws(certifier: Kind) -> Kind:
    """Returns the same with no more draws than 99, or what its δ needs: to compare, not to claim.

    99 rank policies at a tenth of the cost of 1000.
    """
    enough = max(FEW_DRAWS, least_draws(certifier.delta))
    return certifier.with_draws(min(certifier.draws, enough))


def fewest_draws(delta: float) -> int:
    """Returns how few draws tell whether a belief is wrong: three times what δ needs at the least.

    They are not claimed, only counted.
    """
    return 3 * least_draws(delta) + 2
