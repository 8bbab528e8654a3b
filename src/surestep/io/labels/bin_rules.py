"""Rules by which users have a column of numbers binned, and the bins that this means in a log.

Edges and widths are bins at once. Quantiles need the column: its distinct values with how often
they occur, all of them, so that the same log has the same bins however it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.description import Bin
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.labels.binning import Binning, written
from surestep.io.logs.columns import closest
from surestep.io.sql import sql_name

DECIMAL = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"


@dataclass(frozen=True, slots=True)
class Quantiles:
    """About equally many rows in each of `number` bins."""

    number: int


BinRule = Quantiles | Binning


def rules_of(bins: Mapping[str, Bin]) -> dict[str, BinRule]:
    """Returns the rules of columns that a description bins, but for states that are learnt."""
    rules = dict[str, BinRule]()
    for column, rule in bins.items():
        if rule.quantiles is not None:
            rules[column] = Quantiles(rule.quantiles)
        elif rule.edges is not None or rule.width is not None:
            try:
                rules[column] = Binning(edges=rule.edges, width=rule.width)
            except InvalidParameter as problem:
                raise InvalidParameter(f"bins of {column!r}: {problem}") from None
    return rules


def quantile_edges(values: FloatArray, times: IntArray, number: int) -> tuple[float, ...]:
    """Edges of about `number` bins with equally many rows, for distinct values that occur `times`.

    Edge j is the value below which there are as close to j / number of the rows as below any other;
    the lower one of two that are equally close. Equal edges are one edge, so there are fewer
    than `number` − 1 where the column has few values. No bin is empty.
    """
    order = np.argsort(values)
    distinct, counted = values[order], times[order]
    if distinct.size == 1:
        raise InvalidParameter(
            f"the only value is {written(distinct[0])}, and bins need at least two different ones"
        )
    below: IntArray = np.cumsum(counted)[:-1]  # rows below each value but the lowest
    # Shares are compared as whole numbers: below / rows with j / number, both times rows · number.
    wanted = np.arange(1, number) * int(counted.sum())
    reached = np.searchsorted(below * number, wanted)
    left, right = np.maximum(reached - 1, 0), np.minimum(reached, below.size - 1)
    away_left, away_right = (np.abs(below[each] * number - wanted) for each in (left, right))
    chosen = np.unique(np.where(away_left <= away_right, left, right))
    return tuple((distinct[chosen + 1] + 0.0).tolist())


# (condition, column) → 'log.csv, row 3, column …: found …', and what can be done about it
FirstWhere = Callable[[str, str], tuple[str, str]]


def resolve_binnings(
    database: Any,
    rules: Mapping[str, BinRule],
    following: Mapping[str, str],
    first_where: FirstWhere,
    rows: str = "log",
) -> dict[str, Binning]:
    """The bins of each column that has a rule, over the view `log`.

    Quantiles are those of `rows`, a part of it. `following` names the column of the next state for
    a column of the state: it has the same bins, and is checked too, but quantiles are those of the
    state alone. A value that is no finite number is refused where `first_where` says.
    """
    described = database.execute("DESCRIBE SELECT * FROM log").fetchall()
    types = {str(row[0]): str(row[1]) for row in described}
    for column in rules:
        if column not in types:
            raise InvalidLog(
                f"there is no column {column!r} to bin; {closest(column, list(types))}"
            )
    check_numbers(database, rules, following, types, first_where)
    return {
        column: rule
        if isinstance(rule, Binning)
        else Binning(edges=column_quantiles(database, column, types[column], rule, rows))
        for column, rule in rules.items()
    }


def number_sql(column: str, kind: str) -> str:
    """The column, of a type as DuckDB calls it, as a DOUBLE; NULL where it is none."""
    if kind != "VARCHAR":
        return f"TRY_CAST({sql_name(column)} AS DOUBLE)"
    return decimal_sql(sql_name(column))


def decimal_sql(text: str) -> str:
    """Returns SQL: a text as a DOUBLE, NULL where it is none."""
    # DuckDB would also take 1_000, and words.
    return f"CASE WHEN regexp_full_match({text}, '{DECIMAL}') THEN TRY_CAST({text} AS DOUBLE) END"


def check_numbers(
    database: Any,
    rules: Mapping[str, BinRule],
    following: Mapping[str, str],
    types: Mapping[str, str],
    first_where: FirstWhere,
) -> None:
    """Refuses the first value that is no finite number; a next state may be missing."""
    wrong = dict[str, str]()
    for column in rules:
        for each in filter(None, (column, following.get(column))):
            unusable = f"NOT coalesce(isfinite({number_sql(each, types[each])}), false)"
            given = "true" if each == column else f"{sql_name(each)} IS NOT NULL"
            wrong[each] = f"{given} AND {unusable}"
    if not wrong:
        return
    counts = ", ".join(f"count_if({condition})" for condition in wrong.values())
    counted = database.execute(f"SELECT {counts} FROM log").fetchone()
    for (column, condition), times in zip(wrong.items(), counted, strict=True):
        if times:
            others = "" if times == 1 else f"; {times:,} rows are affected"
            found, hint = first_where(condition, column)
            raise InvalidLog(
                f"{found}, expected a finite number, since the column is binned{hint}{others}"
            )


def column_quantiles(
    database: Any, column: str, kind: str, rule: Quantiles, rows: str
) -> tuple[float, ...]:
    """The edges of a column, from its distinct values."""
    value = f"{number_sql(column, kind)} + 0.0"
    distinct = database.execute(
        f"SELECT {value} AS value, count(*) AS times FROM {rows} GROUP BY ALL"
    ).fetchnumpy()
    if distinct["value"].size == 0:
        raise InvalidLog(f"the log has no row, so column {column!r} has no quantiles")
    try:
        return quantile_edges(
            np.asarray(distinct["value"]), np.asarray(distinct["times"]), rule.number
        )
    except InvalidParameter as problem:
        raise InvalidParameter(
            f"column {column!r} cannot be cut into {rule.number} quantiles: {problem}; leave out "
            f"the rule for {column!r}"
        ) from None
