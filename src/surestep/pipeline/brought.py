"""Parts of a result that are not built in, and who brought it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from surestep.algorithms.registry import SHELF as ALGORITHMS
from surestep.certificates.registry import SHELF as CERTIFICATES
from surestep.errors import InvalidParameter
from surestep.extensions import SINGULAR, Shelf, versions_of
from surestep.results.record import Record, current_versions


class Names(NamedTuple):
    """The names of an algorithm and of kinds of certificates."""

    algorithm: str
    kinds: tuple[str, ...]

    @classmethod
    def said_in(cls, parameters: Mapping[str, Any]) -> Names:
        """Returns the names that stand in the parameters of a record."""
        kinds = (text.partition(":")[0] for text in parameters["certificates"])
        return cls(str(parameters["algorithm"].get("algorithm")), tuple(kinds))

    @property
    def on_shelves(self) -> list[tuple[Shelf[Any], str]]:
        """Returns the names, and where to look them up."""
        return [(ALGORITHMS, self.algorithm), *((CERTIFICATES, kind) for kind in self.kinds)]


def versions_with(names: Names) -> dict[str, str]:
    """Returns the versions here of all that a result is made with."""
    return current_versions() | versions_of(names.on_shelves)


def check_extensions(record: Record) -> None:
    """Refuses a result that was made with an extension that is not here."""
    for shelf, name in Names.said_in(record.parameters).on_shelves:
        if shelf.find(name) is None:
            others = record.versions.keys() - current_versions().keys()
            named = ", ".join(f"{each} {record.versions[each]}" for each in sorted(others))
            raise InvalidParameter(
                f"there is no {SINGULAR[shelf.sort]} {name!r} here, with which the result was "
                "made; expected its extension to be installed or registered"
                + (f": the result names {named}" if named else "")
            )
