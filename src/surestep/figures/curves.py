"""Curves of methods over data size: the paper's Figures 4 to 6, and those of any experiment."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from surestep._arrays import AnyArray
from surestep._drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    drawing,
    picture_format,
    rendered,
)
from surestep.experiments import Method, Run, Summary, first_better, selected, summaries, valued
from surestep.experiments.metrics import USUAL, metric_of
from surestep.experiments.naming import algorithm_name, metric_name, size_axis, typeset
from surestep.experiments.panels import (
    Layout,
    Line,
    Panel,
    check_drawable,
    colours_of,
    layout_of,
    words_for,
)
from surestep.figures.request import Files, Request

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = {
    "blue": BLUE,
    "orange": ORANGE,
    "green": GREEN,
    "vermilion": VERMILION,
    "purple": PURPLE,
    "sky": SKY,
    "grey": GREY,
}
MARKERS = ("", "s", "^", "D")
MARKS = ("o", "s", "^", "D")  # of metrics, where there are no lines
SPREAD = 0.04  # how far apart results at one data size stand, in powers of ten
DASHES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")
ALWAYS_TOLD = ("mean", "cvar10", "cvar1", "better", "worse")  # in the table beside the picture
LABELS = {
    "performance": "performance ρ",
    "gain": "gain ρ − ρ(π_b)",
    "normalised": "normalised performance",
}
# How a point looks whose interval has no lower end.
BARE: dict[str, Any] = {
    "marker": "o", "markersize": 3, "markerfacecolor": "white", "linestyle": "none",
}  # fmt: skip


Looks = Mapping[Line, dict[str, Any]]


class Shown(NamedTuple):
    """The subject of the lines of a figure."""

    metrics: Sequence[str]
    value: str


def draw_curves(run: Run, path: Path, request: Request) -> Files:
    """Draws metrics over data size for `path`, and the table beside it."""
    kind = picture_format(path)
    asked = Shown(request.metrics or USUAL, request.value or "performance")
    for metric in asked.metrics:
        metric_of(metric)
    rows = valued(selected(run, request.selection), asked.value)
    reached = summaries(rows, list(dict.fromkeys([*ALWAYS_TOLD, *asked.metrics])))
    layout = layout_of(reached, asked.metrics, request.panels)
    check_drawable(layout)
    looks = looks_of(layout.names, layout.parts)
    height, width = layout.shape
    with drawing(4.2 * max(width, 1.3), 2.9 * height + 1.0, request.look) as figure:
        grid = figure.subplots(height, width, sharex=True, squeeze=False)
        share_heights(grid, layout)
        for axes in grid.flat:
            axes.set_visible(False)
        for panel in layout.panels:
            axes = grid[panel.row, panel.column]
            axes.set_visible(True)
            draw_panel(axes, panel, layout, looks, asked)
            label_panel(axes, panel, layout, asked)
        add_legend(figure, layout, looks, asked)
        return {path: rendered(figure, kind), path.with_suffix(".csv"): as_csv(reached)}


# ---- panels ------------------------------------------------------------------------------------


def share_heights(grid: AnyArray, layout: Layout) -> None:
    """Lets panels of one row have one scale, unless the row holds different things."""
    if layout.columns not in ("metric", "environment"):
        for row in grid:
            for axes in row[1:]:
                axes.sharey(row[0])
                axes.tick_params(labelleft=False)


def draw_panel(axes: Axes, panel: Panel, layout: Layout, looks: Looks, asked: Shown) -> None:
    """Draws the metrics of every line in the panel, and the levels of π_b and π*."""
    for level, colour in levels_of(panel):
        axes.axhline(level, color=colour, linewidth=1, zorder=1)
    axes.set_xscale("log")
    if is_one_size(panel):
        draw_points(axes, panel, layout, looks, asked)
        return
    for line, look in looks.items():
        mine = sorted(
            (one for one in panel.summaries if layout.line(one) == line),
            key=lambda one: one.episodes,
        )
        sizes = [one.episodes for one in mine]
        for metric in panel.metrics if mine else ():
            dashes = DASHES[asked.metrics.index(metric) % len(DASHES)]
            if len(panel.metrics) == 1:
                dashes = "-"
            intervals = [one.metrics[metric] for one in mine]
            values = [interval.value for interval in intervals]
            axes.plot(sizes, values, linestyle=dashes, **look)
            low, high = ([interval[end] for interval in intervals] for end in (1, 2))
            draw_band(axes, sizes, low, high, look["color"])
            bare = [place for place, end in enumerate(low) if math.isnan(end)]
            axes.plot(sizes, values, markevery=bare, color=look["color"], **BARE)


def is_one_size(panel: Panel) -> bool:
    """Returns whether there is only one data size, so that there are no lines."""
    return len({one.episodes for one in panel.summaries}) == 1


def draw_points(axes: Axes, panel: Panel, layout: Layout, looks: Looks, asked: Shown) -> None:
    """Draws results at one data size: points with their intervals, side by side."""
    size = panel.summaries[0].episodes
    points = [
        (looks[line]["color"], metric, one.metrics[metric])
        for line in looks
        for one in panel.summaries
        if layout.line(one) == line
        for metric in panel.metrics
    ]
    for place, (colour, metric, interval) in enumerate(points):
        left = size * 10 ** (SPREAD * (place - (len(points) - 1) / 2))
        ends = [[0.0 if math.isnan(end) else abs(interval.value - end)] for end in interval[1:]]
        inside = "white" if math.isnan(interval.low) else colour
        mark = MARKS[asked.metrics.index(metric) % len(MARKS)]
        axes.errorbar(
            [left], [interval.value], ends, fmt=mark, color=colour, markersize=5, capsize=3,
            elinewidth=1.2, markerfacecolor=inside,
        )  # fmt: skip
    room = 10 ** (SPREAD * (len(points) / 2 + 1))
    axes.set_xlim(size / room, size * room)
    axes.set_xticks([size], [f"{size:,}"])
    axes.minorticks_off()


def draw_band(
    axes: Axes, places: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> None:
    """Draws the room between two lines, so that several on top of each other can be told apart."""
    axes.fill_between(places, low, high, color=colour, alpha=0.1, linewidth=0)
    for end in (low, high):
        axes.plot(places, end, color=colour, linewidth=0.5, alpha=0.6)


def levels_of(panel: Panel) -> list[tuple[float, str]]:
    """Returns what π_b and π* reach, where that is the same for all of the panel."""
    if any(metric_of(metric).is_share for metric in panel.metrics):
        return []
    found = []
    for name, colour in (("behavior_performance", "black"), ("optimal_performance", GREY)):
        values = {getattr(one, name) for one in panel.summaries}
        if values and max(values) - min(values) <= 1e-9 * max(map(abs, values)):
            found.append((max(values), colour))
    return found


def is_bare(panel: Panel) -> bool:
    """Returns whether a point of the panel has no lower end."""
    return any(math.isnan(one.metrics[m].low) for one in panel.summaries for m in panel.metrics)


def label_panel(axes: Axes, panel: Panel, layout: Layout, asked: Shown) -> None:
    """Writes what the panel is for above it, and what the axes are beside the outer ones."""
    title = words_for(layout.columns, panel.of_column)
    if layout.columns == "n-wedge" and panel.row == 0:
        title = used_words(panel) or title
    if panel.row == 0 or layout.rows is None:
        axes.set_title(typeset(title), fontweight="normal")
    if panel.column == 0:
        label = LABELS[asked.value]
        if any(metric_of(metric).is_share for metric in panel.metrics):
            label = "share of repetitions"
        axes.set_ylabel(
            typeset("\n".join(filter(None, [label, words_for(layout.rows, panel.of_row)])))
        )
    last = max(other.row for other in layout.panels if other.column == panel.column)
    if panel.row == last:
        axes.set_xlabel(size_axis({one.environment for one in panel.summaries}))
    axes.tick_params(labelbottom=panel.row == last)


def used_words(panel: Panel) -> str:
    """Returns the N∧ that each method of the panel used, where they were converted from one."""
    used = {
        one.method.algorithm: one.n_wedge_used
        for one in panel.summaries
        if one.n_wedge_used is not None
    }
    several = {
        (one.method.algorithm, one.n_wedge_used)
        for one in panel.summaries
        if one.n_wedge_used is not None
    }
    if len(several) > len(used) or len(set(used.values())) < 2:
        return ""
    return "N∧:  " + ",  ".join(f"{algorithm_name(name)} {value}" for name, value in used.items())


# ---- looks -------------------------------------------------------------------------------------


def looks_of(lines: Iterable[Line], parts: Sequence[str]) -> dict[Line, dict[str, Any]]:
    """Returns a colour and a marker for each line; those of the paper's methods are always theirs.

    Colours are Okabe and Ito's, which people with colour blindness tell apart; once they have all
    been used, markers tell the next ones from them.
    """
    return {
        line: {
            "color": COLOURS[colour],
            "marker": MARKERS[before % len(MARKERS)],
            "markersize": 3.5,
            "linewidth": 1.5,
        }
        for line, (colour, before) in colours_of(lines, parts, list(COLOURS)).items()
    }


def add_legend(figure: Figure, layout: Layout, looks: Looks, asked: Shown) -> None:
    """Adds the legend, of what is there only: colours are lines, dashes are metrics."""
    from matplotlib.lines import Line2D

    handles = line_handles(layout.names, looks)
    if any(len(panel.metrics) > 1 for panel in layout.panels):
        alone = all(map(is_one_size, layout.panels))
        for place, metric in enumerate(asked.metrics):
            dashes, mark = DASHES[place % len(DASHES)], MARKS[place % len(MARKS)]
            sign = {"linestyle": "none", "marker": mark} if alone else {"linestyle": dashes}
            label = typeset(metric_name(metric))
            handles.append(Line2D([], [], color="black", label=label, **cast(Any, sign)))
    colours = {colour for panel in layout.panels for _, colour in levels_of(panel)}
    for colour, name in (("black", "π_b"), (GREY, "π*")):
        if colour in colours:
            handles.append(Line2D([], [], color=colour, linewidth=1, label=typeset(name)))
    if any(map(is_bare, layout.panels)):
        handles.append(Line2D([], [], color="black", label="too few to bound from below", **BARE))
    legend_below(figure, handles)


def line_handles(names: Mapping[Line, str], looks: Looks) -> list[Line2D]:
    """Returns the lines of a legend, one for each name."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=typeset(name), **looks[line]) for line, name in names.items()]


