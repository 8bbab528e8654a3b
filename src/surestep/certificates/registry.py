"""All certifiers by name; certifying a policy, and making a certificate again to verify it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from surestep._arrays import expect, is_number
from surestep.certificates.apriori import APriori
from surestep.certificates.corrected import CorrectedBeta
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior
from surestep.certificates.robust import Robust
from surestep.certificates.trajectory import Trajectory
from surestep.errors import (
    CertificateMismatch,
    CertificateRefused,
    InvalidCertificate,
    InvalidParameter,
)
from surestep.model.certificate import Certificate, Scalar
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Policy
from surestep.model.problem import Problem

CERTIFIERS: dict[str, type[Any]] = {
    "a-priori": APriori,
    "beta-corrected": CorrectedBeta,
    "no-claim": NoClaim,
    "robust": Robust,
    "posterior": Posterior,
    "trajectory": Trajectory,
}

AGREEMENT = 1e-9  # relative; values of another machine may differ in their last digits


class Certifier(Protocol):
    """A frozen dataclass of settings with one verb."""

    name: ClassVar[str]  # the kind of its certificates
    value_figures: ClassVar[frozenset[str]]  # figures in the unit of values: 0 is as good as 1e-12

    @property
    def delta(self) -> float:
        """δ, the chance that the claim is wrong."""
        ...

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """The claim about the policy; CertificateRefused where there is none."""
        ...


def certify(problem: Problem, policy: Policy, certifier: Certifier) -> Certificate:
    """What the certifier claims about ρ(policy) − ρ(π_b), from the data of the problem alone.

    The problem's premises come after the assumptions of the certifier itself.
    """
    expect("problem", problem, Problem)
    expect("policy", policy, Policy)
    if type(certifier) not in CERTIFIERS.values():
        known = " or ".join(kind.__name__ for kind in CERTIFIERS.values())
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected {known}, with its settings"
        )
    check_same_pairs("the problem", problem.counts.pairs, "the policy", policy.pairs)
    claimed = certifier.certify(problem, policy)
    return dataclasses.replace(claimed, assumptions=(*claimed.assumptions, *problem.premises))


def verify(certificate: Certificate, problem: Problem, policy: Policy) -> Certificate:
    """Makes the certificate again, and refuses it where it comes out differently.

    Words, whole numbers and settings must be the same, other numbers within 1e-9: relative to
    themselves, or to the span where they are values.
    """
    expect("certificate", certificate, Certificate)
    certifier = certifier_of(certificate)
    again = certify(problem, policy, certifier)
    slack = AGREEMENT * again.span
    must_agree("lower", certificate.lower, again.lower, slack)
    must_agree("delta", certificate.delta, again.delta)
    must_agree("span", certificate.span, again.span)
    for name in ("standing", "assumptions", "notes"):
        must_agree(name, getattr(certificate, name), getattr(again, name))
    for name in ("parameters", "figures"):
        found, expected = getattr(certificate, name), getattr(again, name)
        must_agree(f"the names of {name}", sorted(found), sorted(expected))
        for key, value in expected.items():
            in_values = name == "figures" and key in certifier.value_figures
            must_agree(f"{name}.{key}", found[key], value, slack if in_values else 0.0)
    return again


def certifier_of(certificate: Certificate) -> Certifier:
    """The certifier of that kind with those parameters."""
    if certificate.kind not in CERTIFIERS:
        raise CertificateRefused(
            f"kind is {certificate.kind!r}, which cannot be verified here; expected one of "
            f"{', '.join(CERTIFIERS)}"
        )
    kind = CERTIFIERS[certificate.kind]
    parameters: Mapping[str, Scalar] = certificate.parameters
    names = [field.name for field in dataclasses.fields(kind)]
    for name in (*names, *parameters):
        if name not in parameters:
            raise InvalidCertificate(f"parameters.{name} is missing; expected {', '.join(names)}")
        if name not in names:
            raise InvalidCertificate(
                f"parameters.{name} is no setting of {certificate.kind}; expected "
                f"{', '.join(names)}"
            )
    certifier: Certifier = kind(**parameters)
    return certifier


def must_agree(path: str, found: object, expected: object, slack: float = 0.0) -> None:
    """Refuses a certificate that says something else than what is computed from the data."""
    # Other programs may write the double 4.0 as 4.
    if is_number(found) and is_number(expected) and float in (type(found), type(expected)):
        agrees = math.isclose(found, expected, rel_tol=AGREEMENT, abs_tol=slack)
    else:
        agrees = type(found) is type(expected) and found == expected
    if not agrees:
        raise CertificateMismatch(
            f"{path} is {found!r} in the certificate, but {expected!r} when computed from this "
            "problem and this policy; expected the problem and the policy that were certified"
        )
