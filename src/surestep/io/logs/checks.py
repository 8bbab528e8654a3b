"""Faults of a row by itself, told with its file, row, column and value."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from surestep.errors import InvalidLog
from surestep.io.logs import stamps
from surestep.io.logs.rewards import LARGEST_SCALE, LARGEST_SUM, RewardSql, Units
from surestep.io.logs.roles import STAMP, STEP, Check, RoleSql
from surestep.io.logs.tables import Table
from surestep.io.sql import ROW, as_texts


class Place(NamedTuple):
    """A value in a log."""

    where: str  # file, row and column
    text: str | None  # what is written there

    def __str__(self) -> str:
        """Returns the place and what is there, in words."""
        return f"{self.where}: found {'nothing' if self.text is None else repr(self.text)}"


def check_rows(table: Table, database: Any, roles: RoleSql, reward: RewardSql) -> Units:
    """Refuses the first row that makes no sense; returns the units that exact sums need."""
    checks = roles.checks(reward.is_number)
    troubles = [f"count_if({check.condition})" for check in checks]
    columns = ["count(*)", *reward.needs(), *troubles]
    totals = database.execute(f"SELECT {', '.join(columns)} FROM log").fetchone()
    if totals[0] == 0:
        raise no_row(table)
    for check, rows in zip(checks, totals[4:], strict=True):
        if rows:
            raise refusal(table, database, check, rows)
    scale, largest = totals[1:3]
    if scale > LARGEST_SCALE or largest * totals[0] * 10.0**scale >= LARGEST_SUM:
        found = first_where(table, database, f"{reward.digits} = {scale}", reward.column)
        raise InvalidLog(
            f"{found or table.name}, which needs {scale} digits after the point; "
            f"{totals[0]:,} rewards of up to {largest:g} with that many cannot be added up "
            "exactly in 38 digits; round the rewards to fewer digits"
        )
    return reward.units(*totals[1:4])


def refusal(table: Table, database: Any, check: Check, rows: int) -> InvalidLog:
    """Returns the error for the first of so many rows that fail a check."""
    place = first_where(table, database, check.condition, check.column)
    text = None if place is None else place.text
    hint = stamps.advice(text) if check.expected in (STAMP, STEP) else advice(text)
    others = "" if rows == 1 else f"; {rows:,} rows are affected"
    return InvalidLog(f"{place or table.name}, expected {check.expected}{hint}{others}")


def advice(text: str | None) -> str:
    """Returns what can be done about a value that cannot be used, as the end of a sentence."""
    if text is None or text.strip().lower() in ("", "nan"):
        return " (leave such rows out, or give them a value, in the query of a description)"
    if re.fullmatch(r"\s*[+-]?[0-9][0-9.,' \u00a0\u202f]*", text):
        return " (write it with a decimal point only, in the query of a description)"
    return ""


def no_row(table: Table) -> InvalidLog:
    """Returns the error for a log without rows."""
    return InvalidLog(f"{table.name} has no row, expected at least one decision")


def first_where(table: Table, database: Any, condition: str, column: str) -> Place | None:
    """Returns the first row of which the condition holds, in the order of the files."""
    database.execute("SET preserve_insertion_order = true")
    for file in table.files or (None,):
        rows = table.scan(database, () if file is None else (file,), numbered=True)
        hit = database.execute(
            f"SELECT {ROW}, {as_texts([column])}, {table.raw_row} FROM ({rows}) "
            f"WHERE {condition} ORDER BY {ROW} LIMIT 1"
        ).fetchone()
        if hit is not None:
            before = "" if hit[2] is None else f" ({table.raw_place(database, hit[2])})"
            where = f"{table.name_of(file)}, row {hit[0]:,}{before}, column {column!r}"
            return Place(where, hit[1])
    return None
