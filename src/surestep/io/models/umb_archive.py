"""The archive around a model: tar, plain or compressed with gzip or xz.

Nothing is unpacked onto the disk, and of what is compressed only the files that are asked for are
kept. What a header claims is checked against what is there before anything is read, and what is
compressed may not grow without bounds.

Python's `tarfile` reads the headers, through `Headers`: on its own it holds headers of any size in
memory, takes a damaged one, or the place where a file is cut off, for the end of the archive, and
before Python 3.11.14, 3.12.12 and 3.13.6 passes over damage in extended ones, or goes round in
circles. Compressed bytes are unpacked here: Python's `LZMAFile` has no limit of memory.
"""

from __future__ import annotations

import io
import lzma
import math
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from surestep._files import failing_to_read
from surestep.errors import InvalidModel

GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
BLOCK = tarfile.BLOCKSIZE
PIECE = 1 << 16  # bytes that are read, and at most unpacked, at a time
# Bytes that a compressed byte, and any file, may become. Models grow by a factor of 3 to 50, since
# offsets and successors differ from each other; only a file of little but zeros grows by 1,000.
GROWTH, ALLOWANCE = 200, 1 << 24
XZ_MEMORY = 1 << 28  # bytes; the strongest setting of xz needs a quarter of it
MOST_MEMBERS = 1 << 12  # a model has a few files for each reward structure and label
MOST_HEADERS = 1 << 13  # bytes that say of one file what it is called and how long it is
PLAIN = tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE


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

    def tell(self) -> int:
        """Returns how many bytes are unpacked and behind."""
        return self.at

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
        if not plain:
            expect_zeros("the compressed data", self.decoder.unused_data, self.file)
        self.at += len(plain)
        if self.at > self.most:
            raise InvalidModel(
                f"the file becomes more than {GROWTH} times as large, if unpacked; if that is "
                "meant, unpack it first"
            )
        return plain


class Headers:
    """A file as `tarfile` reads it: the headers of one of its files must be small, and are kept."""

    def __init__(self, file: IO[bytes] | Unpacked) -> None:
        """Begins at the first byte of a file."""
        file.seek(0)
        self.file, self.seek, self.tell = file, file.seek, file.tell
        self.kept = b""  # what was read since it was emptied

    def read(self, size: int) -> bytes:
        """Returns the next bytes, fewer at the end."""
        if size < 0:
            raise tarfile.ReadError("a header of fewer bytes than none")
        if size > MOST_HEADERS - len(self.kept):
            raise InvalidModel(
                f"the headers of a file have more than {MOST_HEADERS} bytes before byte "
                f"{self.tell()}, expected a name and a size"
            )
        data = self.file.read(size)
        self.kept += data
        return data


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
    with failing_to_read(path), path.open("rb") as file:
        packed = file.read(len(XZ)).startswith((GZIP, XZ))
        stored = file.seek(0, io.SEEK_END)
        content = Unpacked(file) if packed else file
        yield Archive(content, read_members(content, math.inf if packed else stored), stored)


def read_members(file: IO[bytes] | Unpacked, total: float) -> dict[str, tuple[int, int]]:
    """Lists the regular files of an archive of `total` bytes at most: name → (begin, size)."""
    members: dict[str, tuple[int, int]] = {}
    headers = Headers(file)
    try:
        tar = tarfile.TarFile(fileobj=cast(IO[bytes], headers), encoding="utf-8", errors="replace")
        for number, member in enumerate(tar):
            if number == MOST_MEMBERS:
                raise InvalidModel(
                    f"the archive holds more than {MOST_MEMBERS} files, expected those of a model"
                )
            if tar.pax_headers:
                raise InvalidModel(
                    "the archive has a header for all its files, expected one for each; pack them "
                    "anew, for example with tar -H ustar"
                )
            check_member(member, headers.kept, total)
            name = member.name.removeprefix("./")
            if name in members:
                raise InvalidModel(f"{name} stands twice in the archive")
            if not member.isdir():
                members[name] = (member.offset_data, member.size)
            headers.kept = b""
        if headers.kept[-BLOCK:] != bytes(BLOCK):
            raise tarfile.ReadError("no block of zeros, with which an archive ends")
    # `tarfile` lets all but the first through.
    except (tarfile.TarError, ValueError, IndexError, OverflowError):
        raise InvalidModel(
            f"the file is no archive, or damaged or cut off before byte {file.tell()}, expected "
            "tar, or tar within gzip or xz"
        ) from None
    expect_zeros("the archive", b"", file)
    return members


def check_member(member: tarfile.TarInfo, headers: bytes, total: float) -> None:
    """Refuses what is no plain file or folder, or is not what its headers say byte by byte."""
    records, size = member.pax_headers, member.size
    if not member.name.isprintable():
        raise tarfile.ReadError("a name that would break the line of a message")
    holes = any(key.startswith("GNU.sparse.") for key in records)
    if holes or member.type not in PLAIN:
        raise InvalidModel(
            f"{member.name} is of type {member.type!r}{' with holes' if holes else ''} in the "
            "archive, expected plain files and folders"
        )
    if not (member.name and 0 <= size <= total and str(size) == records.get("size", str(size))):
        raise tarfile.ReadError("a name or a size that is none")
    extended = headers[member.offset - member.offset_data :][BLOCK:-BLOCK]
    again = tarfile.TarInfo()
    again.pax_headers = records
    long_name = extended.rstrip(b"/\0") == member.name.encode()  # as GNU tar writes it
    if extended and not long_name and extended != again.tobuf(tarfile.PAX_FORMAT)[BLOCK:-BLOCK]:
        raise tarfile.ReadError("an extended header that is not what it was taken for")


def expect_zeros(what: str, rest: bytes, file: IO[bytes] | Unpacked) -> None:
    """Refuses anything but zeros behind something: in the `rest` that was read, and in a file."""
    while not rest.strip(b"\0"):
        rest = file.read(PIECE)
        if not rest:
            return
    raise InvalidModel(f"something follows {what}, expected nothing but zeros")


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
