"""The archive around a model: tar, plain or compressed with gzip or xz.

Nothing is unpacked onto the disk, and of what is compressed only the files that are asked for are
kept. What a header claims is checked against what is there before anything is read, and what is
compressed may not grow without bounds.

Headers are parsed by Python's `tarfile`, but listed here: its `TarFile` takes a damaged header, or
the place where a file is cut off, for the end of the archive, holds extended headers of any size
in memory, reads a name in them that is cut off with the bytes behind it, or not at all, and goes
round in circles at a negative size before Python 3.11.14, 3.12.12 and 3.13.6.
Compressed bytes are unpacked here too: Python's `LZMAFile` has no limit of memory.
"""

from __future__ import annotations

import io
import lzma
import math
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from surestep.errors import FileFailure, InvalidModel

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
BLOCK = tarfile.BLOCKSIZE
PIECE = 1 << 16  # bytes that are read, and at most unpacked, at a time
# Bytes that a compressed byte, and any file, may become. Models grow by a factor of 3 to 50, since
# offsets and successors differ from each other; only a file of little but zeros grows by 1,000.
GROWTH, ALLOWANCE = 200, 1 << 24
XZ_MEMORY = 1 << 28  # bytes; the strongest setting of xz needs a quarter of it
MOST_MEMBERS = 1 << 12  # a model has a few files for each reward structure and label
MOST_EXTENDED = 1 << 12  # bytes that say what the header of a file has no room for
EXTENDED = tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME
RECORD, NUMERAL = re.compile(rb"(\d{1,4}) ([^=]+)="), re.compile("[0-9]{1,18}")


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
    replaced: dict[str, str] = {}  # what extended headers say of the file that comes next
    at = 0
    while len(members) <= MOST_MEMBERS:
        at = file.seek(at)
        block = file.read(BLOCK)
        if len(block) == BLOCK and not any(block):
            return members
        header = read_header(block, at)
        if header.type not in EXTENDED:
            header.name = replaced.get("path", header.name)
            header.size = int(replaced.get("size", header.size))
        name, size = header.name.removeprefix("./"), header.size
        at += BLOCK
        if size > total - at:
            raise InvalidModel(f"{name} has {size} bytes, but the archive is cut off at {total}")
        if header.type in EXTENDED:
            replaced |= read_extended(header.type, file.read(min(size, MOST_EXTENDED + 1)), at)
        else:
            replaced = {}
            if name in members:
                raise InvalidModel(f"{name} stands twice in the archive")
            if header.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
                members[name] = (at, size)
            elif header.type not in (tarfile.DIRTYPE, tarfile.XGLTYPE):
                raise InvalidModel(
                    f"{name} is of type {header.type!r} in the archive, expected files and folders"
                )
        at += size + -size % BLOCK
    raise InvalidModel(
        f"the archive holds more than {MOST_MEMBERS} files, expected those of a model"
    )


def read_header(block: bytes, at: int) -> tarfile.TarInfo:
    """Returns what the header at a byte says."""
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
    except tarfile.HeaderError:
        header = None
    if header is not None and header.size >= 0:
        return header
    if at == 0:
        raise InvalidModel("the file is no archive, expected tar, or tar within gzip or xz")
    if len(block) < BLOCK:
        raise InvalidModel(f"the archive is cut off at byte {at + len(block)}")
    raise InvalidModel(f"the archive is damaged at byte {at}")


def read_extended(kind: bytes, data: bytes, at: int) -> dict[str, str]:
    """Returns what an extended header at a byte says: a long name, or records '12 path=name'."""
    if len(data) > MOST_EXTENDED:
        raise InvalidModel(
            f"the extended header at byte {at} has more than {MOST_EXTENDED} bytes, expected a name"
        )
    if kind == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.partition(b"\0")[0].decode("utf-8", "replace")}
    records: dict[str, str] = {}
    while data:
        record = RECORD.match(data)
        length = int(record[1]) if record else 0
        if record is None or not record.end() < length <= len(data):
            raise InvalidModel(f"the extended header at byte {at} is damaged")
        key = record[2].decode("utf-8", "replace")
        records[key] = data[record.end() : length - 1].decode("utf-8", "replace")
        data = data[length:]
    holes = any(key.startswith("GNU.sparse.") for key in records)
    if holes or not NUMERAL.fullmatch(records.get("size", "0")):
        raise InvalidModel(
            f"the extended header at byte {at} gives a size that is none, or a file with holes, "
            "expected a plain file"
        )
    return records


def tar_chunks(files: Mapping[str, bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Returns the bytes of an archive with the given files, piece by piece."""
    for name, data in files.items():
        header = tarfile.TarInfo(name)
        header.size = len(data)
        large = header.size >= 8**11  # more than the older form can say
        yield header.tobuf(tarfile.GNU_FORMAT if large else tarfile.USTAR_FORMAT)
        yield data
        yield bytes(-header.size % BLOCK)
    yield bytes(2 * BLOCK)
