"""Numbers sorted into bins: how often the log shows pairs, and what a policy gains in worlds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray

FEWEST_BETWEEN = 2  # a power of ten nearer to N∧ than this factor is no bin's end
MOST_GAIN_BINS = 30


class Bin(NamedTuple):
    """The number of things that have a number from `low` to `high`, both included."""

    low: int
    high: int
    times: int


def visit_bins(visits: IntArray, n_wedge: int | None) -> list[Bin]:
    """Sorts pairs [K] by their visits; returns bins between powers of ten, one ending at N∧.

    The first bin holds the pairs without a visit, the last one the largest number.
    """
    largest = int(visits.max(initial=1))
    ends = [10**power for power in range(1, len(str(largest)) + 1)]
    if n_wedge is not None and 0 < n_wedge < ends[-1]:
        apart = [end for end in ends[:-1] if max(end / n_wedge, n_wedge / end) >= FEWEST_BETWEEN]
        ends = sorted({*apart, n_wedge, ends[-1]})
    bins = [Bin(0, 0, int((visits == 0).sum()))]
    for high in ends:
        low = bins[-1].high + 1
        if low > largest:
            break
        bins.append(Bin(low, high, int(((visits >= low) & (visits <= high)).sum())))
    return bins


class GainBins(NamedTuple):
    """Worlds by their true gain: edges of bins, 0 among them, and how many worlds lie between."""

    edges: list[float]
    worse: list[int]
    same: list[int]
    better: list[int]


class GainRange(NamedTuple):
    """The smallest, the middle and the largest gain of some worlds."""

    least: float
    median: float
    most: float


def gain_range(gain: FloatArray) -> GainRange:
    """Returns from where to where gains of worlds reach, and their median."""
    return GainRange(float(gain.min()), float(np.median(gain)), float(gain.max()))


def gain_bins(gain: FloatArray, tolerance: float, also: float) -> GainBins:
    """Sorts worlds by their gain; returns at most 30 bins of a round width.

    They hold every gain, 0 and the number `also`. What is no further from 0 than the tolerance is
    no difference, and counts from 0 on.
    """
    low, high = min(0.0, also, float(gain.min())), max(0.0, also, float(gain.max()))
    width = round_width((high - low) / (MOST_GAIN_BINS - 2))
    first, last = math.floor(low / width), max(math.ceil(high / width), math.floor(low / width) + 1)
    same = np.abs(gain) <= tolerance
    place = np.clip(np.floor(gain / width), first, last - 1).astype(int)
    place = np.where(same, min(0, last - 1), place) - first
    sorts = (gain < -tolerance, same, gain > tolerance)
    counts = [np.bincount(place[sort], minlength=last - first).tolist() for sort in sorts]
    return GainBins([width * i for i in range(first, last + 1)], *counts)


def round_width(least: float) -> float:
    """Returns the least of 1, 2 and 5 times a power of ten that is no smaller; 1 for nothing."""
    if not least > 1e-300:
        return 1.0
    size = 10.0 ** math.floor(math.log10(least))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least * 0.999)
