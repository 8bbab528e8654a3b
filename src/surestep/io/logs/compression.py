"""Compressed files: gzip and Zstandard, read by DuckDB as they are; whether one is whole."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from surestep.errors import FileFailure, InvalidLog

COMPRESSED = (".gz", ".zst")
MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}  # RFC 1952 and RFC 8878
PIECE = 1 << 20  # bytes
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
        with opened(file) as stream:
            begin = stream.read(4)
            found = next((ending for magic, ending in MAGIC.items() if begin.startswith(magic)), "")
            if begin and found != said:
                raise InvalidLog(misnamed(file, said, found))
            stream.seek(0)
            if said == ".zst" and not is_whole_zstandard(stream):
                raise InvalidLog(cut_short(file))


def misnamed(file: Path, said: str, found: str) -> str:
    """Returns what is wrong with a name that says another compression than a file has."""
    words = {"": "not compressed", ".gz": "compressed by gzip", ".zst": "compressed by Zstandard"}
    return f"{file} is {words[found]}, but its ending says that it is {words[said]}; rename it"


def cut_short(file: Path) -> str:
    """Returns what is wrong with a compressed file that is not whole."""
    return f"{file} is cut short or damaged; copy or compress it again"


def why_not_whole(files: Sequence[Path]) -> str | None:
    """Returns what is wrong with the first file of gzip that is not whole, once reading failed."""
    for file in files:
        if split_ending(file)[1] == ".gz" and not is_whole_gzip(file):
            return cut_short(file)
    return None


def is_whole_gzip(file: Path) -> bool:
    """Tells whether a file of gzip is whole and undamaged; reads all of it."""
    try:
        with gzip.open(file) as stream:
            while stream.read(PIECE):
                pass
        return True
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False
    except OSError as problem:
        raise FileFailure(f"{file} cannot be read: {problem.strerror}") from None


def is_whole_zstandard(stream: IO[bytes]) -> bool:
    """Tells whether a file ends where its last frame does, by the sizes that its blocks name.

    Nothing is decompressed. DuckDB takes a frame that stops early for a whole one.
    """
    try:
        while begin := stream.read(4):
            magic = number(begin, 4)
            if magic in SKIPPABLE:
                skip(stream, number(stream.read(4), 4))
            elif magic == ZSTANDARD:
                skip_frame(stream)
            else:
                return False
    except EOFError:
        return False
    return True


def skip_frame(stream: IO[bytes]) -> None:
    """Reads on to the end of a frame."""
    descriptor = number(stream.read(1), 1)
    single, content = descriptor >> 5 & 1, CONTENT_BYTES[descriptor >> 6]
    content = content or single  # a single segment always says its size
    skip(stream, (1 - single) + DICTIONARY_BYTES[descriptor & 3] + content)
    last = False
    while not last:
        block = number(stream.read(3), 3)
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        skip(stream, 1 if kind == 1 else size)  # of a repeated byte, one is there
    skip(stream, 4 * (descriptor >> 2 & 1))  # the checksum


def number(given: bytes, size: int) -> int:
    """Returns the whole number that so many bytes say; EOFError where there are fewer."""
    if len(given) < size:
        raise EOFError
    return int.from_bytes(given, "little")


def skip(stream: IO[bytes], size: int) -> None:
    """Goes on by so many bytes; EOFError where there are fewer."""
    if size:
        stream.seek(size - 1, 1)
        number(stream.read(1), 1)


def opened(file: Path) -> IO[bytes]:
    """Opens a file to read."""
    try:
        return file.open("rb")
    except OSError as problem:
        raise FileFailure(f"{file} cannot be read: {problem.strerror}") from None
