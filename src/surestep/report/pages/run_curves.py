"""The curves of a run: a picture for each panel, with bands, and values where one points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from surestep._words import number
from surestep.experiments.findings import RunFindings
from surestep.experiments.metrics import Summary, metric_of
from surestep.experiments.naming import metric_name, size_axis, size_words
from surestep.experiments.panels import Layout, Panel, colours_of, words_for
from surestep.experiments.panels import Line as LineKey
from surestep.experiments.tails import Interval
from surestep.report.charts.svg import (
    TONES,
    Axis,
    Band,
    Caption,
    Level,
    Line,
    Note,
    Tone,
    legend,
    line_chart,
)
from surestep.report.html import Element, Node, element
from surestep.report.page_tables import Cell, Column, Row, data_table, figure, number_columns, row
from surestep.report.words.comparison import VALUES, ends_words


def curves_section(findings: RunFindings) -> Element:
    """Returns all pictures, those of one column of panels below a heading of their own."""
    layout = findings.layout
    panels = sorted(layout.panels, key=lambda panel: (panel.column, panel.row))
    parts: list[Node] = []
    for place, together in groupby(panels, key=lambda panel: (panel.column, panel.of_column)):
        if layout.columns != "metric":
            parts.append(element("h3", words_for(layout.columns, place[1])))
        parts += [
            panel_figure(findings, panel, f"curve-{panel.column}-{panel.row}") for panel in together
        ]
    return element(
        "section",
        element("h2", "What methods reach as data grow"),
        element(
            "p",
            f"Each point sums up {findings.setup.repetitions:,} repetitions. Bands are 95 % "
            "intervals, each on its own; a point without a band has too few repetitions for one. "
            "Point at a picture for its values, or move through it with the arrow keys.",
        ),
        parts,
        id="curves",
    )


def panel_figure(findings: RunFindings, panel: Panel, identity: str) -> Element:
    """Returns the metric of one panel over data size."""
    layout, metric = findings.layout, panel.metric
    lines = lines_of(layout, panel)
    share = metric_of(metric).is_share
    intervals = [one.metrics[metric] for one in panel.summaries]
    levels = [] if share else levels_of(panel)
    heights = [x for interval in intervals for x in interval] + [level.value for level in levels]
    words = [
        words_for(layout.rows, panel.of_row) if layout.rows not in (None, "metric") else "",
        metric_name(metric),
        words_for(layout.columns, panel.of_column) if layout.columns != "metric" else "",
    ]
    title = ", ".join(filter(None, words))
    y = (
        f"{metric_name(metric)} of {VALUES[findings.value]}"
        if not share
        else "share of repetitions"
    )
    axis = size_axis({one.environment for one in panel.summaries})
    chart = line_chart(
        Caption(identity, title, f"{len(lines)} lines over the {axis}."),
        list(lines.values()),
        Axis.around(axis, [one.episodes for one in panel.summaries], log=True),
        Axis.around(y, heights),
        levels=levels,
        bands=[
            band
            for key, line in lines.items()
            for band in bands_of(points_of(layout, panel, key), metric, line.tone)
        ],
        dots=True,
    )
    numbers = numbers_of(layout, panel, f"{identity}-numbers", title)
    return figure(chart, title, legend=legend(list(lines.values())), numbers=numbers, hover=True)


def lines_of(layout: Layout, panel: Panel) -> dict[LineKey, Line]:
    """Returns the lines of a panel that have points, with what is said of each point."""
    here = {layout.line(one) for one in panel.summaries}
    names = {key: name for key, name in layout.names.items() if key in here}
    colours = colours_of(names, layout.parts, TONES)
    lines = {}
    for key, name in names.items():
        mine, (colour, before) = points_of(layout, panel, key), colours[key]
        lines[key] = Line(
            name or "all",
            [(one.episodes, one.metrics[panel.metric].value) for one in mine],
            tone_of(colour),
            before % 2 == 1,
            [
                Note(
                    size_words(one.episodes, [one.environment]),
                    interval_note(one.metrics[panel.metric]),
                )
                for one in mine
            ],
        )
    return lines


def tone_of(colour: str) -> Tone:
    """Returns the tone of a colour's name."""
    return next(tone for tone in TONES if tone == colour)


def points_of(layout: Layout, panel: Panel, key: LineKey) -> list[Summary]:
    """Returns the points of a line, by data size."""
    mine = [one for one in panel.summaries if layout.line(one) == key]
    return sorted(mine, key=lambda one: one.episodes)


def interval_note(interval: Interval) -> str:
    """Returns a number with its interval."""
    return f"{number(interval.value)} {ends_words(interval)}"


def bands_of(points: Sequence[Summary], metric: str, tone: Tone) -> Iterator[Band]:
    """Yields the bands of a line, as far as both ends are known."""
    intervals = [(one.episodes, one.metrics[metric]) for one in points]
    for known, together in groupby(intervals, key=lambda point: is_known(point[1])):
        mine = list(together)
        if known and len(mine) > 1:
            yield Band([(float(size), ends.low, ends.high) for size, ends in mine], tone)


def is_known(interval: Interval) -> bool:
    """Returns whether both ends are known."""
    return not (math.isnan(interval.low) or math.isnan(interval.high))


def levels_of(panel: Panel) -> list[Level]:
    """Returns what π_b and π* reach, where that is the same for all of the panel."""
    levels = []
    for name, words in (("behavior_performance", "π_b"), ("optimal_performance", "π*")):
        values = {getattr(one, name) for one in panel.summaries}
        if max(values) - min(values) <= 1e-9 * max(map(abs, values)):
            levels.append(Level(max(values), f"{words} {number(max(values))}"))
    return levels


def numbers_of(layout: Layout, panel: Panel, identity: str, title: str) -> Element:
    """Returns the numbers of a picture: a row for each data size, a column for each line."""
    lines = {key: name for key, name in layout.names.items() if points_of(layout, panel, key)}
    at = {
        (one.episodes, layout.line(one)): interval_note(one.metrics[panel.metric])
        for one in panel.summaries
    }
    sizes: Sequence[int] = sorted({one.episodes for one in panel.summaries})
    rows: list[Row] = [
        row(Cell(f"{size:,}"), *(Cell(at.get((size, key), "–")) for key in lines)) for size in sizes
    ]
    columns = [
        Column("Data size", "number"),
        *number_columns(*(n or "all" for n in lines.values())),
    ]
    return data_table(identity, f"{title}, with 95 % intervals", columns, rows)
