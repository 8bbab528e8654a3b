"""Lists of all states or all actions: those that a log may show, also where it shows fewer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from surestep._files import read_path, read_whole
from surestep.errors import InvalidLog, InvalidParameter, ShapeMismatch
from surestep.io.binning import Binning
from surestep.io.label_table import (
    LabelTable,
    Locate,
    columns_of,
    found_at,
    nowhere,
    others,
    read_label_table,
)
from surestep.io.labelled_counts import Label, joined
from surestep.io.vocabulary import unknown_label


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
    found = table.labels(slice(None), binnings or {}, names)
    first = dict[Label, int]()
    for row, label in enumerate(found, start=1):
        if first.setdefault(label, row) != row:
            raise InvalidLog(
                f"{table.name}, row {row:,}: the {role} {joined(label)!r} is there again, after "
                f"row {first[label]:,}; expected each once"
            )
    return tuple(found)


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
) -> None:
    """Refuses a log with a label that the list does not have; `locate` finds the row at fault."""
    known = {label: index for index, label in enumerate(listed)}
    missing = [label for label in logged if label not in known]
    if missing:
        hint = unknown_label(role, columns, missing[0], known)
        raise ShapeMismatch(
            f"{found_at(locate({role: missing[0]}))}the log has the {role} "
            f"{joined(missing[0])!r}, which the list of {role}s does not have: {hint}"
            f"{others(len(missing), f'{role}s')}"
        )
