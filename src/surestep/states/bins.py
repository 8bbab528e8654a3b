"""States from bins: every column cut by itself, into equally filled or equally wide bins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.io.labels.bin_rules import quantile_edges
from surestep.io.labels.binning import Binning, written
from surestep.states.choosing_size import Rows

ROUND_FACTORS = (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)  # times a power of ten: widths that people choose


@dataclass(frozen=True, slots=True)
class BinStates:
    """The bins of all columns together; a column that never varies has none."""

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


def by_quantiles(rows: Rows, columns: tuple[str, ...], number: int) -> BinStates:
    """Returns at most so many bins of about equally many rows in each column."""
    binnings = {}
    for column, values in zip(columns, rows.values.T, strict=True):
        distinct, times = np.unique(values, return_counts=True)
        if distinct.size > 1:
            binnings[column] = Binning(edges=quantile_edges(distinct, times, number))
    return BinStates(columns, binnings)


def by_width(rows: Rows, columns: tuple[str, ...], number: int) -> BinStates:
    """Returns at most so many bins of a round width in each column, open at both ends."""
    binnings = {}
    for column, values in zip(columns, rows.values.T, strict=True):
        low, high = float(values.min()), float(values.max())
        if low < high:
            binnings[column] = Binning(edges=round_edges(low, high, number))
    return BinStates(columns, binnings)


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
