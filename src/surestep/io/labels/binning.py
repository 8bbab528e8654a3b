"""Sorts the numbers of a column into bins, with the same result in Python and in SQL.

A bin reaches from its lower edge, which belongs to it, to its upper edge, which does not. Edges are
given one by one, or as multiples of a width. A width is meant as the decimal it is written as: with
a width of 0.1, edge 3 is the double 0.3, and not 3 · 0.1 = 0.30000000000000004.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np

import surestep._arrays as arrays
from surestep.description import Bin
from surestep.errors import InvalidParameter, named_in_errors
from surestep.io.sql import sql_name, sql_text

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")  # matches an edge in a label
START = "(start)"  # value of a memory column before the first step of an episode
LARGEST_POWER = 22  # 10²² is the last power of ten that is a double
LARGEST_DIGITS = 10**9
# Up to this multiple, v / width is off by less than half a bin: the right bin is at most one away.
LARGEST_MULTIPLE = 2**50


@dataclass(frozen=True, slots=True)
class Binning:
    """The bins of a column, between rising `edges` or between all multiples of a `width`."""

    edges: tuple[float, ...] | None = None
    width: float | None = None

    def __post_init__(self) -> None:
        if (self.edges is None) == (self.width is None):
            raise InvalidParameter("a binning has either edges or a width, expected one of them")
        if self.width is None:
            object.__setattr__(self, "edges", read_edges(self.edges))
            return
        if not (arrays.is_number(self.width) and 0 < self.width < np.inf):
            raise InvalidParameter(f"width is {self.width!r}, expected a finite number above 0")
        grid = Multiples.of(float(self.width))
        if grid.digits >= LARGEST_DIGITS or abs(grid.power) > LARGEST_POWER:
            raise InvalidParameter(
                f"width is {self.width!r}, expected at most 9 digits, and at most {LARGEST_POWER} "
                "of them after the point (round it, or give the edges one by one)"
            )
        object.__setattr__(self, "width", grid.width)

    def open_labels(self) -> set[str]:
        """Returns the labels of the bins that have no end on one side."""
        return set() if self.edges is None else {self.label(0), self.label(len(self.edges))}

    def indices(self, values: object) -> arrays.IntArray:
        """Returns the bin [N] of each finite value [N]: the number of edges at most the value.

        With a width, bin i is [i·width, (i+1)·width). The first and the last one are open: beyond
        2⁵⁰ units of the last digit of the width, doubles cannot tell bins apart.
        """
        numbers = arrays.floats("values", values, None, InvalidParameter)
        if self.edges is not None:
            return np.searchsorted(np.array(self.edges), numbers, side="right")
        grid = Multiples.of(self.width)
        inside = np.clip(numbers, grid.edges(-grid.last - 1), grid.edges(grid.last))
        near: arrays.IntArray = np.floor(inside / grid.width).astype(np.int64)
        reached = (grid.edges(near) <= inside).astype(np.int64) + (grid.edges(near + 1) <= inside)
        return near - 1 + reached

    def index(self, value: float) -> int:
        """Returns the bin of one finite value."""
        if not arrays.is_number(value):
            raise InvalidParameter(f"value is {value!r}, expected a finite number")
        return int(self.indices([float(value)])[0])

    def label(self, index: int) -> str:
        """Returns the label of a bin: '< 40', '40 to < 50' or '>= 90'.

        >>> Binning(width=0.1).label(3)
        '0.3 to < 0.4'
        """
        first, last = self.outermost()
        if not first <= index <= last:
            raise InvalidParameter(f"bin is {index!r}, expected {first} to {last}")
        low = None if index == first else self.edge(index)
        return span(low, None if index == last else self.edge(index + 1))

    def place(self, label: str) -> int | None:
        """Returns the bin of a label; None if no bin has this label.

        >>> Binning(edges=(2, 10)).place("2 to < 10"), Binning(width=5).place("ward")
        (1, None)
        """
        first, last = self.outermost()
        text = label.partition(" to < ")[0]
        begin = float(text) if NUMBER.fullmatch(text) else np.inf
        inside = (self.index(begin),) if np.isfinite(begin) else ()
        return next((i for i in (first, last, *inside) if self.label(i) == label), None)

    def outermost(self) -> tuple[int, int]:
        """Returns the first and the last bin, which are open to one side."""
        if self.edges is not None:
            return 0, len(self.edges)
        last = Multiples.of(self.width).last
        return -last - 1, last

    def edge(self, index: int) -> float:
        """Returns the lower edge of a bin that has one."""
        if self.edges is not None:
            return self.edges[index - 1]
        return float(Multiples.of(self.width).edges(index))

    def sql(self, expression: str) -> str:
        """Returns SQL for the bin (BIGINT) of a DOUBLE expression; NULL if it is not finite."""
        value = f"({expression})"
        edges = self.edges
        index = Multiples.of(self.width).sql(value) if edges is None else searched(value, edges)
        return f"CASE WHEN isfinite({value}) THEN {index} END"

    def to_json(self) -> dict[str, Any]:
        """Returns the binning as an object of JSON."""
        return {"edges": list(self.edges)} if self.edges is not None else {"width": self.width}


@dataclass(frozen=True, slots=True)
class Multiples:
    """The multiples of a width of `digits` · 10^`power`, each the double nearest to it."""

    width: float
    digits: int
    power: int

    @classmethod
    def of(cls, width: float | None) -> Self:
        """Returns the multiples of a width, read as the shortest decimal for the double."""
        shortest = Decimal(repr(width)).normalize().as_tuple()
        digits = int("".join(map(str, shortest.digits)))
        return cls(float(width or 0), digits, int(shortest.exponent))

    @property
    def last(self) -> int:
        """Returns the number of the last bin."""
        return LARGEST_MULTIPLE // self.digits

    def edges(self, index: arrays.IntArray | int) -> arrays.FloatArray:
        """Returns i · digits · 10^power, rounded once: all factors are exact."""
        units = np.asarray(index * self.digits, np.float64)
        shift = 10.0 ** abs(self.power)
        return units * shift if self.power >= 0 else units / shift

    def sql(self, value: str) -> str:
        """Returns SQL for the bin of a value, with the same operations as `Binning.indices`."""
        low = literal(float(self.edges(-self.last - 1)))
        inside = f"least(greatest({value}, {low}), {literal(float(self.edges(self.last)))})"
        near = f"CAST(floor({inside} / {literal(self.width)}) AS BIGINT)"
        operation = f"{'*' if self.power >= 0 else '/'} {literal(10.0 ** abs(self.power))}"

        def reached(index: str) -> str:
            edge = f"CAST({index} * {self.digits} AS DOUBLE) {operation}"
            return f"CAST({edge} <= {inside} AS BIGINT)"

        return f"{near} - 1 + {reached(near)} + {reached(f'({near} + 1)')}"


def searched(value: str, edges: Sequence[float], before: int = 0) -> str:
    """Returns SQL for a binary search among edges, after `before` edges were passed."""
    if not edges:
        return f"CAST({before} AS BIGINT)"
    middle = len(edges) // 2
    return (
        f"CASE WHEN {value} < {literal(edges[middle])} "
        f"THEN {searched(value, edges[:middle], before)} "
        f"ELSE {searched(value, edges[middle + 1 :], before + middle + 1)} END"
    )


def literal(number: float) -> str:
    """Returns a double as SQL, bit for bit."""
    return f"CAST({sql_text(repr(float(number)))} AS DOUBLE)"


def brief(number: float) -> str:
    """Returns the shortest text that means the number, without a point for whole ones.

    >>> brief(40.0), brief(0.25)
    ('40', '0.25')
    """
    return repr(float(number)).removesuffix(".0")


def span(low: float | None, high: float | None) -> str:
    """Returns the range from `low` to below `high` in words; empty without either."""
    if high is None:
        return "" if low is None else f">= {brief(low)}"
    return f"< {brief(high)}" if low is None else f"{brief(low)} to < {brief(high)}"


def read_edges(edges: object) -> tuple[float, ...]:
    """Checks and returns edges as rising doubles, at least one."""
    doubles: arrays.AnyArray = arrays.floats("edges", edges, None, InvalidParameter)
    if doubles.ndim != 1 or doubles.size == 0:
        raise InvalidParameter(f"edges are {edges!r}, expected at least one number, in a row")
    falling = np.flatnonzero(doubles[1:] <= doubles[:-1])
    if falling.size:
        i = int(falling[0])
        raise InvalidParameter(
            f"edges are not rising: {brief(doubles[i])} is followed by {brief(doubles[i + 1])}"
        )
    return tuple((doubles + 0.0).tolist())  # a negative zero becomes 0


# ---- bins of a log by the rules of its description --------------------------------------------
#
# Quantiles use all distinct values of a column and how often they occur, so that the same log has
# the same bins however it is read.


DECIMAL = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"


def binnings_of(
    database: Any, bins: Mapping[str, Bin], types: Mapping[str, str], rows: str = "log"
) -> dict[str, Binning]:
    """Returns the bins of columns of these types, without those of learnt states.

    Quantiles are those of the numbers in `rows`, the log or a part of it.
    """
    binnings = dict[str, Binning]()
    for column, rule in bins.items():
        if rule.columns is not None:
            continue
        with named_in_errors(f"bins of {column!r}", InvalidParameter):
            edges = rule.edges
            if rule.quantiles is not None:
                value = f"{number_sql(column, types[column])} + 0.0"
                distinct = database.execute(
                    f"SELECT {value} AS value, count(*) AS times FROM {rows} "
                    f"WHERE isfinite({value}) GROUP BY ALL"
                ).fetchnumpy()
                edges = quantile_edges(distinct["value"], distinct["times"], rule.quantiles)
            binnings[column] = Binning(edges=edges, width=rule.width)
    return binnings


def quantile_edges(
    values: arrays.FloatArray, times: arrays.IntArray, number: int
) -> tuple[float, ...]:
    """Returns edges of about `number` bins with equally many rows; `values` occur `times`.

    Edge j is the value for which the share of rows below it is closest to j / number; the lower one
    of two that are equally close. Equal edges are one edge, so there are fewer
    than `number` − 1 where the column has few values. No bin is empty.
    """
    order = np.argsort(values)
    distinct = values[order]
    counted = times[order]
    if distinct.size < 2:
        what = f"only the number {brief(distinct[0])}" if distinct.size else "no number"
        raise InvalidParameter(f"found {what}, expected at least two different ones for quantiles")
    below: arrays.IntArray = np.cumsum(counted)[:-1]  # rows below each value but the lowest
    # Shares are compared as whole numbers: below / rows with j / number, both times rows · number.
    wanted = np.arange(1, number) * int(counted.sum())
    chosen = np.unique([np.abs(below * number - edge).argmin() for edge in wanted])
    return tuple((distinct[chosen + 1] + 0.0).tolist())


def number_sql(column: str, kind: str) -> str:
    """Returns SQL for a column of this type as a DOUBLE; NULL if it is no number."""
    name = sql_name(column)
    return f"TRY_CAST({name} AS DOUBLE)" if kind != "VARCHAR" else decimal_sql(name)


def decimal_sql(text: str) -> str:
    """Returns SQL for a text as a DOUBLE; NULL if it is no number."""
    # DuckDB would also take 1_000, and words.
    return f"CASE WHEN regexp_full_match({text}, '{DECIMAL}') THEN TRY_CAST({text} AS DOUBLE) END"
