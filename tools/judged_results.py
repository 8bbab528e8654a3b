"""Verdicts at the top of results, held against the truth: how often "better" is wrong.

A verdict is wrong where Δ < L for the claim that it rests on; *no better* is the plainer question,
whether Δ ≤ 0. Rates are over all logs. What 1e-9 of ρ(π_b) could change counts for nothing.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from surestep.experiments.metrics import FAMILY_WISE, ROUNDING
from surestep.model.certificate import Rung
from surestep.offpolicy.intervals import lower_limit

PROVED: Rung = "proved better"
BELIEVED: Rung = "believed better"


class JudgedResult(NamedTuple):
    """The verdict at the top of one result, what it claims, and what is true."""

    environment: str
    family: str
    episodes: int
    repetition: int
    worlds: int  # of the stress test
    verdict: str
    lower: float  # L of the kind that the result stands by
    belief: float  # L of the posterior of held-out data; NaN: none
    gain: float  # Δ
    behavior_performance: float

    @property
    def wrong(self) -> bool:
        """Tells whether "better" was said and less is true than was claimed."""
        claims: dict[str, float] = {PROVED: self.lower, BELIEVED: self.belief}
        claimed = claims.get(self.verdict)
        return claimed is not None and self.gain < claimed - self.slack

    @property
    def no_better(self) -> bool:
        """Tells whether "better" was said and nothing is gained at all."""
        return self.verdict in (PROVED, BELIEVED) and self.gain <= self.slack

    @property
    def slack(self) -> float:
        """Returns the most that rounding could change."""
        return ROUNDING * abs(self.behavior_performance)


class VerdictCount(NamedTuple):
    """The number of times a verdict was said in a family at a size, and was wrong."""

    family: str
    episodes: int
    worlds: int
    logs: int
    mean_gain: float
    proved: int
    proved_wrong: int
    proved_no_better: int
    believed: int
    believed_wrong: int
    believed_no_better: int


def read_verdicts(path: Path) -> list[JudgedResult]:
    """Returns the rows of a file, or none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            JudgedResult(
                row["environment"],
                row["family"],
                int(row["episodes"]),
                int(row["repetition"]),
                int(row["worlds"]),
                row["verdict"],
                float(row["lower"]),
                float(row["belief"]),
                float(row["gain"]),
                float(row["behavior_performance"]),
            )
            for row in csv.DictReader(file)
        ]


def verdict_counts(verdicts: Iterable[JudgedResult]) -> list[VerdictCount]:
    """Counts the verdicts of each family, size and stress test, in the order they first come in."""

    def about(verdict: JudgedResult) -> tuple[str, int, int]:
        return verdict.family, verdict.episodes, verdict.worlds

    rows = list(verdicts)
    order = {key: place for place, key in enumerate(dict.fromkeys(map(about, rows)))}
    rows.sort(key=lambda verdict: order[about(verdict)])
    return [count_of(*key, list(group)) for key, group in itertools.groupby(rows, about)]


def count_of(family: str, episodes: int, worlds: int, rows: list[JudgedResult]) -> VerdictCount:
    """Counts the verdicts of one cell."""
    counts: list[int] = []
    for verdict in (PROVED, BELIEVED):
        mine = [row for row in rows if row.verdict == verdict]
        wrong, no_better = (
            sum(getattr(row, name) for row in mine) for name in ("wrong", "no_better")
        )
        counts += [len(mine), wrong, no_better]
    gained = sum(row.gain for row in rows if abs(row.gain) > row.slack)
    return VerdictCount(family, episodes, worlds, len(rows), gained / len(rows), *counts)


def all_together(counts: Sequence[VerdictCount]) -> list[VerdictCount]:
    """Adds up the counts of all families at each size and stress test."""
    added = []
    for episodes, worlds in dict.fromkeys((count.episodes, count.worlds) for count in counts):
        mine = [count for count in counts if (count.episodes, count.worlds) == (episodes, worlds)]
        logs = sum(count.logs for count in mine)
        gained = sum(count.mean_gain * count.logs for count in mine)
        sums = (sum(column) for column in zip(*(count[5:] for count in mine), strict=True))
        added.append(VerdictCount("all of these", episodes, worlds, logs, gained / logs, *sums))
    return added


def refuted_verdicts(counts: list[VerdictCount], delta: float) -> list[VerdictCount]:
    """Returns the cells in which *proved better* is wrong more often than δ, beyond chance.

    The rule is that of `coverage.refuted`.
    """
    level = FAMILY_WISE / max(len(counts), 1)
    return [count for count in counts if lower_limit(count.proved_wrong, count.logs, level) > delta]
