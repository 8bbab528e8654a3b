"""Lanes: a Parquet log cut into stretches that are read side by side, each in its own order.

What a row is to the next one can only be seen where rows come in order, one after the other.
Several lanes at once keep all cores busy; the seams between them are told to each lane beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from surestep.io.logs.tables import Table
from surestep.io.sql import columns_of, file_list

SHORTEST = 1_000_000  # rows: below it, one lane is as fast as several
ROW = "file_row_number"


class Lane(NamedTuple):
    """A stretch of a log, as SQL."""

    scan: str  # the rows of the lane, in order if nothing else reads them
    first_row: str
    last_row: str


def lane(files: Sequence[Path], begin: int, end: int) -> Lane:
    """Returns the rows `begin` ≤ row < `end` of a file; of several all, the last with `end` rows."""
    read = f"SELECT * FROM read_parquet({{}}, {ROW}=true) WHERE {{}}"
    inside = f"{ROW} >= {begin} AND {ROW} < {end}" if len(files) == 1 else "true"
    return Lane(
        read.format(file_list(files), inside),
        read.format(file_list(files[:1]), f"{ROW} = {begin}"),
        read.format(file_list(files[-1:]), f"{ROW} = {end - 1}"),
    )


def lanes_of(table: Table, database: Any) -> list[Lane]:
    """As many lanes as threads: files, or pieces of a single one; none where a log is not cut."""
    if not table.format.knows_rows or table.preparation.changes or table.kept != "true":
        return []
    counted = database.execute(
        f"SELECT file_name, num_rows FROM parquet_file_metadata({file_list(table.files)})"
    ).fetchall()
    known = {Path(name): int(rows) for name, rows in counted}
    rows = {file: known[file] for file in table.files if known[file]}
    total = sum(rows.values())
    scans = [f"FROM read_parquet({file_list([file])})" for file in rows]
    threads = database.execute("SELECT current_setting('threads')").fetchone()[0]
    number = min(threads, -(-total // SHORTEST))
    if (
        number < 2
        or ROW in columns_of(database, "log")
        or len({str(columns_of(database, scan)) for scan in scans}) > 1  # they would not fit
    ):
        return []
    if len(rows) == 1:
        ends = [total * piece // number for piece in range(number + 1)]
        return [lane(list(rows), *piece) for piece in pairwise(ends)]
    lanes, before = dict[int, list[Path]](), 0.0
    for file, size in rows.items():  # each belongs to the lane of its middle
        lanes.setdefault(int((before + size / 2) / total * number), []).append(file)
        before += size
    return [lane(files, 0, rows[files[-1]]) for files in lanes.values()]
