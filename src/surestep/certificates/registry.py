"""All certifiers by name."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from surestep.certificates.apriori import APriori
from surestep.certificates.common import Needs
from surestep.certificates.corrected import CorrectedBeta
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory
from surestep.errors import InvalidParameter
from surestep.model.certificate import Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Problem

CERTIFIERS: dict[str, type[Any]] = {
    "a-priori": APriori,
    "beta-corrected": CorrectedBeta,
    "no-claim": NoClaim,
    "robust": Robust,
    "posterior": Posterior,
    "trajectory": Trajectory,
    "stitched": Stitched,
}


class Certifier(Protocol):
    """A frozen dataclass of settings with one verb."""

    name: ClassVar[str]  # the kind of its certificates
    value_figures: ClassVar[frozenset[str]]  # figures in the unit of values: 0 is as good as 1e-12
    needs: ClassVar[Needs]  # what it must be given beside counts
    may_choose: ClassVar[bool]  # whether its claims may choose among policies, as N∧ does

    @property
    def delta(self) -> float:
        """δ, the chance that the claim is wrong."""
        ...

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """The claim about the policy; CertificateRefused where there is none."""
        ...


def check_certifier(certifier: object) -> None:
    """Refuses what is no certifier."""
    if type(certifier) not in CERTIFIERS.values():
        known = " or ".join(kind.__name__ for kind in CERTIFIERS.values())
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected {known}, with its settings"
        )
