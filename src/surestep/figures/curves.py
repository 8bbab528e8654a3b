"""Curves of methods over data size: the paper's Figures 4 to 6, and those of any experiment."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
SPREAD = 0.04  # how far apart results at one data size stand, in powers of ten
LEVELS: dict[str, tuple[str, Literal["-", "--"]]] = {
    "behavior_performance": ("π_b", "-"),
    "optimal_performance": ("π*", "--"),
}
ALWAYS_TOLD = ("mean", "cvar10", "cvar1", "better", "worse")  # in the table beside the picture
LABELS = {
    "performance": "performance ρ",
    "gain": "gain ρ − ρ(π_b)",
    "normalised": "normalised performance",
}
LEVEL: dict[str, Any] = {"color": "black", "linewidth": 0.8, "zorder": 1}
BAND: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.5}
# How a point looks whose interval has no lower end.
BARE: dict[str, Any] = {
    "marker": "o", "markersize": 3, "markerfacecolor": "white", "linestyle": "none",
}  # fmt: skip


Looks = Mapping[Line, dict[str, Any]]


def draw_curves(run: Run, path: Path, request: Request) -> Files:
    """Draws metrics over data size for `path`, and the table beside it."""
    kind = picture_format(path)
    metrics, value = request.metrics or USUAL, request.value or "performance"
    for metric in metrics:
        metric_of(metric)
    rows = valued(selected(run, request.selection), value)
    reached = summaries(rows, list(dict.fromkeys([*ALWAYS_TOLD, *metrics])))
    layout = layout_of(reached, metrics, request.panels)
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
            draw_panel(axes, panel, layout, looks, request.bands)
            label_panel(axes, panel, layout, LABELS[value])
        mark_sizes(grid, {one.episodes for one in reached})
        add_legend(figure, layout, looks, request.bands)
        return {path: rendered(figure, kind), path.with_suffix(".csv"): as_csv(reached)}


# ---- panels ------------------------------------------------------------------------------------


def share_heights(grid: AnyArray, layout: Layout) -> None:
    """Lets panels of one row have one scale, unless the row holds different things."""
    if layout.columns not in ("metric", "environment"):
        for row in grid:
            for axes in row[1:]:
                axes.sharey(row[0])
                axes.tick_params(labelleft=False)


def draw_panel(axes: Axes, panel: Panel, layout: Layout, looks: Looks, bands: bool) -> None:
    """Draws the metric of every line in the panel, and the levels of π_b and π*."""
    for name, level in levels_of(panel).items():
        axes.axhline(level, linestyle=LEVELS[name][1], **LEVEL)
    axes.set_xscale("log")
    if len({one.episodes for one in panel.summaries}) == 1:  # which makes no lines
        draw_points(axes, panel, layout, looks, bands)
        return
    for line, look in looks.items():
        mine = sorted(
            (one for one in panel.summaries if layout.line(one) == line),
            key=lambda one: one.episodes,
        )
        sizes = [one.episodes for one in mine]
        intervals = [one.metrics[panel.metric] for one in mine]
        values = [interval.value for interval in intervals]
        axes.plot(sizes, values, **look)
        if bands:
            low, high = ([interval[end] for interval in intervals] for end in (1, 2))
            draw_band(axes, sizes, low, high, look["color"])
            bare = [place for place, end in enumerate(low) if math.isnan(end)]
            axes.plot(sizes, values, markevery=bare, color=look["color"], **BARE)


def draw_points(axes: Axes, panel: Panel, layout: Layout, looks: Looks, bands: bool) -> None:
    """Draws results at one data size: points with their intervals, side by side."""
    size = panel.summaries[0].episodes
    points = [
        (looks[line]["color"], one.metrics[panel.metric])
        for line in looks
        for one in panel.summaries
        if layout.line(one) == line
    ]
    for place, (colour, interval) in enumerate(points):
        left = size * 10 ** (SPREAD * (place - (len(points) - 1) / 2))
        ends = [[0.0 if math.isnan(end) else abs(interval.value - end)] for end in interval[1:]]
        inside = "white" if bands and math.isnan(interval.low) else colour
        axes.errorbar(
            [left], [interval.value], ends if bands else None, fmt="o", color=colour, markersize=5,
            capsize=3, elinewidth=1.2, markerfacecolor=inside,
        )  # fmt: skip
    room = 10 ** (SPREAD * (len(points) / 2 + 1))
    axes.set_xlim(size / room, size * room)


def draw_band(
    axes: Axes, places: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> None:
    """Draws both ends as light lines: areas on top of each other would be one grey block."""
    for end in (low, high):
        axes.plot(places, end, color=colour, **BAND)


def mark_sizes(grid: AnyArray, sizes: Collection[int]) -> None:
    """Puts ticks at the data sizes that were run, with numbers where there is room for them.

    Powers of ten have theirs first.
    """
    import matplotlib

    letter = 0.64 * float(matplotlib.rcParams["font.size"]) / 72  # inches
    wide = letter * (1 + max(len(short(size)) for size in sizes))
    panel = 0.85 * grid[0, 0].figure.get_figwidth() / grid.shape[1]
    apart = wide / panel * math.log10(max(sizes) / min(sizes))  # in powers of ten
    named: list[int] = []
    for size in sorted(sizes, key=lambda size: (str(size).rstrip("0") != "1", size)):
        if all(abs(math.log10(size / other)) >= apart for other in named):
            named.append(size)
    grid[0, 0].set_xticks(sorted(sizes), [short(x) if x in named else "" for x in sorted(sizes)])
    grid[0, 0].minorticks_off()


def short(size: int) -> str:
    """Returns 2000 as 2k, and what are no whole thousands as it is."""
    return f"{size:,}" if size % 1000 else f"{size // 1000:,}k"


def levels_of(panel: Panel) -> dict[str, float]:
    """Returns what π_b and π* reach, where that is the same for all of the panel."""
    found = {}
    for name in () if metric_of(panel.metric).is_share else LEVELS:
        values = {getattr(one, name) for one in panel.summaries}
        if values and max(values) - min(values) <= 1e-9 * max(map(abs, values)):
            found[name] = max(values)
    return found


def is_bare(panel: Panel) -> bool:
    """Returns whether a point of the panel has no lower end."""
    return any(math.isnan(one.metrics[panel.metric].low) for one in panel.summaries)


def label_panel(axes: Axes, panel: Panel, layout: Layout, label: str) -> None:
    """Writes what the panel is for above it, and what the axes are beside the outer ones."""
    title = words_for(layout.columns, panel.of_column)
    if layout.columns == "n-wedge" and panel.row == 0:
        title = used_words(panel) or title
    is_broken = layout.shape[1] < len({other.of_column for other in layout.panels})
    if panel.row == 0 or is_broken:
        axes.set_title(typeset(title), fontweight="normal")
    share = metric_of(panel.metric).is_share
    is_other = layout.columns == "metric" and share != metric_of(layout.panels[0].metric).is_share
    if panel.column == 0 or is_other:
        words = [
            "share of repetitions" if share else label,
            words_for(layout.rows, panel.of_row) if layout.rows != "metric" else "",
            metric_name(panel.metric) if layout.columns != "metric" else "",
        ]
        axes.set_ylabel(typeset("\n".join(filter(None, words))))
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


def add_legend(figure: Figure, layout: Layout, looks: Looks, bands: bool) -> None:
    """Adds the legend, of what is there only."""
    from matplotlib.lines import Line2D

    handles = line_handles(layout.names, looks)
    there = {name for panel in layout.panels for name in levels_of(panel)}
    for name, (label, dashes) in LEVELS.items():
        if name in there:
            handles.append(Line2D([], [], linestyle=dashes, label=typeset(label), **LEVEL))
    if bands:
        handles.append(band_handle())
    if bands and any(map(is_bare, layout.panels)):
        handles.append(Line2D([], [], color="black", label="too few to bound from below", **BARE))
    legend_below(figure, handles)


def band_handle() -> Line2D:
    """Returns the line of a legend for the ends of bands."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color="black", label="95 % interval", **BAND)


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
