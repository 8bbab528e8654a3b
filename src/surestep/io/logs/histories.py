"""States that are the last rows of an episode: columns of earlier rows beside those of the present.

Earlier rows are looked at as texts, those that a row would have as labels, so that what is missing
at the start of an episode is one more text. Of a column that is binned the number is kept, and
not-a-number stands for what is missing there: only counting knows the bins of quantiles.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from surestep.errors import InvalidLog
from surestep.io.labels.bin_rules import number_sql
from surestep.io.labels.histories import LIKE_PADDING, PADDING, History, Past, past_name
from surestep.io.labels.label import Label
from surestep.io.logs.columns import ColumnMapping, names, naming
from surestep.io.logs.reading import Reading
from surestep.io.logs.roles import RoleSql, code_of
from surestep.io.sql import sql_name, sql_text

NOTHING = "CAST('nan' AS DOUBLE)"  # of a column of numbers: there is no such row
NEXT = "next "  # before the name of a column: as it will be in the next row


def history_of(mapping: ColumnMapping, rows: int, columns: Collection[str]) -> History:
    """Returns the history of so many rows, whose columns are to be new ones."""
    if mapping.episode is None or mapping.step is None:
        raise InvalidLog(
            f"a state is to be the last {rows} rows of its episode, but there is no column of "
            f"episodes or of steps; name them with {naming('episode', 'step')}"
        )
    history = History(rows, mapping.state, mapping.action)
    taken = [name for name in history.columns[len(mapping.state) :] if name in columns]
    if taken:
        raise InvalidLog(
            f"a history makes a column {taken[0]!r}, which there is; choose another name"
        )
    return history


def with_history(mapping: ColumnMapping, history: History) -> ColumnMapping:
    """Returns the columns of a log with those of earlier rows among the state's."""
    following = tuple(f"{NEXT}{each.name}" for each in history.past)
    following = (*mapping.next_state, *following) if mapping.next_state else ()
    return replace(mapping, state=history.columns, next_state=following)


def columns_in_files(
    chosen: Mapping[str, str | Sequence[str]], reading: Reading
) -> Mapping[str, str | Sequence[str]]:
    """Returns columns that were chosen, by role, without those that a history adds to a log."""
    rows = reading.history_length.rows or 1
    given = {role: names(role, columns) for role, columns in chosen.items() if rows > 1}
    history = History.among(given.get("state", ()), given.get("action", ()))
    if history is None or history.rows != rows:
        return chosen
    following = given.get("next_state", ())[: len(history.state)]
    kept = given | {"state": history.state, "next_state": following}
    return {role: columns for role, columns in kept.items() if columns}


@dataclass(frozen=True, slots=True)
class HistoryColumns:
    """Rows with the columns of the rows before them, and of what these will be a step later."""

    history: History
    mapping: ColumnMapping  # of single rows
    types: Mapping[str, str]
    binned: frozenset[str]  # columns
    in_order: bool = False  # rows are taken to lie in the order of episodes and steps

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with these columns."""
        episode = sql_name(str(self.mapping.episode))
        step = f"TRY_CAST({sql_name(str(self.mapping.step))} AS DOUBLE)"
        near = "" if self.in_order else f"PARTITION BY {episode} ORDER BY {step}"
        earlier = [f"{self.lagged(each)} AS {sql_name(each.name)}" for each in self.history.past]
        lagged = f"SELECT *, {', '.join(earlier)} FROM ({rows}) WINDOW near AS ({near})"
        if not self.mapping.next_state:
            return lagged
        later = [
            f"{self.following(each)} AS {sql_name(NEXT + each.name)}" for each in self.history.past
        ]
        return f"SELECT *, {', '.join(later)} FROM ({lagged})"

    def lagged(self, past: Past) -> str:
        """Returns SQL: what the earlier row has, or what stands where there is none."""
        there = f"lag({self.value(past.column)}, {past.back}, {self.padding(past)}) OVER near"
        if not self.in_order:
            return there
        episode = sql_name(str(self.mapping.episode))
        same = f"lag({episode}, {past.back}) OVER near = {episode}"
        return f"CASE WHEN {same} THEN {there} ELSE {self.padding(past)} END"

    def padding(self, past: Past) -> str:
        """Returns SQL: what stands where there is no such row."""
        return NOTHING if past.column in self.binned else sql_text(PADDING)

    def value(self, column: str) -> str:
        """Returns SQL: what later rows know of a column."""
        kind = self.types[column]
        if column in self.binned:
            return f"({number_sql(column, kind)})"
        text = f"CAST({code_of(column, kind).sql} AS VARCHAR)"
        if kind != "VARCHAR":
            return text
        alike = f"starts_with({text}, '(') AND regexp_full_match({text}, {sql_text(LIKE_PADDING)})"
        return f"CASE WHEN {alike} THEN '(' || {text} || ')' ELSE {text} END"

    def following(self, past: Past) -> str:
        """Returns SQL: what a column will be in the next row; nothing where that is unknown.

        Where the episode is over, nobody looks back: ends stay as few as they are.
        """
        roles = RoleSql.of(self.mapping, self.types, {})
        here = self.value(past.column)
        if past.back > 1:
            here = sql_name(past_name(past.column, past.back - 1))
        over = f"coalesce({roles.flag(self.mapping.terminated)}, false)"
        return (
            f"CASE WHEN {roles.no_next} THEN NULL WHEN {over} THEN {self.padding(past)} "
            f"ELSE {here} END"
        )


def check_long_enough(
    states: Collection[Label], columns: Sequence[str], actions: Sequence[str]
) -> None:
    """Refuses states of more rows than any episode has."""
    history = History.among(columns, actions)
    if history is None:
        return
    places = [columns.index(each.name) for each in history.past]
    width = len(history.state) + len(history.action)
    longest = max((rows_of(state, places[::width]) for state in states), default=1)
    if longest < history.rows:
        raise InvalidLog(
            f"a state is to be the last {history.rows} rows of its episode, but no episode has "
            f"more than {longest}; expected a history of 1 to {longest} rows"
        )


def rows_of(state: Label, firsts: Sequence[int]) -> int:
    """Counts the rows of a state; `firsts` are the places where earlier ones begin."""
    return 1 + sum(state[place] != PADDING for place in firsts)
