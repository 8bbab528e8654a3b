"""Claims over data size: how often they are wrong, how often they say something, and how much."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from surestep._arrays import AnyArray
from surestep._drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    drawing,
    picture_format,
    rendered,
)
from surestep.errors import InvalidParameter
from surestep.experiments import (
    CellSummary,
    Run,
    cell_summaries,
    family_summaries,
    first_certified,
    selected,
    without_size,
)
from surestep.experiments.claim_naming import certifier_names, claimant_of, task_name
from surestep.experiments.naming import size_axis, typeset
from surestep.experiments.panels import check_number
from surestep.figures.curves import mark_sizes
from surestep.figures.request import Files, Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Dashes = Literal["-", "--", ":"]
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, GREY)
DASHES: tuple[Dashes, ...] = ("-", "--", ":")
METRICS = {"violation": "P(Δ < L)", "positive": "P(L > 0)", "tightness": "tightness"}
SPREAD = 0.04  # how far apart intervals at one data size stand, in powers of ten


def draw_coverage(run: Run, path: Path, request: Request) -> Files:
    """Draws the claims of a run for `path`, and the table beside it.

    A column for each family and algorithm, MDPs of a family pooled; the table has every MDP.
    """
    kind, metrics = picture_format(path), request.metrics or tuple(METRICS)
    for metric in metrics:
        if metric not in METRICS:
            raise InvalidParameter(
                f"there is no metric {metric!r} of claims, expected {', '.join(METRICS)}"
            )
    columns = selected(run, request.selection)
    pooled = family_summaries(columns)
    tasks = list(dict.fromkeys(task_name(summary) for summary in pooled))
    certifiers = certifier_names(pooled)
    check_number(len(metrics), len(tasks))
    with drawing(4.4 * len(tasks) + 1.8, 2.6 * len(metrics) + 0.8, request.look) as figure:
        grid = figure.subplots(len(metrics), len(tasks), sharex=True, sharey="row", squeeze=False)
        for column, task in enumerate(tasks):
            panels = dict(zip(metrics, grid[:, column], strict=True))
            mine = [summary for summary in pooled if task_name(summary) == task]
            for place, certifier in enumerate(certifiers):
                series = sorted(
                    (summary for summary in mine if claimant_of(summary) == certifier),
                    key=lambda summary: summary.cell.episodes,
                )
                if series:
                    draw_series(panels, series, place, len(certifiers))
            label_panels(panels, task, mine)
        scale_panels(metrics, grid, pooled)
        mark_sizes(grid, {summary.cell.episodes for summary in pooled})
        for axes, metric in zip(grid[:, 0], metrics, strict=True):
            axes.set_ylabel(METRICS[metric])
        handles = legend_of(list(certifiers.values()))
        figure.legend(
            handles=handles, loc="outside lower center", ncols=2 * len(tasks), fontsize="small"
        )
        table = coverage_csv(cell_summaries(columns))
        return {path: rendered(figure, kind), path.with_suffix(".csv"): table}


def draw_series(panels: Mapping[str, Axes], series: list[CellSummary], place: int, of: int) -> None:
    """Draws one certifier into the panels of a column."""
    colour, dashes = look(place)
    sizes = np.array([summary.cell.episodes for summary in series], np.float64)
    aside = sizes * 10 ** (SPREAD * (place - (of - 1) / 2))  # so that intervals can be told apart
    for metric, axes in panels.items():
        if metric == "tightness":
            tightness = [summary.tightness for summary in series]
            axes.plot(sizes, tightness, f"o{dashes}", color=colour, markersize=3, linewidth=1.2)
            continue
        values, low, high = np.array([getattr(summary, metric) for summary in series]).T
        errors = np.maximum([values - low, high - values], 0.0)
        axes.errorbar(
            aside, values, errors, fmt=f"o{dashes}", color=colour, markersize=3, linewidth=1.2,
            elinewidth=0.8, capsize=2,
        )  # fmt: skip


def label_panels(panels: Mapping[str, Axes], task: str, summaries: list[CellSummary]) -> None:
    """Writes δ, the scales and what the column is about on its panels."""
    for delta in sorted({summary.delta for summary in summaries}) if "violation" in panels else ():
        panels["violation"].axhline(delta, color="black", linewidth=1)
        panels["violation"].annotate(
            typeset(f"δ = {delta:g}"), (1, delta), xycoords=("axes fraction", "data"), ha="right",
            va="bottom", fontsize="small",
        )  # fmt: skip
    first, *_, last = [*panels.values(), *panels.values()]
    first.set_title(typeset(task), fontweight="normal")
    first.set_xscale("log")
    last.set_xlabel(size_axis({summary.cell.family for summary in summaries}))


def scale_panels(metrics: Sequence[str], grid: AnyArray, summaries: list[CellSummary]) -> None:
    """Sets the ends of the axes, once everything is drawn: rows share theirs."""
    for metric, axes in zip(metrics, grid[:, 0], strict=True):
        axes.set_ylim(-0.03, 1.03 if metric == "positive" else None)
    sizes = {summary.cell.episodes for summary in summaries}
    if len(sizes) == 1:  # which has no scale of its own
        size = float(sizes.pop())
        grid[0, 0].set_xlim(size / 3, size * 3)


def legend_of(certifiers: list[str]) -> list[object]:
    """Returns one line of the legend for each certifier."""
    from matplotlib.lines import Line2D

    lines: list[object] = []
    for place, name in enumerate(certifiers):
        colour, dashes = look(place)
        lines.append(Line2D([], [], color=colour, linestyle=dashes, label=typeset(name)))
    return lines


def look(place: int) -> tuple[str, Dashes]:
    """Returns the colour and the dashes of the certifier at that place of the legend."""
    return COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]


def coverage_csv(summaries: list[CellSummary]) -> bytes:
    """Returns all cells as CSV, one a line, rates with the ends of their intervals.

    `first_certified` is the smallest data size at which half of the repetitions certify a gain.
    """
    first = first_certified(summaries)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rates = ("violation", "positive")
    plain = [name for name in CellSummary._fields if name not in ("cell", *rates)]
    ends = [f"{name}{end}" for name in rates for end in ("", "_low", "_high")]
    if summaries:
        writer.writerow([*summaries[0].cell._fields, *plain, *ends, "first_certified"])
    for summary in summaries:
        cell = summary.cell._asdict() | {
            "n_wedge": "" if math.isnan(summary.cell.n_wedge) else int(summary.cell.n_wedge)
        }
        values = [shown(getattr(summary, name)) for name in plain]
        intervals = [shown(end) for name in rates for end in getattr(summary, name)]
        writer.writerow([*cell.values(), *values, *intervals, first[without_size(summary.cell)]])
    return text.getvalue().encode()


def shown(value: object) -> object:
    """Returns a number with nine digits, nothing for NaN, several words as one text."""
    if isinstance(value, tuple):
        return " or ".join(value)
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else float(f"{value:.9g}")
