"""Summaries as rows of a table, and that as CSV: beside a figure, or printed by a comparison."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from surestep.experiments.comparison import Comparison
from surestep.experiments.coverage import CellSummary, first_certified, without_size
from surestep.experiments.intervals import Interval
from surestep.experiments.metrics import Summary, first_better, whole
from surestep.experiments.runs import written

NOTHING = Interval(math.nan, math.nan, math.nan)
Row = Mapping[str, Any]


def value_rows(reached: Sequence[Summary]) -> list[Row]:
    """Returns a row for each summary.

    `first_better` is the data size from which on the method's mean beats π_b, empty for never.
    """
    better = first_better(reached)
    return [row_of(one) | {"first_better": better[one.environment, one.method]} for one in reached]


def compared_rows(comparisons: Sequence[Comparison]) -> list[Row]:
    """Returns a row for each method of each comparison, and how it differs from the one named."""
    return [
        row_of(one.summary)
        | {"against": written(each.against)}
        | dict(zip(("difference", "ahead", "behind"), one.difference or [NOTHING] * 3, strict=True))
        for each in comparisons
        for one in each.methods
    ]


def row_of(one: Summary) -> dict[str, Any]:
    """Returns a summary as a row."""
    return {
        "environment": one.environment,
        "episodes": one.episodes,
        **one.method._asdict(),
        **{name: getattr(one, name) for name in Summary._fields[3:-1]},
        **one.metrics,
    }


def claim_rows(cells: Sequence[CellSummary]) -> list[Row]:
    """Returns a row for each cell.

    `first_certified` is the smallest data size at which half of the repetitions certify a gain.
    """
    first = first_certified(cells)
    plain = [name for name in CellSummary._fields[1:] if name not in ("violation", "positive")]
    return [
        one.cell._asdict()
        | {"n_wedge": whole(one.cell.n_wedge)}
        | {name: getattr(one, name) for name in (*plain, "violation", "positive")}
        | {"first_certified": first[without_size(one.cell)]}
        for one in cells
    ]


def as_csv(rows: Iterable[Row]) -> str:
    """Returns rows as CSV, numbers with nine digits; an interval has a column for either end.

    What is not known, such as an end that repetitions are too few for, is empty.
    """
    flat = [dict(cells_of(row)) for row in rows]
    text = io.StringIO()
    names = dict.fromkeys(name for row in flat for name in row)
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def cells_of(row: Row) -> Iterator[tuple[str, object]]:
    """Yields the cells of a row."""
    for name, value in row.items():
        if isinstance(value, Interval):
            yield from zip((name, f"{name}_low", f"{name}_high"), map(cell, value), strict=True)
        else:
            yield name, cell(value)


def cell(value: Any) -> object:
    """Returns a number with nine digits, nothing for NaN, several words as one text."""
    if isinstance(value, tuple):
        return " or ".join(value)
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else float(f"{value:.9g}")
