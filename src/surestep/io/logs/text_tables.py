"""Tables as text, compressed or not: one row a line, names of columns in the first line.

Columns are matched by their names, so files may have them in any order. What a name is not given,
as pandas leaves that of an index, is called as pandas calls it when it reads it: 'Unnamed: 0'.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, NamedTuple

from surestep._files import failing_to_read
from surestep.description import Reader, several
from surestep.errors import InvalidLog, said
from surestep.io.sql import file_list, first_lines, in_memory, sql_name, sql_text

DELIMITERS = (",", ";", "|", "\t")
BY_ENDING = {".tsv": "\t", ".psv": "|"}
SAMPLE = 20  # rows that tell which sign is between columns
LONGEST = 1_000_000  # characters of the first line
COMPRESSED = (".gz", ".zst")
MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}  # RFC 1952 and RFC 8878
WORDS = {"": "not compressed", ".gz": "compressed by gzip", ".zst": "compressed by Zstandard"}
PIECE = 1 << 16  # bytes
# RFC 8878, section 3.1: frames, their headers, and what may stand between them.
ZSTANDARD, SKIPPABLE = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
DICTIONARY_BYTES, CONTENT_BYTES = (0, 1, 2, 4), (0, 2, 4, 8)
# By the kind of error that DuckDB names.
WRONG = {
    "UNQUOTED VALUE": 'with a quote (") that is not closed, expected two',
    "INVALID ENCODING": "which is not UTF-8; save the file as UTF-8",
    "LINE SIZE OVER MAXIMUM": "a line of more than 2,000,000 bytes, expected a shorter one",
}


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
        given += [f"nullstr=[{nothing}]", f"skip={self.reader.skip or 0}", *options]
        for name in ("encoding", *also):
            if getattr(self.reader, name) is not None:
                given.append(f"{name}={sql_text(getattr(self.reader, name))}")
        return f"read_csv({file_list(files)}, header=true, {', '.join(given)})"

    def read_texts(self, files: Sequence[Path], *options: str) -> str:
        """Returns the SQL of files with this first line, all of whose columns are text."""
        return self.read_csv(files, "auto_detect=false", f"columns={as_text(self.names)}", *options)


# ---- reading ----------------------------------------------------------------------------------


def scan_text(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads files of one first line, all of whose columns are text."""
    return f"SELECT * FROM {header_of(files[0], reader).read_texts(files)}"