def legend_below(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Puts a legend below the panels, in as many columns as there is room for."""
    import matplotlib

    signs = re.compile(r"\\\w+|\$")  # a command of LaTeX is about as wide as its dollar signs
    letters = max(len(signs.sub("", str(handle.get_label()))) for handle in handles)
    width = 0.55 * float(matplotlib.rcParams["font.size"]) * (0.75 * letters + 7)  # of a column
    columns = max(1, min(int(72 * figure.get_figwidth() / width), len(handles)))
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)


# ---- the table beside it -----------------------------------------------------------------------


def as_csv(reached: Sequence[Summary]) -> bytes:
    """Returns all summaries as CSV, one a line, metrics with the ends of their intervals.

    An end that the repetitions are too few for is empty. `first_better` is the data size from which
    on the method's mean beats π_b, empty for never.
    """
    better = first_better(reached)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    metrics = list(reached[0].metrics)
    plain = ("n_wedge_used", "repetitions", "behavior_performance", "optimal_performance")
    ends = [f"{name}{end}" for name in metrics for end in ("", "_low", "_high")]
    writer.writerow(["environment", "episodes", *Method._fields, *plain, *ends, "first_better"])
    for one in reached:
        numbers = [
            "" if math.isnan(value) else value for name in metrics for value in one.metrics[name]
        ]
        facts = [getattr(one, name) for name in plain]
        first = better[one.environment, one.method]
        writer.writerow([one.environment, one.episodes, *one.method, *facts, *numbers, first])
    return text.getvalue().encode()
