"""Users' tables as one view `log` in DuckDB: files of one format, or a table in memory."""

from __future__ import annotations

import glob
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from surestep._files import read_path, temporary_folder
from surestep.description import Description, several
from surestep.errors import FileFailure, InvalidLog, InvalidParameter
from surestep.io.logs.compression import check_compression, check_gzip
from surestep.io.logs.formats import IN_MEMORY, Convert, Format, format_of, has_format, scan_parquet
from surestep.io.logs.frames import explain_frame, register
from surestep.io.logs.preparing import NONE, Preparation
from surestep.io.logs.query import ROW as PLACE
from surestep.io.logs.query import Made
from surestep.io.sql import (
    ROW,
    failure_of,
    first_lines,
    in_memory,
    interruptible,
    lacks_room,
    sql_name,
)

BETWEEN_LOOKS = 0.2  # seconds


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A source of rows: the files of one format, or an object that DuckDB can scan."""

    name: str  # for messages
    files: tuple[Path, ...] = ()
    format: Format = IN_MEMORY
    frame: object = None
    description: Description = field(default_factory=Description)
    preparation: Preparation = NONE  # once it is known which column is what
    converted: Converted | None = None  # of a format that is not read as it is
    raw: Table | None = None  # what a query made these rows of
    made: Made | None = None  # and how it did
    kept: str = "true"  # SQL: the rows that are read

    def scan(self, database: Any, files: Sequence[Path], *, numbered: bool = False) -> str:
        """Returns the SQL that reads the files, labels as the text that is written there.

        Rows have their numbers as `ROW` where that is asked for, and wherever anything is done to
        them: it may leave rows out, or in another order.
        """
        if self.converted is None:
            rows = self.format.scan(database, files, self.description.reader)
        else:
            files = [self.converted.files[file] for file in files]
            rows = scan_parquet(database, files, self.description.reader)
        if numbered or self.preparation.changes:
            rows = f"SELECT *, row_number() OVER () AS {ROW} FROM ({rows})"
        rows = self.preparation.sql(rows)
        return rows if self.kept == "true" else f"SELECT * FROM ({rows}) WHERE {self.kept}"

    def name_of(self, file: Path | None) -> str:
        """Returns what a file is called in messages; that of a query's rows is none of a user's."""
        return self.name if file is None or self.raw is not None else str(file)

    @property
    def raw_row(self) -> str:
        """Returns SQL: of which row of the files a row is, where a query keeps that; else NULL."""
        return "NULL" if self.made is None or not self.made.keeps_rows else sql_name(PLACE)

    def raw_place(self, database: Any, row: int) -> str:
        """Returns the file and the number there of a row of all files, from 1."""
        assert self.raw is not None
        for file in self.raw.files:
            one = replace(self.raw, files=(file,))
            (rows,) = database.execute(f"SELECT count(*) FROM ({one.typed(database)})").fetchone()
            if row <= rows:
                return f"{file}, row {row:,}"
            row -= rows
        return f"{self.raw.name}, row {row:,}"

    def typed(self, database: Any) -> str:
        """Returns the SQL that reads all rows for a query, values of their types."""
        if self.format.typed is not None and self.converted is None:
            return self.format.typed(self.files, self.description.reader)
        return self.scan(database, self.files)

    def lacking(self) -> dict[str, Path]:
        """Returns the columns that only some of the files have, with the first file without."""
        if self.format.names is None or len(self.files) < 2:
            return {}
        named = self.format.names(self.files, self.description.reader)
        lacking = dict[str, Path]()
        for name in dict.fromkeys(name for names in named for name in names):
            for file, names in zip(self.files, named, strict=True):
                if name not in names:
                    lacking.setdefault(name, file)
        return lacking


class Converted:
    """Files in a form that DuckDB reads, in a temporary folder that goes when nobody needs it."""

    def __init__(self, files: Sequence[Path], convert: Convert) -> None:
        folder = temporary_folder()
        place = folder.__enter__()
        weakref.finalize(self, folder.__exit__, None, None, None)
        self.files = convert(files, place)


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
    convert = found.conversion(files, description.reader)
    converted = None if convert is None else Converted(files, convert)
    return Table(name, files, found, description=description, converted=converted)


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
        if table.format is IN_MEMORY:
            register(database, table.frame)
        database.execute(f"CREATE TEMP VIEW log AS {table.scan(database, table.files)}")
        yield database


@contextmanager
def explaining(table: Table, memory_limit: str | None = None) -> Iterator[None]:
    """Makes an error that names the table of what DuckDB fails in."""
    import duckdb

    try:
        yield
    except duckdb.Error as problem:
        if lacks_room(problem):
            raise failure_of(problem, memory_limit) from None
        unreadable = isinstance(problem, duckdb.InvalidInputException | duckdb.IOException)
        words = f"{table.name} cannot be read: {first_lines(problem)}"
        raise InvalidLog((explained(table) if unreadable else None) or words) from None


@contextmanager
def named_in_errors(table: Table) -> Iterator[None]:
    """Puts the name of the table before what is wrong with its columns."""
    try:
        yield
    except InvalidLog as problem:
        raise InvalidLog(f"{table.name}: {problem}") from None


def explained(table: Table) -> str | None:
    """Returns what is wrong with the files of a table, where more than DuckDB's words is known."""
    if table.format is IN_MEMORY:
        words = explain_frame(table.frame)
        return None if words is None else f"{table.name}: {words}"
    check_gzip(table.files)
    return table.format.explain(table.files, table.description.reader)


@contextmanager
def watched(database: Any, progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Tells how far the query under way is, in percent, from time to time."""
    if progress is None:
        yield
        return
    database.execute("SET enable_progress_bar = true")
    database.execute("SET enable_progress_bar_print = false")
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
