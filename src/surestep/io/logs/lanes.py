"""Lanes: a Parquet log cut into stretches that are read side by side, each in its own order.

What a row is to the next one can only be seen where rows come in order, one after the other.
Several lanes at once keep all cores busy; the seams between them are told to each lane beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surestep.io.logs.tables import Table
from surestep.io.sql import columns_of, file_list

SHORTEST = 1_000_000  # rows: below it, one lane is as fast as several
ROW = "file_row_number"


@dataclass(frozen=True, slots=True)
class Lane:
    """A stretch of a log: some files, or the rows `begin` ≤ row < `end` of one file."""

    files: tuple[Path, ...]
    begin: int
    end: int

    @property
    def scan(self) -> str:
        """SQL that reads the rows of the lane, in order if nothing else reads them."""
        inside = f"{ROW} >= {self.begin} AND {ROW} < {self.end}"
        return rows_where(self.files, inside if len(self.files) == 1 else "true")

    @property
    def first_row(self) -> str:
        """SQL that reads the first row only."""
        return rows_where(self.files[:1], f"{ROW} = {self.begin}")

    @property
    def last_row(self) -> str:
        """SQL that reads the last row only."""
        return rows_where(self.files[-1:], f"{ROW} = {self.end - 1}")


def rows_where(files: Sequence[Path], condition: str) -> str:
    """Returns the SQL that reads the rows of files of which a condition holds."""
    return f"SELECT * FROM read_parquet({file_list(files)}, {ROW}=true) WHERE {condition}"


def lanes_of(table: Table, database: Any) -> tuple[Lane, ...]:
    """As many lanes as threads, about equally long; none where a log cannot be cut."""
    if not table.format.knows_rows or table.preparation.changes or table.kept != "true":
        return ()
    rows = rows_of(table.files, database)
    threads = database.execute("SELECT current_setting('threads')").fetchone()[0]
    target = max(-(-sum(rows) // threads), SHORTEST)
    if (
        ROW in columns_of(database, "log")
        or sum(rows) <= target
        or not same_types(table.files, database)
    ):
        return ()
    return tuple(cut(table.files, rows, target))


def rows_of(files: Sequence[Path], database: Any) -> list[int]:
    """Returns the number of rows of each file."""
    counted = database.execute(
        f"SELECT file_name, num_rows FROM parquet_file_metadata({file_list(files)})"
    ).fetchall()
    known = {Path(name): int(rows) for name, rows in counted}
    return [known[file] for file in files]


def same_types(files: Sequence[Path], database: Any) -> bool:
    """Tells whether all files have the same columns; else lanes would not fit together."""
    scans = [f"FROM read_parquet({file_list([file])})" for file in files]
    return len({str(columns_of(database, scan)) for scan in scans}) == 1


def cut(files: Sequence[Path], rows: Sequence[int], target: int) -> list[Lane]:
    """Lanes of about `target` rows: long files in pieces, short ones several to a lane."""
    lanes, waiting, waited = list[Lane](), list[tuple[Path, int]](), 0
    for file, size in zip(files, rows, strict=True):
        if size == 0:
            continue
        if waiting and waited + size > target:
            lanes.append(together(waiting))
            waiting, waited = [], 0
        if size > target:
            pieces = -(-size // target)
            ends = [size * piece // pieces for piece in range(pieces + 1)]
            lanes += [Lane((file,), *ends[piece : piece + 2]) for piece in range(pieces)]
        else:
            waiting, waited = [*waiting, (file, size)], waited + size
    return [*lanes, together(waiting)] if waiting else lanes


def together(files: Sequence[tuple[Path, int]]) -> Lane:
    """Whole files as one lane."""
    return Lane(tuple(file for file, _ in files), 0, files[-1][1])
