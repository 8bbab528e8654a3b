"""The paper's Figures 4 to 6: what each method reaches as data grows, one panel an N∧."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from surestep._drawing import (
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    drawing,
    picture_format,
    rendered,
)
from surestep._files import write_together
from surestep.errors import InvalidParameter
from surestep.experiments import Store, Summary, first_better, method_of, summaries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = {  # label and colour
    "basic-rl": ("Basic RL", PURPLE),
    "spibb": ("SPIBB", VERMILION),
    "spibb-2s": ("2s", BLUE),
    "spibb-beta": ("β", GREEN),
}
STATISTICS: dict[str, Literal["-", "--", ":"]] = {"mean": "-", "cvar10": "--", "cvar1": ":"}
NAMES = {"mean": "mean", "cvar10": "10 % CVaR", "cvar1": "1 % CVaR"}
SHADES = {"mean": 0.2, "cvar10": 0.1, "cvar1": 0.04}  # of bands, which are wider the rarer the tail
SEED = 0  # of the bootstrap behind the intervals of means
# How a point looks whose tail the repetitions are too few to bound from below.
BARE: dict[str, Any] = {
    "marker": "o", "markersize": 3, "markerfacecolor": "white", "linestyle": "none",
}  # fmt: skip


def draw_evaluation(directory: Path, path: Path) -> tuple[Path, Path]:
    """Draws the run in `directory` to `path`, its table beside it; says where both are."""
    kind = picture_format(path)
    store = Store(directory)
    title = str(store.read_manifest().get("title", ""))
    reached = summaries(store.read_table(), np.random.default_rng(SEED))
    environments = sorted({summary.environment for summary in reached})
    given = sorted({summary.n_wedge for summary in reached if not math.isnan(summary.n_wedge)})
    if not given:
        raise InvalidParameter(
            f"{directory} holds no method with an N∧, expected a run of the paper's experiments"
        )
    beside = path.with_suffix(".csv")
    with drawing(4.2 * len(given), 3.7 * len(environments) + 0.6) as figure:
        grid = figure.subplots(
            len(environments), len(given), sharex=True, sharey="row", squeeze=False
        )
        for row, environment in zip(grid, environments, strict=True):
            for axes, n_wedge in zip(row, given, strict=True):
                here = [summary for summary in reached if summary.environment == environment]
                draw_panel(axes, here, n_wedge)
            row[0].set_ylabel(f"performance ρ\n{environment}")
        for axes in grid[-1]:
            axes.set_xlabel("trajectories in the data set")
        add_legend(figure, any(math.isnan(summary.cvar1.low) for summary in reached))
        figure.suptitle(f"{title} ({reached[0].repetitions} repetitions)", fontsize=11)
        write_together({path: [rendered(figure, kind)], beside: [as_csv(reached)]})
    return path, beside


def draw_panel(axes: Axes, reached: list[Summary], n_wedge: float) -> None:
    """Draws mean and tails of every method with this N∧, and of basic RL, which has none."""
    title = []
    for method, (label, colour) in METHODS.items():
        mine = sorted(
            (
                summary
                for summary in reached
                if summary.algorithm == method
                and (math.isnan(summary.n_wedge) or summary.n_wedge == n_wedge)
            ),
            key=lambda summary: summary.episodes,
        )
        if not mine:
            continue
        sizes = [summary.episodes for summary in mine]
        for statistic, dashes in STATISTICS.items():
            intervals = [getattr(summary, statistic) for summary in mine]
            values = [interval.value for interval in intervals]
            axes.plot(sizes, values, dashes, color=colour, linewidth=1.5)
            low, high = zip(*((interval.low, interval.high) for interval in intervals), strict=True)
            axes.fill_between(sizes, low, high, color=colour, alpha=SHADES[statistic], linewidth=0)
            bare = [place for place, end in enumerate(low) if math.isnan(end)]
            axes.plot(sizes, values, markevery=bare, color=colour, **BARE)
        if not math.isnan(mine[0].n_wedge_used):
            title.append(f"{label} {mine[0].n_wedge_used:g}")
    axes.axhline(reached[0].behavior_performance, color="black", linewidth=1)
    axes.axhline(reached[0].optimal_performance, color=GREY, linewidth=1)
    axes.set_xscale("log")
    axes.set_title("N∧:  " + ",  ".join(title), fontsize=10)


def add_legend(figure: Figure, bare: bool) -> None:
    """Adds the legend: colours are methods, dashes statistics; `bare` points have no interval."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, label=label) for label, colour in METHODS.values()]
    handles += [
        Line2D([], [], color="black", linestyle=dashes, label=NAMES[statistic])
        for statistic, dashes in STATISTICS.items()
    ]
    handles += [
        Line2D([], [], color="black", linewidth=1, label="π_b"),
        Line2D([], [], color=GREY, linewidth=1, label="π*"),
    ]
    if bare:
        unbounded = "too few repetitions to bound the tail"
        handles.append(Line2D([], [], color="black", label=unbounded, **BARE))
    figure.legend(handles=handles, loc="outside lower center", ncols=(len(handles) + 1) // 2)


def as_csv(reached: list[Summary]) -> bytes:
    """Returns all summaries as CSV, one a line, statistics with the ends of their intervals.

    An end that the repetitions are too few for is empty. `first_better` is the data size from which
    on the method's mean beats π_b, empty for never.
    """
    better = first_better(reached)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    plain = [name for name in Summary._fields if name not in STATISTICS]
    ends = [f"{name}{end}" for name in STATISTICS for end in ("", "_low", "_high")]
    writer.writerow([*plain, *ends, "first_better"])
    for summary in reached:
        numbers = [
            "" if math.isnan(value) else value
            for name in STATISTICS
            for value in getattr(summary, name)
        ]
        words = [written(name, getattr(summary, name)) for name in plain]
        writer.writerow([*words, *numbers, better[method_of(summary)]])
    return text.getvalue().encode()


def written(name: str, value: object) -> object:
    """Returns N∧ as a whole number, nothing for NaN, and anything else as it is."""
    if name not in ("n_wedge", "n_wedge_used") or not isinstance(value, float):
        return value
    return "" if math.isnan(value) else int(value)
