"""Columns derived from the present and earlier rows of an episode, in a small language of our own.

    calls=count(event=call)   how many rows so far say so
    steps=count()             how many rows there were so far
    dose=sum(units)           the sum of a column so far
    last=previous(event)      the column in the row before; 'none' in the first row
    days=since(first)         time since the first row of the episode, in days where steps are time
                              stamps, else in steps
    quiet=since(event=call)   the same since the last row that said so; 'never' before it

Of columns that a decision has no knowledge of when it is made (the action, the reward, where it
led), only earlier rows count. No SQL of a user is ever run: names and values are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.logs.columns import ColumnMapping, closest, naming
from surestep.io.logs.stamps import STAMP
from surestep.io.sql import sql_name, sql_text

FORM = re.compile(r"([^=()]+)=(count|sum|previous|since)\((.*)\)")
FORMS = (
    "'calls=count(event=call)', 'dose=sum(units)', 'last=previous(event)', 'days=since(first)' or "
    "'quiet=since(event=call)'"
)
NONE, NEVER = "none", "never"
DAY = 86400.0


class Derived(NamedTuple):
    """A derived column: its name, what is computed, of which column, and of which value of it."""

    name: str
    verb: str
    column: str | None
    value: str | None


def read_derived(option: str) -> Derived:
    """Returns what an option such as 'calls=count(event=call)' says.

    >>> read_derived("calls=count(event=call)")
    Derived(name='calls', verb='count', column='event', value='call')
    """
    match = FORM.fullmatch(option.strip())
    if match is None:
        raise InvalidParameter(f"derive is {option!r}, expected {FORMS}")
    name, verb, inside = match[1].strip(), match[2], match[3].strip()
    column, equals, value = inside.partition("=")
    wants_value = verb == "count" or (verb == "since" and inside != "first")
    if not inside and verb == "count":
        return Derived(name, verb, None, None)
    if verb == "since" and inside == "first":
        return Derived(name, verb, None, None)
    if not column or bool(equals) != wants_value:
        raise InvalidParameter(f"derive is {option!r}, expected {FORMS}")
    return Derived(name, verb, column.strip(), value.strip() if equals else None)


@dataclass(frozen=True, slots=True)
class DerivedColumns:
    """Columns that are added to the rows, each from those of its episode so far."""

    derived: tuple[Derived, ...]
    mapping: ColumnMapping
    stamped: bool  # steps have time stamps beside them

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with these columns."""
        added = [f"{self.expression(each)} AS {sql_name(each.name)}" for each in self.derived]
        near = f"PARTITION BY {sql_name(str(self.mapping.episode))} ORDER BY {self.step}"
        return (
            f"SELECT *, {', '.join(added)} FROM ({rows}) WINDOW near AS ({near}), "
            f"so_far AS ({near} ROWS UNBOUNDED PRECEDING), "
            f"before AS ({near} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        )

    @property
    def step(self) -> str:
        """Returns SQL: the number of a step."""
        return f"TRY_CAST({sql_name(str(self.mapping.step))} AS DOUBLE)"

    @property
    def clock(self) -> str:
        """Returns SQL: the time of a row, in seconds or in steps."""
        return f"epoch({STAMP})" if self.stamped else self.step

    def since(self, past: str) -> str:
        """Returns SQL: the time that has passed since the time of another row, in days or steps."""
        passed = f"({self.clock} - {past})"
        return f"({passed} / {DAY!r})" if self.stamped else passed

    def window(self, column: str | None) -> str:
        """Returns the rows that count: not the present one, where its value is not yet known."""
        mapping = self.mapping
        later = {*mapping.action, mapping.reward, *mapping.next_state, mapping.terminated}
        later |= {mapping.truncated, mapping.behavior_prob}
        return "before" if column in later else "so_far"

    def expression(self, derived: Derived) -> str:
        """Returns SQL: the value of a derived column."""
        window, column = self.window(derived.column), derived.column
        if column is None:
            if derived.verb == "count":
                return "count(*) OVER so_far"
            return self.since(f"first_value({self.clock}) OVER so_far")
        name = sql_name(column)
        says = f"(CAST({name} AS VARCHAR) = {sql_text(derived.value or '')})"
        match derived.verb:
            case "count":
                return f"count(*) FILTER ({says}) OVER {window}"
            case "sum":
                total = f"sum(TRY_CAST({name} AS DOUBLE)) OVER {window}"
                return f"coalesce({total}, 0.0)"
            case "previous":
                return f"lag(CAST({name} AS VARCHAR), 1, {sql_text(NONE)}) OVER near"
            case _:
                passed = self.since(f"max({self.clock}) FILTER ({says}) OVER {window}")
                return f"coalesce(CAST({passed} AS VARCHAR), {sql_text(NEVER)})"


def check_derived(
    derived: Sequence[Derived], columns: Sequence[str], mapping: ColumnMapping
) -> None:
    """Refuses columns that are not there or there already, and logs without episodes."""
    names = list(columns)
    for each in derived:
        if each.name in names:
            raise InvalidLog(
                f"derive makes a column {each.name!r}, which there is; choose another name"
            )
        if each.column is not None and each.column not in columns:
            raise InvalidLog(
                f"derive {each.name} looks at column {each.column!r}, which there is not; "
                f"{closest(each.column, list(columns))}"
            )
        names.append(each.name)
    if derived and (mapping.episode is None or mapping.step is None):
        raise InvalidLog(
            "derived columns look at earlier rows of an episode, but there is no column of "
            f"episodes or of steps; name them with {naming('episode', 'step')}"
        )
