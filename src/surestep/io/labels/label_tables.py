"""Small tables about labels: rows of text in the order they are written, from a file or memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray
from surestep._files import read_path, read_whole
from surestep.description import Description
from surestep.errors import InvalidLog, InvalidParameter, ShapeMismatch
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import Label, joined
from surestep.io.labels.vocabulary import label_text, unknown_label
from surestep.io.logs.columns import by_name, closest
from surestep.io.logs.tables import connected, find_table
from surestep.io.sql import sql_name

Choose = Callable[[Sequence[str]], Sequence[str]]
WITH_COMMA = r"\s*[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*"  # of decimals, maybe
OF_THOUSANDS = r"\s*[+-]?[0-9]{1,3},[0-9]{3}([eE][+-]?[0-9]+)?\s*"
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
                    raise InvalidParameter(f"column {column!r}: found nothing, expected a value")
                number = cell if binning is None else with_point(column, cell)
                known[cell] = label_text(column, number, binning)
            except InvalidParameter as problem:
                row = cells.index(cell) + 1
                raise InvalidLog(f"{self.name}, row {row:,}, {problem}") from None
        return [known[cell] for cell in cells]


def with_point(column: str, cell: str) -> str:
    """Returns a number with a decimal comma as it is usually written; all else as it is.

    Refused where the comma may be one between thousands.

    >>> with_point("age", "40,5"), with_point("age", "40 to < 60")
    ('40.5', '40 to < 60')
    """
    if not re.fullmatch(WITH_COMMA, cell, re.ASCII):
        return cell
    if re.fullmatch(OF_THOUSANDS, cell, re.ASCII):
        raise InvalidParameter(
            f"column {column!r}: found {cell!r}, expected a number, since the column is binned; "
            "its comma may be that of decimals or one between thousands: write a decimal point"
        )
    return cell.replace(",", ".")


def read_label_table(source: object, choose: Choose) -> LabelTable:
    """The columns that `choose` picks among those there are, row by row."""
    if isinstance(source, str | os.PathLike):
        table = find_table(Description(files=str(read_path(source))))
    else:
        table = find_table(Description(), source)
    with connected(table) as database:
        described = database.execute("DESCRIBE SELECT * FROM log").fetchall()
        try:
            columns = tuple(choose([str(row[0]) for row in described]))
        except InvalidLog as problem:
            raise InvalidLog(f"{table.name}: {problem}") from None
        database.execute("SET preserve_insertion_order = true")
        texts = ", ".join(f"CAST({sql_name(column)} AS VARCHAR)" for column in columns)
        rows = database.execute(f"SELECT {texts} FROM log").fetchall()
    if not rows:
        raise InvalidLog(f"{table.name} has no row, expected at least one")
    return LabelTable(table.name, columns, rows)


def columns_of(role: str, wanted: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of a role: called as in the log, or, if it is one only, as the role often is."""
    missing = [name for name in wanted if name not in columns]
    if not missing:
        return tuple(wanted)
    names = by_name(role, columns) if len(wanted) == 1 else ()
    if not names:
        raise InvalidLog(
            f"there is no column {missing[0]!r}, which the {role} has in the log; "
            f"{closest(missing[0], columns)}"
        )
    return names


def nowhere(labels: Mapping[str, Label]) -> str:
    """Returns no place: counts do not tell where a label was."""
    return ""


def found_at(place: str) -> str:
    """Returns the place as the beginning of a sentence, where it is known."""
    return f"{place}: " if place else ""


def others(count: int, nouns: str) -> str:
    """Returns how many are affected, in words, where it is more than the one that was named."""
    return "" if count == 1 else f"; {count:,} {nouns} are affected"


def places_or_none(known: Mapping[Label, int], labels: Sequence[Label]) -> IntArray:
    """Returns the place of each label, −1 for one that is unknown."""
    return np.array([known.get(label, -1) for label in labels], np.int64)


def read_label_list(
    source: object,
    role: str,
    columns: Sequence[str],
    binnings: Mapping[str, Binning] | None = None,
) -> tuple[Label, ...]:
    """The labels of a role, 'state' or 'action', in the order they are written.

    A table (CSV, Parquet, JSON lines, or in memory) has the columns of the log and one row a label;
    a text file (.txt) has one label a line, for a role of one column.
    """
    names = tuple(columns)
    if isinstance(source, str | os.PathLike) and read_path(source).suffix.lower() == ".txt":
        table = read_lines(source, role, names)
    else:
        table = read_label_table(source, lambda there: columns_of(role, names, there))
    labels = table.labels(slice(None), binnings or {}, names)
    first = dict[Label, int]()
    for row, label in enumerate(labels, start=1):
        if first.setdefault(label, row) != row:
            raise InvalidLog(
                f"{table.name}, row {row:,}: the {role} {joined(label)!r} is there again, after "
                f"row {first[label]:,}; expected each once"
            )
    return tuple(labels)


def read_lines(source: str | os.PathLike[str], role: str, columns: Label) -> LabelTable:
    """The lines of a text file as a table of one column."""
    path = read_path(source)
    if len(columns) > 1:
        raise InvalidParameter(
            f"{path} has one label a line, but the {role} has {len(columns)} columns "
            f"({', '.join(columns)}); expected a table with these columns"
        )
    try:
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidLog(f"{path} is not UTF-8; save it as UTF-8") from None
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if lines == [""]:
        raise InvalidLog(f"{path} is empty, expected one label a line")
    return LabelTable(str(path), columns, [(line or None,) for line in lines])


def check_listed(
    role: str,
    columns: Sequence[str],
    listed: Sequence[Label],
    logged: Sequence[Label],
    locate: Locate = nowhere,
    where: str = "",
) -> None:
    """Refuses a log with a label that is not listed; `locate` finds the row at fault.

    `where` says whose labels these are: by default those of a list that was given.
    """
    known = {label: index for index, label in enumerate(listed)}
    missing = [label for label in logged if label not in known]
    if missing:
        hint = unknown_label(role, columns, missing[0], known)
        raise ShapeMismatch(
            f"{found_at(locate({role: missing[0]}))}the log has the {role} "
            f"{joined(missing[0])!r}, which {where or f'the list of {role}s'} does not have: {hint}"
            f"{others(len(missing), f'{role}s')}"
        )
