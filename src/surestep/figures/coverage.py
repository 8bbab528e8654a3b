"""Claims over data size: how often they are wrong, how often they say something, and how much."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
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
from surestep._files import write_together
from surestep.experiments import (
    CellSummary,
    Store,
    cell_summaries,
    family_summaries,
    first_certified,
    without_size,
)
from surestep.experiments.experiment import read_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Dashes = Literal["-", "--", ":"]
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, GREY)
DASHES: tuple[Dashes, ...] = ("-", "--", ":")
WORDS = {  # what a setting is called in a legend, where its value alone would not be understood
    "prior_weight": "c",
    "n_wedge": "N∧",
    "delta": "δ",
    "worlds": "worlds",
}
LEFT_OUT = ("known_start", "draws", "starts", "reward_low", "reward_high", "horizon")
SPREAD = 0.04  # how far apart intervals at one data size stand, in powers of ten


def draw_coverage(directory: Path, path: Path) -> tuple[Path, Path]:
    """Draws the run in `directory` to `path`, its table beside it; says where both are.

    A column for each family and algorithm, MDPs of a family pooled; the table has every MDP.
    """
    kind = picture_format(path)
    store = Store(directory)
    title, columns = str(store.read_manifest().get("title", "")), store.read_table()
    pooled = family_summaries(columns)
    tasks = list(dict.fromkeys(task_name(summary) for summary in pooled))
    certifiers = list(dict.fromkeys(certifier_name(summary) for summary in pooled))
    beside = path.with_suffix(".csv")
    with drawing(4.4 * len(tasks) + 1.8, 8.6) as figure:
        grid = figure.subplots(3, len(tasks), sharex=True, sharey="row", squeeze=False)
        for column, task in enumerate(tasks):
            mine = [summary for summary in pooled if task_name(summary) == task]
            for place, certifier in enumerate(certifiers):
                series = sorted(
                    (summary for summary in mine if certifier_name(summary) == certifier),
                    key=lambda summary: summary.cell.episodes,
                )
                if series:
                    draw_series(list(grid[:, column]), series, place, len(certifiers))
            label_panels(list(grid[:, column]), task, mine)
        scale_panels(grid, pooled)
        for axes, label in zip(grid[:, 0], ("P(Δ < L)", "P(L > 0)", "tightness"), strict=True):
            axes.set_ylabel(label)
        handles = legend_of(certifiers)
        figure.legend(handles=handles, loc="outside lower center", ncols=2 * len(tasks), fontsize=8)
        counted = sorted({summary.repetitions for summary in pooled})
        often = f"{counted[0]:,}" if len(counted) == 1 else f"{counted[0]:,} to {counted[-1]:,}"
        figure.suptitle(f"{title} ({often} repetitions a point)", fontsize=11)
        write_together(
            {path: [rendered(figure, kind)], beside: [coverage_csv(cell_summaries(columns))]}
        )
    return path, beside


def draw_series(panels: Sequence[Axes], series: list[CellSummary], place: int, of: int) -> None:
    """Draws one certifier into the three panels of a column."""
    colour, dashes = look(place)
    sizes = np.array([summary.cell.episodes for summary in series], np.float64)
    aside = sizes * 10 ** (SPREAD * (place - (of - 1) / 2))  # so that intervals can be told apart
    for axes, intervals in (
        (panels[0], [summary.violation for summary in series]),
        (panels[1], [summary.positive for summary in series]),
    ):
        values, low, high = np.array(intervals).T
        errors = np.maximum([values - low, high - values], 0.0)
        axes.errorbar(
            aside, values, errors, fmt=f"o{dashes}", color=colour, markersize=3, linewidth=1.2,
            elinewidth=0.8, capsize=2,
        )  # fmt: skip
    tightness = [summary.tightness for summary in series]
    panels[2].plot(sizes, tightness, f"o{dashes}", color=colour, markersize=3, linewidth=1.2)


def label_panels(panels: Sequence[Axes], task: str, summaries: list[CellSummary]) -> None:
    """Writes δ, the scales and what the column is about on its panels."""
    for delta in sorted({summary.delta for summary in summaries}):
        panels[0].axhline(delta, color="black", linewidth=1)
        panels[0].annotate(
            f"δ = {delta:g}", (1, delta), xycoords=("axes fraction", "data"), ha="right",
            va="bottom", fontsize=8,
        )  # fmt: skip
    panels[0].set_title(task, fontsize=10)
    panels[0].set_xscale("log")
    panels[2].set_xlabel("trajectories in the data set")


def scale_panels(grid: AnyArray, summaries: list[CellSummary]) -> None:
    """Sets the ends of the axes, once everything is drawn: rows share theirs."""
    for row, axes in enumerate(grid[:, 0]):
        axes.set_ylim(-0.03, 1.03 if row == 1 else None)
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
        lines.append(Line2D([], [], color=colour, linestyle=dashes, label=name))
    return lines


def look(place: int) -> tuple[str, Dashes]:
    """Returns the colour and the dashes of the certifier at that place of the legend."""
    return COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]


def task_name(summary: CellSummary) -> str:
    """Returns where which algorithm was run: 'gridworld: spibb, N∧ = 27'."""
    return f"{summary.cell.family}: {algorithm_name(summary)}"


def algorithm_name(summary: CellSummary) -> str:
    """Returns the algorithm with its settings: 'spibb, N∧ = 27'."""
    cell = summary.cell
    parts = [cell.algorithm]
    if not math.isnan(cell.n_wedge):
        parts.append(f"N∧ = {cell.n_wedge:g}")
    if cell.setting:
        parts.append(cell.setting.replace("n_wedge=auto", "N∧ chosen"))
    return ", ".join(parts)


def certifier_name(summary: CellSummary) -> str:
    """Returns the certifier with the settings that tell it from others: 'robust, l1'."""
    parts = [summary.cell.certifier]
    for key, value in read_label(summary.cell.certifier_setting).items():
        if key in LEFT_OUT or value == "False":
            continue
        if key == "train_share":
            parts.append("held out")
        elif value == "True":
            parts.append(key)
        else:
            parts.append(f"{WORDS[key]} = {value}" if key in WORDS else value)
    return ", ".join(parts)


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
