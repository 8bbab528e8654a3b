"""All that a page of a run shows: what was run, the curves, and the methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from surestep.experiments.comparison import USUAL as METRICS
from surestep.experiments.comparison import Comparison, compare_run
from surestep.experiments.metrics import (
    USUAL,
    Method,
    Summary,
    first_better,
    metric_of,
    summaries,
    valued,
)
from surestep.experiments.panels import Layout, Panels, layout_of
from surestep.experiments.runs import Run, Selection, selected

MOST_LINES = 12  # of a picture on a page: its colours, drawn through and dashed


class InShort(NamedTuple):
    """One method in one environment, over all data sizes."""

    environment: str
    method: Method
    first_better: int | None  # the size from which on its mean beats π_b
    most_often_worse: Summary  # at the size at which most repetitions are worse than π_b
    last: Summary  # at the largest size


@dataclass(frozen=True, slots=True)
class RunFindings:
    """What a page of a run is made of."""

    name: str
    title: str
    value: str  # what metrics are of
    plan: Mapping[str, Any]
    repetitions: int
    sizes: tuple[int, ...]
    environments: tuple[str, ...]
    methods: tuple[Method, ...]
    made_by: Mapping[str, Any]
    seconds: Mapping[str, float]
    in_short: tuple[InShort, ...]
    layout: Layout
    comparisons: tuple[Comparison, ...]


def findings_of(
    run: Run,
    selection: Selection,
    *,
    metrics: Sequence[str] = (),
    value: str = "performance",
    against: str | None = None,
) -> RunFindings:
    """Returns what there is to show of a run, or of a part of it."""
    for name in metrics:
        metric_of(name)
    compared = compare_run(run, selection, metrics=metrics or METRICS, value=value, against=against)
    drawn = metrics or USUAL
    asked = list(dict.fromkeys([*METRICS, *drawn]))
    reached = summaries(valued(selected(run, selection), value), asked)
    manifest = run.manifest
    return RunFindings(
        run.name,
        run.title,
        value,
        run.plan,
        max(one.repetitions for one in reached),
        tuple(sorted({one.episodes for one in reached})),
        tuple(dict.fromkeys(one.environment for one in reached)),
        tuple(dict.fromkeys(one.method for one in reached)),
        mapping(manifest.get("made_by")),
        mapping(manifest.get("seconds")),
        tuple(in_short(reached)),
        page_layout(reached, drawn),
        tuple(compared),
    )


def mapping(value: object) -> Mapping[str, Any]:
    """Returns what a manifest has under a name; nothing, where that is no mapping."""
    return value if isinstance(value, Mapping) else {}


def page_layout(reached: Sequence[Summary], metrics: Sequence[str]) -> Layout:
    """Returns the usual panels, or one for each algorithm where lines would be too many."""
    layout = layout_of(reached, metrics)
    if len(layout.names) <= MOST_LINES:
        return layout
    return layout_of(reached, metrics, Panels(columns="algorithm"))


def in_short(reached: Sequence[Summary]) -> list[InShort]:
    """Returns each method in each environment over all data sizes."""
    together: dict[tuple[str, Method], list[Summary]] = {}
    for one in reached:
        together.setdefault((one.environment, one.method), []).append(one)
    better = first_better(reached)
    return [
        InShort(
            environment,
            method,
            better[environment, method],
            max(mine, key=lambda one: one.metrics["worse"].value),
            max(mine, key=lambda one: one.episodes),
        )
        for (environment, method), mine in together.items()
    ]
