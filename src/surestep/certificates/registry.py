"""All certifiers by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from surestep.certificates.apriori import APriori
from surestep.certificates.beta_corrected import CorrectedBeta
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior
from surestep.certificates.protocol import Believer, Certifier
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


BUILT_IN = frozenset(CERTIFIERS)  # what other kinds call proved is at most believed
MEMBERS = (*Certifier.__annotations__, *(name for name in vars(Certifier) if name[0] != "_"))
OF_BELIEVERS = tuple(name for name in vars(Believer) if name[0] != "_")


def check_certifier(certifier: object) -> None:
    """Refuses what is no certifier, nor has the members of one; see `protocol`."""
    kind = type(certifier)
    if kind in CERTIFIERS.values():
        return
    known = " or ".join(each.__name__ for each in CERTIFIERS.values())
    expected = f"{known}, with its settings, or a frozen dataclass with {', '.join(MEMBERS)}"
    if isinstance(certifier, type) or not dataclasses.is_dataclass(certifier):
        raise InvalidParameter(f"certifier is of type {kind.__name__}, expected {expected}")
    believer = getattr(getattr(certifier, "needs", None), "calibration", False)
    for name in (*MEMBERS, *(OF_BELIEVERS if believer else ())):
        if not hasattr(certifier, name):
            why = ", as it needs calibration" if name in OF_BELIEVERS else ""
            raise InvalidParameter(
                f"certifier is of type {kind.__name__}, expected {expected}; {name} is missing{why}"
            )
    if kind.name in CERTIFIERS:  # type: ignore[attr-defined]
        raise InvalidParameter(
            f"certifier is of type {kind.__name__}, but has the name of a kind that is built in; "
            f"expected another one than {', '.join(CERTIFIERS)}"
        )


def only_believed(kind: str) -> bool:
    """Tells whether the claims of a kind are beliefs: by draws, or as it is not built in."""
    return kind not in BUILT_IN or CERTIFIERS[kind].needs.calibration
