"""Formats of log files: a new one is a `Format` and its line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surestep.description import Reader
from surestep.errors import InvalidParameter
from surestep.io.logs.text_tables import (
    COMPRESSED,
    as_text,
    scan_text,
    split_ending,
    typed_text,
)
from surestep.io.logs.xes import convert_xes
from surestep.io.sql import columns_of, file_list, sql_name


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
    return f"SELECT * FROM read_parquet({file_list(files)}, union_by_name=true)"


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
