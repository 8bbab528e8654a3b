"""All certifiers by name."""

from __future__ import annotations

from typing import Any

from surestep.certificates.apriori import APriori
from surestep.certificates.corrected import CorrectedBeta
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory
from surestep.errors import InvalidParameter

CERTIFIERS: dict[str, type[Any]] = {
    "a-priori": APriori,
    "beta-corrected": CorrectedBeta,
    "no-claim": NoClaim,
    "robust": Robust,
    "posterior": Posterior,
    "trajectory": Trajectory,
    "stitched": Stitched,
}


def check_certifier(certifier: object) -> None:
    """Refuses what is no certifier."""
    if type(certifier) not in CERTIFIERS.values():
        known = " or ".join(kind.__name__ for kind in CERTIFIERS.values())
        raise InvalidParameter(
            f"certifier is of type {type(certifier).__name__}, expected {known}, with its settings"
        )
