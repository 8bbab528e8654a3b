"""The claims of any certifier about several policies, and their lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep.certificates.protocol import (
    Again,
    Believer,
    Bound,
    Certifier,
    Chooser,
    ChoosesTogether,
    Claim,
    ClaimsEach,
    ClaimsTogether,
    GainsTogether,
    believes,
)
from surestep.errors import CertificateRefused
from surestep.model.policy import Policy
from surestep.model.problem import Problem

FEW_DRAWS = 99
Kind = TypeVar("Kind", bound=Believer)


def claims_of(
    certifiers: Sequence[Certifier], problems: Sequence[Problem], policies: Sequence[Policy]
) -> list[Claim]:
    """Returns what each certifier claims of the policy of its problem, or why it does not.

    The certifiers are of one kind; it makes all claims together if it can.
    """
    if (
        certifiers
        and isinstance(certifiers[0], ClaimsEach)
        and speaks_for(certifiers[0], "claims_each", "certify")
    ):
        return certifiers[0].claims_each(certifiers, problems, policies)
    if (
        certifiers
        and isinstance(certifiers[0], ClaimsTogether)
        and speaks_for(certifiers[0], "claims", "certify")
        and all(certifier == certifiers[0] for certifier in certifiers)
    ):
        return certifiers[0].claims(problems, policies)
    return [*map(claim_or_refusal, certifiers, problems, policies)]


def speaks_for(certifier: object, many: str, single: str) -> bool:
    """Tells whether a kind's answer to many questions is its answer to each.

    Where a subclass answers a single one in a way of its own, that of its parent to many is not.
    """
    kinds = type(certifier).__mro__
    first, other = (
        next((place for place, kind in enumerate(kinds) if name in vars(kind)), len(kinds))
        for name in (many, single)
    )
    return first <= other


def claim_or_refusal(certifier: Certifier, problem: Problem, policy: Policy) -> Claim:
    """Returns the claim about one policy, or its refusal."""
    try:
        return certifier.certify(problem, policy)
    except CertificateRefused as refusal:
        return refusal


def lower_bounds(certifier: Certifier, problem: Problem, policies: Sequence[Policy]) -> list[Bound]:
    """Returns L of each policy, or why there is none; draws are the same for all policies."""
    return lower_bounds_each([certifier], [problem], [policies])[0]


def lower_bounds_each(
    certifiers: Sequence[Certifier],
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
) -> list[list[Bound]]:
    """Returns the `lower_bounds` of each certifier, of one kind all of them."""
    if not believes(certifiers[0]):
        return [
            [*map(bound_of, claims_of(*repeated(len(several), certifier, problem), several))]
            for certifier, problem, several in zip(certifiers, problems, policies, strict=True)
        ]
    believers = [certifier for certifier in certifiers if believes(certifier)]
    return [
        [gains] * len(several)
        if isinstance(gains, CertificateRefused)
        else np.sort(gains, axis=1)[:, certifier.rank - 1].tolist()
        for certifier, several, gains in zip(
            believers, policies, gains_each(believers, problems, policies), strict=True
        )
    ]


def repeated(
    number: int, certifier: Certifier, problem: Problem
) -> tuple[list[Certifier], list[Problem]]:
    """Returns both, so many times."""
    return [certifier] * number, [problem] * number


def gains_each(
    certifiers: Sequence[Believer],
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
) -> list[FloatArray | CertificateRefused]:
    """Returns the gains of the policies of each problem, or why there are none.

    The certifiers, one for each problem, are of one kind; it draws for all at once if it can.
    """
    kind = certifiers[0]
    if isinstance(kind, GainsTogether) and speaks_for(kind, "gains_each", "gains"):
        return kind.gains_each(certifiers, problems, policies)
    gains: list[FloatArray | CertificateRefused] = []
    for certifier, problem, several in zip(certifiers, problems, policies, strict=True):
        try:
            gains.append(certifier.gains(problem, several))
        except CertificateRefused as refusal:
            gains.append(refusal)
    return gains


def bound_of(claim: Claim) -> Bound:
    """Returns L, or why there is none."""
    if isinstance(claim, CertificateRefused):
        return claim
    if claim.lower is None:
        return CertificateRefused(" ".join(map(str, claim.notes)), code="no-claim")
    return claim.lower


def choosing_bounds_each(
    certifier: Certifier,
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
    again: Again,
) -> list[list[Bound]]:
    """Returns what a choice among the policies of each problem goes by; see `Chooser`.

    All problems are answered together if possible.
    """
    if isinstance(certifier, ChoosesTogether) and speaks_for(
        certifier, "choosing_bounds_each", "choosing_bounds"
    ):
        return certifier.choosing_bounds_each(problems, policies)
    if isinstance(certifier, Chooser):
        return [
            certifier.choosing_bounds(problem, several, again)
            for problem, several in zip(problems, policies, strict=True)
        ]
    return lower_bounds_each([certifier] * len(problems), problems, policies)


def with_few_draws(certifier: Kind) -> Kind:
    """Returns the same with no more draws than 99, or what its δ needs: to compare, not to claim.

    99 rank policies at a tenth of the cost of 1000.
    """
    enough = max(FEW_DRAWS, arrays.least_draws(certifier.delta))
    return certifier.with_draws(min(certifier.draws, enough))


def fewest_draws(delta: float) -> int:
    """Returns how few draws tell whether a belief is wrong: three times what δ needs at the least.

    They are not claimed, only counted.
    """
    return 3 * arrays.least_draws(delta) + 2
