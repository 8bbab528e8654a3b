"""The power curve: in what share of the worlds more data would certify a gain."""

from __future__ import annotations

from surestep.rehearsal import Rate, Rehearsal, SizeSummary
from surestep.report.charts.axes import Axis
from surestep.report.charts.svg import Band, Caption, Level, Line, Mark, legend, line_chart
from surestep.report.html import Element, Node, element
from surestep.report.numbers import counted, number, percent
from surestep.report.tables import Cell, Column, Row, data_table, figure
from surestep.report.words.rehearsal import certified_rate, more_data_words, times_words

ALL = 104.0  # a little more than 100 %, so that a line there can be seen
MANY_SIZES = 2  # fewer make no curve


def power_part(rehearsal: Rehearsal) -> list[Node]:
    """How much more data would help: in a sentence, a picture and a table."""
    found = [rehearsal.summary(size) for size in rehearsal.sizes]
    return [
        element("p", element("strong", more_data_words(rehearsal)), class_="lead"),
        power_figure(rehearsal, found) if len(found) >= MANY_SIZES else None,
        power_table(rehearsal, found),
    ]


def power_figure(rehearsal: Rehearsal, found: list[SizeSummary]) -> Element:
    """The share of worlds with a certified gain over the number of episodes."""
    stream = rehearsal.own_episodes == 1
    places = [each.size * rehearsal.own_episodes for each in found]
    rates = [certified_rate(each) for each in found]
    calibrated = rehearsal.calibrated_claim is not None
    lines = [
        Line("a gain is certified" + (", calibrated" if calibrated else ""), points(places, rates),
             "blue")
    ]  # fmt: skip
    if calibrated:
        before = [each.certified for each in found]
        lines.append(Line("not calibrated", points(places, before), "grey", dashed=True))
    ends_high = rates[-1].share > 1 / 2  # there the words would hide the line
    band = [
        (place, 100 * rate.low, 100 * rate.high) for place, rate in zip(places, rates, strict=True)
    ]
    at_hand = "the log at hand" if stream else counted(rehearsal.own_episodes, "episode") + " now"
    caption = Caption(
        "power-picture",
        "The share of worlds in which a gain is certified, over the amount of data",
        "; ".join(
            f"{times_words(each.size)} the data: {percent(rate.share)}"
            for each, rate in zip(found, rates, strict=True)
        )
        + f". {more_data_words(rehearsal)}",
    )
    chart = line_chart(
        caption,
        lines,
        Axis.around("times the steps of the log" if stream else "episodes", places, log=True),
        Axis("% of the worlds", 0.0, ALL),
        levels=[Level(50.0, "half of the worlds", words="below" if ends_high else "above")],
        marks=[Mark(float(rehearsal.own_episodes), at_hand)],
        bands=[Band(band, "blue")],
        dots=True,
    )
    text = (
        "In how many worlds of the stress test a gain would be certified with so much data. The "
        "band holds the 95\u202f% interval at each size; the horizontal axis grows by factors."
    )
    return figure(chart, text, legend=legend(lines))


def points(places: list[float], rates: list[Rate]) -> list[tuple[float, float]]:
    """The shares in hundredths over their places."""
    return [(place, 100 * rate.share) for place, rate in zip(places, rates, strict=True)]


def power_table(rehearsal: Rehearsal, found: list[SizeSummary]) -> Element:
    """The shares at each size."""
    calibrated = rehearsal.calibrated_claim is not None
    columns = [
        Column("Data", "number"),
        Column("Episodes", "number"),
        Column("Gain certified", "number"),
        *([Column("… calibrated", "number")] if calibrated else []),
        Column("… 95\u202f% interval", "number"),
        Column("Guarantee wrong", "number"),
        Column("Policy worse", "number"),
    ]
    rows = []
    for each in found:
        rate = certified_rate(each)
        shares = [each.certified, *([rate] if calibrated else [])]
        rows.append(
            Row(
                [
                    Cell(f"× {number(each.size)}", each.size),
                    Cell(f"{each.episodes:,}", each.episodes),
                    *(Cell(percent(share.share), share.share) for share in shares),
                    Cell(f"{percent(rate.low)} to {percent(rate.high)}"),
                    Cell(percent(each.violated.share), each.violated.share),
                    Cell(percent(each.harmed.share), each.harmed.share),
                ]
            )
        )
    caption = f"The stress test by the amount of data, in {counted(found[0].harmed.total, 'world')}"
    return data_table("power-numbers", caption, columns, rows)
