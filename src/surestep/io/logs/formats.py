"""Formats of log files: a new one is a `Format` and its line in `FORMATS`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surestep.errors import FileFailure, InvalidLog, InvalidParameter
from surestep.io.sql import file_list, sql_name, sql_text


def accept_files(files: Sequence[Path]) -> None:
    """Refuses nothing: the files are found to fit together when they are read."""


def accept_labels(database: Any, files: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuses nothing: different labels are different values."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files, and what reading a log of it takes."""

    suffixes: tuple[str, ...]
    scan: Callable[[Any, Sequence[Path]], str]  # (database, files) → the SQL that reads them
    check_files: Callable[[Sequence[Path]], None] = accept_files  # do they fit together?
    # (database with the view `log`, files, columns of labels): refuses labels that became alike
    check_labels: Callable[[Any, Sequence[Path], Sequence[str]], None] = accept_labels
    has_header: bool = False  # a first line that is no row
    knows_rows: bool = False  # Parquet's footer: rows can be counted, and read from any on


# ---- CSV --------------------------------------------------------------------------------------


def scan_csv(database: Any, files: Sequence[Path]) -> str:
    """Returns the SQL that reads CSV files, all of whose columns are text."""
    delimiter, header = csv_header(files[0])
    return (
        f"SELECT * FROM read_csv({file_list(files)}, auto_detect=false, header=true, nullstr='', "
        f"delim={sql_text(delimiter)}, quote='\"', escape='\"', columns={as_text(header)})"
    )


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


# ---- Parquet ----------------------------------------------------------------------------------


def scan_parquet(database: Any, files: Sequence[Path]) -> str:
    """Returns the SQL that reads Parquet files."""
    return f"SELECT * FROM read_parquet({file_list(files)})"


# ---- JSON lines -------------------------------------------------------------------------------


def scan_json(database: Any, files: Sequence[Path]) -> str:
    """Returns the SQL that reads lines of JSON, all of whose values are text."""
    lines = f"read_json({file_list(files)}, format='newline_delimited'"
    described = database.execute(f"DESCRIBE SELECT * FROM {lines})").fetchall()
    return f"SELECT * FROM {lines}, columns={as_text([row[0] for row in described])})"


def check_json_labels(database: Any, files: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuses the first label that is written as a number with a point.

    JSON has no 1.10, only the number 1.1: once read, both are the same. A string keeps what is
    written.
    """
    every = [str(row[0]) for row in database.execute("DESCRIBE SELECT * FROM log").fetchall()]
    wrong = {name: f"coalesce(json_type({sql_name(name)}) = 'DOUBLE', false)" for name in columns}
    for file in files:
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


# ---- all of them ------------------------------------------------------------------------------


def as_text(columns: Sequence[str]) -> str:
    """All columns of type text, as the readers want it."""
    return "{" + ", ".join(f"{sql_text(name)}: 'VARCHAR'" for name in columns) + "}"


FORMATS = {
    "csv": Format((".csv", ".tsv"), scan_csv, check_same_headers, has_header=True),
    "parquet": Format((".parquet",), scan_parquet, knows_rows=True),
    "json": Format((".jsonl", ".ndjson"), scan_json, check_labels=check_json_labels),
}


def scan_frame(database: Any, files: Sequence[Path]) -> str:
    """Returns the SQL that reads a table in memory."""
    return "SELECT * FROM frame"


IN_MEMORY = Format((), scan_frame)  # an object that DuckDB can scan


def has_format(file: Path) -> bool:
    """Tells whether the ending of a file is that of a format."""
    return any(file.suffix.lower() in known.suffixes for known in FORMATS.values())


def format_of(file: Path) -> Format:
    """Returns the format of a file, by its ending."""
    for known in FORMATS.values():
        if file.suffix.lower() in known.suffixes:
            return known
    endings = ", ".join(suffix for known in FORMATS.values() for suffix in known.suffixes)
    raise InvalidParameter(f"{file} has no known ending, expected {endings}")
