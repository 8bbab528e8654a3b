"""The archive around a model: tar, plain or compressed with gzip or xz.

Nothing is unpacked onto the disk, and of what is compressed only the files that are asked for are
kept. What a header claims is checked against what is there before anything is read, and what is
compressed may not grow without bounds.

Headers are parsed by Python's `tarfile`, but listed here: its `TarFile` takes a damaged header, or
the place where a file is cut off, for the end of the archive, holds extended headers of any size
in memory, and goes round in circles at a negative size before Python 3.11.14, 3.12.12 and 3.13.6.
Compressed bytes are unpacked here too: Python's `LZMAFile` has no limit of memory.
"""

from __future__ import annotations

import io
import lzma
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tarfile import (
    AREGTYPE,
    BLOCKSIZE,
    DIRTYPE,
    GNU_FORMAT,
    REGTYPE,
    USTAR_FORMAT,
    XGLTYPE,
    XHDTYPE,
    HeaderError,
    TarInfo,
)
from typing import IO

from surestep.errors import FileFailure, InvalidModel

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
PIECE = 1 << 16  # bytes that are read, and at most unpacked, at a time
# Bytes that a compressed byte, and any file, may become. Models grow by a factor of 3 to 50, since
# offsets and successors differ from each other; only a file of little but zeros grows by 1,000.
GROWTH, ALLOWANCE = 200, 1 << 24
XZ_MEMORY = 1 << 28  # bytes; the strongest setting of xz needs a quarter of it
MOST_MEMBERS = 1 << 12  # a model has a few files for each reward structure and label
REPLACED = re.compile(rb"\d (path|size|GNU\.sparse\.\w+)=")  # what an extended header may replace


