"""Rules by which users have a column of numbers binned, and the bins that this means in a log.

Edges and widths are bins at once. Quantiles need the column: its distinct values with how often
they occur, all of them, so that the same log has the same bins however it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.description import Bin
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import Binning, written
from surestep.io.sql import sql_name

DECIMAL = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"


def binnings_of(
    database: Any, bins: Mapping[str, Bin], types: Mapping[str, str], rows: str = "log"
) -> dict[str, Binning]:
    """Returns the bins of columns of these types, but for states that are learnt.

    Quantiles are those of the numbers in `rows`, the log or a part of it.
    """
    found = dict[str, Binning]()
    for column, rule in bins.items():
        if rule.columns is not None:
            continue
        try:
            edges = rule.edges
            if rule.quantiles is not None:
                value = f"{number_sql(column, types[column])} + 0.0"
                distinct = database.execute(
                    f"SELECT {value} AS value, count(*) AS times FROM {rows} "
                    f"WHERE isfinite({value}) GROUP BY ALL"
                ).fetchnumpy()
                edges = quantile_edges(distinct["value"], distinct["times"], rule.quantiles)
            found[column] = Binning(edges=edges, width=rule.width)
        except InvalidParameter as problem:
            raise InvalidParameter(f"bins of {column!r}: {problem}") from None
    return found


def quantile_edges(values: FloatArray, times: IntArray, number: int) -> tuple[float, ...]:
    """Edges of about `number` bins with equally many rows, for distinct values that occur `times`.

    Edge j is the value below which there are as close to j / number of the rows as below any other;
    the lower one of two that are equally close. Equal edges are one edge, so there are fewer
    than `number` − 1 where the column has few values. No bin is empty.
    """
    order = np.argsort(values)
    distinct, counted = values[order], times[order]
    if distinct.size < 2:
        found = f"only the number {written(distinct[0])}" if distinct.size else "no number"
        raise InvalidParameter(f"found {found}, expected at least two different ones for quantiles")
    below: IntArray = np.cumsum(counted)[:-1]  # rows below each value but the lowest
    # Shares are compared as whole numbers: below / rows with j / number, both times rows · number.
    wanted = np.arange(1, number) * int(counted.sum())
    reached = np.searchsorted(below * number, wanted)
    left, right = np.maximum(reached - 1, 0), np.minimum(reached, below.size - 1)
    away_left, away_right = (np.abs(below[each] * number - wanted) for each in (left, right))
    chosen = np.unique(np.where(away_left <= away_right, left, right))
    return tuple((distinct[chosen + 1] + 0.0).tolist())


def number_sql(column: str, kind: str) -> str:
    """The column, of a type as DuckDB calls it, as a DOUBLE; NULL where it is none."""
    if kind != "VARCHAR":
        return f"TRY_CAST({sql_name(column)} AS DOUBLE)"
    return decimal_sql(sql_name(column))


def decimal_sql(text: str) -> str:
    """Returns SQL: a text as a DOUBLE, NULL where it is none."""
    # DuckDB would also take 1_000, and words.
    return f"CASE WHEN regexp_full_match({text}, '{DECIMAL}') THEN TRY_CAST({text} AS DOUBLE) END"
