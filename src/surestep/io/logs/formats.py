"""Formats of log files: a new one is a `Format` and its line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surestep.description import Reader
from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.logs.text_tables import (
    COMPRESSED,
    as_text,
    explain_text,
    scan_text,
    split_ending,
    text_conversion,
    typed_text,
)
from surestep.io.logs.xes import convert_xes
from surestep.io.sql import columns_of, file_list, sql_name

# (database, files, a new folder) → where each file is now
Convert = Callable[[Any, Sequence[Path], Path], Mapping[Path, Path]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files, and what reading a log of it takes."""

    suffixes: tuple[str, ...]
    # (database, files, how) → the SQL that reads them
    scan: Callable[[Any, Sequence[Path], Reader], str]
    # (database with the view `log`, files, columns of labels): refuses labels that became alike
    check_labels: Callable[[Any, Sequence[Path], Sequence[str]], None] = lambda *given: None
    # (files that DuckDB failed to read, how) → what is wrong with them
    explain: Callable[[Sequence[Path], Reader], str | None] = lambda *given: None
    # (files, how) → what writes them as Parquet files, which are read instead; None: as they are
    conversion: Callable[[Sequence[Path], Reader], Convert | None] = lambda *given: None
    # (files, how) → the SQL that reads them for a query, values of their types; None: as it scans
    typed: Callable[[Sequence[Path], Reader], str] | None = None
    compressed: tuple[str, ...] = ()  # endings that may follow
    names_columns: bool = False  # a file says which columns it has, so that one may be lacking
    knows_rows: bool = False  # Parquet's footer: rows can be counted, and read from any on


def scan_parquet(database: Any, files: Sequence[Path], reader: Reader) -> str:
    """Returns the SQL that reads Parquet files."""
    return f"SELECT * FROM read_parquet({file_list(files)})"


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


def check_json_labels(database: Any, files: Sequence[Path], columns: Sequence[str]) -> None:
    """Refuses the first label that is written as a number with a point.

    JSON has no 1.10, only the number 1.1: once read, both are the same. A string keeps what is
    written.
    """
    kinds = as_text(columns_of(database, "log"), "JSON")
    wrong = [f"json_type({sql_name(name)}) = 'DOUBLE'" for name in columns]
    asked = ", ".join(f"min(row) FILTER ({condition})" for condition in wrong)
    database.execute("SET preserve_insertion_order = true")
    for file in files if columns else ():
        rows = (
            f"SELECT *, row_number() OVER () AS row FROM {json_lines([file], f'columns={kinds}')}"
        )
        found = database.execute(f"SELECT {asked} FROM ({rows})").fetchone()
        for name, row in zip(columns, found, strict=True):
            if row is not None:
                raise InvalidLog(
                    f"{file}, row {row:,}, column {name!r}: found a number with a point, expected "
                    "a string: JSON cannot tell the labels 1.10 and 1.1 apart; write them in "
                    f"quotes, or have the column binned with {said('bins', '--set bins.…')}"
                )


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
        explain=explain_text,
        conversion=text_conversion,
        typed=typed_text,
        compressed=COMPRESSED,
        names_columns=True,
    ),
    "parquet": Format((".parquet",), scan_parquet, names_columns=True, knows_rows=True),
    "json": Format(
        (".jsonl", ".ndjson"),
        scan_json,
        check_json_labels,
        typed=typed_json,
        compressed=COMPRESSED,
    ),
    "xes": Format(
        (".xes",), scan_parquet, conversion=lambda *given: convert_xes, compressed=(".gz",)
    ),
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
