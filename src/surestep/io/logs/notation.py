"""Notations of numbers: with a decimal comma, with signs between thousands.

Only thousands in groups of three are taken for such: with a decimal comma and points between
thousands, 1.234,5 is a number, and 1.5 is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from surestep.errors import said
from surestep.io.sql import sql_name, sql_text

SPACES = "[ \u00a0\u202f]"  # with which exports separate thousands


class Notation(NamedTuple):
    """A way to write numbers."""

    decimal: str = "."
    thousands: str | None = None

    @property
    def signs(self) -> frozenset[tuple[str, str | None]]:
        """Returns what has to be said of it, sign by sign: all that is not as usual."""
        return frozenset(self._asdict().items()) - frozenset(PLAIN._asdict().items())

    @property
    def pattern(self) -> str:
        """Returns the regular expression of a number, which Python and DuckDB both know."""
        whole, point = "[0-9]+", re.escape(self.decimal)
        if self.thousands is not None:
            whole = f"(?:[0-9]{{1,3}}(?:{self.between}[0-9]{{3}})+|[0-9]+)"
        return rf"\s*[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?\s*"

    @property
    def between(self) -> str:
        """Returns the regular expression of what stands between thousands."""
        return SPACES if self.thousands == " " else re.escape(self.thousands or "")

    def reads(self, text: str) -> bool:
        """Tells whether a text is a number in this notation."""
        return re.fullmatch(self.pattern, text, re.ASCII) is not None

    def sql(self, column: str) -> str:
        """Returns SQL: the number in a column of text, as it is usually written.

        What is no number stays. What would be one in the usual notation only is marked, so that
        nobody takes it for a number.
        """
        name = sql_name(column)
        plain = name
        if self.thousands is not None:
            plain = f"regexp_replace({name}, {sql_text(self.between)}, '', 'g')"
        mark = f" (written without the decimal sign {self.decimal})"
        return (
            f"CASE WHEN regexp_full_match({name}, {sql_text(self.pattern)}) "
            f"THEN replace({plain}, {sql_text(self.decimal)}, '.') "
            f"WHEN regexp_full_match({name}, {sql_text(PLAIN.pattern)}) "
            f"THEN {name} || {sql_text(mark)} ELSE {name} END"
        )


@dataclass(frozen=True, slots=True)
class PlainNumbers:
    """Columns of text whose numbers are written in a notation, as numbers are usually written."""

    notation: Notation
    columns: tuple[str, ...]

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with plain numbers."""
        plain = [f"{self.notation.sql(name)} AS {sql_name(name)}" for name in self.columns]
        return f"SELECT * REPLACE ({', '.join(plain)}) FROM ({rows})"


PLAIN = Notation()  # a point, and nothing between thousands
OTHERS = (
    Notation(","),
    Notation(".", ","),
    Notation(",", "."),
    Notation(".", "'"),
    Notation(".", " "),
    Notation(",", " "),
)


def advice(text: str | None) -> str:
    """Returns with which signs a text that is no number would be one; empty where with none.

    >>> advice("1.234,5")
    "with decimal=',' and thousands='.' it is a number"
    """
    if text is None or PLAIN.reads(text):
        return ""
    ways = [notation.signs for notation in OTHERS if notation.reads(text)]
    # Where fewer signs do, more need not be said.
    short = [signs for signs in ways if not any(other < signs for other in ways)]
    words = [signs_said(signs) for signs in short]
    return f"with {' or '.join(words)} it is a number" if words else ""


def signs_said(signs: frozenset[tuple[str, str | None]]) -> str:
    """Returns how the signs of a notation are given."""
    given = sorted((name, str(sign)) for name, sign in signs)
    arguments = " and ".join(f"{name}={sign!r}" for name, sign in given)
    return said(arguments, " ".join(f"--{name} {quoted(sign)}" for name, sign in given))


def quoted(sign: str) -> str:
    """Returns a sign as one types it: in quotes where a shell would take it for something else."""
    return f'"{sign}"' if sign == "'" else f"'{sign}'" if sign == " " else sign
