"""The panel and the line of each point of a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from surestep._names import unknown
from surestep.errors import InvalidParameter, said
from surestep.experiments.intervals import Interval
from surestep.experiments.tables import words_for

MOST_PANELS = 40
MOST_COLUMNS = 4  # of panels that could as well stand in one row
MOST_LINES = 28  # that can be told apart: colours times markers
METRIC, N_WEDGE = "metric", "n-wedge"
Line = tuple[object, ...]  # the values of what tells lines apart


class Point(NamedTuple):
    """A number of a run at one data size, and what it is of."""

    size: int
    parts: Mapping[str, object]  # environment, algorithm, …; the metric is the last
    interval: Interval
    scale: str  # words at the axis of such numbers
    levels: Mapping[str, float]  # what to compare it with
    environment: str
    n_wedge_used: int | None = None


class Panel(NamedTuple):
    """A panel: its place, what its column and its row are for, and the points in it."""

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
    parts: tuple[str, ...]  # what tells lines apart
    names: dict[Line, str]

    def line(self, point: Point) -> Line:
        """Returns the line on which a point is."""
        return tuple(point.parts[part] for part in self.parts)


def layout_of(
    points: Sequence[Point], columns: str | None = None, rows: str | None = None
) -> Layout:
    """Returns the panels of the points, with columns and rows as asked for.

    Where nothing was asked for: a column for each N∧, if every algorithm that has one was run with
    each of them, as in the paper, or else for each environment or task; a row for each of these
    that has no column. Each metric has panels of its own: those of each row below each other, or,
    where columns are for nothing else, side by side.
    """
    check_parts(points, columns, rows)
    free = [part for part in usual_parts(points) if part not in (columns, rows)]
    if columns is None:
        columns = next(iter(free), "" if rows == METRIC else METRIC)
    if rows is None:
        rows = next((part for part in free if part not in (columns, N_WEDGE)), None)
    down = tuple(dict.fromkeys(p for p in (rows, METRIC) if p is not None and p != columns))
    across = values_for(points, columns)
    below = list(product(*(values_for(points, part) for part in down)))
    wraps = len(below) == 1
    panels = tuple(
        Panel(
            *(divmod(x, MOST_COLUMNS) if wraps else (y, x)),
            column,
            row,
            tuple(
                point
                for point in points
                if all(
                    fits(point, *each)
                    for each in zip((columns, *down), (column, *row), strict=True)
                )
            ),
        )
        for y, row in enumerate(below)
        for x, column in enumerate(across)
    )
    shape = 1 + max(panel.row for panel in panels), 1 + max(panel.column for panel in panels)
    parts = tuple(part for part in points[0].parts if part not in (METRIC, columns, *down))
    lines = dict.fromkeys(tuple(point.parts[part] for part in parts) for point in points)
    layout = Layout(columns, down, shape, panels, parts, line_names(list(lines), parts))
    check_drawable(layout)
    return layout


def check_parts(points: Sequence[Point], columns: str | None, rows: str | None) -> None:
    """Refuses columns and rows by what is no part, or both by the same."""
    known = list(points[0].parts)
    for part in (columns, rows):
        if part is not None and part not in known:
            raise unknown(f"there are no panels by {part!r}", part, known)
    if columns is not None and columns == rows:
        raise InvalidParameter(f"columns and rows are both by {columns}, expected two")


def usual_parts(points: Sequence[Point]) -> list[str]:
    """Returns what panels are for where nobody says so, the most important first."""
    pairs = {
        (p.parts["algorithm"], p.parts[N_WEDGE]) for p in points if p.parts.get(N_WEDGE) is not None
    }
    algorithms, given = ({pair[place] for pair in pairs} for place in (0, 1))
    complete = len(pairs) == len(algorithms) * len(given) > max(len(algorithms), len(given))
    several = [
        part for part in ("environment", "task") if len({p.parts.get(part) for p in points}) > 1
    ]
    return [N_WEDGE, *several] if complete else several


def check_drawable(layout: Layout) -> None:
    """Refuses more panels than fit into a picture, or more lines than can be told apart."""
    rows, columns = layout.shape
    if rows * columns > MOST_PANELS:
        raise InvalidParameter(
            f"{rows} × {columns} panels are too many to draw, expected at most {MOST_PANELS}; "
            f"choose with {said('environments and algorithms', '--environment and --algorithm')}, "
            f"or other panels with {said('columns and rows', '--columns and --rows')}"
        )
    if len(layout.names) > MOST_LINES:
        raise InvalidParameter(
            f"{len(layout.names)} lines cannot be told apart, expected at most {MOST_LINES}; "
            f"choose some with {said('algorithms', '--algorithm')}, or panels with "
            f"{said('columns=', '--columns ')}algorithm"
        )


def values_for(points: Sequence[Point], part: str) -> list[object]:
    """Returns the different values of a part, in order; numbers for N∧, unless there are none."""
    values = dict.fromkeys(point.parts.get(part) for point in points)
    if part == N_WEDGE:
        return sorted(value for value in values if value is not None) or [None]  # type: ignore[type-var]
    return list(values)


def fits(point: Point, part: str, value: object) -> bool:
    """Returns whether a point belongs there; methods without N∧ belong to each."""
    own = point.parts.get(part)
    return own == value or (part == N_WEDGE and own is None)


def line_names(lines: Sequence[Line], parts: Sequence[str]) -> dict[Line, str]:
    """Returns the lines with their names: settings are always named, one environment is not."""
    shown = [
        place
        for place, part in enumerate(parts)
        if part != "environment" or len({line[place] for line in lines}) > 1
    ]
    return {
        line: ", ".join(
            words_for(parts[place], line[place]) for place in shown if line[place] not in (None, "")
        )
        for line in lines
    }
