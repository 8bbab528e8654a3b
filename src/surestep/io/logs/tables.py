"""Users' tables as one view `log` in DuckDB: files of one format, or a table in memory."""

from __future__ import annotations

import glob
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surestep._files import failing_to_read, read_path
from surestep.description import Description, Reader, several
from surestep.errors import FileFailure, InvalidLog, InvalidParameter
from surestep.io.logs.frames import register
from surestep.io.logs.preparing import NONE, Preparation
from surestep.io.logs.query import ROW as PLACE
from surestep.io.logs.query import Made, Workshop
from surestep.io.logs.text_tables import (
    COMPRESSED,
    as_text,
    check_compression,
    check_gzip,
    scan_text,
    split_ending,
    typed_text,
)
from surestep.io.logs.xes import convert_xes
from surestep.io.sql import (
    ROW,
    columns_of,
    failure_of,
    file_list,
    first_lines,
    in_memory,
    interruptible,
    lacks_room,
    sql_name,
)

BETWEEN_LOOKS = 0.2  # seconds


# ---- formats: a new one is a `Format` and its line in `FORMATS` --------------------------------


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files, and what reading a log of it takes."""

    suffixes: tuple[str, ...]
    # (database, files, how) → the SQL that reads them
    scan: Callable[[Any, Sequence[Path], Reader], str]
    # (database, files, a new folder) → the Parquet files that are read instead; None: as they are
    convert: Callable[[Any, Sequence[Path], Path], Mapping[Path, Path]] | None = None
    # (files, how) → the SQL that reads them for a query, values of their types; None: as it scans
    typed: Callable[[Sequence[Path], Reader], str] | None = None
    compressed: tuple[str, ...] = ()  # endings that may follow
    knows_rows: bool = False  # Parquet's footer: rows can be counted, and read from any on


def scan_parquet(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads Parquet files; what one lacks is missing in its rows."""
    together = ", union_by_name=true" if len(files) > 1 else ""
    return f"SELECT * FROM read_parquet({file_list(files)}{together})"


