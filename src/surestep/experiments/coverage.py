"""From claims to what is reported of them: how often they are wrong, and how much they say.

A claim L is *violated* when Δ < L; a refusal claims nothing, and is not violated. All rates are
over all repetitions of a cell, refusals included. Limits are those of Clopper and Pearson. What
1e-9 of ρ(π_b) could change is neither a violation nor a loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from surestep.experiments.intervals import Interval, binomial_interval, lower_limit
from surestep.experiments.metrics import ROUNDING, Columns, alike, number

FAMILY_WISE = 0.01  # chance that any cell of claims that are right looks wrong
HALF = 0.5  # of the repetitions: a gain counts as certified at that data size


class Cell(NamedTuple):
    """The key of a cell; the names of MDPs that are pooled are left out."""

    family: str
    environment: str  # empty: all of the family
    algorithm: str
    setting: str
    n_wedge: float  # NaN: none
    certifier: str
    certifier_setting: str
    episodes: int


class CellSummary(NamedTuple):
    """The record of one certifier about one algorithm in one MDP, or in all of a family."""

    cell: Cell
    standing: tuple[str, ...]  # of its claims; empty where all was refused
    delta: float
    mdps: int
    repetitions: int
    refused: float  # share
    violations: int
    violation: Interval  # rate, with its Clopper–Pearson interval
    positive: Interval  # P(L > 0)
    positive_but_worse: float  # P(L > 0 and Δ < 0)
    violated_if_positive: float  # P(Δ < L | L > 0), which nobody guarantees; NaN: never L > 0
    mean_gain: float
    mean_lower: float  # of what was not refused; NaN: all was
    tightness: float  # mean max(L, 0) / mean Δ; NaN where nothing is gained


def cell_summaries(columns: Columns) -> list[CellSummary]:
    """One summary for each MDP, algorithm, certifier and data size."""
    return [summary_of(cell, rows) for cell, rows in groups(columns, pooled=False)]


def family_summaries(columns: Columns) -> list[CellSummary]:
    """Returns a summary for each cell, in which the MDPs of a family are pooled.

    Rates are averages over these MDPs. Their intervals are about that average and for these MDPs
    only: given the MDPs, repetitions are independent, and counts with unequal chances spread less
    than a binomial of the same mean (Hoeffding 1956), so the intervals are rather too wide.
    """
    return [summary_of(cell, rows) for cell, rows in groups(columns, pooled=True)]


def groups(columns: Columns, *, pooled: bool) -> Iterator[tuple[Cell, Columns]]:
    """The rows of each cell, in the order in which cells first appear."""
    keys = [name for name in Cell._fields if not (pooled and name == "environment")]
    for rows in alike(columns, keys):
        first = {name: rows[name][0] for name in Cell._fields}
        first["n_wedge"] = number(first["n_wedge"])
        first["episodes"] = int(first["episodes"])
        if pooled:
            first["environment"] = ""
        yield Cell(**first), rows


def summary_of(cell: Cell, rows: Columns) -> CellSummary:
    """The summary of the rows of one cell."""
    gain = np.asarray(rows["gain"], np.float64)
    slack = ROUNDING * np.abs(np.asarray(rows["behavior_performance"], np.float64))
    lower = np.ma.filled(np.ma.asarray(rows["lower"], np.float64), np.nan)
    claimed = ~np.isnan(lower)
    claim = np.where(claimed, lower, -np.inf)
    wrong, positive, worse = gain < claim - slack, claim > 0, gain < -slack
    mean_gain = float(np.where(np.abs(gain) > slack, gain, 0.0).mean())
    certified = float(np.where(positive, lower, 0.0).mean())
    standing = sorted({str(word) for word in rows["standing"]} - {""})
    return CellSummary(
        cell,
        tuple(standing),
        float(rows["delta"][0]),
        len(set(rows["environment"])),
        gain.size,
        float(1 - claimed.mean()),
        int(wrong.sum()),
        binomial_interval(int(wrong.sum()), gain.size),
        binomial_interval(int(positive.sum()), gain.size),
        float((positive & worse).mean()),
        float(wrong[positive].mean()) if positive.any() else float("nan"),
        mean_gain,
        float(lower[claimed].mean()) if claimed.any() else float("nan"),
        certified / mean_gain if mean_gain > 0 else float("nan"),
    )


def refuted(cells: Sequence[CellSummary], standing: str) -> list[CellSummary]:
    """The cells of that standing whose claims are wrong more often than δ, beyond chance.

    A cell is refuted if the one-sided lower limit of its violation rate, at the level 0.01 divided
    by the number of these cells, exceeds δ. If all claims are right, that happens to any cell at
    all with a chance of at most 0.01.
    """
    mine = [cell for cell in cells if standing in cell.standing]
    level = FAMILY_WISE / max(len(mine), 1)
    return [
        cell for cell in mine if lower_limit(cell.violations, cell.repetitions, level) > cell.delta
    ]


def first_certified(cells: Sequence[CellSummary]) -> dict[Cell, int | None]:
    """The smallest data size at which a gain is certified in half of the repetitions; None: none.

    Keys are cells with `episodes` 0.
    """
    sizes: dict[Cell, int | None] = {}
    for cell in sorted(cells, key=lambda cell: cell.cell.episodes):
        key = without_size(cell.cell)
        if sizes.get(key) is None:
            sizes[key] = cell.cell.episodes if cell.positive.value >= HALF else None
    return sizes


def without_size(cell: Cell) -> Cell:
    """The cell without its data size; N∧ becomes −1 where there is none, so that keys are equal."""
    n_wedge = -1.0 if np.isnan(cell.n_wedge) else cell.n_wedge
    return cell._replace(episodes=0, n_wedge=n_wedge)
