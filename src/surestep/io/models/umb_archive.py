"""Reads and writes the tar archive of a model, plain or compressed with gzip or xz.

Sizes are checked against the file before anything is read, and compressed data may not grow without
bounds. Python's `tarfile` reads single headers only: on its own it holds headers of any size in
memory, and takes a damaged header, or the place where a file is cut off, for the end.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from surestep._files import failing_to_read
from surestep.errors import InvalidModel

GZIP = b"\x1f\x8b"
XZ = b"\xfd7zXZ\x00"
BLOCK = tarfile.BLOCKSIZE
PIECE = 1 << 12  # bytes that are read at a time: gzip makes 4 MB of them at most
IN_MEMORY = 1 << 20  # bytes; what is unpacked beyond them waits on the disk
# Bytes that a compressed byte, and any file, may become. Models grow by a factor of 3 to 50, since
# offsets and successors differ from each other; only a file of little but zeros grows by 1,000.
GROWTH = 200
ALLOWANCE = 1 << 24
XZ_MEMORY = 1 << 28  # bytes; the strongest setting of xz needs a quarter of it
MOST_MEMBERS = 1 << 12  # a model has a few files for each reward structure and label
MOST_HEADER = 1 << 13  # bytes that say of one file what it is called and how long it is
PAX_RECORD = re.compile(rb"(\d+) ([^=]+)=(.*)\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Archive:
    """The regular files of an archive."""

    file: IO[bytes]
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
    """Opens an archive, decompressed if need be, and closes it at the end."""
    with failing_to_read(path), path.open("rb") as file:
        head = file.read(len(XZ))
        stored = path.stat().st_size
        file.seek(0)
        packed = head.startswith((GZIP, XZ))
        with SpooledTemporaryFile(IN_MEMORY) if packed else nullcontext(file) as content:
            if packed:
                unpack(file, content, head == XZ, GROWTH * stored + ALLOWANCE)
            yield Archive(content, read_members(content), stored)


def unpack(file: IO[bytes], content: IO[bytes], xz: bool, most: int) -> None:
    """Decompresses a file into `content`; refuses more than `most` bytes."""
    decoder = (
        lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY) if xz else zlib.decompressobj(wbits=31)
    )
    while not decoder.eof:
        packed = file.read(PIECE)
        if not packed:
            raise InvalidModel("the compressed data is cut off")
        try:
            content.write(decoder.decompress(packed, most - content.tell() + 1))
        except (lzma.LZMAError, zlib.error) as problem:
            raise InvalidModel(f"the compressed data cannot be unpacked: {problem}") from None
        if content.tell() > most:
            raise InvalidModel(
                f"the file becomes more than {GROWTH} times as large, if unpacked; if that is "
                "meant, unpack it first"
            )
    expect_zeros("the compressed data", decoder.unused_data, file)


def read_members(file: IO[bytes]) -> dict[str, tuple[int, int]]:
    """Lists the regular files of an archive: name → (where it begins, how long it is)."""
    members: dict[str, tuple[int, int]] = {}
    total = file.seek(0, io.SEEK_END)
    at = 0
    said = dict[str, str]()
    try:
        while (block := read_at(file, at, BLOCK)) != bytes(BLOCK):
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
            size = int(said.get("size", header.size))
            at += BLOCK
            if not 0 <= size <= total - at:
                raise ValueError("a size that is none")
            if header.type in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
                said |= extended(header, read_at(file, at, min(size, MOST_HEADER + 1)))
            else:
                name = said.get("path", header.name).removeprefix("./").rstrip("/")
                check_member(name, header.type, said, members)
                if header.type != tarfile.DIRTYPE:
                    members[name] = (at, size)
                said = {}
            at += -(-size // BLOCK) * BLOCK
    except (tarfile.HeaderError, ValueError):
        raise InvalidModel(
            f"the file is no archive, or damaged or cut off before byte {at + BLOCK}, expected "
            "tar, or tar within gzip or xz"
        ) from None
    expect_zeros("the archive", b"", file)
    return members


def read_at(file: IO[bytes], at: int, size: int) -> bytes:
    """Returns some bytes of a file; ValueError where it ends before."""
    file.seek(at)
    data = file.read(size)
    if len(data) < size:
        raise ValueError("the file ends")
    return data


def extended(header: tarfile.TarInfo, data: bytes) -> dict[str, str]:
    """Reads an extended header: a long name, or records of key and value."""
    if len(data) > MOST_HEADER:
        raise InvalidModel(
            f"the headers of a file have more than {MOST_HEADER} bytes, expected a name and a size"
        )
    if header.type == tarfile.GNUTYPE_LONGNAME:
        return {"path": data.rstrip(b"\0").decode("utf-8")}
    records: dict[str, str] = {}
    while data:
        length = int(data.partition(b" ")[0])
        record = PAX_RECORD.fullmatch(data[:length])
        if record is None or len(data) < length or record[2].decode() in records:
            raise ValueError("a record that is none")
        records[record[2].decode()] = record[3].decode("utf-8")
        data = data[length:]
    return records


def check_member(name: str, kind: bytes, said: Iterable[str], members: Collection[str]) -> None:
    """Refuses a member that is no plain file or folder, or whose name is empty or taken."""
    holes = any(key.startswith("GNU.sparse.") for key in said)
    if not name.isprintable() or not name:
        raise ValueError("a name that is none, or would break the line of a message")
    if holes or kind not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
        raise InvalidModel(
            f"{name} is of type {kind!r}{' with holes' if holes else ''} in the archive, expected "
            "plain files and folders"
        )
    if name in members or len(members) == MOST_MEMBERS:
        raise InvalidModel(f"{name} stands twice in the archive, or after {MOST_MEMBERS} others")


def expect_zeros(what: str, rest: bytes, file: IO[bytes]) -> None:
    """Refuses anything but zeros in `rest` and in the rest of a file."""
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
