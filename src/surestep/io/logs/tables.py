"""Users' tables as one view `log` in DuckDB: files of three kinds, or a table in memory."""

from __future__ import annotations

import csv
import glob
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surestep._files import read_path, temporary_folder
from surestep.errors import FileFailure, InvalidLog, InvalidParameter
from surestep.io.sql import file_list, first_lines, interruptible, limit_memory, sql_name, sql_text

BETWEEN_LOOKS = 0.2  # seconds
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A source of rows: the files of one kind, or an object that DuckDB can scan."""

    name: str  # for messages
    kind: str  # "csv", "parquet", "json" or "object"
    files: tuple[Path, ...] = ()
    frame: object = None

    def scan(self, database: Any, files: Sequence[Path]) -> str:
        """SQL that reads the files, labels of CSV and JSON as the text that is written there."""
        if self.kind == "object":
            return "SELECT * FROM frame"
        paths = file_list(files)
        if self.kind == "parquet":
            return f"SELECT * FROM read_parquet({paths})"
        if self.kind == "json":
            lines = f"read_json({paths}, format='newline_delimited'"
            described = database.execute(f"DESCRIBE SELECT * FROM {lines})").fetchall()
            return f"SELECT * FROM {lines}, columns={as_text([row[0] for row in described])})"
        delimiter, header = csv_header(self.files[0])
        return (
            f"SELECT * FROM read_csv({paths}, auto_detect=false, header=true, nullstr='', "
            f"delim={sql_text(delimiter)}, quote='\"', escape='\"', columns={as_text(header)})"
        )


def find_table(source: object) -> Table:
    """The table that a path, a pattern, a directory, a list of them, or an object stands for."""
    if not isinstance(source, str | os.PathLike | list | tuple):
        return Table(f"the {type(source).__name__}", "object", frame=source)
    given = source if isinstance(source, list | tuple) else [source]
    files = tuple(file for path in given for file in matching(read_path(path)))
    if not files:
        raise InvalidParameter("no file was given, expected at least one")
    kinds = {SUFFIXES.get(file.suffix.lower()): file for file in files}
    if None in kinds:
        raise InvalidParameter(f"{kinds[None]} has no known ending, expected {', '.join(SUFFIXES)}")
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        raise InvalidParameter(f"{first} and {second} are of different kinds, expected one kind")
    kind = str(next(iter(kinds)))
    if kind == "csv":
        check_same_headers(files)
    name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    return Table(name, kind, files)


def matching(path: Path) -> list[Path]:
    """The files that a path means, in the order of their names."""
    if path.is_file():
        return [path]
    if path.is_dir():
        matches = [
            file
            for file in path.rglob("*")
            if file.suffix.lower() in SUFFIXES and not file.name.startswith((".", "_"))
        ]
    else:
        matches = [Path(file) for file in glob.glob(str(path), recursive=True)]
    if not matches:
        raise FileFailure(f"{path} is no file, and no folder or pattern that any table matches")
    return sorted(file for file in matches if file.is_file())


def csv_header(path: Path) -> tuple[str, tuple[str, ...]]:
    """The delimiter and the names of the columns."""
    try:
        with path.open("rb") as file:
            line = file.readline(1_000_000).decode("utf-8-sig")
    except OSError as problem:
        raise FileFailure(f"{path} cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidLog(f"{path} is not UTF-8 in its first line; save it as UTF-8") from None
    if not line.strip():
        raise InvalidLog(f"{path} is empty, expected a first line with the names of the columns")
    few = ";" if ";" in line and "," not in line else ","
    delimiter = "\t" if path.suffix.lower() == ".tsv" else few
    try:
        header = tuple(next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter)))
    except (csv.Error, StopIteration):
        raise InvalidLog(f"{path}, line 1 holds no names of columns") from None
    seen = set[str]()
    for name in header:
        if not name or "\0" in name or name.lower() in seen:
            wrong = "given twice" if name.lower() in seen else "no name"
            raise InvalidLog(f"{path}, line 1: column {name!r} is {wrong}")
        seen.add(name.lower())
    return delimiter, header


def check_same_headers(files: Sequence[Path]) -> None:
    """Checks that all files have the columns of the first."""
    first = csv_header(files[0])
    for file in files[1:]:
        if csv_header(file) != first:
            raise InvalidLog(
                f"{file} has the columns {', '.join(csv_header(file)[1])}, but {files[0]} has "
                f"{', '.join(first[1])}; expected the same, in the same order"
            )


@contextmanager
def connected(table: Table, memory_limit: str | None = None) -> Iterator[Any]:
    """A database with the view `log`; what goes wrong in it becomes an error with its source."""
    import duckdb

    with temporary_folder() as spill:
        try:
            with (
                duckdb.connect(config={"temp_directory": str(spill)}) as connection,
                interruptible(connection) as database,
            ):
                if memory_limit is not None:
                    limit_memory(database, memory_limit)
                if table.kind == "object":
                    register(database, table)
                create = f"CREATE TEMP VIEW log AS {table.scan(database, table.files)}"
                database.execute(create)
                yield database
        except duckdb.Error as problem:
            said = first_lines(problem)
            remedy = "; save it as UTF-8" if "not utf-8" in said else ""
            raise InvalidLog(f"{table.name} cannot be read: {said}{remedy}") from None


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


def register(database: Any, table: Table) -> None:
    """Registers a table in memory as the view `frame`."""
    import duckdb

    try:
        frame = table.frame
        if isinstance(frame, Mapping):  # DuckDB wants arrays
            frame = {str(name): np.asarray(values) for name, values in frame.items()}
        database.register("frame", frame)
    except (duckdb.Error, TypeError, ValueError, AttributeError) as problem:
        raise InvalidParameter(
            f"a log of type {type(table.frame).__name__} cannot be read ({problem}), expected a "
            "path, a pandas, polars or Arrow table, or a dictionary of arrays"
        ) from None


def as_text(columns: Sequence[str]) -> str:
    """All columns of type text, as the readers want it."""
    return "{" + ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in columns) + "}"


def check_json_labels(table: Table, database: Any, columns: Sequence[str]) -> None:
    """Refuses the first label that is written as such a number, in a log of JSON lines."""
    if table.kind != "json":
        return
    every = [str(row[0]) for row in database.execute("DESCRIBE SELECT * FROM log").fetchall()]
    wrong = {name: f"coalesce(json_type({sql_name(name)}) = 'DOUBLE', false)" for name in columns}
    for file in table.files:
        rows = json_rows(file, every)
        counts = ", ".join(f"count_if({condition})" for condition in wrong.values())
        counted = database.execute(f"SELECT {counts} FROM {rows}").fetchone()
        for (name, condition), times in zip(wrong.items(), counted, strict=True):
            if times:
                row = first_row(database, rows, condition)
                others = "" if times == 1 else f"; {times:,} rows of the file are affected"
                raise InvalidLog(
                    f"{file}, row {row:,}, column {name!r}: found a number with a point, expected "
                    "a string: JSON cannot tell the labels 1.10 and 1.1 apart; write them in "
                    f"quotes, or have the column binned with --bin{others}"
                )


def json_rows(file: Path, columns: Sequence[str]) -> str:
    """SQL for the rows of a file, every value as the JSON that it is."""
    kinds = ", ".join(f"{sql_text(name)}: 'JSON'" for name in columns)
    paths = file_list([file])
    return f"read_json({paths}, format='newline_delimited', columns={{{kinds}}})"


def first_row(database: Any, rows: str, condition: str) -> int:
    """Returns the number of the first row of which the condition holds."""
    database.execute("SET preserve_insertion_order = true")
    first = database.execute(
        f"SELECT min(row) FROM (SELECT *, row_number() OVER () AS row FROM {rows}) "
        f"WHERE {condition}"
    ).fetchone()
    return int(first[0])
