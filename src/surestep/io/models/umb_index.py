"""The index of a UMB archive: JSON that somebody else wrote, so every entry is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surestep.errors import InvalidModel
from surestep.io.models.umb_archive import Archive

INDEX = "index.json"
VERSION = 1
REWARD = "reward"  # the reward structure that counts among several, where nobody chooses
TOOL = "surestep"  # whose files may hold what follows
STATE_LABELS = "state-labels"  # in file-data, parameters: Storm refuses files that declare strings
KINDS = {int: "a whole number", dict: "an object", str: "a string", list: "a list"}
REQUIRED = object()
# Bytes that the index may have for each byte of a compressed archive, and in any: one of names
# grows by a factor of 10, and every byte of it may become 30 bytes of Python's lists.
INDEX_GROWTH, INDEX_ALLOWANCE = 16, 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """An object of the index, and where it stands there."""

    values: dict[str, Any]
    place: str

    def get(self, key: str, kind: type, default: object = REQUIRED) -> Any:
        """Returns an entry of the given type; one without a default must be there."""
        value = self.values.get(key, default)
        if value is REQUIRED:
            raise InvalidModel(f"{self.place} has no entry {key!r}")
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InvalidModel(
                f"{self.place}: {key!r} is {str(value)[:40]!r}, expected {KINDS[kind]}"
            )
        return value

    def count(self, key: str, default: object = REQUIRED) -> int:
        """Returns a whole number of 64 bits, 0 or more."""
        value: int = self.get(key, int, default)
        if not 0 <= value < 1 << 64:
            shown = str(value)[:40]
            raise InvalidModel(f"{self.place}: {key!r} is {shown}, expected 0 to 2**64 - 1")
        return value

    def record(self, key: str, default: object = REQUIRED) -> Record:
        """Returns an object within the object."""
        return Record(self.get(key, dict, default), f"{self.place}, {key}")

    def records(self) -> Iterator[tuple[str, Record]]:
        """Returns all objects within the object, by their names."""
        for key in self.values:
            yield key, self.record(key)


def read_index(archive: Archive) -> Record:
    """Returns the index of an archive of a version that is known here."""
    most = INDEX_GROWTH * archive.stored + INDEX_ALLOWANCE
    if archive.size(INDEX) > most:
        raise InvalidModel(
            f"{INDEX} has {archive.size(INDEX)} bytes, expected {most} at most in an archive of "
            f"{archive.stored} bytes"
        )
    try:
        values = json.loads(archive.read(INDEX).decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise InvalidModel(f"{INDEX} is not valid JSON: {problem}") from None
    if not isinstance(values, dict):
        raise InvalidModel(f"{INDEX} is {str(values)[:40]!r}, expected an object")
    index = Record(values, INDEX)
    if index.count("format-version") > VERSION:
        version = values["format-version"]
        raise InvalidModel(f"{INDEX} is of version {version}, expected {VERSION} at most")
    return index
