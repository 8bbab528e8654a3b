"""Compressed files: gzip and Zstandard, read by DuckDB as they are; whether one is whole."""

from __future__ import annotations

import gzip
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from os import SEEK_END
from pathlib import Path
from typing import IO

from surestep._files import failing_to_read
from surestep.errors import InvalidLog

COMPRESSED = (".gz", ".zst")
MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}  # RFC 1952 and RFC 8878
WORDS = {"": "not compressed", ".gz": "compressed by gzip", ".zst": "compressed by Zstandard"}
PIECE = 1 << 16  # bytes
# RFC 8878, section 3.1: frames, their headers, and what may stand between them.
ZSTANDARD, SKIPPABLE = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
DICTIONARY_BYTES, CONTENT_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)


def split_ending(file: Path) -> tuple[str, str]:
    """Returns the ending of a file, without and with only that of its compression.

    >>> split_ending(Path("log.CSV.gz"))
    ('.csv', '.gz')
    """
    endings = [ending.lower() for ending in file.suffixes[-2:]]
    if len(endings) == 2 and endings[1] in COMPRESSED:
        return endings[0], endings[1]
    return file.suffix.lower(), ""


def check_compression(files: tuple[Path, ...]) -> None:
    """Refuses files whose names say another compression than they have, or that are cut short.

    What DuckDB notices by itself, a gzip stream without its end, is left to it. One table under two
    names, with and without compression, is refused too.
    """
    known = dict[Path, Path]()
    for file in files:
        _, said = split_ending(file)
        name = file.with_suffix("") if said else file
        if known.setdefault(name, file) != file:
            raise InvalidLog(
                f"{known[name]} and {file} are one table by their names, and its rows would count "
                "twice; expected one of them"
            )
        with failing_to_read(file), file.open("rb") as stream:
            begin = stream.read(4)
            whole = said != ".zst" or is_whole_zstandard(stream)
        found = next((ending for magic, ending in MAGIC.items() if begin.startswith(magic)), "")
        if begin and found != said:
            raise InvalidLog(
                f"{file} is {WORDS[found]}, but its ending says that it is {WORDS[said]}; rename it"
            )
        if not whole:
            raise InvalidLog(cut_short(file))


def cut_short(file: Path) -> str:
    """Returns what is wrong with a compressed file that is not whole."""
    return f"{file} is cut short or damaged; copy or compress it again"


def pieces(file: Path) -> Iterator[bytes]:
    """Yields the bytes of a file, decompressed if it is of gzip; refuses one that is not whole."""
    opened = gzip.open if split_ending(file)[1] == ".gz" else open
    with failing_to_read(file):
        try:
            with opened(file, "rb") as stream:
                while piece := stream.read(PIECE):
                    yield piece
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise InvalidLog(cut_short(file)) from None


def check_gzip(files: Sequence[Path]) -> None:
    """Refuses a file of gzip that is cut short or damaged; reads all of it."""
    for file in files:
        if split_ending(file)[1] == ".gz":
            deque(pieces(file), maxlen=0)


def is_whole_zstandard(stream: IO[bytes]) -> bool:
    """Tells whether a file ends where its last frame does, by the sizes that its blocks name.

    Nothing is decompressed. DuckDB takes a frame that stops early for a whole one.
    """
    end, at = stream.seek(0, SEEK_END), 0

    def number(place: int, size: int) -> int:
        stream.seek(place)
        return int.from_bytes(stream.read(size), "little")

    while at < end:
        magic, descriptor, last = number(at, 4), number(at + 4, 1), False
        if magic in SKIPPABLE:
            at += 8 + number(at + 4, 4)
            continue
        single = descriptor >> 5 & 1  # a single segment always says its size
        content = CONTENT_BYTES[descriptor >> 6] or single
        at += 5 + (1 - single) + DICTIONARY_BYTES[descriptor & 3] + content
        while not last and at < end:
            block = number(at, 3)
            at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)  # of a repeated byte, one is there
            last = bool(block & 1)
        if magic != ZSTANDARD or not last:
            return False
        at += 4 * (descriptor >> 2 & 1)  # the checksum
    return at == end
