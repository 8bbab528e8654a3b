"""Rewards by a small table: which value of a column of the log pays what.

A table has the names of columns of the log, and `reward` last. A row of the log gets the reward of
the first line whose values are its own; '*' stands for anything, and an empty cell for nothing.
Several tables add up, such as what an action costs and what an end pays. A table is given as a file
or as its text; what is recorded is the text, so that a result can be made again without the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from surestep._files import read_path, read_whole
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.logs.columns import closest
from surestep.io.sql import sql_name, sql_text

REWARD = "reward"
ANYTHING = "*"
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
MOST_LINES = 1000
MOST_DIGITS = 10  # after the point, so that sums are exact


@dataclass(frozen=True, slots=True)
class RewardTable:
    """The lines of a table: values of columns, and what they pay."""

    columns: tuple[str, ...]
    lines: tuple[tuple[tuple[str, ...], str], ...]

    def amount(self) -> str:
        """Returns SQL: what a row is paid, NULL where no line fits."""
        cases = []
        for values, paid in self.lines:
            fits = [
                f"{text_of(column)} = {sql_text(value)}"
                for column, value in zip(self.columns, values, strict=True)
                if value != ANYTHING
            ]
            cases.append(f"WHEN {' AND '.join(fits) or 'true'} THEN {sql_text(paid)}")
        return f"CAST(CASE {' '.join(cases)} END AS DECIMAL(28, {MOST_DIGITS}))"


def text_of(column: str) -> str:
    """Returns SQL: the text of a column without blanks around it, empty where nothing is."""
    return f"coalesce(trim(CAST({sql_name(column)} AS VARCHAR)), '')"


def table_text(given: str) -> str:
    """Returns the text of a table, which is given as such or as a file; it is checked."""
    if "\n" in given:
        parsed(given, "the reward table")
        return given
    file = read_path(given)
    try:
        text = read_whole(file).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InvalidParameter(f"{file} is no CSV in UTF-8: {problem}") from None
    parsed(text, str(file))
    return text.replace("\r\n", "\n").rstrip("\n") + "\n"


def parsed(text: str, file: str = "the reward table") -> RewardTable:
    """Returns the table of a text, checking every line; `file` is its name in messages."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as problem:
        raise InvalidParameter(f"{file} is no CSV: {problem}") from None
    if not rows or len(rows[0]) < 2 or rows[0][-1].strip() != REWARD:
        raise InvalidParameter(
            f"{file} does not begin with names of columns of the log and {REWARD!r} last, such as "
            "'decision,reward'"
        )
    columns = tuple(name.strip() for name in rows[0][:-1])
    lines = dict[tuple[str, ...], str]()
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(rows[0]):
            raise InvalidParameter(
                f"{file}, line {number} has {len(row)} cells, expected {len(rows[0])}"
            )
        values, paid = tuple(cell.strip() for cell in row[:-1]), row[-1].strip()
        digits = paid.partition(".")[2]
        if not NUMBER.fullmatch(paid) or len(digits) > MOST_DIGITS or abs(Decimal(paid)) >= 1e15:
            raise InvalidParameter(
                f"{file}, line {number}, column {REWARD!r}: found {paid!r}, expected a number of "
                f"up to {MOST_DIGITS} digits after the point"
            )
        if values in lines:
            raise InvalidParameter(f"{file}, line {number} says again what {values} pay")
        lines[values] = paid
    if not 1 <= len(lines) <= MOST_LINES:
        raise InvalidParameter(f"{file} has {len(lines)} lines, expected 1 to {MOST_LINES:,}")
    return RewardTable(columns, tuple(lines.items()))


@dataclass(frozen=True, slots=True)
class RewardsByTable:
    """Rewards that tables say, added up; a row that a table says nothing of has none."""

    tables: tuple[RewardTable, ...]

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with their rewards."""
        total = " + ".join(table.amount() for table in self.tables)
        return f"SELECT *, {total} AS {sql_name(REWARD)} FROM ({rows})"


def check_reward_tables(
    tables: Sequence[RewardTable], columns: Sequence[str], chosen: Mapping[str, object]
) -> None:
    """Refuses tables of columns that there are not, and rewards from two places."""
    if not tables:
        return
    named = chosen.get(REWARD) or REWARD
    column = named if isinstance(named, str) else next(iter(named))  # type: ignore[call-overload]
    if column in columns or column != REWARD:
        raise InvalidLog(
            f"rewards come from a table and from column {column!r}; expected one of them"
        )
    for table in tables:
        for column in table.columns:
            if column not in columns:
                raise InvalidLog(
                    f"the reward table pays by column {column!r}, which there is not; "
                    f"{closest(column, list(columns))}"
                )
