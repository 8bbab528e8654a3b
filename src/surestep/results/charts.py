"""Orders and bins for readers: what matters first, and how numbers are spread."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.results.findings import Findings
from surestep.results.table import UNCHANGED, PolicyTable

FEWEST_BETWEEN = 2  # a power of ten nearer to N∧ than this factor is no bin's end
MOST_GAIN_BINS = 30


def moves_in(table: PolicyTable, state: int) -> tuple[IntArray, int]:
    """Orders the pairs of a state by |π_I − π_b|, ties by π_I; returns them, and how many move."""
    run = np.arange(table.pairs.offsets[state], table.pairs.offsets[state + 1])
    change = np.abs(table.probability[run] - table.behavior[run])
    order = np.lexsort((-table.probability[run], -change))
    return run[order], int((change > UNCHANGED).sum())


def gaining_action(table: PolicyTable, state: int) -> int:
    """Returns the pair of a state with the largest π_I − π_b."""
    run = slice(int(table.pairs.offsets[state]), int(table.pairs.offsets[state + 1]))
    return run.start + int(np.argmax((table.probability - table.behavior)[run]))


def kept_states(findings: Findings) -> IntArray:
    """Returns the states in which all stays as it was, by the time spent there under π_b."""
    kept = ~findings.table.quiet
    kept[[change.state for change in findings.changes]] = False
    states = np.flatnonzero(kept)
    order = np.argsort(-findings.behavior_occupancy[states], kind="stable")
    return states[order]


def thinnest_states(findings: Findings) -> IntArray:
    """Returns the states that the log shows, those first with most time of π_I for a decision."""
    decisions = findings.table.all_decisions
    seen = np.flatnonzero(decisions > 0)
    scarcity = findings.occupancy[seen] / decisions[seen]
    return seen[np.argsort(-scarcity, kind="stable")]


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


def gain_bins(
    gain: FloatArray, tolerance: float, also: float
) -> tuple[list[float], list[list[int]]]:
    """Returns the edges of at most 30 bins of a round width, and the worlds in them.

    First those that are worse, then those that are the same, then those that are better.

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
    return [width * i for i in range(first, last + 1)], counts


def round_width(least: float) -> float:
    """Returns the least of 1, 2 and 5 times a power of ten that is no smaller; 1 for nothing."""
    if not least > 1e-300:
        return 1.0
    size = 10.0 ** math.floor(math.log10(least))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least * 0.999)
