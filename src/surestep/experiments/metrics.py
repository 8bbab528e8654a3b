"""Summarises the rows of a run: means, tails and rates, each with its confidence interval.

*Claims* are summarised by the rate of wrong claims and by their tightness. A claim L is *violated*
when Δ < L; a refusal claims nothing, and is not violated. All rates are over all repetitions of a
cell, refusals included, with the limits of Clopper and Pearson. A difference below 1e-9 of ρ(π_b)
is neither a violation nor a loss.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, FloatArray
from surestep._names import unknown
from surestep.errors import InvalidParameter
from surestep.experiments.intervals import (
    Interval,
    binomial_interval,
    cvar_interval,
    mean_interval,
    student_interval,
)
from surestep.offpolicy.intervals import lower_limit

BOUNDS = ("lowest_performance", "highest_performance")
ROUNDING = 1e-9  # a performance this close to π_b's, relatively, counts as equal
RunColumns = Mapping[str, AnyArray]


class Method(NamedTuple):
    """An algorithm with its settings.

    Parameters
    ----------
    algorithm : str
        Its name.
    setting : str
        The settings other than N∧.
    n_wedge : int or None
        The given N∧: of SPIBB itself, or of the SPIBB that is converted.

    Examples
    --------
    >>> from surestep.experiments import Method
    >>> Method("spibb", "", 5).n_wedge
    5
    """

    algorithm: str
    setting: str  # the settings other than N∧
    n_wedge: int | None  # as given: of SPIBB itself, or of the SPIBB that is converted


class Summary(NamedTuple):
    """The results of one method in one environment at one data size.

    Parameters
    ----------
    environment : str
        The label of the environment.
    episodes : int
        The data size.
    method : Method
        The algorithm with its settings.
    n_wedge_used : int or None
        The N∧ that was used.
    repetitions : int
        The number of repetitions.
    behavior_performance : float
        The mean of ρ(π_b).
    optimal_performance : float
        The mean of ρ(π*).
    metrics : dict of Interval
        The metrics by name.

    Examples
    --------
    See `summaries`, which returns them.

    >>> from surestep.experiments import Summary
    >>> Summary._fields[:3]
    ('environment', 'episodes', 'method')
    """

    environment: str
    episodes: int
    method: Method
    n_wedge_used: int | None
    repetitions: int
    behavior_performance: float
    optimal_performance: float
    metrics: Mapping[str, Interval]


# ---- metrics: from the values of the repetitions to a number with its interval -----------------


class Values(NamedTuple):
    """The performances of the repetitions of a group and of π_b, and bounds on both."""

    reached: FloatArray  # [n]
    behavior: FloatArray  # [n]: ρ(π_b)
    bounds: tuple[float, float]  # on the performance of any policy in any repetition


METRICS = ("mean", "cvar10", "cvar1", "better", "worse", "student")
SHARES = ("better", "worse")  # metrics that are shares of the repetitions
USUAL = ("mean", "cvar10", "cvar1")
TAIL = re.compile(r"cvar(\d+(?:\.\d+)?)")


def metric_of(name: str, values: Values) -> Interval:
    """Returns the metric of that name, with its interval; 'cvar5' is the CVaR of the worst 5 %.

    'better' and 'worse' are shares of repetitions, beyond rounding. 'student' is the mean with
    Student's interval.
    """
    if name == "mean":
        return mean_interval(values.reached, values.bounds)
    if name == "student":
        return student_interval(values.reached)
    if name in SHARES:
        sign = 1 if name == "better" else -1
        slack = ROUNDING * np.abs(values.behavior)
        counted = sign * values.reached > sign * values.behavior + slack
        return binomial_interval(int(counted.sum()), counted.size)
    written = TAIL.fullmatch(name)
    if written is None or not 0 < float(written[1]) <= 100:
        more = ", or cvarP for the mean of the worst P %, such as cvar5"
        raise unknown(f"there is no metric {name!r}", name, METRICS, more)
    return cvar_interval(values.reached, float(written[1]) / 100, values.bounds)


# ---- values: performance, gain or normalised performance of each repetition -------------------


def valued(columns: RunColumns, value: str) -> RunColumns:
    """Returns the rows with another value as performance; π_b and the bounds follow.

    Parameters
    ----------
    columns : dict of array
        The table of a run, column by column.
    value : {"performance", "gain", "normalised"}
        ρ itself, the gain ρ − ρ(π_b), or the gain as a share of the largest possible gain.

    Returns
    -------
    dict of array
        The table.

    Examples
    --------
    >>> from surestep.experiments import valued
    >>> names = ("performance", "behavior_performance", "optimal_performance")
    >>> names += ("lowest_performance", "highest_performance")
    >>> row = {name: np.array([x]) for name, x in zip(names, (0.6, 0.5, 0.7, 0.0, 0.7))}
    >>> valued(row, "normalised")["performance"].round(3)
    array([0.5])
    """
    if value not in VALUES:
        raise InvalidParameter(f"the value is {value!r}, expected {', '.join(VALUES)}")
    return VALUES[value](columns)


def as_gains(columns: RunColumns) -> RunColumns:
    """Returns the rows with the gain ρ − ρ(π_b) as performance.

    If each repetition has its own environment, ρ(π_b) varies between the bounds as ρ does.
    """
    behavior = float_column(columns, "behavior_performance")
    _, first, where = np.unique(
        np.asarray(columns["environment"]).astype(str), return_index=True, return_inverse=True
    )
    same = np.bincount(where, np.abs(behavior - behavior[first[where]])) == 0
    low, high = (float_column(columns, name) for name in BOUNDS)
    return {
        **columns,
        "performance": gain_beyond_rounding(float_column(columns, "performance"), behavior),
        BOUNDS[0]: low - np.where(same[where], behavior, high),
        BOUNDS[1]: high - np.where(same[where], behavior, low),
        "behavior_performance": np.zeros(behavior.size),
        "optimal_performance": float_column(columns, "optimal_performance") - behavior,
    }


def gain_beyond_rounding(values: FloatArray, behavior: FloatArray) -> FloatArray:
    """Returns values − ρ(π_b); differences within rounding become 0."""
    gain = values - behavior
    return np.where(np.abs(gain) <= ROUNDING * np.abs(behavior), 0.0, gain)


def normalised(columns: RunColumns) -> RunColumns:
    """Returns the rows with (ρ − ρ(π_b)) / (ρ(π*) − ρ(π_b)) as performance: 0 is π_b, 1 is π*.

    Each row is normalised by itself, so that repetitions in different environments can be compared.
    If π_b is optimal up to rounding, there is nothing to gain, and the performance is 0. None is
    above 1.
    """
    behavior, best = (
        float_column(columns, name) for name in ("behavior_performance", "optimal_performance")
    )
    possible = gain_beyond_rounding(best, behavior)

    def share(name: str) -> FloatArray:
        return np.divide(
            gain_beyond_rounding(float_column(columns, name), behavior),
            possible,
            out=np.zeros(best.size),
            where=possible > 0,
        )

    return {
        **columns,
        "performance": share("performance"),
        BOUNDS[0]: share(BOUNDS[0]),
        BOUNDS[1]: np.ones(best.size),
        "behavior_performance": np.zeros(best.size),
        "optimal_performance": np.ones(best.size),
    }


VALUES: dict[str, Callable[[RunColumns], RunColumns]] = {
    "performance": dict,  # unchanged
    "gain": as_gains,
    "normalised": normalised,
}


# ---- summaries ---------------------------------------------------------------------------------


def method_groups(columns: RunColumns) -> Iterator[tuple[Method, RunColumns]]:
    """Yields each method in each environment at each data size with its rows, in their order."""
    for rows in rows_by_key(
        columns, ("environment", "episodes", "algorithm", "setting", "n_wedge")
    ):
        n_wedge = whole_or_none(float_column(rows, "n_wedge")[0])
        yield Method(str(rows["algorithm"][0]), str(rows["setting"][0]), n_wedge), rows


def rows_by_key(columns: RunColumns, names: Sequence[str]) -> Iterator[RunColumns]:
    """Yields the rows that are equal in some columns, in the order in which they first appear."""
    places: dict[tuple[str, ...], list[int]] = {}
    for place, key in enumerate(zip(*(map(str, columns[name]) for name in names), strict=True)):
        places.setdefault(key, []).append(place)
    for mine in places.values():
        yield {name: column[mine] for name, column in columns.items()}


def summaries(columns: RunColumns, metrics: Sequence[str] = USUAL) -> list[Summary]:
    """Summarises each environment, data size, algorithm and setting, in the order of the table.

    Parameters
    ----------
    columns : dict of array
        The table of a run, column by column.
    metrics : sequence of str
        Names: mean, better, worse, cvarP for the mean of the worst P %, or student for the mean
        with Student's interval; by default mean, cvar10 and cvar1.

    Returns
    -------
    list of Summary
        The metrics, with intervals.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.experiments import make_experiment, read_run, run_experiment, summaries
    >>> plan = make_experiment("small", environments=["bandit"], algorithms=["basic-rl"],
    ...                        episodes=[20, 50], repetitions=10, seed=1)
    >>> run = read_run(run_experiment(plan, tempfile.mkdtemp()).parent)
    >>> [(one.episodes, *one.metrics) for one in summaries(run.columns, ["mean", "worse"])]
    [(20, 'mean', 'worse'), (50, 'mean', 'worse')]
    """
    return [summary_of(method, rows, metrics) for method, rows in method_groups(columns)]


def summary_of(method: Method, rows: RunColumns, metrics: Sequence[str]) -> Summary:
    """Returns the summary of the rows of a method in one environment at one data size."""
    values = values_in(rows)
    return Summary(
        str(rows["environment"][0]),
        int(rows["episodes"][0]),
        method,
        whole_or_none(float_column(rows, "n_wedge_used")[0]),
        values.reached.size,
        float(values.behavior.mean()),
        float(float_column(rows, "optimal_performance").mean()),
        {name: metric_of(name, values) for name in metrics},
    )


def values_in(rows: RunColumns) -> Values:
    """Returns the columns that metrics are computed from.

    If the bounds differ between rows, as between environments, they are infinite.
    """
    low, high = (
        float(bound[0]) if (bound == bound[0]).all() else none
        for bound, none in zip(
            (float_column(rows, name) for name in BOUNDS), (-np.inf, np.inf), strict=True
        )
    )
    return Values(
        float_column(rows, "performance"), float_column(rows, "behavior_performance"), (low, high)
    )


def float_column(columns: RunColumns, name: str) -> FloatArray:
    """Returns a column as numbers, NaN where one is missing."""
    return np.ma.filled(np.ma.asarray(columns[name], np.float64), np.nan)


def whole_or_none(number: float) -> int | None:
    """Returns a whole number of a column; None for NaN."""
    return None if np.isnan(number) else int(number)


# ---- claims ------------------------------------------------------------------------------------

FAMILY_WISE = 0.01  # the chance that any cell looks wrong although all claims are right
HALF = 0.5  # a gain counts as certified if this share of the repetitions certifies it


class Cell(NamedTuple):
    """The key of a cell of claims; it has no environment if the MDPs of a family are pooled.

    Parameters
    ----------
    family : str
        The environment without its seed.
    environment : str
        The label of the environment; empty if all environments of the family are pooled.
    algorithm : str
        The name of the algorithm.
    setting : str
        Its settings other than N∧.
    n_wedge : float
        Its N∧; NaN if there is none.
    certifier : str
        The kind of certificate.
    certifier_setting : str
        Its settings.
    episodes : int
        The data size.

    Examples
    --------
    >>> from surestep.experiments import Cell
    >>> Cell("bandit", "", "spibb", "", 5.0, "robust", "", 100).certifier
    'robust'
    """

    family: str
    environment: str  # empty: all environments of the family
    algorithm: str
    setting: str
    n_wedge: float  # NaN: none
    certifier: str
    certifier_setting: str
    episodes: int


class CellSummary(NamedTuple):
    """The record of one certifier about one algorithm in one MDP, or in all of a family.

    Parameters
    ----------
    cell : Cell
        The key.
    standing : tuple of str
        The standings of its claims; empty if all were refused.
    delta : float
        The chance δ with which claims may be wrong.
    mdps : int
        The number of MDPs.
    repetitions : int
        The number of claims and refusals.
    refused : float
        The share that was refused.
    violations : int
        The number of claims L with Δ < L.
    violation : Interval
        Their rate.
    positive : Interval
        P(L > 0).
    positive_but_worse : float
        P(L > 0 and Δ < 0).
    violated_if_positive : float
        P(Δ < L | L > 0), which no certificate bounds; NaN if L is never above 0.
    mean_gain : float
        The mean of Δ.
    mean_lower : float
        The mean of L over the claims that were made; NaN if all were refused.
    tightness : float
        The mean of max(L, 0) divided by the mean of Δ; NaN if nothing is gained.

    Examples
    --------
    See `cell_summaries`, which returns them.

    >>> from surestep.experiments import CellSummary
    >>> CellSummary._fields[:3]
    ('cell', 'standing', 'delta')
    """

    cell: Cell
    standing: tuple[str, ...]  # of its claims; empty if all were refused
    delta: float
    mdps: int
    repetitions: int
    refused: float  # share
    violations: int
    violation: Interval  # rate, with its Clopper–Pearson interval
    positive: Interval  # P(L > 0)
    positive_but_worse: float  # P(L > 0 and Δ < 0)
    violated_if_positive: float  # P(Δ < L | L > 0), which no certificate bounds; NaN: no L > 0
    mean_gain: float
    mean_lower: float  # of the claims that were made; NaN: all were refused
    tightness: float  # mean max(L, 0) / mean Δ; NaN if nothing is gained


def cell_summaries(columns: RunColumns) -> list[CellSummary]:
    """Summarises the claims of each MDP, algorithm, certifier and data size.

    Parameters
    ----------
    columns : dict of array
        The table of a run with certifiers, column by column.

    Returns
    -------
    list of CellSummary
        The rates of wrong claims and of certified gains, and their tightness.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.experiments import cell_summaries, make_experiment, read_run, run_experiment
    >>> plan = make_experiment("claims", environments=["bandit"], algorithms=["spibb:n_wedge=5"],
    ...                        certifiers=["robust"], episodes=[20], repetitions=3, seed=1)
    >>> run = read_run(run_experiment(plan, tempfile.mkdtemp()).parent)
    >>> [(cell.repetitions, cell.violations) for cell in cell_summaries(run.columns)]
    [(3, 0)]
    """
    return [summary_of_cell(cell, rows) for cell, rows in claim_groups(columns, pooled=False)]


def family_summaries(columns: RunColumns) -> list[CellSummary]:
    """Summarises the claims of each cell, with the MDPs of a family pooled.

    Rates are averages over these MDPs. Their intervals are for that average and for these MDPs
    only: given the MDPs, repetitions are independent, and counts with unequal chances spread less
    than a binomial of the same mean (Hoeffding 1956), so the intervals are rather too wide.

    Parameters
    ----------
    columns : dict of array
        The table of a run with certifiers, column by column.

    Returns
    -------
    list of CellSummary
        One summary for each family, algorithm, certifier and data size.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.experiments import family_summaries, make_experiment, read_run, run_experiment
    >>> worlds = [{"name": "bandit", "seed": [1, 2]}]
    >>> plan = make_experiment("claims", environments=worlds, algorithms=["spibb:n_wedge=5"],
    ...                        certifiers=["robust"], episodes=[20], repetitions=3, seed=1)
    >>> run = read_run(run_experiment(plan, tempfile.mkdtemp()).parent)
    >>> [(cell.mdps, cell.repetitions) for cell in family_summaries(run.columns)]
    [(2, 6)]
    """
    return [summary_of_cell(cell, rows) for cell, rows in claim_groups(columns, pooled=True)]


def claim_groups(columns: RunColumns, *, pooled: bool) -> Iterator[tuple[Cell, RunColumns]]:
    """Yields the rows of each cell, in the order in which cells first appear."""
    keys = [name for name in Cell._fields if not (pooled and name == "environment")]
    for rows in rows_by_key(columns, keys):
        first = {name: rows[name][0] for name in Cell._fields}
        first["n_wedge"] = float(float_column(rows, "n_wedge")[0])
        first["episodes"] = int(first["episodes"])
        if pooled:
            first["environment"] = ""
        yield Cell(**first), rows


def summary_of_cell(cell: Cell, rows: RunColumns) -> CellSummary:
    """Returns the summary of the rows of one cell."""
    gain = np.asarray(rows["gain"], np.float64)
    slack = ROUNDING * np.abs(np.asarray(rows["behavior_performance"], np.float64))
    lower = float_column(rows, "lower")
    claimed = ~np.isnan(lower)
    claim = np.where(claimed, lower, -np.inf)
    wrong = gain < claim - slack
    positive = claim > 0
    mean_gain = float(np.where(np.abs(gain) > slack, gain, 0.0).mean())
    certified = float(np.where(positive, lower, 0.0).mean())
    return CellSummary(
        cell,
        tuple(sorted({str(word) for word in rows["standing"]} - {""})),
        float(rows["delta"][0]),
        len(set(rows["environment"])),
        gain.size,
        float(1 - claimed.mean()),
        int(wrong.sum()),
        binomial_interval(int(wrong.sum()), gain.size),
        binomial_interval(int(positive.sum()), gain.size),
        float((positive & (gain < -slack)).mean()),
        float(wrong[positive].mean()) if positive.any() else float("nan"),
        mean_gain,
        float(lower[claimed].mean()) if claimed.any() else float("nan"),
        certified / mean_gain if mean_gain > 0 else float("nan"),
    )


def refuted(cells: Sequence[CellSummary], standing: str) -> list[CellSummary]:
    """Returns the cells of a standing whose claims are wrong more often than δ, beyond chance.

    A cell is refuted if the one-sided lower limit of its violation rate, at the level 0.01 divided
    by the number of these cells, exceeds δ. If all claims are right, some cell is refuted with a
    chance of at most 0.01.

    Parameters
    ----------
    cells : sequence of CellSummary
        Any cells.
    standing : str
        The standing, such as "proved".

    Returns
    -------
    list of CellSummary
        The refuted cells.

    Examples
    --------
    >>> from surestep.experiments import refuted
    >>> refuted([], "proved")
    []
    """
    mine = [cell for cell in cells if standing in cell.standing]
    level = FAMILY_WISE / max(len(mine), 1)
    return [
        cell for cell in mine if lower_limit(cell.violations, cell.repetitions, level) > cell.delta
    ]


def first_certified(cells: Sequence[CellSummary]) -> dict[Cell, int | None]:
    """Returns the smallest data size at which half of the repetitions certify a gain, or None.

    Keys are cells with `episodes` 0.
    """
    sizes: dict[Cell, int | None] = {}
    for cell in sorted(cells, key=lambda cell: cell.cell.episodes):
        key = without_size(cell.cell)
        if sizes.get(key) is None:
            sizes[key] = cell.cell.episodes if cell.positive.value >= HALF else None
    return sizes


def without_size(cell: Cell) -> Cell:
    """Returns the cell without its data size; no N∧ becomes −1, since NaN keys are never equal."""
    return cell._replace(episodes=0, n_wedge=-1.0 if np.isnan(cell.n_wedge) else cell.n_wedge)
