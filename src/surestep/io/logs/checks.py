"""Faults of a row by itself, told with its file, row, column and value."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

from surestep.errors import InvalidLog
from surestep.io.logs import stamps
from surestep.io.logs.missing import advice as advice_where_missing
from surestep.io.logs.notation import advice
from surestep.io.logs.reward_tables import parsed, text_of
from surestep.io.logs.rewards import LARGEST_SCALE, LARGEST_SUM, RewardSql, Units
from surestep.io.logs.roles import STAMP, STEP, RoleSql
from surestep.io.logs.tables import Table
from surestep.io.sql import ROW, sql_name, sql_text


class Place(NamedTuple):
    """A value in a log."""

    where: str  # file, row and column
    text: str | None  # what is written there

    @property
    def value(self) -> str:
        """Returns what is there, in words."""
        return "nothing" if self.text is None else repr(self.text)

    @property
    def hint(self) -> str:
        """Returns how it could be read as a number, as the end of a sentence; else nothing."""
        words = advice(self.text)
        return f" ({words})" if words else ""


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
            if check.column == reward.column and table.reading.reward_table:
                raise unlisted(table, database, check.condition)
            place = first_where(table, database, check.condition, check.column)
            others = "" if rows == 1 else f"; {rows:,} rows are affected"
            hint = place.hint or advice_where_missing(check.column, place.text, check.missing)
            if check.expected in (STAMP, STEP):
                hint = stamps.advice(place.text)
            raise InvalidLog(
                f"{place.where}: found {place.value}, expected {check.expected}{hint}{others}"
            )
    scale, largest = totals[1:3]
    if scale > LARGEST_SCALE or largest * totals[0] * 10.0**scale >= LARGEST_SUM:
        place = first_where(table, database, f"{reward.digits} = {scale}", reward.column)
        raise InvalidLog(
            f"{place.where}: found {place.value}, which needs {scale} digits after the point; "
            f"{totals[0]:,} rewards of up to {largest:g} with that many cannot be added up "
            "exactly in 38 digits; round the rewards to fewer digits"
        )
    return reward.units(*totals[1:4])


def unlisted(table: Table, database: Any, unpaid: str) -> InvalidLog:
    """Returns the error for the values that most of the unpaid rows have, and no line fits."""
    for paying in map(parsed, table.reading.reward_table):
        texts = [*map(text_of, paying.columns)]
        condition = f"{unpaid} AND {paying.amount()} IS NULL"
        found = database.execute(
            f"SELECT count(*), {', '.join(texts)} FROM log WHERE {condition} "
            "GROUP BY ALL ORDER BY ALL DESC LIMIT 1"
        ).fetchone()
        if found is not None:
            break
    rows, *values = found
    same = [f"{text} = {sql_text(value)}" for text, value in zip(texts, values, strict=True)]
    column = paying.columns[0]
    place = first_where(table, database, " AND ".join([condition, *same]), column)
    here = [
        f"column {name!r} has the value {value!r}" if value else f"column {name!r} is empty"
        for name, value in zip(paying.columns, values, strict=True)
    ]
    lines = [", ".join(line) for line, _ in paying.lines]
    listed = difflib.get_close_matches(", ".join(values), lines, n=3) or lines[:3]
    return InvalidLog(
        f"{place.where.removesuffix(f', column {column!r}')}: {' and '.join(here)} "
        f"({rows:,} row{'s' if rows > 1 else ''}), which the reward table does not list; it lists "
        f"{', '.join(map(repr, listed))}{', …' if len(listed) < len(lines) else ''}"
    )


def no_row(table: Table) -> InvalidLog:
    """Returns the error for a log without rows."""
    return InvalidLog(f"{table.name} has no row, expected at least one decision")


def first_where(table: Table, database: Any, condition: str, column: str) -> Place:
    """Returns the first row of which the condition holds."""
    nowhere = Place(f"{table.name}, column {column!r}", "a value")
    return next(places_where(table, database, condition, column), nowhere)


def places_where(table: Table, database: Any, condition: str, column: str) -> Iterator[Place]:
    """Yields the rows of which the condition holds, at most two a file, in the files' order."""
    database.execute("SET preserve_insertion_order = true")
    for file in table.files or (None,):
        rows = table.scan(database, () if file is None else (file,), numbered=True)
        hits = database.execute(
            f"SELECT {ROW}, CAST({sql_name(column)} AS VARCHAR) FROM ({rows}) "
            f"WHERE {condition} ORDER BY {ROW} LIMIT 2"
        ).fetchall()
        for row, value in hits:
            where = f"{table.name if file is None else file}, row {row:,}, column {column!r}"
            yield Place(where, value)
