"""Formats of log files: a new one is a `Format` and its line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surestep.description import Reader
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.logs.compression import COMPRESSED, split_ending
from surestep.io.logs.text_tables import (
    as_text,
    explain_text,
    scan_text,
    text_conversion,
    text_names,
    typed_text,
)
from surestep.io.logs.xes import convert_xes
from surestep.io.sql import columns_of, file_list, first_lines, in_memory, sql_name, sql_text

Convert = Callable[[Sequence[Path], Path], Mapping[Path, Path]]  # (files, a new folder)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files, and what reading a log of it takes."""

    suffixes: tuple[str, ...]
    # (database, files, how) → the SQL that reads them
    scan: Callable[[Any, Sequence[Path], Reader], str]
    # (files, how) → the columns of each, where files of one log may have different ones
    names: Callable[[Sequence[Path], Reader], list[tuple[str, ...]]] | None = None
    # (database with the view `log`, files, columns of labels): refuses labels that became alike
    check_labels: Callable[[Any, Sequence[Path], Sequence[str]], None] = lambda *given: None
    # (files that DuckDB failed to read, how) → what is wrong with them
    explain: Callable[[Sequence[Path], Reader], str | None] = lambda *given: None
    # (files, how) → what writes them as Parquet files, which are read instead; None: as they are
    conversion: Callable[[Sequence[Path], Reader], Convert | None] = lambda *given: None
    # (files, how) → the SQL that reads them for a query, values of their types; None: as it scans
    typed: Callable[[Sequence[Path], Reader], str] | None = None
    only_named: tuple[str, ...] = ()  # endings that a folder may have for other files too
    compressed: tuple[str, ...] = ()  # endings that may follow
    has_header: bool = False  # a first line that is no row
    knows_rows: bool = False  # Parquet's footer: rows can be counted, and read from any on


# ---- Parquet ----------------------------------------------------------------------------------


def scan_parquet(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads Parquet files."""
    return f"SELECT * FROM read_parquet({file_list(files)})"


def parquet_names(files: Sequence[Path], reader: Reader) -> list[tuple[str, ...]]:
    """Returns the columns of each file, those of its folders included."""
    import duckdb

    names = list[tuple[str, ...]]()
    with in_memory() as database:
        for file in files:
            try:
                names.append(tuple(columns_of(database, f"FROM read_parquet({file_list([file])})")))
            except duckdb.Error as problem:
                raise InvalidLog(f"{file} cannot be read: {first_lines(problem)}") from None
    return names


# ---- JSON lines -------------------------------------------------------------------------------


def scan_json(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads lines of JSON, all of whose values are text."""
    lines = f"read_json({file_list(files)}, format='newline_delimited'"
    names = [*columns_of(database, f"FROM {lines})")]
    return f"SELECT * FROM {lines}, columns={as_text(names)})"


def typed_json(files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads lines of JSON for a query."""
    return (
        f"SELECT * FROM read_json({file_list(files)}, format='newline_delimited', sample_size=-1, "
        "union_by_name=true)"
    )


def check_json_labels(database: Any, files: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuses the first label that is written as a number with a point.

    JSON has no 1.10, only the number 1.1: once read, both are the same. A string keeps what is
    written.
    """
    wrong = {name: f"coalesce(json_type({sql_name(name)}) = 'DOUBLE', false)" for name in columns}
    kinds = ", ".join(f"{sql_text(name)}: 'JSON'" for name in columns_of(database, "log"))
    for file in files:
        rows = f"read_json({file_list([file])}, format='newline_delimited', columns={{{kinds}}})"
        counts = ", ".join(f"count_if({condition})" for condition in wrong.values())
        counted = database.execute(f"SELECT {counts} FROM {rows}").fetchone()
        for (name, condition), times in zip(wrong.items(), counted, strict=True):
            if times:
                database.execute("SET preserve_insertion_order = true")
                (row,) = database.execute(
                    f"SELECT min(row) FROM (SELECT *, row_number() OVER () AS row FROM {rows}) "
                    f"WHERE {condition}"
                ).fetchone()
                others = "" if times == 1 else f"; {times:,} rows of the file are affected"
                raise InvalidLog(
                    f"{file}, row {row:,}, column {name!r}: found a number with a point, expected "
                    "a string: JSON cannot tell the labels 1.10 and 1.1 apart; write them in "
                    f"quotes, or have the column binned with {said('bins', '--set bins.…')}{others}"
                )


# ---- all of them ------------------------------------------------------------------------------

FORMATS = {
    "text": Format(
        (".csv", ".tsv", ".psv", ".txt"),
        scan_text,
        text_names,
        conversion=text_conversion,
        typed=typed_text,
        explain=explain_text,
        only_named=(".txt",),
        compressed=COMPRESSED,
        has_header=True,
    ),
    "parquet": Format((".parquet",), scan_parquet, parquet_names, knows_rows=True),
    "json": Format(
        (".jsonl", ".ndjson"),
        scan_json,
        check_labels=check_json_labels,
        compressed=COMPRESSED,
        typed=typed_json,
    ),
    "xes": Format(
        (".xes",), scan_parquet, conversion=lambda *given: convert_xes, compressed=(".gz",)
    ),
}


def scan_frame(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads a table in memory; labels of categories are text, as in files."""
    kinds = columns_of(database, "frame")
    names = [sql_name(name) for name, kind in kinds.items() if kind.startswith("ENUM")]
    texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
    return f"SELECT * {f'REPLACE ({texts}) ' if texts else ''}FROM frame"


IN_MEMORY = Format((), scan_frame)  # an object that DuckDB can scan
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")


def has_format(file: Path) -> bool:
    """Tells whether the ending of a file in a folder is that of a format."""
    ending, _ = split_ending(file)
    return any(ending not in known.only_named for known in with_ending(file))


def format_of(file: Path) -> Format:
    """Returns the format of a file, by its ending."""
    for known in with_ending(file):
        return known
    if file.suffix.lower() in SPREADSHEETS:
        raise InvalidParameter(f"{file} is a spreadsheet; save it as CSV or Parquet")
    endings = [
        suffix + packed
        for known in FORMATS.values()
        for packed in ("", *known.compressed)
        for suffix in known.suffixes
    ]
    raise InvalidParameter(f"{file} has no known ending, expected {', '.join(endings)}")


def with_ending(file: Path) -> Iterator[Format]:
    """Yields the formats that have the ending of a file."""
    ending, packed = split_ending(file)
    for known in FORMATS.values():
        if ending in known.suffixes and (not packed or packed in known.compressed):
            yield known
