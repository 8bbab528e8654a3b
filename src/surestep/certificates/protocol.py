"""The face of a kind of certificate to all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from surestep.certificates.common import Needs
from surestep.errors import CertificateRefused
from surestep.model.certificate import Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Problem

Claim = Certificate | CertificateRefused
Bound = float | CertificateRefused  # L, or why there is none
Again = Callable[[Problem], Sequence[Policy]]  # the policies that other data lead to


class Certifier(Protocol):
    """A frozen dataclass of settings with one verb, `certify` or `certify_many`.

    `certify(problem, policy)` returns the claim about the policy; CertificateRefused where there is
    none. A kind that makes many claims faster together has a static `certify_many(asked)` instead,
    which returns the claim of each `Question`, or its refusal.
    """

    name: ClassVar[str]  # the kind of its certificates
    value_figures: ClassVar[frozenset[str]]  # figures in the unit of values: 0 is as good as 1e-12
    needs: ClassVar[Needs]  # what it must be given beside counts
    may_choose: ClassVar[bool]  # whether its claims may choose among policies, as N∧ does

    @property
    def delta(self) -> float:
        """δ, the chance that the claim is wrong."""
        ...


class Question(NamedTuple):
    """A policy for a problem, about which a certifier is to say something."""

    certifier: Any
    problem: Problem
    policy: Policy
