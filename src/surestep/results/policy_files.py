"""A policy as plain files: policy.csv, which any program reads, and the same as Parquet.

A spreadsheet takes a cell that begins with = + - @ for a formula. A label that begins so, and is no
plain number, is written with an apostrophe before it; so is one that begins with an apostrophe, so
that taking one away gives back every label.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray
from surestep._files import read_whole, temporary_folder
from surestep.errors import InvalidPolicy, InvalidResult
from surestep.io.labels.binning import Binning
from surestep.io.labels.label import Label
from surestep.io.labels.vocabulary import Vocabulary, in_order
from surestep.io.sql import file_list, first_lines, in_memory, sql_name, sql_text
from surestep.model import Pairs, Policy
from surestep.results.table import PolicyTable

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
FORMULA = re.compile(r"[=+\-@\t\r\n']")
PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def file_columns(
    state_columns: Sequence[str], action_columns: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of state and action in the files: as in the log, unless a name would be twice.

    A name that is taken gets its role before it: 'state.visits'.
    """
    given = [name.lower() for name in (*state_columns, *action_columns, *NUMBERS)]
    taken = {name for name in given if given.count(name) > 1}

    def free(role: str, columns: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{role}.{name}" if name.lower() in taken else name for name in columns)

    return free("state", state_columns), free("action", action_columns)


def columns_of(table: PolicyTable) -> dict[str, AnyArray]:
    """All columns of the files, one row a pair in which something is decided."""
    rows = table.decided
    words = table.vocabulary
    states, actions = file_columns(words.state_columns, words.action_columns)
    state, action = table.pairs.state[rows], table.pairs.action[rows]
    columns: dict[str, AnyArray] = {}
    for names, labels, index in (
        (states, words.states, state),
        (actions, words.actions, action),
    ):
        for i, name in enumerate(names):
            columns[name] = np.array([label[i] for label in labels], object)[index]
    nothing = np.full(rows.size, None, object)
    trusted = nothing if table.trusted is None else table.trusted
    values = (
        *(table.probability, table.behavior, table.visits, trusted, table.q, table.advantage),
        *(table.held_out_visits, table.advantage_low, table.advantage_high),
        np.full(rows.size, table.n_wedge, object),
        nothing if table.allowed is None else table.allowed,
    )
    columns |= {name: value[rows] for name, value in zip(NUMBERS, values, strict=True)}
    return columns


def policy_csv(table: PolicyTable) -> bytes:
    """The table as CSV; numbers as the shortest text that means them, labels safe to open."""
    columns = columns_of(table)
    texts = [
        list(map(escaped_cell, values)) if name not in NUMBERS else list(map(number_cell, values))
        for name, values in ((name, values.tolist()) for name, values in columns.items())
    ]
    text = io.StringIO()
    writer = csv.writer(text)  # lines end as in RFC 4180, which makes it quote \r and \n
    writer.writerow([escaped_cell(name) for name in columns])
    writer.writerows(zip(*texts, strict=True))
    return text.getvalue().encode()


def number_cell(value: object) -> str:
    """A number, true or false, or nothing."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def escaped_cell(label: str) -> str:
    """A label that no spreadsheet takes for a formula.

    >>> [escaped_cell(label) for label in ("ward", "-3", "=A1", "'quoted'")]
    ['ward', '-3', "'=A1", "''quoted'"]
    """
    harmless = not FORMULA.match(label) or PLAIN_NUMBER.fullmatch(label)
    return label if harmless else f"'{label}"


def policy_parquet(table: PolicyTable) -> bytes:
    """The table as Parquet, labels as they are; equal tables give equal bytes."""
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


def policy_rows(table: PolicyTable) -> list[tuple[object, ...]]:
    """The rows of the files, as Python values."""
    return [*zip(*(values.tolist() for values in columns_of(table).values()), strict=True)]


def policy_parquet_rows(path: Path) -> list[tuple[object, ...]]:
    """The rows of a file that `policy_parquet` wrote."""
    import duckdb

    with in_memory(threads=1) as database:
        try:
            scan = f"SELECT * FROM read_parquet({file_list([path])})"
            return list(database.execute(scan).fetchall())
        except duckdb.Error as problem:
            raise InvalidResult(f"{path} cannot be read: {first_lines(problem)}") from None


def read_policy_csv(
    text: str,
    state_columns: tuple[str, ...],
    action_columns: tuple[str, ...],
    binnings: Mapping[str, Binning],
    ends: Sequence[Label],
) -> PolicyTable:
    """The table that `policy_csv` wrote; `ends` are the states in which nothing is decided."""
    named_so = file_columns(state_columns, action_columns)
    expected = [*(name for names in named_so for name in names), *NUMBERS]
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as problem:
        raise InvalidResult(f"policy.csv is no CSV: {problem}") from None
    if not rows or [raw_label(name) for name in rows[0]] != expected:
        raise InvalidResult(f"policy.csv does not begin with the columns {', '.join(expected)}")
    width, acting = len(state_columns), len(action_columns)
    states, actions, numbers = dict[Label, int](), set[Label](), list[list[str]]()
    owner, taken = list[int](), list[Label]()
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(expected):
            raise InvalidResult(
                f"policy.csv, row {line} has {len(row)} cells, expected {len(expected)}"
            )
        labels = tuple(map(raw_label, row[: width + acting]))
        owner.append(states.setdefault(labels[:width], len(states)))
        taken.append(labels[width:])
        actions.add(labels[width:])
        numbers.append(row[width + acting :])
    known = tuple(in_order(actions, action_columns, binnings))
    vocabulary = Vocabulary(state_columns, action_columns, (*states, *ends), known, binnings)
    place = {label: index for index, label in enumerate(vocabulary.actions)}
    enabled = [*zip(owner, (place[label] for label in taken), strict=True)]
    enabled += [(len(states) + i, 0) for i in range(len(ends))]
    return with_numbers(vocabulary, enabled, numbers, len(ends))


def with_numbers(
    vocabulary: Vocabulary, enabled: list[tuple[int, int]], cells: list[list[str]], ends: int
) -> PolicyTable:
    """The table of the enabled pairs, the last of which are those of the ends, one each."""
    if enabled != sorted(set(enabled)):
        raise InvalidResult("policy.csv has a pair twice, or its rows are not in order")
    pairs = vocabulary.pairs_of(enabled)

    def texts(name: str) -> list[str]:
        return [row[NUMBERS.index(name)] for row in cells]

    def column(name: str, at_end: float = 0.0) -> FloatArray:
        try:
            given = [float(text) for text in texts(name)]
        except ValueError as problem:
            raise InvalidResult(f"policy.csv, column {name}: {problem}") from None
        values = arrays.freeze(np.array([*given, *[at_end] * ends], float))
        if not np.isfinite(values).all():
            raise InvalidResult(f"policy.csv, column {name} holds what is no number")
        return values

    def visits(name: str) -> IntArray:
        values = column(name)
        if (values < 0).any() or (values % 1 != 0).any():
            raise InvalidResult(f"policy.csv, column {name} holds what is no number of visits")
        return arrays.freeze(values.astype(np.int64))

    def flags(name: str) -> BoolArray | None:
        said = [{"true": True, "false": False, "": None}.get(text, text) for text in texts(name)]
        known = set(said)
        if known != {None} and not known <= {True, False}:
            raise InvalidResult(f"policy.csv, column {name} holds {sorted(map(str, known))}")
        return (
            None if known == {None} else arrays.freeze(np.array([*said, *[False] * ends], np.bool_))
        )

    for name in ("probability", "behavior_probability"):
        check_policy(name, pairs, column(name, 1.0))
    quiet = np.arange(pairs.num_states) >= pairs.num_states - ends
    return PolicyTable(
        vocabulary,
        pairs,
        column("probability", 1.0),
        column("behavior_probability", 1.0),
        visits("visits"),
        flags("trusted"),
        column("q"),
        column("advantage"),
        arrays.freeze(quiet),
        visits("held_out_visits"),
        column("advantage_low"),
        column("advantage_high"),
        n_wedge_of(texts("n_wedge")),
        flags("allowed"),
    )


def n_wedge_of(texts: Sequence[str]) -> int | None:
    """Returns the N∧ that stands in every row; None where nothing does."""
    distinct = set(texts)
    if distinct <= {""}:
        return None
    (text, *others) = distinct
    if others or not text.isascii() or not text.isdecimal():
        raise InvalidResult(f"policy.csv, column n_wedge holds {', '.join(sorted(distinct))}")
    return int(text)


def check_policy(name: str, pairs: Pairs, probability: FloatArray) -> None:
    """Refuses probabilities that are no policy."""
    try:
        Policy(pairs, probability)
    except InvalidPolicy as problem:
        raise InvalidResult(f"policy.csv, column {name}: {problem}") from None


def raw_label(cell: str) -> str:
    """The label that `escaped_cell` wrote."""
    return cell.removeprefix("'")
