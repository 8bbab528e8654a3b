"""All certifiers by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from surestep.certificates.apriori import APriori
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior
from surestep.certificates.protocol import Certifier
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory
from surestep.errors import InvalidParameter
from surestep.extensions import Shelf

CERTIFIERS: dict[str, type[Any]] = {
    "a-priori": APriori,
    "no-claim": NoClaim,
    "robust": Robust,
    "posterior": Posterior,
    "trajectory": Trajectory,
    "stitched": Stitched,
}


BUILT_IN = frozenset(CERTIFIERS)  # what other kinds call proved is at most believed
MEMBERS = (*Certifier.__annotations__, "delta", "certify")
LIKE_ONE = f"a frozen dataclass with {', '.join(MEMBERS)}"


def check_certifier(certifier: object) -> None:
    """Refuses what is no certifier, nor has the members of one; see `protocol`."""
    kind = type(certifier)
    if kind in CERTIFIERS.values():
        return
    known = " or ".join(kind.__name__ for kind in CERTIFIERS.values())
    expected = f"expected {known}, with its settings, or {LIKE_ONE}"
    missing = missing_in(kind)
    if missing is not None:
        raise InvalidParameter(f"certifier is of type {kind.__name__}, {expected}{missing}")
    if certifier.name in CERTIFIERS:  # type: ignore[attr-defined]
        raise InvalidParameter(
            f"certifier is of type {kind.__name__}, but has the name of a kind that is built in; "
            f"expected another one than {', '.join(CERTIFIERS)}"
        )


def missing_in(kind: type[Any]) -> str | None:
    """Returns what a type lacks to be a kind of certifier; None where nothing."""
    if not dataclasses.is_dataclass(kind):
        return ""
    has = {*dir(kind), *(field.name for field in dataclasses.fields(kind))}
    if "certify_many" in has:
        has.add("certify")
    return next((f"; {name} is missing" for name in MEMBERS if name not in has), None)


def check_kind(name: str, kind: object) -> None:
    """Refuses what is no kind of certificate."""
    missing = missing_in(kind) if isinstance(kind, type) else ""
    if missing is not None:
        raise InvalidParameter(
            f"the kind of certificate {name!r} is {kind!r:.80}, expected {LIKE_ONE}{missing}"
        )


SHELF: Shelf[type[Any]] = Shelf("certificates", CERTIFIERS, check_kind)


def find_kind(name: object) -> type[Any] | None:
    """Returns the kind of that name; None where there is none."""
    return SHELF.find(name)


def certifier_kind(name: str) -> type[Any]:
    """Returns the kind of that name; refused where there is none."""
    return SHELF.get(name)


def only_believed(kind: str) -> bool:
    """Tells whether the claims of a kind are beliefs: by draws, or as it is not built in."""
    return kind not in BUILT_IN or kind == Posterior.name


def may_be_believed(place: int, kind: str, *, apart: bool) -> bool:
    """Tells whether what is claimed at a place among several is a belief that may be held.

    The first of them is the one that the stress test measures, and the one that is shown. `apart`
    says that it is by data that had no part in choosing the policy. Of kinds that are not built in,
    only the one to stand by is rehearsed.
    """
    return apart and only_believed(kind) and (place == 0 or kind in BUILT_IN)
