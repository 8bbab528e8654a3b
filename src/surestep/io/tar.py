"""Tar archives, plain or compressed with gzip or xz, as far as model files need them.

Nothing is unpacked onto the disk, and of what is compressed only the files that are asked for are
kept. What a header claims is checked against what is there before anything is read, and what is
compressed may not grow without bounds.
"""

from __future__ import annotations

import io
import math
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from surestep.errors import FileFailure, InvalidModel
from surestep.io.unpacking import GZIP, XZ, Unpacked

BLOCK = 512
TAR = b"ustar"
REGULAR = (b"0", b"\0")
OCTAL = re.compile(rb"[0-7]+")
MOST_MEMBERS = 1 << 12  # a model has a few files for each reward structure and label


@dataclass(frozen=True, slots=True)
class Archive:
    """The regular files of an archive."""

    file: IO[bytes] | Unpacked
    members: Mapping[str, tuple[int, int]]  # name → (where it begins, how long it is)
    stored: int  # bytes on the disk

    def __contains__(self, name: object) -> bool:
        return name in self.members

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        if name not in self.members:
            raise InvalidModel(f"{name} is missing in the archive")
        return self.members[name][1]

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        size = self.size(name)
        self.file.seek(self.members[name][0])
        return self.file.read(size)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at a path."""
    try:
        with path.open("rb") as file:
            start, stored = file.read(BLOCK), file.seek(0, io.SEEK_END)
            if start.startswith((GZIP, XZ)):
                unpacked = Unpacked(file)
                members = read_members(unpacked, math.inf)
                unpacked.check_rest()
                yield Archive(unpacked, members, stored)
            elif start[257:262] == TAR:
                yield Archive(file, read_members(file, stored), stored)
            else:
                raise InvalidModel("the file is no archive, expected tar, or tar within gzip or xz")
    except OSError as problem:
        raise FileFailure(f"{path} cannot be read: {problem.strerror}") from None


def read_members(file: IO[bytes] | Unpacked, total: float) -> dict[str, tuple[int, int]]:
    """The regular files of an archive of at most `total` bytes."""
    members: dict[str, tuple[int, int]] = {}
    at = 0
    while len(members) <= MOST_MEMBERS:
        at = file.seek(at)
        header = file.read(BLOCK)
        if len(header) < BLOCK:
            raise InvalidModel(f"the archive is cut off at byte {at + len(header)}")
        if not any(header):
            return members
        name, size = read_member(header, at)
        at += BLOCK
        if size > total - at:
            raise InvalidModel(f"{name} has {size} bytes, but the archive is cut off at {total}")
        if name in members:
            raise InvalidModel(f"{name} stands twice in the archive")
        if header[156:157] in REGULAR:
            members[name] = (at, size)
        at += size + -size % BLOCK
    raise InvalidModel(
        f"the archive holds more than {MOST_MEMBERS} files, expected those of a model"
    )


def read_member(header: bytes, at: int) -> tuple[str, int]:
    """The name and the size that a header gives."""
    checksum = sum(header[:148]) + sum(b" " * 8) + sum(header[156:])
    size = number(header[124:136])
    if number(header[148:156]) != checksum or size is None:
        raise InvalidModel(f"the archive is damaged at byte {at}")
    prefix, name = (
        field.partition(b"\0")[0].decode("utf-8", "replace")
        for field in (header[345:500], header[:100])
    )
    return (f"{prefix}/{name}" if prefix else name).removeprefix("./"), size


def number(field: bytes) -> int | None:
    """A number in octal digits, or in binary after a byte 128; None for anything else."""
    if field[0] == 128:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    return int(digits, 8) if OCTAL.fullmatch(digits) else None


def tar_chunks(files: Mapping[str, bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The bytes of an archive with the given files."""
    for name, data in files.items():
        header = tarfile.TarInfo(name)
        header.size = len(data)
        large = header.size >= 8**11  # more than the older form can say
        yield header.tobuf(tarfile.GNU_FORMAT if large else tarfile.USTAR_FORMAT)
        yield data
        yield bytes(-header.size % BLOCK)
    yield bytes(2 * BLOCK)
