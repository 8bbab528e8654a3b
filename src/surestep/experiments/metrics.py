"""From rows to what is reported: means and tails with their intervals, and how often one loses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray
from surestep.experiments.tails import CONFIDENCE, Interval, cvar_interval

TAILS = {"cvar10": 0.10, "cvar1": 0.01}
BOUNDS = ("lowest_performance", "highest_performance")
RESAMPLES = 1_000
ROUNDING = 1e-9  # a performance this close to π_b's, relatively, is π_b's
Columns = Mapping[str, AnyArray]


class Summary(NamedTuple):
    """The results of one algorithm with one setting at one data size."""

    environment: str
    episodes: int
    algorithm: str
    setting: str
    n_wedge: float  # NaN: none
    n_wedge_used: float
    repetitions: int
    mean: Interval
    cvar10: Interval
    cvar1: Interval
    below_behavior: float  # the share of repetitions that fall below π_b
    behavior_performance: float
    optimal_performance: float


def normalised(columns: Columns) -> dict[str, AnyArray]:
    """The rows with (ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b)) as performance: 0 is π_b, 1 the optimum.

    Row by row, so that repetitions in environments of their own can be compared. Where π_b is
    optimal there is nothing to gain, and the performance is 0.
    """
    behavior, best = (
        np.asarray(columns[name], np.float64)
        for name in ("behavior_performance", "optimal_performance")
    )
    possible = best - behavior

    def share(name: str) -> FloatArray:
        gain = np.asarray(columns[name], np.float64) - behavior
        gain[np.abs(gain) <= ROUNDING * np.abs(behavior)] = 0.0
        return np.divide(gain, possible, out=np.zeros(best.size), where=possible > 0)

    changed = {name: share(name) for name in ("performance", *BOUNDS) if name in columns}
    fixed = {
        "behavior_performance": np.zeros(best.size),
        "optimal_performance": np.ones(best.size),
    }
    return {**columns, **changed, **fixed}


def summaries(columns: Columns, rng: np.random.Generator) -> list[Summary]:
    """One summary for each environment, data size, algorithm and setting, in the table's order.

    Intervals of means are of the bootstrap, with all groups resampled alike, repetition by
    repetition, as their data are shared; those of tails are of `tails`, and hold for any data.
    """
    keys = ("environment", "episodes", "algorithm", "setting", "n_wedge")
    labels = np.array(
        ["\0".join(map(str, parts)) for parts in zip(*(columns[key] for key in keys), strict=True)]
    )
    starts = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
    drawn: dict[int, FloatArray] = {}
    result = []
    for first, last in zip(starts, np.append(starts[1:], labels.size), strict=True):
        run = {name: column[first:last] for name, column in columns.items()}
        size = int(last - first)
        if size not in drawn:
            times = rng.multinomial(size, np.full(size, 1 / size), size=RESAMPLES)
            drawn[size] = times.astype(np.float64)  # products of whole numbers are slow
        result.append(summary(run, drawn[size]))
    return result


def summary(run: Columns, resampled: FloatArray) -> Summary:
    """The summary of the rows of one group; `resampled` [R, n] says how often each is drawn."""
    values = np.asarray(run["performance"], np.float64)
    behavior = np.asarray(run["behavior_performance"], np.float64)
    bounds = bounds_of(run)
    tails = {name: cvar_interval(values, tail, bounds) for name, tail in TAILS.items()}
    return Summary(
        str(run["environment"][0]),
        int(run["episodes"][0]),
        str(run["algorithm"][0]),
        str(run["setting"][0]),
        number(run["n_wedge"][0]),
        number(run["n_wedge_used"][0]),
        values.size,
        interval(float(values.mean()), resampled @ values / values.size),
        tails["cvar10"],
        tails["cvar1"],
        float((values < behavior - ROUNDING * np.abs(behavior)).mean()),
        float(behavior.mean()),
        float(np.asarray(run["optimal_performance"], np.float64).mean()),
    )


def bounds_of(run: Columns) -> tuple[float, float]:
    """Returns bounds on the performance of any policy; none, where rows have different ones.

    Rows of environments that differ each have their own, which do not bound those of others.
    """
    known = [
        np.asarray(run[name], np.float64) if name in run else np.array([np.nan]) for name in BOUNDS
    ]
    low, high = (float(bound[0]) if (bound == bound[0]).all() else np.nan for bound in known)
    return (-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)


def interval(value: float, resampled: FloatArray) -> Interval:
    """The middle `CONFIDENCE` of the resampled estimates, around the estimate itself."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def number(value: object) -> float:
    """A number of a column that may be missing, as NaN."""
    return float("nan") if value is None or np.ma.is_masked(value) else float(value)  # type: ignore[arg-type]


def method_of(summary: Summary) -> tuple[str, str, str, str]:
    """Returns the key of a method: (environment, algorithm, setting, N∧), the last one as text."""
    return summary.environment, summary.algorithm, summary.setting, f"{summary.n_wedge:g}"


def first_better(summaries: list[Summary]) -> dict[tuple[str, str, str, str], int | None]:
    """Returns for each method the smallest size from which on its mean beats π_b; None: never."""
    result: dict[tuple[str, str, str, str], int | None] = {}
    for summary in sorted(summaries, key=lambda summary: summary.episodes):
        behavior = summary.behavior_performance
        if summary.mean.value <= behavior + ROUNDING * abs(behavior):
            result[method_of(summary)] = None
        elif result.get(method_of(summary)) is None:
            result[method_of(summary)] = summary.episodes
    return result
