"""All that a page of a run shows: what was run, the curves, and the methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surestep.experiments.claim_naming import Claimant, certifier_names, claimant_of, task_name
from surestep.experiments.comparison import USUAL as METRICS
from surestep.experiments.comparison import Comparison, compare_run
from surestep.experiments.coverage import (
    CellSummary,
    family_summaries,
    first_certified,
    without_size,
)
from surestep.experiments.metrics import (
    USUAL,
    Columns,
    Method,
    Summary,
    first_better,
    metric_of,
    summaries,
    valued,
)
from surestep.experiments.panels import Layout, Panels, layout_of
from surestep.experiments.runs import Run, Selection, methods_in, selected

MOST_LINES = 12  # of a picture on a page: its colours, drawn through and dashed


class InShort(NamedTuple):
    """One method in one environment, over all data sizes."""

    environment: str
    method: Method
    first_better: int | None  # the size from which on its mean beats π_b
    most_often_worse: Summary  # at the size at which most repetitions are worse than π_b
    last: Summary  # at the largest size


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings of a run, and the versions that made it."""

    name: str
    title: str
    plan: Mapping[str, Any]
    repetitions: int
    sizes: tuple[int, ...]
    environments: tuple[str, ...]
    methods: tuple[Method, ...]
    made_by: Mapping[str, Any]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RunFindings:
    """The content of a page of a run."""

    setup: Setup
    value: str  # what metrics are of
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
    return RunFindings(
        setup_of(run, selected(run, selection)),
        value,
        tuple(in_short(reached)),
        page_layout(reached, drawn),
        tuple(compared),
    )


def setup_of(run: Run, rows: Columns) -> Setup:
    """Returns what was run, as far as the rows tell."""
    repetitions = int(np.max(rows["repetition"])) - int(np.min(rows["repetition"])) + 1
    return Setup(
        run.name,
        run.title,
        run.plan,
        repetitions,
        tuple(sorted(set(map(int, rows["episodes"])))),
        tuple(dict.fromkeys(map(str, rows["environment"]))),
        tuple(dict.fromkeys(methods_in(rows))),
        mapping(run.manifest.get("made_by")),
        mapping(run.manifest.get("seconds")),
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


# ---- of claims ---------------------------------------------------------------------------------


class ClaimInShort(NamedTuple):
    """One certifier about one algorithm, over all data sizes."""

    task: str
    certifier: str
    first_certified: int | None  # the size at which a gain is certified in half of the repetitions
    worst: CellSummary  # at the size at which claims are most often wrong
    last: CellSummary  # at the largest size


@dataclass(frozen=True, slots=True)
class ClaimFindings:
    """The content of a page of a run with certifiers; MDPs of a family are pooled."""

    setup: Setup
    in_short: tuple[ClaimInShort, ...]
    cells: tuple[CellSummary, ...]


def claims_of(run: Run, selection: Selection) -> ClaimFindings:
    """Returns what there is to show of a run with certifiers, or of a part of it."""
    rows = selected(run, selection)
    cells = family_summaries(rows)
    first = first_certified(cells)
    names = certifier_names(cells)
    together: dict[tuple[str, Claimant], list[CellSummary]] = {}
    for cell in cells:
        together.setdefault((task_name(cell), claimant_of(cell)), []).append(cell)
    return ClaimFindings(
        setup_of(run, rows),
        tuple(
            ClaimInShort(
                task,
                names[claimant],
                first[without_size(mine[0].cell)],
                max(mine, key=lambda cell: cell.violation.value),
                max(mine, key=lambda cell: cell.cell.episodes),
            )
            for (task, claimant), mine in together.items()
        ),
        tuple(cells),
    )
