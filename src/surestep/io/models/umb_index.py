"""The index of a UMB archive: JSON that somebody else wrote, as declared types."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from surestep._json import converted, read_json
from surestep.errors import InvalidModel
from surestep.io.models.umb_archive import Archive

INDEX = "index.json"
VERSION = 1
REWARD = "reward"  # the reward structure that counts among several, where nobody chooses
TOOL = "surestep"  # whose files may hold what follows
# Bytes that the index may have for each byte of a compressed archive, and in any: one of names
# grows by a factor of 10, and every byte of it may become 30 bytes of Python's lists.
INDEX_GROWTH, INDEX_ALLOWANCE = 16, 1 << 20

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class ValueType(Struct, frozen=True):
    """The type of values."""

    type: str
    size: Count = 0  # bits; 0: as many as usual


UNKNOWN = ValueType("")


class System(Struct, frozen=True, rename="kebab"):
    """The sizes of a model."""

    time: str
    branch_probability_type: ValueType
    players: Count = field(name="#players")
    states: Count = field(name="#states")
    choices: Count = field(name="#choices")
    branches: Count = field(name="#branches")
    actions: Count = field(name="#choice-actions", default=0)
    observations: Count = field(name="#observations", default=0)


class Annotation(Struct, frozen=True, rename="kebab"):
    """A reward structure, or a label."""

    applies_to: list[Any]
    type: ValueType = UNKNOWN
    alias: str | None = None
    probability_type: Any = None


class Annotations(Struct, frozen=True):
    """The reward structures and labels, by their names in the archive."""

    rewards: dict[str, Annotation] = {}
    aps: dict[str, Annotation] = {}


class Maker(Struct, frozen=True):
    """The program that wrote the archive, and what it left there for itself."""

    tool: Any = None
    parameters: Any = None


class OurParameters(Struct, frozen=True, rename="kebab"):
    """What an archive of ours says besides: Storm refuses files that declare strings."""

    state_labels: list[str] | None = None


class Index(Struct, frozen=True, rename="kebab"):
    """All of the index that is read here."""

    format_version: Annotated[int, Meta(ge=0, le=VERSION)]
    transition_system: System
    annotations: Annotations = Annotations()
    file_data: Maker = Maker()


def read_index(archive: Archive) -> Index:
    """Returns the index of an archive of a version that is known here."""
    most = INDEX_GROWTH * archive.stored + INDEX_ALLOWANCE
    if archive.size(INDEX) > most:
        raise InvalidModel(
            f"{INDEX} has {archive.size(INDEX)} bytes, expected {most} at most in an archive of "
            f"{archive.stored} bytes"
        )
    try:
        content = read_json(archive.read(INDEX))
    except (ValueError, RecursionError) as problem:
        raise InvalidModel(f"{INDEX} is not valid JSON: {problem}") from None
    index: Index = converted(content, Index, INDEX, InvalidModel)
    return index
