"""Methods held against each other on the same data: what each reaches, and by how much they differ.

All algorithms of an experiment see the same data sets, so that differences are taken repetition by
repetition, and data that are good or bad for all cancel out. Every interval is a 95 % interval on
its own and holds for any distribution between the bounds of the table: of means and of mean
differences by betting (`means`), of the CVaR by order statistics (`tails`), of shares by Clopper
and Pearson (`rates`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep.errors import InvalidParameter, said
from surestep.experiments.means import mean_interval
from surestep.experiments.metrics import (
    ROUNDING,
    Columns,
    Group,
    Method,
    Summary,
    Values,
    floats,
    groups_of,
    metric_of,
    normalised,
    rate,
    summary,
    valued,
    values_of,
)
from surestep.experiments.runs import Run, Selection, method_is, selected, written
from surestep.experiments.tails import Interval

USUAL = ("mean", "cvar10", "cvar1", "better", "worse")
LEVELS = (0.0, 0.25, 0.5, 0.75, 0.95)  # of the normalised performance, in the table of profiles


class Difference(NamedTuple):
    """A method and the one that it is compared with, on the same data."""

    mean: Interval  # of its value less that of the other
    ahead: Interval  # share of repetitions in which it is better, beyond rounding
    behind: Interval  # in which it is worse


class Compared(NamedTuple):
    """The metrics of one method, beside the others."""

    summary: Summary
    difference: Difference | None  # None: it is what the others are compared with
    profile: tuple[Interval, ...]  # share of repetitions that reach each of LEVELS


class Comparison(NamedTuple):
    """All methods in one environment at one data size."""

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

    `against` names the method that others are compared with, such as "spibb:n_wedge=100"; without
    it, that is the first one of the table.
    """
    if run.holds_claims:
        raise InvalidParameter(
            f"{run.directory} holds claims of certifiers, expected a run without"
        )
    rows = selected(run, selection)
    groups = list(zip(groups_of(valued(rows, value)), groups_of(normalised(rows)), strict=True))
    other = reference(list(dict.fromkeys(group.method for group, _ in groups)), against)
    together: dict[tuple[str, int], list[tuple[Group, Group]]] = {}
    for group, normal in groups:
        together.setdefault((group.environment, group.episodes), []).append((group, normal))
    return [compared(mine, metrics, other) for mine in together.values()]


def reference(methods: Sequence[Method], against: str | None) -> Method:
    """Returns the method that others are compared with."""
    if against is None:
        return methods[0]
    fitting = [method for method in methods if method_is(method, against)]
    if len(fitting) != 1:
        meant = "no method of this run" if not fitting else f"{len(fitting)} methods of this run"
        raise InvalidParameter(
            f"{said('against', '--against')} is {against!r}, which names {meant}, expected one of "
            f"{', '.join(map(written, fitting or methods))}"
        )
    return fitting[0]


def compared(
    groups: Sequence[tuple[Group, Group]], metrics: Sequence[str], other: Method
) -> Comparison:
    """Compares the methods of one environment at one data size; of each also normalised rows."""
    asked = [metric_of(name) for name in metrics]
    first = groups[0][0]
    base = next((group.rows for group, _ in groups if group.method == other), None)
    if base is None:
        raise InvalidParameter(
            f"{first.environment} at the data size {first.episodes} has no rows of "
            f"{written(other)}, which others are compared with"
        )
    methods = tuple(
        Compared(
            summary(group, asked),
            None if group.method == other else difference(group.rows, base),
            profile_of(floats(normal.rows, "performance")),
        )
        for group, normal in groups
    )
    return Comparison(
        first.environment, first.episodes, methods[0].summary.repetitions, other, methods
    )


def difference(rows: Columns, base: Columns) -> Difference:
    """Returns by how much rows differ from those of another method, repetition by repetition."""
    if not np.array_equal(rows["repetition"], base["repetition"]):
        raise InvalidParameter(
            f"{rows['algorithm'][0]} and {base['algorithm'][0]} have other repetitions in "
            f"{rows['environment'][0]} at the data size {rows['episodes'][0]}; run again"
        )
    mine, theirs = values_of(rows), values_of(base)
    gap = mine.reached - theirs.reached
    slack = ROUNDING * np.maximum(np.abs(mine.reached), np.abs(theirs.reached))
    gap[np.abs(gap) <= slack] = 0.0
    return Difference(mean_interval(gap, room_of(mine, theirs)), rate(gap > 0), rate(gap < 0))


def room_of(one: Values, other: Values) -> tuple[float, float]:
    """Returns bounds on the difference of two values that have bounds."""
    return one.bounds[0] - other.bounds[1], one.bounds[1] - other.bounds[0]


def profile_of(values: FloatArray) -> tuple[Interval, ...]:
    """Returns the share of repetitions that reach each level."""
    return tuple(rate(values >= level - ROUNDING) for level in LEVELS)
