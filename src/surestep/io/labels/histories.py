"""Histories: states that are the last rows of an episode, with the actions between them.

A history of k rows is the present row and the k − 1 rows before it (Simão, Suilen and Jansen, AAAI
2023: the last k − 1 observations with their actions, and the present one). Its columns are those of
the present row, then for each earlier row, the latest first, those of its state and of its action:

    state, state 1 before, action 1 before, state 2 before, action 2 before

At the start of an episode there are fewer rows: where one is missing stands '(none)'. A text of a
log that is that itself, or that in brackets, has one more pair of brackets there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from surestep.errors import InvalidParameter, said

PADDING = "(none)"
LIKE_PADDING = r"\(+none\)+"  # as a regular expression, here and in SQL
AUTO = "auto"
MOST_ROWS = 50
Said = TypeVar("Said")


class Past(NamedTuple):
    """A column of an earlier row."""

    name: str
    column: str  # as the present row has it
    back: int  # rows


@dataclass(frozen=True, slots=True)
class History:
    """States of several rows, each with these columns."""

    rows: int  # k, the present one among them
    state: tuple[str, ...]
    action: tuple[str, ...]

    @property
    def past(self) -> tuple[Past, ...]:
        """Returns the columns of earlier rows, the latest first."""
        return tuple(
            Past(past_name(column, back), column, back)
            for back in range(1, self.rows)
            for column in (*self.state, *self.action)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns all columns of a state."""
        return (*self.state, *(each.name for each in self.past))

    @classmethod
    def among(cls, states: Sequence[str], actions: Sequence[str]) -> History | None:
        """Returns the history whose columns these are; None where a state is one row."""
        return history_of_columns(tuple(states), tuple(actions))


@lru_cache  # whoever acts asks for every state
def history_of_columns(states: tuple[str, ...], actions: tuple[str, ...]) -> History | None:
    """Returns the history whose columns these are; see `History.among`."""
    for rows in range(2, min(len(states), MOST_ROWS) + 1):
        width = (len(states) - (rows - 1) * len(actions)) // rows
        history = History(rows, states[: max(width, 0)], actions)
        if history.columns == states:
            return history
    return None


def past_name(column: str, back: int) -> str:
    """Returns what a column is called in the row so many rows before."""
    return f"{column} {back} before"


def present_columns(states: Sequence[str], actions: Sequence[str]) -> tuple[str, ...]:
    """Returns those of the columns of a state that are of the present row."""
    history = History.among(states, actions)
    return tuple(states) if history is None else history.state


def past_columns(states: Sequence[str], actions: Sequence[str]) -> dict[str, str]:
    """Returns the columns of earlier rows, each with the column of the present row it is like."""
    history = History.among(states, actions)
    return {} if history is None else {each.name: each.column for each in history.past}


def with_past(
    by_column: Mapping[str, Said], states: Sequence[str], actions: Sequence[str]
) -> dict[str, Said]:
    """Returns what is said of columns, said of those of earlier rows as well."""
    past = past_columns(states, actions)
    return {
        **by_column,
        **{name: by_column[column] for name, column in past.items() if column in by_column},
    }


def apart_from_padding(text: str) -> str:
    """Returns a text of a log as it stands in a column of earlier rows.

    >>> [apart_from_padding(text) for text in ("left", "(none)", "((none)")]
    ['left', '((none))', '(((none))']
    """
    return f"({text})" if re.fullmatch(LIKE_PADDING, text) else text


@dataclass(frozen=True, slots=True)
class Length:
    """The number of rows that a state is made of, as somebody gave it or as a log suggests it."""

    rows: int | None  # None: to be chosen
    # Where it was chosen: by held-out rows, that of 1, 2, … rows, on average over rows.
    log_likelihood: tuple[float, ...] = ()

    @classmethod
    def read(cls, given: object) -> Length:
        """Returns what a number, `auto` or the text of a choice says."""
        text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if text == AUTO:
            return cls(None)
        try:
            content = json.loads(text) if isinstance(text, str) else None
            if isinstance(content, dict):
                return cls.of_choice(content)
            rows = content
        except (ValueError, RecursionError):
            rows = None
        if type(rows) is not int or not 1 <= rows <= MOST_ROWS:
            raise InvalidParameter(
                f"{said('history', '--history')} is {given!r:.80}, expected 1 to {MOST_ROWS} rows, "
                f"or {AUTO!r}"
            )
        return cls(rows)

    @classmethod
    def of_choice(cls, content: dict[str, Any]) -> Length:
        """Returns the choice that `text` wrote; anything else is refused."""
        rows, told = content.get("rows"), content.get("log_likelihood")
        if len(content) != 2 or type(rows) is not int or not isinstance(told, list):
            raise ValueError("this is no choice")
        if not 1 <= rows <= len(told) or not all(type(each) is float for each in told):
            raise ValueError("the table of the choice lacks numbers")
        return cls(rows, tuple(told))

    @property
    def text(self) -> str:
        """Returns it as it is recorded."""
        if self.rows is None:
            return AUTO
        if not self.log_likelihood:
            return str(self.rows)
        return json.dumps({"rows": self.rows, "log_likelihood": list(self.log_likelihood)})
