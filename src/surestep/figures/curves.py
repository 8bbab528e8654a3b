"""Draws numbers with intervals over data size, like Figures 4 to 6 of the paper, in panels."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import surestep._drawing as pen
from surestep._arrays import AnyArray
from surestep._names import unknown
from surestep.errors import InvalidParameter, said
from surestep.experiments.intervals import Interval
from surestep.experiments.tables import algorithm_name, size_axis, words_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 40
MOST_COLUMNS = 3  # in a row; with more, letters are too small on a page
MOST_LINES = 28  # lines of one colour: markers times dashes
METRIC = "metric"
N_WEDGE = "n-wedge"
Line = tuple[object, ...]  # the values of the parts by which lines differ


class Point(NamedTuple):
    """A number of a run at one data size, with its environment, method and metric."""

    size: int
    parts: Mapping[str, object]  # environment, algorithm, …; the metric is the last
    interval: Interval
    scale: str  # label of the axis
    levels: Mapping[str, float]  # name → level to draw beside it
    environment: str
    n_wedge_used: int | None = None


class Panel(NamedTuple):
    """A panel: its place in the grid, the values of its column and row, and its points."""

    row: int
    column: int
    of_column: object
    of_row: tuple[object, ...]
    points: tuple[Point, ...]


class Layout(NamedTuple):
    """A grid of panels, and the names of the lines in them."""

    columns: str
    rows: tuple[str, ...]
    shape: tuple[int, int]
    panels: tuple[Panel, ...]
    parts: tuple[str, ...]  # parts by which lines differ
    names: dict[Line, str]


def layout_of(
    points: Sequence[Point], columns: str | None = None, rows: str | None = None
) -> Layout:
    """Returns the panels of the points, with columns and rows as asked for.

    By default there is a column for each N∧, if every algorithm with an N∧ was run with each of
    them, as in the paper. Otherwise there is one for each environment or task, if these are at most
    three, or else for each metric. Environments or tasks and metrics without columns have rows.
    After three panels, a row continues below.
    """
    for part in (columns, rows):
        if part is not None and part not in points[0].parts:
            raise unknown(f"there are no panels by {part!r}", part, points[0].parts)
    if columns is not None and columns == rows:
        raise InvalidParameter(f"columns and rows are both by {columns}, expected two")
    free = [part for part in usual_parts(points) if part not in (columns, rows)]
    if columns is None:
        columns = next(iter(free), "" if rows == METRIC else METRIC)
        if columns != N_WEDGE and rows is None and len(values_for(points, columns)) > MOST_COLUMNS:
            columns = METRIC
    if rows is None:
        rows = next((part for part in free if part not in (columns, N_WEDGE)), None)
    down = tuple(dict.fromkeys(p for p in (rows, METRIC) if p is not None and p != columns))
    across = values_for(points, columns)
    height = math.ceil(len(across) / MOST_COLUMNS)
    below = list(itertools.product(*(values_for(points, part) for part in down)))
    panels = tuple(
        Panel(
            y * height + x // MOST_COLUMNS,
            x % MOST_COLUMNS,
            column,
            row,
            tuple(
                point
                for point in points
                if all(map(partial(belongs, point), (columns, *down), (column, *row)))
            ),
        )
        for y, row in enumerate(below)
        for x, column in enumerate(across)
    )
    shape = len(below) * height, min(len(across), MOST_COLUMNS)
    parts = tuple(part for part in points[0].parts if part not in (METRIC, columns, *down))
    lines = dict.fromkeys(tuple(point.parts[part] for part in parts) for point in points)
    if math.prod(shape) > MOST_PANELS or len(lines) > MOST_LINES:
        raise InvalidParameter(
            f"{math.prod(shape)} panels, {len(lines)} lines, expected at most {MOST_PANELS} and "
            f"{MOST_LINES}; take some "
            f"{said('environments and algorithms', '--environment and --algorithm')}, or "
            f"other panels with {said('columns and rows', '--columns and --rows')}"
        )
    return Layout(columns, down, shape, panels, parts, line_names(list(lines), parts))


def usual_parts(points: Sequence[Point]) -> list[str]:
    """Returns the parts by which panels differ by default, the most important first."""
    pairs = {
        (p.parts["algorithm"], p.parts[N_WEDGE]) for p in points if p.parts.get(N_WEDGE) is not None
    }
    algorithms, given = ({pair[place] for pair in pairs} for place in (0, 1))
    complete = len(pairs) == len(algorithms) * len(given) > max(len(algorithms), len(given))
    several = [
        part for part in ("environment", "task") if len({p.parts.get(part) for p in points}) > 1
    ]
    return [N_WEDGE, *several] if complete else several


def values_for(points: Sequence[Point], part: str) -> list[object]:
    """Returns the distinct values of a part, in order; for N∧ only numbers, or None alone."""
    values = dict.fromkeys(point.parts.get(part) for point in points)
    if part == N_WEDGE:
        return sorted(value for value in values if value is not None) or [None]  # type: ignore[type-var]
    return list(values)


def belongs(point: Point, part: str, value: object) -> bool:
    """Tells whether a point has this value of a part; methods without N∧ fit every N∧."""
    own = point.parts.get(part)
    return own == value or (part == N_WEDGE and own is None)


def line_names(lines: Sequence[Line], parts: Sequence[str]) -> dict[Line, str]:
    """Names each line by its settings; leaves out an environment or task that all lines share."""
    shown = [
        place
        for place, part in enumerate(parts)
        if part not in ("environment", "task") or len({line[place] for line in lines}) > 1
    ]
    return {
        line: ", ".join(
            words_for(parts[place], line[place]) for place in shown if line[place] not in (None, "")
        )
        for line in lines
    }


# ---- the picture ---------------------------------------------------------------------------------

MARKERS = ("", "s", "^", "D", "v", "X", "P")
DASHES = ("-", "--", "-.", ":")
PANEL = (3.4, 2.4)  # inches
ROWS_WITH_ROOM = 4  # of the legend; a picture with more is higher
SPREAD = 0.04  # how far apart intervals at one data size stand, in powers of ten
BAND: dict[str, Any] = {"linewidth": 0.7, "alpha": 0.5}
# The look of a point whose interval has no lower end.
BARE: dict[str, Any] = {
    "marker": "o", "markersize": 3, "markerfacecolor": "white", "linestyle": "none",
}  # fmt: skip
BARS: dict[str, Any] = {"capsize": 2, "elinewidth": 0.8}
Look = dict[str, Any]  # of a line


def draw_layout(layout: Layout, kind: str, *, intervals: bool, bars: bool) -> bytes:
    """Returns a picture of all panels, as a file of that kind.

    Intervals are light lines beside the lines, or with `bars` a bar at each point.
    """
    looks = looks_of(layout.names, layout.parts)
    sizes = {point.size for panel in layout.panels for point in panel.points}
    height, width = layout.shape
    with pen.drawing(PANEL[0] * max(width, 1.5), PANEL[1] * height + 1.0) as figure:
        # Panels of one row have one scale, unless the row holds different things.
        one_scale = layout.columns not in (METRIC, "environment")
        grid = figure.subplots(
            height, width, sharex=True, sharey="row" if one_scale else "none", squeeze=False
        )
        for panel in layout.panels:
            axes = grid[panel.row, panel.column]
            axes.set_xscale("log")
            pen.draw_levels(axes, levels_of(panel))
            together: dict[Line, list[Point]] = {line: [] for line in looks}
            for point in sorted(panel.points, key=lambda point: point.size):
                together[tuple(point.parts[part] for part in layout.parts)].append(point)
            draw_series(
                axes,
                [(looks[line], points) for line, points in together.items()],
                intervals=intervals,
                bars=bars or len(sizes) == 1,
            )
            label_panel(axes, panel, layout)
        for axes in grid.flat:
            axes.set_visible(axes.has_data())
        mark_sizes(grid, sizes, len(looks))
        add_legend(figure, layout, looks, intervals and not bars)
        return pen.rendered(figure, kind)


# ---- panels ------------------------------------------------------------------------------------


def draw_series(
    axes: Axes, series: Sequence[tuple[Look, list[Point]]], *, intervals: bool, bars: bool
) -> None:
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
            axes.plot(
                sizes,
                values,
                markevery=[i for i, end in enumerate(ends[0]) if math.isnan(end)],
                color=look["color"],
                **BARE,
            )


def mark_sizes(grid: AnyArray, sizes: Collection[int], lines: int) -> None:
    """Puts ticks at the data sizes that were run, with numbers where there is room for them.

    Powers of ten have theirs first. One size alone has no scale of its own.
    """
    if len(sizes) == 1:
        room = 10 ** (SPREAD * (lines / 2 + 1))
        grid[0, 0].set_xlim(min(sizes) / room, min(sizes) * room)
    letter = 0.64 * pen.STYLE["font.size"] / 72  # inches
    wide = letter * (1 + max(len(short_size(size)) for size in sizes))
    panel = 0.85 * grid[0, 0].figure.get_figwidth() / grid.shape[1]
    apart = wide / panel * math.log10(max(sizes) / min(sizes))  # in powers of ten
    named: list[int] = []
    for size in sorted(sizes, key=lambda size: (str(size).rstrip("0") != "1", size)):
        if all(abs(math.log10(size / other)) >= apart for other in named):
            named.append(size)
    grid[0, 0].set_xticks(
        sorted(sizes), [short_size(x) if x in named else "" for x in sorted(sizes)]
    )
    grid[0, 0].minorticks_off()


def short_size(size: int) -> str:
    """Returns 2000 as 2k, and other numbers than whole thousands as they are."""
    return f"{size:,}" if size % 1000 else f"{size // 1000:,}k"


def levels_of(panel: Panel) -> dict[str, float]:
    """Returns the levels to compare points with, if all points of the panel share them."""
    levels = {}
    for name in dict.fromkeys(name for point in panel.points for name in point.levels):
        values = [point.levels[name] for point in panel.points if name in point.levels]
        if max(values) - min(values) <= 1e-9 * max(map(abs, values)):
            levels[name] = max(values)
    return levels


def label_panel(axes: Axes, panel: Panel, layout: Layout) -> None:
    """Writes the title of a panel, and the labels of axes at the outer panels.

    The name of a row stands beside it; if columns are metrics, it stands above its first panel.
    """
    used = used_words(panel) if layout.columns == N_WEDGE else ""
    title = used or words_for(layout.columns, panel.of_column)
    scale = panel.points[0].scale
    of_row = [*map(words_for, layout.rows, panel.of_row)]
    if layout.columns != METRIC:
        beside = [scale, *of_row] if panel.column == 0 else []
    else:
        first = layout.panels[0].points[0].scale
        beside = [scale] if panel.column == 0 or scale != first else []
        if panel.column == 0:
            title = "\n".join([*of_row, title])
    wraps = layout.shape[1] < len({other.of_column for other in layout.panels})
    if panel.row == 0 or wraps or layout.columns == METRIC:
        axes.set_title(pen.typeset(title), fontweight="normal")
    axes.set_ylabel(pen.typeset("\n".join(filter(None, beside))))
    last = max(other.row for other in layout.panels if other.column == panel.column)
    if panel.row == last:
        axes.set_xlabel(size_axis({point.environment for point in panel.points}))
    axes.tick_params(labelbottom=panel.row == last)


def used_words(panel: Panel) -> str:
    """Returns the N∧ that each method used as text, if they differ; else an empty text."""
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


def looks_of(lines: Iterable[Line], parts: Sequence[str]) -> dict[Line, Look]:
    """Returns the look of each line: the colour of its method, which is the same in all pictures.

    Markers, and once they are used up dashes, tell lines of one colour apart.
    """
    looks = {}
    turns = Counter[str]()
    for line in lines:
        of = dict(zip(parts, map(str, line), strict=True))
        kind = of.get("claim", "").partition(",")[0]
        colour = pen.colour_of(of.get("algorithm") or kind or str(line))
        dashes, marker = divmod(turns[colour], len(MARKERS))
        turns[colour] += 1
        looks[line] = {
            "color": colour,
            "marker": MARKERS[marker],
            "linestyle": DASHES[dashes],
            "markersize": 3.5,
            "linewidth": 1.5,
        }
    return looks


def add_legend(figure: Figure, layout: Layout, looks: Mapping[Line, Look], bands: bool) -> None:
    """Puts a legend of the lines and levels below the panels, in as many columns as have room."""
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
            handles.append(
                Line2D([], [], color="black", label="too few to bound from below", **BARE)
            )
    letters = max(len(str(handle.get_label())) for handle in handles)
    width = 0.55 * pen.STYLE["font.size"] * (0.9 * letters + 8)  # of a column
    columns = max(1, min(int(72 * figure.get_figwidth() / width), len(handles)))
    for handle in handles:
        handle.set_label(pen.typeset(str(handle.get_label())))
    below = math.ceil(len(handles) / columns) - ROWS_WITH_ROOM
    figure.set_figheight(figure.get_figheight() + 0.22 * max(below, 0))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
