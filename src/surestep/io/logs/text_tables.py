"""Tables as text: one row a line, signs between columns, names in the first line.

Columns are matched by their names, so files may have them in any order. What a name is not given,
as pandas leaves that of an index, is called as pandas calls it when it reads it: 'Unnamed: 0'.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from surestep._files import failing_to_read
from surestep.description import Reader
from surestep.errors import InvalidLog, said
from surestep.io.logs.compression import check_gzip, split_ending
from surestep.io.sql import file_list, first_lines, in_memory, lacks_room, sql_name, sql_text

DELIMITERS = (",", ";", "|", "\t")
BY_ENDING = {".tsv": "\t", ".psv": "|"}
SAMPLE = 20  # rows that tell which sign is between columns
LONGEST = 1_000_000  # characters of the first line


class Header(NamedTuple):
    """The first line of a file."""

    delimiter: str
    names: tuple[str, ...]
    reader: Reader

    def read_csv(self, files: Sequence[Path], *options: str, also: Sequence[str] = ()) -> str:
        """Returns the SQL of files with this first line; `also` are options of the reader."""
        nothing = self.reader.nullstr or ()
        texts = ["", *([nothing] if isinstance(nothing, str) else nothing)]
        quote = sql_text(self.reader.quote or '"')
        given = [f"delim={sql_text(self.delimiter)}", f"quote={quote}", f"escape={quote}"]
        given += [f"nullstr=[{', '.join(map(sql_text, texts))}]", f"skip={self.reader.skip or 0}"]
        for name in ("encoding", *also):
            if getattr(self.reader, name) is not None:
                given.append(f"{name}={sql_text(getattr(self.reader, name))}")
        return f"read_csv({file_list(files)}, header=true, {', '.join([*given, *options])})"

    def read_texts(self, files: Sequence[Path], *options: str) -> str:
        """Returns the SQL of files with this first line, all of whose columns are text."""
        kinds = f"columns={as_text(self.names)}"
        return self.read_csv(files, "auto_detect=false", kinds, *options)


# ---- reading ----------------------------------------------------------------------------------


def scan_text(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads files of one first line, all of whose columns are text."""
    return f"SELECT * FROM {header_of(files[0], reader).read_texts(files)}"


def typed_text(files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL of files for a query: numbers are numbers, by all rows."""
    also = ("decimal_separator", "thousands", "timestampformat")
    header = header_of(files[0], reader)
    return (
        f"SELECT * FROM {header.read_csv(files, 'sample_size=-1', 'union_by_name=true', also=also)}"
    )


def text_conversion(
    files: Sequence[Path], reader: Reader
) -> Callable[..., dict[Path, Path]] | None:
    """Returns what makes files of different first lines readable together; else nothing.

    One scan cannot read them, and of several no window would see one sequence of rows.
    """
    alike = len({header_of(file, reader) for file in files}) == 1
    return None if alike else partial(convert_text, reader)


def convert_text(reader: Reader, files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Writes each file as a Parquet file into the folder; all have all columns, in one order."""
    import duckdb

    names = list(dict.fromkeys(name for each in text_names(files, reader) for name in each))
    converted = {file: folder / f"{number}.parquet" for number, file in enumerate(files)}
    with in_memory() as database:
        try:
            for file, target in converted.items():
                header = header_of(file, reader)
                columns = ", ".join(
                    f"{sql_name(name) if name in header.names else 'NULL::VARCHAR'} "
                    f"AS {sql_name(name)}"
                    for name in names
                )
                database.execute(
                    f"COPY (SELECT {columns} FROM {header.read_texts([file])}) "
                    f"TO {sql_text(str(target))} (FORMAT parquet)"
                )
        except duckdb.Error as problem:
            if lacks_room(problem):
                raise
            words = f"{files[0]} and other files cannot be put together: {first_lines(problem)}"
            check_gzip(files)
            raise InvalidLog(explain_text(files, reader) or words) from None
    return converted


def as_text(columns: Sequence[str]) -> str:
    """All columns of type text, as the readers want it."""
    return "{" + ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in columns) + "}"


def text_names(files: Sequence[Path], reader: Reader) -> list[tuple[str, ...]]:
    """Returns the columns of each file."""
    return [header_of(file, reader).names for file in files]


# ---- the first line ---------------------------------------------------------------------------


