"""Compares methods on the same data: the metrics of each, and the differences between them.

All algorithms of an experiment see the same data sets. So differences are taken repetition by
repetition, and the luck of a data set cancels out. Every interval is a 95 % interval on its own and
holds for any distribution between the bounds of the table. The method is betting for means and mean
differences, order statistics for the CVaR, and Clopper and Pearson for shares (`intervals`). Only
Student's intervals, for whoever asks for them, promise less.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from surestep.errors import InvalidParameter, said
from surestep.experiments.intervals import (
    Interval,
    binomial_interval,
    mean_interval,
    student_interval,
)
from surestep.experiments.metrics import (
    ROUNDING,
    Method,
    RunColumns,
    Summary,
    method_groups,
    summary_of,
    valued,
    values_in,
)
from surestep.experiments.runs import Run, Selection, method_is, method_text, selected

USUAL = ("mean", "cvar10", "cvar1", "better", "worse")
UNKNOWN = Interval(float("nan"))


class Difference(NamedTuple):
    """The difference of a method to the reference method, on the same data.

    Parameters
    ----------
    mean : Interval
        The mean of its value minus the value of the reference.
    ahead : Interval
        The share of repetitions in which the method is better, beyond rounding.
    behind : Interval
        The share of repetitions in which it is worse.
    student : Interval, optional
        The mean with Student's interval, which is asymptotic.

    Examples
    --------
    >>> from surestep.experiments import Difference, Interval
    >>> much = Interval(0.1, 0.05, 0.15)
    >>> Difference(much, Interval(0.9, 0.8, 1.0), Interval(0.0, 0.0, 0.1)).mean.low
    0.05
    """

    mean: Interval  # its value minus the value of the reference
    ahead: Interval  # the share of repetitions in which it is better, beyond rounding
    behind: Interval  # the share of repetitions in which it is worse
    student: Interval = UNKNOWN  # the mean, with Student's interval


class Compared(NamedTuple):
    """The metrics of one method, and its difference to the reference method.

    Parameters
    ----------
    summary : Summary
        The metrics of the method.
    difference : Difference or None
        The difference to the reference; None for the reference itself.

    Examples
    --------
    See `compare_run`, which returns them.

    >>> from surestep.experiments import Compared
    >>> Compared._fields
    ('summary', 'difference')
    """

    summary: Summary
    difference: Difference | None  # None for the reference itself


class Comparison(NamedTuple):
    """All methods in one environment at one data size.

    Parameters
    ----------
    environment : str
        The label of the environment.
    episodes : int
        The data size.
    repetitions : int
        The number of repetitions.
    against : Method
        The method that others are compared with.
    methods : tuple of Compared
        The methods, in the order of the table.

    Examples
    --------
    See `compare_run`, which returns them.

    >>> from surestep.experiments import Comparison
    >>> Comparison._fields[:2]
    ('environment', 'episodes')
    """

    environment: str
    episodes: int
    repetitions: int
    against: Method
    methods: tuple[Compared, ...]


def compare_run(
    run: Run,
    selection: Selection,
    *,
    metrics: Sequence[str] = USUAL,
    value: str = "performance",
    against: str | None = None,
) -> list[Comparison]:
    """Compares the methods of a run in each environment at each data size.

    Parameters
    ----------
    run : Run
        A run without certifiers.
    selection : Selection
        The part of the run that is compared.
    metrics : sequence of str
        The metrics; by default mean, cvar10, cvar1, better and worse. "student" is the mean with
        Student's interval.
    value : {"performance", "gain", "normalised"}
        The value that the metrics summarise; "performance" by default.
    against : str, optional
        The method that others are compared with, such as "spibb:n_wedge=100"; by default the first
        method of the table.

    Returns
    -------
    list of Comparison
        One comparison for each environment and data size.

    Raises
    ------
    InvalidParameter
        The run holds claims, or the selection is empty, or `against` names no method.

    Examples
    --------
    >>> import tempfile
    >>> from surestep.experiments import Selection, compare_run, make_experiment
    >>> from surestep.experiments import read_run, run_experiment
    >>> plan = make_experiment(
    ...     "small", environments=["bandit"], algorithms=["basic-rl", "spibb:n_wedge=5"],
    ...     episodes=[20], repetitions=10, seed=1,
    ... )
    >>> table = run_experiment(plan, tempfile.mkdtemp())
    >>> (comparison,) = compare_run(read_run(table.parent), Selection())
    >>> [one.summary.method.algorithm for one in comparison.methods]
    ['basic-rl', 'spibb']
    """
    if run.holds_claims:
        raise InvalidParameter(
            f"{run.directory} holds claims of certifiers, expected a run without"
        )
    groups = list(method_groups(valued(selected(run, selection), value)))
    other = reference(list(dict.fromkeys(method for method, _ in groups)), against)
    together: dict[tuple[str, int], dict[Method, RunColumns]] = {}
    for method, rows in groups:
        place = str(rows["environment"][0]), int(rows["episodes"][0])
        together.setdefault(place, {})[method] = rows
    return [compared(*place, mine, metrics, other) for place, mine in together.items()]


def reference(methods: Sequence[Method], against: str | None) -> Method:
    """Returns the method that others are compared with."""
    if against is None:
        return methods[0]
    fitting = [method for method in methods if method_is(method, against)]
    if len(fitting) != 1:
        meant = "no method of this run" if not fitting else f"{len(fitting)} methods of this run"
        raise InvalidParameter(
            f"{said('against', '--against')} is {against!r}, which names {meant}, expected one of "
            f"{', '.join(map(method_text, fitting or methods))}"
        )
    return fitting[0]


def compared(
    environment: str,
    episodes: int,
    groups: Mapping[Method, RunColumns],
    metrics: Sequence[str],
    other: Method,
) -> Comparison:
    """Compares the methods of one environment at one data size, by the rows of each."""
    if other not in groups:
        raise InvalidParameter(
            f"{environment} at the data size {episodes} has no rows of {method_text(other)}, which "
            "others are compared with"
        )
    methods = tuple(
        Compared(
            summary_of(method, rows, metrics),
            None if method == other else paired_difference(rows, groups[other]),
        )
        for method, rows in groups.items()
    )
    return Comparison(environment, episodes, methods[0].summary.repetitions, other, methods)


def paired_difference(rows: RunColumns, base: RunColumns) -> Difference:
    """Returns the difference of rows to the rows of another method, repetition by repetition."""
    if not np.array_equal(rows["repetition"], base["repetition"]):
        raise InvalidParameter(
            f"{rows['algorithm'][0]} and {base['algorithm'][0]} have other repetitions in "
            f"{rows['environment'][0]} at the data size {rows['episodes'][0]}; run again"
        )
    mine, theirs = values_in(rows), values_in(base)
    gap = mine.reached - theirs.reached
    slack = ROUNDING * np.maximum(np.abs(mine.reached), np.abs(theirs.reached))
    gap[np.abs(gap) <= slack] = 0.0
    bounds = mine.bounds[0] - theirs.bounds[1], mine.bounds[1] - theirs.bounds[0]
    return Difference(
        mean_interval(gap, bounds),
        binomial_interval(int((gap > 0).sum()), gap.size),
        binomial_interval(int((gap < 0).sum()), gap.size),
        student_interval(gap),
    )