def scan_json(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads lines of JSON, all of whose values are text."""
    names = [*columns_of(database, f"FROM {json_lines(files)}")]
    return f"SELECT * FROM {json_lines(files, f'columns={as_text(names)}')}"


def typed_json(files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads lines of JSON for a query."""
    return f"SELECT * FROM {json_lines(files, 'sample_size=-1', 'union_by_name=true')}"


def json_lines(files: Sequence[Path], *options: str) -> str:
    """Returns the SQL of a reader of lines of JSON."""
    given = ", ".join([file_list(files), "format='newline_delimited'", *options])
    return f"read_json({given})"


def scan_frame(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads a table in memory; labels of categories are text, as in files."""
    kinds = columns_of(database, "frame")
    names = [sql_name(name) for name, kind in kinds.items() if kind.startswith("ENUM")]
    texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
    return f"SELECT * {f'REPLACE ({texts}) ' if texts else ''}FROM frame"


FORMATS = {
    "text": Format(
        (".csv", ".tsv", ".psv", ".txt"),
        scan_text,
        typed=typed_text,
        compressed=COMPRESSED,
    ),
    "parquet": Format((".parquet",), scan_parquet, knows_rows=True),
    "json": Format(
        (".jsonl", ".ndjson"),
        scan_json,
        typed=typed_json,
        compressed=COMPRESSED,
    ),
    "xes": Format((".xes",), scan_parquet, convert_xes, compressed=(".gz",)),
}
IN_MEMORY = Format((), scan_frame)  # an object that DuckDB can scan


def by_ending() -> dict[str, Format]:
    """Returns the formats by the endings of their files."""
    return {
        suffix + packed: known
        for known in FORMATS.values()
        for packed in ("", *known.compressed)
        for suffix in known.suffixes
    }


def has_format(file: Path) -> bool:
    """Tells whether a file in a folder is a log; a text (.txt) may be anything."""
    return "".join(split_ending(file)) in by_ending() and split_ending(file)[0] != ".txt"


def format_of(file: Path) -> Format:
    """Returns the format of a file, by its ending."""
    known = by_ending()
    ending = "".join(split_ending(file))
    if ending not in known:
        raise InvalidParameter(
            f"{file} has no known ending, expected {', '.join(known)} (save a spreadsheet as CSV)"
        )
    return known[ending]


# ---- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A source of rows: the files of one format, or an object that DuckDB can scan."""

    name: str  # for messages
    files: tuple[Path, ...] = ()
    format: Format = IN_MEMORY
    frame: object = None
    description: Description = field(default_factory=Description)
    preparation: Preparation = NONE  # once it is known which column is what
    converted: Mapping[Path, Path] = field(default_factory=dict)  # of files not read as they are
    workshop: Workshop | None = None  # whose folder has these
    raw: Table | None = None  # what a query made these rows of
    made: Made | None = None  # and how it did
    kept: str = "true"  # SQL: the rows that are read

    def read(self, database: Any, files: Sequence[Path]) -> str:
        """Returns the SQL that reads files, labels as the text that is written there."""
        if self.converted:
            return scan_parquet(database, [self.converted[f] for f in files], Description().reader)
        return self.format.scan(database, files, self.description.reader)

    def scan(self, database: Any) -> str:
        """Returns the SQL of the rows of the log; `ROW` is their number in the files, from 1.

        What is done to rows may leave some out, or in another order.
        """
        files = self.read(database, self.files)
        rows = self.preparation.sql(f"SELECT *, row_number() OVER () AS {ROW} FROM ({files})")
        return rows if self.kept == "true" else f"SELECT * FROM ({rows}) WHERE {self.kept}"

    def typed(self, database: Any) -> str:
        """Returns the SQL that reads all rows for a query, values of their types."""
        if self.format.typed is not None and not self.converted:
            return self.format.typed(self.files, self.description.reader)
        return self.read(database, self.files)

    @property
    def raw_row(self) -> str:
        """Returns SQL: of which row of the files a row is, where a query keeps that; else NULL."""
        return "NULL" if self.made is None or not self.made.keeps_rows else sql_name(PLACE)

    def place(self, database: Any, row: int) -> tuple[str | None, int]:
        """Returns the file of a row, None in memory, and its number there; files are a user's."""
        if self.raw is not None or not self.files:
            return (None if self.raw is None else self.name), row
        *before, last = self.files
        for file in before:
            count = f"SELECT count(*) FROM ({self.read(database, [file])})"
            (rows,) = database.execute(count).fetchone()
            if row <= rows:
                return str(file), row
            row -= rows
        return str(last), row

    def sources(self, database: Any) -> tuple[str, ...]:
        """Returns the SHA-256 of the files with rows, rising; two of one content are refused.

        Files without rows are often alike, and count nothing.
        """
        known = dict[str, Path]()
        for file in self.files:
            check_gzip([file])  # DuckDB does not look at its checksum
            first = f"SELECT 1 FROM ({self.read(database, [file])}) LIMIT 1"
            if not database.execute(first).fetchall():
                continue
            with failing_to_read(file), file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if known.setdefault(digest, file) != file:
                raise InvalidLog(
                    f"{file} has the same content as {known[digest]}, and its rows would count "
                    "twice; expected every log once"
                )
        return tuple(sorted(known))


def find_table(description: Description, frame: object = None) -> Table:
    """Returns the table that a description names, or the one in memory."""
    if frame is not None:
        return Table(f"the {type(frame).__name__}", frame=frame, description=description)
    given = several(description.files)
    files = tuple(file for path in given for file in matching(read_path(path)))
    if not files:
        raise InvalidParameter("no file was given, expected at least one")
    formats = {format_of(file): file for file in files}
    if len(formats) > 1:
        first, second = list(formats.values())[:2]
        raise InvalidParameter(f"{first} and {second} are of different kinds, expected one kind")
    (found,) = formats
    check_compression(files)
    name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    table = Table(name, files, found, description=description)
    if found.convert is None:
        return table
    workshop = Workshop()
    with in_memory() as database, explaining(table):
        converted = found.convert(database, files, workshop.folder)
    return replace(table, converted=converted, workshop=workshop)


def matching(path: Path) -> list[Path]:
    """The files that a path means, in the order of their names."""
    if path.is_file():
        return [path]
    if path.is_dir():
        matches = [
            file
            for file in path.rglob("*")
            if has_format(file) and not file.name.startswith((".", "_"))
        ]
    else:
        matches = [Path(file) for file in glob.glob(str(path), recursive=True)]
    if not matches:
        raise FileFailure(f"{path} is no file, and no folder or pattern that any table matches")
    return sorted(file for file in matches if file.is_file())


@contextmanager
def connected(table: Table, memory_limit: str | None = None) -> Iterator[Any]:
    """A database with the view `log`; what goes wrong in it becomes an error with its source."""
    with (
        in_memory(memory_limit) as connection,
        interruptible(connection) as database,
        explaining(table, memory_limit),
    ):
        if table.frame is not None:
            register(database, table.frame)
        database.execute(f"CREATE TEMP VIEW log AS {table.scan(database)}")
        yield database


def types_of(database: Any, rows: str = "log") -> dict[str, str]:
    """Returns the type of each column of the log, as DuckDB calls it."""
    kinds = columns_of(database, rows)
    return {name: kind for name, kind in kinds.items() if sql_name(name) != ROW}


@contextmanager
def explaining(table: Table, memory_limit: str | None = None) -> Iterator[None]:
    """Makes an error that names the table of what DuckDB fails in."""
    import duckdb

    try:
        yield
    except duckdb.Error as problem:
        if lacks_room(problem):
            raise failure_of(problem, memory_limit) from None
        words = f"{table.name} cannot be read: {first_lines(problem)}"
        if isinstance(problem, duckdb.InvalidInputException | duckdb.IOException):
            check_gzip(table.files)
        raise InvalidLog(words) from None


@contextmanager
def named_in_errors(table: Table) -> Iterator[None]:
    """Puts the name of the table before what is wrong with its columns."""
    try:
        yield
    except InvalidLog as problem:
        raise InvalidLog(f"{table.name}: {problem}") from None


@contextmanager
def watched(database: Any, progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Tells how far the query under way is, in percent, from time to time."""
    if progress is None:
        yield
        return
    database.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    over = threading.Event()

    def poll() -> None:
        while not over.wait(BETWEEN_LOOKS):
            progress(max(0, int(database.query_progress())), 100)

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
