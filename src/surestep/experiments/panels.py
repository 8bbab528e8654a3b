"""The panel and the line of each result, in a figure or on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from surestep._names import unknown
from surestep.errors import InvalidParameter, said
from surestep.experiments.metrics import Summary
from surestep.experiments.naming import (
    algorithm_name,
    environment_name,
    metric_name,
    setting_words,
)

MOST_PANELS = 40
MOST_COLUMNS = 4  # of panels that could as well stand in one row
MOST_LINES = 28  # that can be told apart: colours times markers
PARTS = ("environment", "algorithm", "setting", "n-wedge", "metric")
OF_LINES = PARTS[:-1]  # a metric has panels of its own
PAPERS = {  # the colours of the paper's methods, which are the same everywhere
    "basic-rl": "purple",
    "spibb": "vermilion",
    "spibb-2s": "blue",
    "spibb-beta": "green",
}
Line = tuple[object, ...]  # the values of what tells lines apart


@dataclass(frozen=True, slots=True)
class Panels:
    """The subjects of columns and rows of panels; None: as suits what there is to draw."""

    columns: str | None = None
    rows: str | None = None

    def __post_init__(self) -> None:
        """Checks the names."""
        for part in (self.columns, self.rows):
            if part is not None and part not in PARTS:
                raise unknown(f"there are no panels by {part!r}", part, PARTS)
        if self.columns is not None and self.columns == self.rows:
            raise InvalidParameter(f"columns and rows are both by {self.columns}, expected two")


class Panel(NamedTuple):
    """A panel: its place, what it is for, and the results and the metric in it."""

    row: int
    column: int
    of_column: object
    of_row: object
    summaries: tuple[Summary, ...]
    metric: str


class Layout(NamedTuple):
    """A grid of panels, and the names of the lines in them."""

    columns: str | None
    rows: str | None
    shape: tuple[int, int]
    panels: tuple[Panel, ...]
    parts: tuple[str, ...]  # what tells lines apart
    names: dict[Line, str]

    def line(self, summary: Summary) -> Line:
        """Returns the line on which a summary is a point."""
        return tuple(part_of(summary, part) for part in self.parts)


def layout_of(
    summaries: Sequence[Summary], metrics: Sequence[str], asked: Panels | None = None
) -> Layout:
    """Returns the panels of the summaries.

    Where nothing was asked for: a column for each N∧, if every algorithm that has one was run with
    each of them, as in the paper, or else for each environment; a row for each environment that has
    no column. Each metric has panels of its own: those of each row below each other, or, where
    columns are for nothing else, side by side.
    """
    columns, rows = (None, None) if asked is None else (asked.columns, asked.rows)
    free = [part for part in usual_parts(summaries) if part not in (columns, rows)]
    if columns is None:
        columns = next(iter(free), None if rows == "metric" else "metric")
    if rows is None:
        rows = next((part for part in free if part not in (columns, "n-wedge")), None)
    across = values_for(columns, summaries, metrics)
    below = [""] if "metric" in (columns, rows) else metrics
    down = list(product(values_for(rows, summaries, metrics), below))
    wraps = len(down) == 1
    panels = tuple(
        Panel(
            *(divmod(x, MOST_COLUMNS) if wraps else (y, x)),
            column,
            row,
            tuple(s for s in summaries if fits(s, columns, column) and fits(s, rows, row)),
            str({columns: column, rows: row}.get("metric", metric)),
        )
        for y, (row, metric) in enumerate(down)
        for x, column in enumerate(across)
    )
    shape = 1 + max(panel.row for panel in panels), 1 + max(panel.column for panel in panels)
    parts = tuple(part for part in OF_LINES if part not in (columns, rows))
    lines = dict.fromkeys(tuple(part_of(s, part) for part in parts) for s in summaries)
    return Layout(columns, rows, shape, panels, parts, names_of(list(lines), parts))


def usual_parts(summaries: Sequence[Summary]) -> Iterator[str]:
    """Yields what panels are for where nobody says so, the most important first."""
    pairs = {
        (one.method.algorithm, one.method.n_wedge)
        for one in summaries
        if one.method.n_wedge is not None
    }
    algorithms, given = ({pair[place] for pair in pairs} for place in (0, 1))
    if len(algorithms) > 1 and len(given) > 1 and len(pairs) == len(algorithms) * len(given):
        yield "n-wedge"
    if len({one.environment for one in summaries}) > 1:
        yield "environment"


def check_drawable(layout: Layout) -> None:
    """Refuses more panels than fit into a picture, or more lines than can be told apart."""
    check_number(*layout.shape)
    check_lines(len(layout.names))


def check_number(rows: int, columns: int) -> None:
    """Refuses more panels than can be drawn."""
    if rows * columns > MOST_PANELS:
        raise InvalidParameter(
            f"{rows} × {columns} panels are too many to draw, expected at most {MOST_PANELS}; "
            f"choose with {said('environments and algorithms', '--environment and --algorithm')}, "
            f"or other panels with {said('columns and rows', '--columns and --rows')}"
        )


def check_lines(lines: int) -> None:
    """Refuses more lines than can be told apart."""
    if lines > MOST_LINES:
        raise InvalidParameter(
            f"{lines} lines cannot be told apart, expected at most {MOST_LINES}; choose some with "
            f"{said('algorithms', '--algorithm')}, or panels with "
            f"{said('columns=', '--columns ')}algorithm"
        )


def values_for(
    part: str | None, summaries: Sequence[Summary], metrics: Sequence[str]
) -> list[object]:
    """Returns the different values of what columns or rows are for, in order."""
    if part is None:
        return [None]
    if part == "metric":
        return list(metrics)
    if part == "n-wedge":
        given = {one.method.n_wedge for one in summaries if one.method.n_wedge is not None}
        return [*sorted(given)] or [None]
    return list(dict.fromkeys(part_of(one, part) for one in summaries))


def part_of(summary: Summary, part: str) -> object:
    """Returns the environment, or a part of the method, of a summary."""
    method = summary.method
    match part:
        case "environment":
            return summary.environment
        case "algorithm":
            return method.algorithm
        case "setting":
            return method.setting
    return method.n_wedge


def fits(summary: Summary, part: str | None, value: object) -> bool:
    """Returns whether a summary belongs there; methods without N∧ belong to each."""
    if part is None or part == "metric":
        return True
    own = part_of(summary, part)
    return own == value or (part == "n-wedge" and own is None)


def colours_of(
    lines: Iterable[Line], parts: Sequence[str], colours: Sequence[str]
) -> dict[Line, tuple[str, int]]:
    """Returns the colour of each line, and how often that colour was taken before.

    The paper's methods keep theirs, where each is one line; others take the rest in turn.
    """
    place = parts.index("algorithm") if "algorithm" in parts else None
    names = {line: "" if place is None else str(line[place]) for line in lines}
    alone = len(set(names.values())) == len(names)
    fixed = {name: PAPERS[name] for name in names.values() if alone and name in PAPERS}
    free = [colour for colour in colours if colour not in fixed.values()]
    others = [line for line, name in names.items() if name not in fixed]
    taken = {line: divmod(turn, len(free)) for turn, line in enumerate(others)}
    return {
        line: (fixed[name], 0) if name in fixed else (free[taken[line][1]], taken[line][0])
        for line, name in names.items()
    }


# ---- names -------------------------------------------------------------------------------------


def names_of(lines: Sequence[Line], parts: Sequence[str]) -> dict[Line, str]:
    """Returns the lines with their names: settings are always named, one environment is not."""
    alone = (
        "environment" in parts and len({line[parts.index("environment")] for line in lines}) == 1
    )
    return {
        line: ", ".join(
            words_for(part, value)
            for part, value in zip(parts, line, strict=True)
            if value not in (None, "") and not (part == "environment" and alone)
        )
        for line in lines
    }


def words_for(part: str | None, value: object) -> str:
    """Returns what a column, a row or a line of that value is called."""
    match part:
        case "environment":
            return environment_name(str(value))
        case "algorithm":
            return algorithm_name(str(value))
        case "setting":
            return setting_words(str(value)) or "no settings"
        case "n-wedge":
            return "no N∧" if value is None else f"N∧ = {value}"
        case "metric":
            return metric_name(str(value))
    return ""
