"""Writes a policy as policy.csv and as Parquet, and reads both.

A spreadsheet takes a cell that begins with = + - @ for a formula. So a label that begins so and is
no plain number gets an apostrophe before it. A label that begins with an apostrophe gets another
one, so that removing one apostrophe restores every label.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from surestep._arrays import AnyArray, freeze
from surestep._files import read_whole, temporary_folder
from surestep._words import escaped_cell
from surestep.errors import InvalidResult, SurestepError
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Label, Vocabulary, in_order
from surestep.io.sql import file_list, first_lines, in_memory, sql_name, sql_text
from surestep.model import Policy
from surestep.results.findings import PolicyTable

COLUMNS = {
    "probability": "DOUBLE",
    "behavior_probability": "DOUBLE",
    "visits": "BIGINT",
    "trusted": "BOOLEAN",
    "q": "DOUBLE",
    "advantage": "DOUBLE",
    "held_out_visits": "BIGINT",
    "advantage_low": "DOUBLE",
    "advantage_high": "DOUBLE",
    "n_wedge": "BIGINT",
    "allowed": "BOOLEAN",
}
NUMBERS = tuple(COLUMNS)
KEPT_BY = "kept_by"  # a column of texts, only if there are further signals
FIELDS = {"behavior_probability": "behavior"}  # fields with another name
OPTIONAL = ("trusted", "n_wedge", "allowed")
READ: dict[str, Callable[[str], Any]] = {
    "DOUBLE": float, "BIGINT": int, "BOOLEAN": {"true": True, "false": False}.__getitem__,
}  # fmt: skip
DTYPES = {"DOUBLE": np.float64, "BIGINT": np.int64, "BOOLEAN": np.bool_}


def file_columns(
    state_columns: Sequence[str], action_columns: Sequence[str], more: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of the state and action columns in the files: as in the log if unique.

    A name that occurs twice gets its role before it: 'state.visits'.
    """
    given = [name.lower() for name in (*state_columns, *action_columns, *NUMBERS, *more)]
    taken = {name for name in given if given.count(name) > 1}

    def free(role: str, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{role}.{name}" if name.lower() in taken else name for name in columns)

    return free("state", state_columns), free("action", action_columns)


def columns_of(table: PolicyTable) -> dict[str, AnyArray]:
    """Returns the columns of the files, with one row for each pair of a state with a decision."""
    rows = table.decided
    words = table.vocabulary
    columns = dict[str, AnyArray]()
    more = () if table.kept_by is None else (KEPT_BY,)
    named = file_columns(words.state_columns, words.action_columns, more)
    labelled = ((words.states, table.pairs.state), (words.actions, table.pairs.action))
    for names, (labels, index) in zip(named, labelled, strict=True):
        for i, name in enumerate(names):
            columns[name] = np.array([label[i] for label in labels], object)[index[rows]]
    for name in NUMBERS:
        value = getattr(table, FIELDS.get(name, name))
        one_for_all = not isinstance(value, np.ndarray)
        columns[name] = (np.full(rows.size, value, object) if one_for_all else value)[rows]
    if table.kept_by is not None:
        columns[KEPT_BY] = table.kept_by[rows].astype(object)
    return columns


def policy_csv(table: PolicyTable) -> bytes:
    """Returns the table as CSV; numbers are read back exactly, labels are no formulas."""
    columns = columns_of(table)
    texts = [
        list(map(escaped_cell, values))
        if name not in NUMBERS
        else ["" if value is None else json.dumps(value) for value in values]
        for name, values in ((name, values.tolist()) for name, values in columns.items())
    ]
    text = io.StringIO()
    writer = csv.writer(text)  # lines end as in RFC 4180, which makes it quote \r and \n
    writer.writerow([escaped_cell(name) for name in columns])
    writer.writerows(zip(*texts, strict=True))
    return text.getvalue().encode()


def policy_parquet(table: PolicyTable) -> bytes:
    """Returns the table as Parquet, with unescaped labels; equal tables give equal bytes."""
    columns = columns_of(table)
    cast = ", ".join(
        f"CAST({sql_name(name)} AS {COLUMNS.get(name, 'VARCHAR')}) AS {sql_name(name)}"
        for name in columns
    )
    with temporary_folder() as folder, in_memory(threads=1) as database:
        database.register("policy", columns)
        written = folder / "policy.parquet"
        database.execute(
            f"COPY (SELECT {cast} FROM policy) TO {sql_text(str(written))} (FORMAT parquet)"
        )
        return read_whole(written)


def policy_rows(table: PolicyTable) -> list[dict[str, object]]:
    """Returns the rows of the files as dictionaries of Python values."""
    columns = columns_of(table)
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def policy_parquet_rows(path: Path) -> list[dict[str, object]]:
    """Reads the rows of a file that `policy_parquet` wrote, as dictionaries."""
    import duckdb

    with in_memory(threads=1) as database:
        try:
            rows = database.execute(f"FROM read_parquet({file_list([path])})").fetchall()
            columns = [column[0] for column in database.description]
            return [dict(zip(columns, row, strict=True)) for row in rows]
        except duckdb.Error as problem:
            raise InvalidResult(f"{path} cannot be read: {first_lines(problem)}") from None


def read_policy_csv(
    text: str,
    state_columns: tuple[str, ...],
    action_columns: tuple[str, ...],
    binnings: Mapping[str, Binning],
    ends: Sequence[Label],
) -> PolicyTable:
    """Reads the table that `policy_csv` wrote; `ends` are the states without a decision."""
    width = len(state_columns)
    acting = width + len(action_columns)
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        more = header[acting + len(NUMBERS) :]
        named = chain(*file_columns(state_columns, action_columns, more))
        expected = [*map(escaped_cell, named), *NUMBERS, *more]
        if header != expected or more not in ([], [KEPT_BY]) or {*map(len, rows)} - {len(header)}:
            raise ValueError("expected columns of labels, and these: " + ", ".join(NUMBERS))
        labels = [tuple(cell.removeprefix("'") for cell in row[:acting]) for row in rows]
        states = dict.fromkeys(label[:width] for label in labels)
        actions = in_order({label[width:] for label in labels}, action_columns, binnings)
        words = Vocabulary(
            state_columns, action_columns, (*states, *ends), tuple(actions), binnings
        )
        enabled = [(words.state_places[x[:width]], words.action_places[x[width:]]) for x in labels]
        if enabled != sorted(set(enabled)):
            raise ValueError("a pair stands there twice, or the rows are not in order")
        pairs = words.pairs_of([*enabled, *((len(states) + i, 0) for i in range(len(ends)))])
        cells = zip(*(row[acting:] for row in rows), strict=True)
        values = {
            FIELDS.get(name, name): read_column(name, texts, len(ends))
            for name, texts in zip(header[acting:], cells, strict=True)
        }
        for name in ("probability", "behavior"):
            Policy(pairs, values[name])
    except (csv.Error, ValueError, LookupError, SurestepError) as problem:
        raise InvalidResult(
            f"policy.csv is not what `surestep improve` writes: {problem}"
        ) from None
    quiet = freeze(np.arange(pairs.num_states) >= len(states))
    return PolicyTable(words, pairs, quiet=quiet, **values)


def read_column(name: str, texts: Sequence[str], ends: int) -> Any:
    """Reads a column and appends values for the ends; None for an empty optional column."""
    if name in OPTIONAL and not any(texts):
        return None
    if name == KEPT_BY:
        return freeze(np.array([*(text.removeprefix("'") for text in texts), *[""] * ends]))
    values = [READ[COLUMNS[name]](text) for text in texts]
    if name == "n_wedge":
        (value,) = set(values)
        return value
    at_end = 1 if name.endswith("probability") else 0
    column: AnyArray = np.array([*values, *[at_end] * ends], DTYPES[COLUMNS[name]])
    if not np.isfinite(column).all() or (name.endswith("visits") and column.min() < 0):
        raise ValueError(f"column {name} holds what is no number of its kind")
    return freeze(column)