def typed_text(files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL of files for a query: numbers are numbers, by all rows."""
    also, options = ("decimal_separator", "thousands", "timestampformat"), "union_by_name=true"
    header = header_of(files[0], reader)
    return f"SELECT * FROM {header.read_csv(files, 'sample_size=-1', options, also=also)}"


def text_conversion(
    files: Sequence[Path], reader: Reader
) -> Callable[..., dict[Path, Path]] | None:
    """Returns what makes files of different first lines readable together; else nothing.

    One scan cannot read them, and of several no window would see one sequence of rows.
    """
    headers = {file: header_of(file, reader) for file in files}
    return None if len(set(headers.values())) == 1 else partial(convert_text, headers)


def convert_text(
    headers: dict[Path, Header], database: Any, files: Sequence[Path], folder: Path
) -> dict[Path, Path]:
    """Writes each file as a Parquet file into the folder; all have all columns, in one order."""
    names = dict.fromkeys(name for header in headers.values() for name in header.names)
    converted = {file: folder / f"{number}.parquet" for number, file in enumerate(files)}
    for file, target in converted.items():
        there = headers[file].names
        columns = ", ".join(
            f"{sql_name(name) if name in there else 'NULL::VARCHAR'} AS {sql_name(name)}"
            for name in names
        )
        database.execute(
            f"COPY (SELECT {columns} FROM {headers[file].read_texts([file])}) "
            f"TO {sql_text(str(target))} (FORMAT parquet)"
        )
    return converted


def as_text(columns: Iterable[str], kind: str = "VARCHAR") -> str:
    """All columns of one type, as the readers want it."""
    return "{" + ", ".join(f"{sql_text(name)}: '{kind}'" for name in columns) + "}"


# ---- the first line ---------------------------------------------------------------------------


def header_of(file: Path, reader: Reader) -> Header:
    """Returns what stands between columns, and their names."""
    line = next(lines_of(file, reader), "")
    if not line.strip():
        raise InvalidLog(f"{file} is empty, expected a first line with the names of the columns")
    delimiter = delimiter_of(file, line, reader)
    (names,) = records([line], delimiter) or [[]]
    return Header(delimiter, named(file, names), reader)


def named(file: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Checks the names of columns, and gives one to those that have none."""
    taken = {name.lower() for name in names}
    complete = dict[str, str]()  # by their small letters
    for place, name in enumerate(names):
        if not name:
            name = f"Unnamed: {place}"
            while name.lower() in taken | complete.keys():
                name += ".1"
        if "\0" in name or complete.setdefault(name.lower(), name) is not name:
            raise InvalidLog(f"{file}, line 1: column {name!r} is given twice, or no name")
    return tuple(complete.values())


def delimiter_of(file: Path, line: str, reader: Reader) -> str:
    """Returns the sign between columns: that which is given, that of the ending, or the only one
    that the first line has. Of several, the one that cuts the first rows evenly; in a file of
    comma-separated values, the comma is tried first.
    """
    ending, _ = split_ending(file)
    if reader.delim is not None or ending in BY_ENDING:
        return reader.delim or BY_ENDING[ending]
    there = [sign for sign in DELIMITERS if width(line, sign) > 1]
    if len(there) > 1:
        rows = [*islice(lines_of(file, reader), SAMPLE + 2)]
        rows = rows if len(rows) < SAMPLE + 2 else rows[:-1]  # a quote may be open at the end
        even = [sign for sign in there if len({*map(len, filter(None, records(rows, sign)))}) == 1]
        if len(even) != 1 and not (even[:1] == [","] and ending == ".csv"):
            how = said("reader={'delim': …}", "--set reader.delim=…")
            raise InvalidLog(
                f"{file}, line 1: {line.rstrip()[:100]!r} may be cut into columns in several ways; "
                f"say at which sign: {how}, with one of {' '.join(map(repr, DELIMITERS))}"
            )
        there = even
    return there[0] if there else ","


def width(line: str, delimiter: str) -> int:
    """Counts the columns of a line."""
    return max(map(len, records([line], delimiter)), default=0)


def records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cuts lines into columns; none where they cannot be."""
    try:
        return [*csv.reader([line.rstrip("\r\n") for line in lines], delimiter=delimiter)]
    except csv.Error:
        return []


def lines_of(file: Path, reader: Reader) -> Iterator[str]:
    """Yields the lines of a file, from that of the names on; the first of a compressed one."""
    encoding = reader.encoding or "utf-8"
    if split_ending(file)[1]:
        yield from islice(packed_lines(file), reader.skip or 0, None)
        return
    try:
        with failing_to_read(file), file.open("rb") as stream:
            lines = iter(lambda: stream.readline(LONGEST), b"")
            for line in islice(lines, reader.skip or 0, None):
                yield line.removeprefix(BOM_UTF8).decode(encoding)
    except UnicodeError:
        how = said("reader={'encoding': 'latin-1'}", "--set reader.encoding=latin-1")
        raise InvalidLog(
            f"{file} is not {encoding.upper()} in its first lines; save it as UTF-8, or say how it "
            f"is written: {how}"
        ) from None


def packed_lines(file: Path) -> Iterator[str]:
    """Yields the first lines of a compressed file."""
    import duckdb

    whole = f"{file_list([file])}, auto_detect=false, header=false, quote='', escape=''"
    lines = f"read_csv({whole}, delim={sql_text(chr(1))}, columns={{'line': 'VARCHAR'}})"
    with in_memory() as database:
        try:
            first = database.execute(f"SELECT line FROM {lines} LIMIT {SAMPLE + 2}").fetchall()
        except duckdb.Error as problem:
            check_gzip([file])
            raise InvalidLog(f"{file} cannot be read: {first_lines(problem)}") from None
    yield from (str(line or "").removeprefix("\ufeff") for (line,) in first)


# ---- what is wrong ----------------------------------------------------------------------------


def explain_text(files: Sequence[Path], reader: Reader) -> str | None:
    """Finds the first line that DuckDB cannot read, and says what is wrong with it."""
    import duckdb

    for file in files:
        header = header_of(file, reader)
        scan = header.read_texts([file], "store_rejects=true", "rejects_limit=1")
        with in_memory() as database:
            try:
                database.execute(f"SELECT count(COLUMNS(*)) FROM {scan}").fetchall()
                rejected = database.execute(
                    "SELECT line, column_name, CAST(error_type AS VARCHAR), csv_line "
                    "FROM reject_errors ORDER BY line LIMIT 1"
                ).fetchall()
            except duckdb.Error:
                continue  # it is no single line
        for line, column, kind, text in rejected:
            where = f"{file}, row {line - 1:,}" + (f", column {column!r}" if column else "")
            wrong = WRONG.get(kind, f"which cannot be read ({kind.lower()})")
            if kind in ("TOO MANY COLUMNS", "MISSING COLUMNS"):
                values, columns = width(text, header.delimiter), len(header.names)
                wrong = f"{values} values, expected {columns}"
                if header.delimiter == "," and values > columns:
                    wrong += "; a number with a decimal comma must stand in quotes here"
            return f"{where}: found {text.strip()[:100]!r}, {wrong}"
    return None


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
