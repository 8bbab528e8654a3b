"""The claims of any certifier about several policies, and their lower bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surestep.certificates.common import tried
from surestep.certificates.episodes import split_of, training_part
from surestep.certificates.posterior import Posterior, gains_each
from surestep.certificates.protocol import Again, Bound, Certifier, Claim, Question
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory
from surestep.errors import CertificateRefused
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.statements import Statement


def claims_of(asked: Sequence[Question]) -> list[Claim]:
    """Returns what certifiers claim, or why they do not; those of one kind together if they can."""
    if len({type(question.certifier) for question in asked}) > 1:
        return [claim for question in asked for claim in claims_of([question])]
    if asked and hasattr(asked[0].certifier, "certify_many"):
        together: list[Claim] = asked[0].certifier.certify_many(asked)
        return together
    return [tried(judge.certify, problem, policy) for judge, problem, policy in asked]


def lower_bounds(
    certifiers: Sequence[Certifier],
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
) -> list[list[Bound]]:
    """Returns L of the policies of each problem by its certifier, or why there is none.

    The certifiers are of one kind; draws are the same for all policies of a problem.
    """
    believers = [certifier for certifier in certifiers if isinstance(certifier, Posterior)]
    if not believers:
        return [
            [*map(bound_of, claims_of([Question(judge, problem, policy) for policy in several]))]
            for judge, problem, several in zip(certifiers, problems, policies, strict=True)
        ]
    gains = gains_each(believers, problems, policies)
    return [
        [drawn] * len(several)
        if isinstance(drawn, CertificateRefused)
        else np.sort(drawn, axis=1)[:, certifier.rank - 1].tolist()
        for certifier, several, drawn in zip(believers, policies, gains, strict=True)
    ]


def bound_of(claim: Claim) -> Bound:
    """Returns L, or why there is none."""
    if isinstance(claim, CertificateRefused):
        return claim
    if claim.lower is None:
        return CertificateRefused(Statement("no-claim", {"kind": claim.kind}))
    return claim.lower


def choosing_bounds(
    certifier: Certifier,
    problems: Sequence[Problem],
    policies: Sequence[Sequence[Policy]],
    again: Again,
) -> list[list[Bound]]:
    """Returns what a choice among the policies of each problem goes by.

    All of a problem may choose, so that what chooses is no claim of its own data: a stitched one is
    what a training part expects, a posterior has other draws, and for a trajectory certificate a
    part of the problem makes the policies once more (`again`), about which the rest claims.
    """
    if isinstance(certifier, Stitched):
        return certifier.expected_bounds(problems, policies)
    certifiers = [certifier] * len(problems)
    if isinstance(certifier, Posterior):
        certifiers = [certifier.choosing(problem) for problem in problems]
    if isinstance(certifier, Trajectory):
        policies = [again(training_part(problem, *split_of(certifier))) for problem in problems]
    return lower_bounds(certifiers, problems, policies)