class Unpacked:
    """A file that is unpacked while it is read; what is skipped is unpacked and dropped."""

    def __init__(self, file: IO[bytes]) -> None:
        """Begins at the first byte of a file that gzip or xz has made."""
        self.file = file
        self.most = GROWTH * file.seek(0, io.SEEK_END) + ALLOWANCE
        self.restart()

    def restart(self) -> None:
        """Goes back to the first byte."""
        self.file.seek(0)
        xz = self.file.read(len(XZ)) == XZ
        self.file.seek(0)
        self.at = 0
        self.waiting = b""  # compressed bytes that the decoder has given back
        self.decoder = (
            lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY) if xz else zlib.decompressobj(wbits=31)
        )

    def seek(self, position: int) -> int:
        """Goes to a byte of what is unpacked, or to its end; returns where that is."""
        if position < self.at:
            self.restart()
        while self.at < position and self.piece(min(PIECE, position - self.at)):
            pass
        return self.at

    def read(self, size: int) -> bytes:
        """Returns the next bytes, fewer at the end."""
        pieces = []
        while size > 0 and (piece := self.piece(min(PIECE, size))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def check_rest(self) -> None:
        """Unpacks and drops what is left: it must be whole, and the last thing in the file."""
        while self.piece(PIECE):
            pass
        rest = self.decoder.unused_data
        while rest:
            if rest.strip(b"\0"):
                raise InvalidModel(
                    "something follows the compressed data, expected nothing but zeros"
                )
            rest = self.file.read(PIECE)

    def piece(self, most: int) -> bytes:
        """Returns some of the next bytes, `most` at most; none at the end."""
        plain = b""
        while not plain and not self.decoder.eof:
            try:
                plain = self.decoder.decompress(self.waiting, most)
            except (lzma.LZMAError, zlib.error) as problem:
                raise InvalidModel(f"the compressed data cannot be unpacked: {problem}") from None
            self.waiting = getattr(self.decoder, "unconsumed_tail", b"")  # xz keeps it to itself
            if not (plain or self.decoder.eof or self.waiting):
                self.waiting = self.file.read(PIECE)
                if not self.waiting:
                    raise InvalidModel("the compressed data is cut off")
        self.at += len(plain)
        if self.at > self.most:
            raise InvalidModel(
                f"the file becomes more than {GROWTH} times as large, if unpacked; if that is "
                "meant, unpack it first"
            )
        return plain


@dataclass(frozen=True, slots=True)
class Archive:
    """The regular files of an archive."""

    file: IO[bytes] | Unpacked
    members: Mapping[str, tuple[int, int]]  # name → (where it begins, how long it is)
    stored: int  # bytes on the disk

    def __contains__(self, name: object) -> bool:
        return name in self.members

    def size(self, name: str) -> int:
        """Returns how many bytes a file has."""
        if name not in self.members:
            raise InvalidModel(f"{name} is missing in the archive")
        return self.members[name][1]

    def read(self, name: str) -> bytes:
        """Returns the bytes of a file."""
        size = self.size(name)
        self.file.seek(self.members[name][0])
        return self.file.read(size)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Opens the archive at a path, of whatever compression; it is closed afterwards."""
    try:
        with path.open("rb") as file:
            start, stored = file.read(len(XZ)), file.seek(0, io.SEEK_END)
            if start.startswith((GZIP, XZ)):
                unpacked = Unpacked(file)
                members = read_members(unpacked, math.inf)
                unpacked.check_rest()
                yield Archive(unpacked, members, stored)
            else:
                yield Archive(file, read_members(file, stored), stored)
    except OSError as problem:
        raise FileFailure(f"{path} cannot be read: {problem.strerror}") from None


def read_members(file: IO[bytes] | Unpacked, total: float) -> dict[str, tuple[int, int]]:
    """Lists the regular files of an archive of at most `total` bytes: name → (begin, size)."""
    members: dict[str, tuple[int, int]] = {}
    at = 0
    while len(members) <= MOST_MEMBERS:
        at = file.seek(at)
        block = file.read(BLOCKSIZE)
        if len(block) == BLOCKSIZE and not any(block):
            return members
        header, name = read_header(block, at)
        at += BLOCKSIZE
        if header.size > total - at:
            raise InvalidModel(
                f"{name} has {header.size} bytes, but the archive is cut off at {total}"
            )
        if name in members:
            raise InvalidModel(f"{name} stands twice in the archive")
        if header.type in (REGTYPE, AREGTYPE):
            members[name] = (at, header.size)
        elif header.type in (XHDTYPE, XGLTYPE):
            check_extended(file.read(min(header.size, PIECE + 1)))
        elif header.type != DIRTYPE:
            raise InvalidModel(
                f"{name} is of type {header.type!r} in the archive, expected files and folders"
            )
        at += header.size + -header.size % BLOCKSIZE
    raise InvalidModel(
        f"the archive holds more than {MOST_MEMBERS} files, expected those of a model"
    )


def read_header(block: bytes, at: int) -> tuple[TarInfo, str]:
    """Returns what a header says, and the name that it gives."""
    try:
        header = TarInfo.frombuf(block, "utf-8", "replace")
    except HeaderError:
        header = None
    if header is not None and header.size >= 0:
        return header, header.name.removeprefix("./")
    if at == 0:
        raise InvalidModel("the file is no archive, expected tar, or tar within gzip or xz")
    if len(block) < BLOCKSIZE:
        raise InvalidModel(f"the archive is cut off at byte {at + len(block)}")
    raise InvalidModel(f"the archive is damaged at byte {at}")


def check_extended(records: bytes) -> None:
    """Refuses an extended header that replaces what the header says that follows it.

    A file under another name would be missed, and what is missing counts as 0.
    """
    replaced = REPLACED.search(records)
    if replaced or len(records) > PIECE:
        what = replaced[1].decode() if replaced else f"more than {PIECE} bytes"
        raise InvalidModel(
            f"the archive has an extended header with {what}, expected names and sizes as ustar "
            "has them: 255 bytes and 8 GiB at most"
        )


def tar_chunks(files: Mapping[str, bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Returns the bytes of an archive with the given files, piece by piece."""
    for name, data in files.items():
        header = TarInfo(name)
        header.size = len(data)
        large = header.size >= 8**11  # more than the older form can say
        yield header.tobuf(GNU_FORMAT if large else USTAR_FORMAT)
        yield data
        yield bytes(-header.size % BLOCKSIZE)
    yield bytes(2 * BLOCKSIZE)
