"""States from bins: every column cut by itself, into equally filled or equally wide bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.io.labels.bin_rules import quantile_edges
from surestep.io.labels.binning import Binning, written
from surestep.states.choosing_size import Rows

ROUND_FACTORS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)  # times a power of ten: widths that people choose


@dataclass(frozen=True, slots=True)
class BinStates:
    """The bins of columns together; not all of them need have bins."""

    columns: tuple[str, ...]
    binnings: Mapping[str, Binning]  # all with edges

    @property
    def num_states(self) -> int:
        """Counts the states: every bin of a column with every bin of the others."""
        return math.prod(each.num_bins or 1 for each in self.binnings.values())

    def indices(self, values: FloatArray) -> IntArray:
        """Returns the state [N] of each row [N, C]: its bins in all columns, as one number."""
        state: IntArray = np.zeros(values.shape[0], np.int64)
        for place, column in enumerate(self.columns):
            if column in self.binnings:
                binning = self.binnings[column]
                state = state * (binning.num_bins or 1) + binning.indices(values[:, place])
        return state

    def options(self) -> tuple[str, ...]:
        """Returns the bins as users give them: 'age:edges=40,60'."""
        return tuple(
            f"{column}:edges={','.join(map(written, binning.edges or ()))}"
            for column, binning in self.binnings.items()
        )


class Cut(NamedTuple):
    """All columns cut into bins, and which of them tell most of returns."""

    states: BinStates
    order: tuple[str, ...]  # the columns with bins, those that tell most first
    room: int  # the states that there are rows for

    def of_best(self, most: int | None) -> BinStates:
        """Returns the bins of the best columns, at most so many (None: all), as far as rows fill.

        Of the best column, bins are kept however few the rows are.
        """
        room, kept = self.room, set[str]()
        for column in self.order[:most]:
            bins = self.states.binnings[column].num_bins or 1
            if room >= bins or not kept:
                kept.add(column)
                room //= bins
        binnings = {name: each for name, each in self.states.binnings.items() if name in kept}
        return BinStates(self.states.columns, binnings)


def cut_columns(
    rows: Rows, columns: tuple[str, ...], edges_of: EdgesOf, number: int, rows_a_state: int
) -> Cut:
    """Returns each column that varies cut into at most so many bins."""
    spread = rows.returns - rows.returns.mean()
    binnings, told = dict[str, Binning](), dict[str, float]()
    for column, values in zip(columns, rows.values.T, strict=True):
        if float(values.min()) < float(values.max()):
            binnings[column] = Binning(edges=edges_of(values, number))
            place = binnings[column].indices(values)
            times = np.maximum(np.bincount(place), 1)
            told[column] = float((np.bincount(place, spread) ** 2 / times).sum())
    order = sorted(told, key=lambda name: (-told[name], columns.index(name)))
    room = rows.returns.size // rows_a_state
    return Cut(BinStates(columns, binnings), tuple(order), room)


def by_quantiles(values: FloatArray, number: int) -> tuple[float, ...]:
    """Returns the edges of at most so many bins of about equally many rows."""
    return quantile_edges(*np.unique(values, return_counts=True), number)


def by_width(values: FloatArray, number: int) -> tuple[float, ...]:
    """Returns the edges of at most so many bins of a round width, open at both ends."""
    return round_edges(float(values.min()), float(values.max()), number)


EdgesOf = Callable[[FloatArray, int], tuple[float, ...]]


def round_edges(low: float, high: float, number: int) -> tuple[float, ...]:
    """Returns multiples of the smallest round width that cut `low` … `high` into so many parts.

    >>> round_edges(3.0, 98.0, 4), round_edges(0.0, 1.0, 2)
    ((25.0, 50.0, 75.0), (0.5,))
    """
    power = 10.0 ** math.floor(math.log10((high - low) / number))
    for factor in ROUND_FACTORS:
        width = float(f"{factor * power:.3g}")
        first, last = math.floor(low / width) + 1, math.ceil(high / width) - 1
        if first <= last < first + number - 1:
            return tuple(float(f"{i * width:.12g}") for i in range(first, last + 1))
    return ((low + high) / 2,)
