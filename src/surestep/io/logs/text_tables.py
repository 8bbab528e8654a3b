"""Tables as text, compressed or not: one row a line, names of columns in the first line.

Columns are matched by their names, so files may have them in any order. What a name is not given,
as pandas leaves that of an index, is called as pandas calls it when it reads it: 'Unnamed: 0'.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, NamedTuple

from surestep._files import failing_to_read
from surestep.description import Reader, several
from surestep.errors import InvalidLog, said
from surestep.io.sql import file_list, first_lines, in_memory, sql_text

DELIMITERS = (",", ";", "|", "\t")
BY_ENDING = {".tsv": "\t", ".psv": "|"}
COMPRESSED = (".gz", ".zst")
PIECE = 1 << 16  # bytes
NO_SIGN = "\1\2\1\2"  # stands in no text, so that a line is not cut
# RFC 8878, section 3.1: frames, their headers, and what may stand between them.
ZSTANDARD, SKIPPABLE = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
DICTIONARY_BYTES, CONTENT_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)


class Header(NamedTuple):
    """The first line of a file."""

    delimiter: str
    names: tuple[str, ...]
    reader: Reader

    def read_csv(self, files: Sequence[Path], *options: str, also: Sequence[str] = ()) -> str:
        """Returns the SQL of files with this first line; `also` are options of the reader."""
        quote = sql_text(self.reader.quote or '"')
        nothing = ", ".join(map(sql_text, ("", *several(self.reader.nullstr))))
        given = [f"delim={sql_text(self.delimiter)}", f"quote={quote}", f"escape={quote}"]
        given += [f"nullstr=[{nothing}]", "header=true", *options]
        return reading(files, self.reader, *given, also=also)


def reading(files: Sequence[Path], reader: Reader, *options: str, also: Sequence[str] = ()) -> str:
    """Returns the SQL of files, from the line of the names on."""
    told = {name: getattr(reader, name) for name in ("encoding", *also)}
    given = [f"{name}={sql_text(value)}" for name, value in told.items() if value is not None]
    listed = ", ".join([f"skip={reader.skip or 0}", *options, *given])
    return f"read_csv({file_list(files)}, {listed})"


# ---- reading ----------------------------------------------------------------------------------


def scan_text(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads files, all of whose columns are text."""
    first, *others = [header_of(file, reader) for file in files]
    options = ("all_varchar=true", "union_by_name=true")  # DuckDB looks at each file by itself
    if all(other == first for other in others):
        options = ("auto_detect=false", f"columns={as_text(first.names)}")
    return f"SELECT * FROM {first.read_csv(files, *options)}"


def typed_text(files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL of files for a query: numbers are numbers, by all rows."""
    also, options = ("decimal_separator", "thousands", "timestampformat"), "union_by_name=true"
    header = header_of(files[0], reader)
    return f"SELECT * FROM {header.read_csv(files, 'sample_size=-1', options, also=also)}"


def as_text(columns: Iterable[str]) -> str:
    """All columns as texts, as the readers want it."""
    return "{" + ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in columns) + "}"


# ---- the first line ---------------------------------------------------------------------------


def header_of(file: Path, reader: Reader) -> Header:
    """Returns what stands between columns, and their names.

    The sign between columns is that which is given, that of the ending, or the one that cuts the
    first line into most columns. A wrong one shows: columns of the roles are not found.
    """
    line, delimiter = first_line(file, reader), BY_ENDING.get(split_ending(file)[0])
    if not line.strip():
        raise InvalidLog(f"{file} is empty, expected a first line with the names of the columns")
    signs = (reader.delim or delimiter or "",) if reader.delim or delimiter else DELIMITERS
    try:
        cut = {sign: next(csv.reader([line], delimiter=sign)) for sign in signs}
    except csv.Error as problem:
        raise InvalidLog(f"{file}, line 1 has no names of columns: {problem}") from None
    best = max(signs, key=lambda sign: len(cut[sign]))
    return Header(best, named(file, cut[best]), reader)


def named(file: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Checks the names of columns, and gives one to those that have none."""
    known = dict[str, str]()  # by their small letters
    for place, given in enumerate(names):
        name = given or f"Unnamed: {place}"
        while not given and name in names:
            name += ".1"
        if "\0" in name or known.setdefault(name.lower(), name) is not name:
            raise InvalidLog(f"{file}, line 1: column {name!r} is given twice, or no name")
    return tuple(known.values())


def first_line(file: Path, reader: Reader) -> str:
    """Returns the line with the names of the columns; it stands among the first bytes."""
    if split_ending(file)[1] == ".zst":
        return first_of_zstandard(file, reader)
    lines = re.split(b"\r\n|\r|\n", next(pieces(file), b"").removeprefix(BOM_UTF8))
    try:
        return b"".join(lines[reader.skip or 0 :][:1]).decode(reader.encoding or "utf-8")
    except UnicodeError:
        how = said("reader={'encoding': 'latin-1'}", "--set reader.encoding=latin-1")
        raise InvalidLog(f"{file}, line 1 is not UTF-8; save it so, or say {how}") from None


def first_of_zstandard(file: Path, reader: Reader) -> str:
    """Returns the line with the names of a file of Zstandard, which Python cannot read."""
    import duckdb

    whole = ("auto_detect=false", "header=false", "quote=''", "escape=''")
    options = (*whole, f"delim={sql_text(NO_SIGN)}", "columns={'line': 'VARCHAR'}")
    with in_memory() as database:
        try:
            lines = reading([file], reader, *options)
            first = database.execute(f"SELECT line FROM {lines} LIMIT 1").fetchall()
        except duckdb.Error as problem:
            raise InvalidLog(f"{file} cannot be read: {first_lines(problem)}") from None
    return "".join(str(line or "") for (line,) in first)


# ---- compressed files -------------------------------------------------------------------------


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
    """Refuses one table under two names, with and without compression, and Zstandard cut short.

    What DuckDB notices by itself, such as a gzip stream without its end, is left to it.
    """
    known = dict[Path, Path]()
    for file in files:
        packed = split_ending(file)[1]
        name = file.with_suffix("") if packed else file
        if known.setdefault(name, file) != file:
            raise InvalidLog(
                f"{known[name]} and {file} are one table by their names, and its rows would count "
                "twice; expected one of them"
            )
        if packed == ".zst":
            with failing_to_read(file), file.open("rb") as stream:
                if not is_whole_zstandard(stream):
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
