"""Small tables about labels: rows of text in the order they are written, from a file or memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.binning import Binning
from surestep.io.labelled_counts import Label
from surestep.io.log_columns import by_name, closest
from surestep.io.log_tables import find_table, named, opened
from surestep.io.vocabulary import label_text

Choose = Callable[[Sequence[str]], Sequence[str]]
Text = str | None  # None where a cell is empty
Locate = Callable[[Mapping[str, Label]], str]  # where a log has these labels, by role


class LabelTable(NamedTuple):
    """The chosen columns of a table, as text."""

    name: str  # for messages
    columns: tuple[str, ...]
    rows: list[tuple[Text, ...]]

    def labels(self, columns: slice, binnings: Mapping[str, Binning], names: Label) -> list[Label]:
        """The labels in some of the columns; `names` says which binnings belong to them."""
        texts = [
            self.texts(place, binnings.get(name))
            for place, name in zip(range(len(self.columns))[columns], names, strict=True)
        ]
        return list(zip(*texts, strict=True))

    def texts(self, place: int, binning: Binning | None) -> list[str]:
        """One column, in which every row says something; numbers are binned where they are bins."""
        column, cells = self.columns[place], [row[place] for row in self.rows]
        known = dict[Text, str]()
        for cell in dict.fromkeys(cells):
            try:
                if cell is None:
                    raise InvalidParameter(f"column {column!r}: found nothing, expected a label")
                known[cell] = label_text(column, cell, binning)
            except InvalidParameter as problem:
                row = cells.index(cell) + 1
                raise InvalidLog(f"{self.name}, row {row:,}, {problem}") from None
        return [known[cell] for cell in cells]


def read_label_table(source: object, choose: Choose) -> LabelTable:
    """The columns that `choose` picks among those there are, row by row."""
    table = find_table(source)
    with opened(table) as database:
        described = database.execute("DESCRIBE SELECT * FROM log").fetchall()
        try:
            columns = tuple(choose([str(row[0]) for row in described]))
        except InvalidLog as problem:
            raise InvalidLog(f"{table.name}: {problem}") from None
        database.execute("SET preserve_insertion_order = true")
        texts = ", ".join(f"CAST({named(column)} AS VARCHAR)" for column in columns)
        rows = database.execute(f"SELECT {texts} FROM log").fetchall()
    if not rows:
        raise InvalidLog(f"{table.name} has no row, expected at least one")
    return LabelTable(table.name, columns, rows)


def columns_of(role: str, wanted: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of a role: called as in the log, or, if it is one only, as the role often is."""
    missing = [name for name in wanted if name not in columns]
    if not missing:
        return tuple(wanted)
    found = by_name(role, columns) if len(wanted) == 1 else ()
    if not found:
        raise InvalidLog(
            f"there is no column {missing[0]!r}, which the {role} has in the log; "
            f"{closest(missing[0], columns)}"
        )
    return found


def nowhere(labels: Mapping[str, Label]) -> str:
    """Where counts have labels: they do not tell."""
    return ""


def found_at(place: str) -> str:
    """The place before a sentence, where it is known."""
    return f"{place}: " if place else ""


def others(count: int, nouns: str) -> str:
    """How many are affected, where it is more than the one that was named."""
    return "" if count == 1 else f"; {count:,} {nouns} are affected"
