"""Labels of JSON lines that cannot be told apart any more: numbers with a point or a power.

JSON has no 1.10, only the number 1.1: once read, both are the same. A string keeps what is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surestep.errors import InvalidLog
from surestep.io.log_tables import Table, file_list, named, quoted


def check_json_labels(table: Table, database: Any, columns: Sequence[str]) -> None:
    """Refuses the first label that is written as such a number, in a log of JSON lines."""
    if table.kind != "json":
        return
    every = [str(row[0]) for row in database.execute("DESCRIBE SELECT * FROM log").fetchall()]
    wrong = {name: f"coalesce(json_type({named(name)}) = 'DOUBLE', false)" for name in columns}
    for file in table.files:
        rows = json_rows(file, every)
        counts = ", ".join(f"count_if({condition})" for condition in wrong.values())
        found = database.execute(f"SELECT {counts} FROM {rows}").fetchone()
        for (name, condition), times in zip(wrong.items(), found, strict=True):
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
    kinds = ", ".join(f"{quoted(name)}: 'JSON'" for name in columns)
    paths = file_list([file])
    return f"read_json({paths}, format='newline_delimited', columns={{{kinds}}})"


def first_row(database: Any, rows: str, condition: str) -> int:
    """The number of the first row of which the condition holds."""
    database.execute("SET preserve_insertion_order = true")
    found = database.execute(
        f"SELECT min(row) FROM (SELECT *, row_number() OVER () AS row FROM {rows}) "
        f"WHERE {condition}"
    ).fetchone()
    return int(found[0])
