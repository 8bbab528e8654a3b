"""Numbers with intervals over data size: the paper's Figures 4 to 6, claims, any experiment."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import surestep._drawing as pen
from surestep._arrays import AnyArray
from surestep.experiments.tables import algorithm_name, size_axis, words_for
from surestep.figures.panels import METRIC, N_WEDGE, Layout, Line, Panel, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPERS = {
    "basic-rl": pen.PURPLE,
    "spibb": pen.VERMILION,
    "spibb-2s": pen.BLUE,
    "spibb-beta": pen.GREEN,
}
COLOURS = (pen.BLUE, pen.ORANGE, pen.GREEN, pen.VERMILION, pen.PURPLE, pen.SKY, pen.GREY)
MARKERS = ("", "s", "^", "D")
SPREAD = 0.04  # how far apart intervals at one data size stand, in powers of ten
BAND: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.5}
# How a point looks whose interval has no lower end.
BARE: dict[str, Any] = {
    "marker": "o", "markersize": 3, "markerfacecolor": "white", "linestyle": "none",
}  # fmt: skip
BARS: dict[str, Any] = {"capsize": 2, "elinewidth": 0.8}
Looks = Mapping[Line, dict[str, Any]]
Series = tuple[dict[str, Any], list[Point]]


def draw_layout(layout: Layout, kind: str, look: pen.Look, *, intervals: bool, bars: bool) -> bytes:
    """Returns a picture of all panels, as a file of that kind.

    Intervals are light lines, or bars where points stand for themselves.
    """
    looks = looks_of(layout.names, layout.parts)
    sizes = {point.size for panel in layout.panels for point in panel.points}
    height, width = layout.shape
    with pen.drawing(4.2 * max(width, 1.3), 2.9 * height + 1.0, look) as figure:
        grid = figure.subplots(height, width, sharex=True, squeeze=False)
        for row in grid:
            for axes in row:
                axes.set_visible(False)
                # Panels of one row have one scale, unless the row holds different things.
                if axes is not row[0] and layout.columns not in (METRIC, "environment"):
                    axes.sharey(row[0])
                    axes.tick_params(labelleft=False)
        for panel in layout.panels:
            axes = grid[panel.row, panel.column]
            axes.set_visible(True)
            axes.set_xscale("log")
            pen.draw_levels(axes, levels_of(panel))
            series = series_of(panel, layout, looks)
            draw_series(axes, series, intervals=intervals, bars=bars or len(sizes) == 1)
            label_panel(axes, panel, layout)
        mark_sizes(grid, sizes, len(looks))
        add_legend(figure, layout, looks, intervals and not bars)
        return pen.rendered(figure, kind)


# ---- panels ------------------------------------------------------------------------------------


def series_of(panel: Panel, layout: Layout, looks: Looks) -> list[Series]:
    """Returns the look and the points of every line, by data size."""
    together: dict[Line, list[Point]] = {line: [] for line in looks}
    for point in sorted(panel.points, key=lambda point: point.size):
        together[layout.line(point)].append(point)
    return [(looks[line], points) for line, points in together.items()]


def draw_series(axes: Axes, series: Sequence[Series], *, intervals: bool, bars: bool) -> None:
    """Draws lines with light ones around them, as areas on top of each other would be grey.

    Or points with bars, side by side so that they can be told apart.
    """
    for place, (look, points) in enumerate(series):
        aside = 10 ** (SPREAD * (place - (len(series) - 1) / 2)) if bars else 1
        sizes = [point.size * aside for point in points]
        values, *ends = ([point.interval[which] for point in points] for which in range(3))
        reach = np.nan_to_num(np.abs(np.array(ends) - np.array(values)))
        shown = intervals and bool(reach.any() or not bars)
        if bars:
            look = look | {"marker": look["marker"] or "o"} | BARS
            axes.errorbar(sizes, values, reach if shown else None, **look)
        else:
            axes.plot(sizes, values, **look)
            for end in ends if shown else ():
                axes.plot(sizes, end, color=look["color"], **BAND)
        if shown:
            bare = [i for i, end in enumerate(ends[0]) if math.isnan(end)]
            axes.plot(sizes, values, markevery=bare, color=look["color"], **BARE)


def mark_sizes(grid: AnyArray, sizes: Collection[int], lines: int) -> None:
    """Puts ticks at the data sizes that were run, with numbers where there is room for them.

    Powers of ten have theirs first. One size alone has no scale of its own.
    """
    import matplotlib

    if len(sizes) == 1:
        (size,), room = sizes, 10 ** (SPREAD * (lines / 2 + 1))
        grid[0, 0].set_xlim(size / room, size * room)
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
    """Returns what points are compared with, where that is the same for all of the panel."""
    found = {}
    for name in dict.fromkeys(name for point in panel.points for name in point.levels):
        values = [point.levels[name] for point in panel.points if name in point.levels]
        if max(values) - min(values) <= 1e-9 * max(map(abs, values)):
            found[name] = max(values)
    return found


def label_panel(axes: Axes, panel: Panel, layout: Layout) -> None:
    """Writes what the panel is for above it, and what the axes are beside the outer ones."""
    is_broken = layout.shape[1] < len({other.of_column for other in layout.panels})
    if panel.row == 0 or is_broken:
        title = words_for(layout.columns, panel.of_column)
        title = (used_words(panel) if layout.columns == N_WEDGE else "") or title
        axes.set_title(pen.typeset(title), fontweight="normal")
    scale, first = panel.points[0].scale, layout.panels[0].points[0].scale
    if panel.column == 0 or (layout.columns == METRIC and scale != first):
        words = map(words_for, layout.rows, panel.of_row)
        axes.set_ylabel(pen.typeset("\n".join(filter(None, [scale, *words]))))
    last = max(other.row for other in layout.panels if other.column == panel.column)
    if panel.row == last:
        axes.set_xlabel(size_axis({point.environment for point in panel.points}))
    axes.tick_params(labelbottom=panel.row == last)


def used_words(panel: Panel) -> str:
    """Returns the N∧ that each method of the panel used, where they were converted from one."""
    pairs = dict.fromkeys(
        (str(point.parts["algorithm"]), point.n_wedge_used)
        for point in panel.points
        if point.n_wedge_used is not None
    )
    used = dict(pairs)
    if len(pairs) > len(used) or len(set(used.values())) < 2:
        return ""
    return "N∧:  " + ",  ".join(f"{algorithm_name(name)} {value}" for name, value in used.items())


# ---- looks -------------------------------------------------------------------------------------


def looks_of(lines: Iterable[Line], parts: Sequence[str]) -> dict[Line, dict[str, Any]]:
    """Returns a colour and a marker for each line.

    The paper's methods keep their colours, where each is one line; others take the rest in turn.
    Colours are Okabe and Ito's, which people with colour blindness tell apart; once they have all
    been used, markers tell the next ones from them.
    """
    place = parts.index("algorithm") if "algorithm" in parts else None
    names = {line: "" if place is None else str(line[place]) for line in lines}
    alone = len(set(names.values())) == len(names)
    fixed = {name: PAPERS[name] for name in names.values() if alone and name in PAPERS}
    free = [colour for colour in COLOURS if colour not in fixed.values()]
    turns = itertools.count()
    looks = {}
    for line, name in names.items():
        before, turn = (0, 0) if name in fixed else divmod(next(turns), len(free))
        looks[line] = {
            "color": fixed.get(name, free[turn]),
            "marker": MARKERS[before % len(MARKERS)],
            "markersize": 3.5,
            "linewidth": 1.5,
        }
    return looks


def add_legend(figure: Figure, layout: Layout, looks: Looks, bands: bool) -> None:
    """Puts a legend below the panels, of what is there only, in as many columns as have room."""
    import matplotlib
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **looks[line]) for line, name in layout.names.items()]
    there = dict.fromkeys(name for panel in layout.panels for name in levels_of(panel))
    handles += [
        Line2D([], [], ls=pen.DASHES.get(name, ":"), label=name, **pen.LEVEL) for name in there
    ]
    if bands:
        handles.append(Line2D([], [], color="black", label="95 % interval", **BAND))
        lows = [point.interval.low for panel in layout.panels for point in panel.points]
        if any(map(math.isnan, lows)):
            words = "too few to bound from below"
            handles.append(Line2D([], [], color="black", label=words, **BARE))
    letters = max(len(str(handle.get_label())) for handle in handles)
    width = 0.55 * float(matplotlib.rcParams["font.size"]) * (0.75 * letters + 7)  # of a column
    columns = max(1, min(int(72 * figure.get_figwidth() / width), len(handles)))
    for handle in handles:
        handle.set_label(pen.typeset(str(handle.get_label())))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