def header_of(file: Path, reader: Reader) -> Header:
    """Returns what stands between columns, and their names."""
    line = next(lines_of(file, reader), "")
    if not line.strip():
        raise InvalidLog(f"{file} is empty, expected a first line with the names of the columns")
    delimiter = delimiter_of(file, line, reader)
    (names,) = records([line], delimiter) or [[]]
    if not names:
        raise InvalidLog(f"{file}, line 1 holds no names of columns")
    return Header(delimiter, named(file, names), reader)


def named(file: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Checks the names of columns, and gives one to those that have none."""
    taken = {name.lower() for name in names}
    complete, seen = list[str](), set[str]()
    for place, name in enumerate(names):
        if not name:
            name = f"Unnamed: {place}"
            while name.lower() in taken | seen:
                name += ".1"
        if "\0" in name or name.lower() in seen:
            wrong = "given twice" if name.lower() in seen else "no name"
            raise InvalidLog(f"{file}, line 1: column {name!r} is {wrong}")
        complete.append(name)
        seen.add(name.lower())
    return tuple(complete)


def delimiter_of(file: Path, line: str, reader: Reader) -> str:
    """Returns the sign between columns: that which is given, that of the ending, or the only one
    that the first line has. Of several, the one that cuts the first rows evenly; in a file of
    comma-separated values, the comma is tried first.
    """
    ending, _ = split_ending(file)
    if reader.delim is not None:
        return reader.delim
    if ending in BY_ENDING:
        return BY_ENDING[ending]
    there = [sign for sign in DELIMITERS if width(line, sign) > 1]
    if len(there) > 1:
        rows = [*islice(lines_of(file, reader), SAMPLE + 2)]
        rows = rows if len(rows) < SAMPLE + 2 else rows[:-1]  # a quote may be open at the end
        there = [sign for sign in there if is_even(rows, sign)]
        if len(there) == 1 or (there[:1] == [","] and ending == ".csv"):
            return there[0]
        how = said("reader={'delim': …}", "--set reader.delim=…")
        raise InvalidLog(
            f"{file}, line 1: {line.rstrip()[:100]!r} may be cut into columns in several ways; "
            f"say at which sign: {how}, with one of "
            f"{' '.join(map(repr, DELIMITERS))}"
        )
    return there[0] if there else ","


def width(line: str, delimiter: str) -> int:
    """Counts the columns of a line."""
    return max(map(len, records([line], delimiter)), default=0)


def is_even(lines: Sequence[str], delimiter: str) -> bool:
    """Tells whether a sign cuts all lines into equally many columns."""
    return len({len(record) for record in records(lines, delimiter) if record}) == 1


def records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Cuts lines into columns; none where they cannot be."""
    try:
        return [*csv.reader([line.rstrip("\r\n") for line in lines], delimiter=delimiter)]
    except csv.Error:
        return []


def lines_of(file: Path, reader: Reader) -> Iterator[str]:
    """Yields the lines of a file, from that of the names on."""
    lines = packed_lines(file) if split_ending(file)[1] else plain_lines(file, reader)
    yield from islice(lines, reader.skip or 0, None)


def plain_lines(file: Path, reader: Reader) -> Iterator[str]:
    """Yields the lines of a file that is not compressed."""
    encoding = reader.encoding or "utf-8"
    try:
        with failing_to_read(file), file.open("rb") as stream:
            for line in iter(lambda: stream.readline(LONGEST), b""):
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
                ).fetchone()
            except duckdb.Error:
                continue  # it is no single line
        if rejected is not None:
            line, column, kind, text = rejected
            where = f"{file}, row {line - 1:,}" + (f", column {column!r}" if column else "")
            return f"{where}: {wrong_with(kind, text, header)}"
    return None


def wrong_with(kind: str, text: str, header: Header) -> str:
    """Returns what is wrong with a line, by the kind of error that DuckDB names."""
    columns, found = len(header.names), f"found {text.strip()[:100]!r}"
    match kind:
        case "TOO MANY COLUMNS" | "MISSING COLUMNS":
            values = width(text, header.delimiter)
            hint = "; a number with a decimal comma must stand in quotes here"
            comma = header.delimiter == "," and values > columns
            return f"{found}, {values} values, expected {columns}{hint if comma else ''}"
        case "UNQUOTED VALUE":
            return f'{found}, with a quote (") that is not closed, expected two'
        case "INVALID ENCODING":
            return f"{found}, which is not UTF-8; save the file as UTF-8"
        case "LINE SIZE OVER MAXIMUM":
            return "found a line of more than 2,000,000 bytes, expected a shorter one"
    return f"{found}, which cannot be read ({kind.lower()})"
