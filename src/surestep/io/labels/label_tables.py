"""Small tables about labels, from a file or memory: lists, pairs, and policies are read by it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray
from surestep._files import read_path, read_whole
from surestep.description import Description
from surestep.errors import InvalidLog, InvalidParameter, ShapeMismatch
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import Label, joined
from surestep.io.labels.vocabulary import label_text, unknown_label
from surestep.io.logs.columns import ROLES, closest
from surestep.io.logs.tables import connected, find_table, named_in_errors, types_of
from surestep.io.sql import as_texts

PROBABILITY = ("probability", "prob", "p", "behavior_prob", "pscore")
Locate = Callable[[Mapping[str, Label]], str]  # where a log has these labels, by role
Text = str | None  # None where a cell is empty


class LabelTable(NamedTuple):
    """The labels of a table in the order of its rows, and its probabilities as text."""

    name: str  # for messages
    labels: dict[str, list[Label]]  # by role
    column: str  # of the probabilities, or of what comes last
    last: list[str]  # its texts


def read_label_table(
    source: object, roles: Mapping[str, Sequence[str]], binnings: Mapping[str, Binning] | None
) -> LabelTable:
    """Reads the columns of each role: 'state' and 'action' as in the log, or 'probability'.

    A role of one column may have it under a usual name. Every cell says something, and no labels
    are there twice. In a binned column stand numbers or labels of bins. A text file (.txt) of a
    single column has one label a line.
    """
    wanted = [(role, column) for role, columns in roles.items() for column in columns]
    is_path = isinstance(source, str | os.PathLike)
    if is_path and len(wanted) == 1 and read_path(source).suffix.lower() == ".txt":
        name, columns, rows = str(source), [wanted[0][1]], lines_of(read_path(source))
    else:
        name, columns, rows = read_cells(source, roles)
    texts: dict[str, list[list[str]]] = {role: [] for role in roles}
    for (role, asked), column, cells in zip(wanted, columns, zip(*rows, strict=True), strict=True):
        binning = (binnings or {}).get(asked) if role in ROLES else None
        texts[role].append(texts_of(name, column, list(cells), binning))
    labels = {role: [*zip(*texts[role], strict=True)] for role in roles if role in ROLES}
    check_each_once(name, labels)
    return LabelTable(name, labels, columns[-1], texts[role][-1])


def lines_of(path: Path) -> list[tuple[Text, ...]]:
    """Returns the lines of a text file as rows of one column."""
    try:
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidLog(f"{path} is not UTF-8; save it as UTF-8") from None
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    return [(line or None,) for line in lines]


def read_cells(
    source: object, roles: Mapping[str, Sequence[str]]
) -> tuple[str, list[str], list[tuple[Text, ...]]]:
    """Returns the name of a table, its columns of these roles, and their cells row by row."""
    if isinstance(source, str | os.PathLike):
        table = find_table(Description(files=str(read_path(source))))
    else:
        table = find_table(Description(), source)
    with connected(table) as database:
        there = [*types_of(database)]
        with named_in_errors(table):
            found = [usual_columns(role, columns, there) for role, columns in roles.items()]
        columns = [column for each in found for column in each]
        database.execute("SET preserve_insertion_order = true")
        rows = database.execute(f"SELECT {as_texts(columns)} FROM log").fetchall()
    if not rows:
        raise InvalidLog(f"{table.name} has no row, expected at least one")
    return table.name, columns, rows


def usual_columns(role: str, wanted: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
    """Returns the columns of a role: those wanted, or, if it is one only, one of a usual name."""
    missing = [name for name in wanted if name not in columns]
    if not missing:
        return wanted
    usual = ROLES[role].aliases if role in ROLES else PROBABILITY
    near = [name for name in columns if name.lower() in usual and len(wanted) == 1]
    if usual[0] in near:
        near = [usual[0]]
    if len(near) > 1:
        raise InvalidLog(
            f"the {role} may be column {' or '.join(map(repr, near))}; call the right one "
            f"{missing[0]!r}"
        )
    if not near:
        raise InvalidLog(
            f"there is no column {missing[0]!r} for the {role}; {closest(missing[0], columns)}"
        )
    return near


def texts_of(name: str, column: str, cells: list[Text], binning: Binning | None) -> list[str]:
    """Returns a column in which every row says something; numbers are binned where it is."""
    known = dict[Text, str]()
    for cell in dict.fromkeys(cells):
        try:
            if cell is None:
                raise InvalidParameter(f"column {column!r}: found nothing, expected a value")
            if binning is not None and "," in cell:
                raise InvalidParameter(
                    f"column {column!r}: found {cell!r}, expected a number with a decimal point, "
                    "since the column is binned"
                )
            known[cell] = label_text(column, cell, binning)
        except InvalidParameter as problem:
            row = cells.index(cell) + 1
            raise InvalidLog(f"{name}, row {row:,}, {problem}") from None
    return [known[cell] for cell in cells]


def check_each_once(name: str, labels: Mapping[str, list[Label]]) -> None:
    """Refuses a row whose labels are those of an earlier one."""
    first = dict[tuple[Label, ...], int]()
    for row, each in enumerate(zip(*labels.values(), strict=True), start=1):
        if first.setdefault(each, row) != row:
            pairs = zip(labels, map(joined, each), strict=True)
            raise InvalidLog(
                f"{name}, row {row:,}: {', '.join(f'{role} {text!r}' for role, text in pairs)} is "
                f"there again, after row {first[each]:,}; expected each once"
            )


def read_label_list(
    source: object, role: str, columns: Sequence[str], binnings: Mapping[str, Binning] | None = None
) -> tuple[Label, ...]:
    """Returns the labels of a role, 'state' or 'action', in the order they are written.

    A table (CSV, Parquet, JSON lines, or in memory) has the columns of the log and one row a label;
    a text file (.txt) has one label a line, for a role of one column.
    """
    return tuple(read_label_table(source, {role: columns}, binnings).labels[role])


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
