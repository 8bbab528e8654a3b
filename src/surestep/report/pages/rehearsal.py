"""The rehearsal: how often the promise, and the policy, fail in worlds where the truth is known."""

from __future__ import annotations

from surestep._words import counted, number, percent, signed
from surestep.rehearsal import Rate, Rehearsal, SizeSummary
from surestep.report.charts.histogram import Layer, histogram
from surestep.report.charts.strips import Flag, Segment, Strip, strip_chart
from surestep.report.charts.svg import (
    Axis,
    Band,
    Caption,
    Level,
    Line,
    Mark,
    Tone,
    legend,
    legend_of_bars,
    line_chart,
)
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import Cell, Column, data_table, figure, key, number_columns, row
from surestep.report.pages.shared_parts import none_made
from surestep.report.words.rehearsal import (
    ONLY_BELIEVED,
    belief_words,
    calibration_words,
    certified_rate,
    left_out_words,
    luck_words,
    lucky_words,
    more_data_words,
    own_size,
    rate_words,
    rehearsed_words,
    times_words,
)
from surestep.results.chart_bins import gain_bins, gain_range
from surestep.results.findings import Findings

HEADING = "Rehearsal: a stress test, not a confidence level"
ALL = 104.0  # a little more than 100 %, so that a line there can be seen
MANY_SIZES = 2  # fewer make no curve
THIN, THICK = 5.0, 16.0  # strips from 5 to 95 %, and from 25 to 75 % of the worlds
WORSE, SAME, BETTER = "worse than the current policy", "no difference", "better"


def rehearsal_section(findings: Findings) -> Element:
    """Returns the stress test, or that none was made."""
    rehearsal = findings.rehearsal
    if rehearsal is None:
        parts = none_made(findings), how_to_make_one() if findings.changes else None
        return element("section", element("h2", HEADING), parts, id="rehearsal")
    if rehearsal.worlds == 0:
        return element(
            "section", element("h2", HEADING), luck_parts(findings, rehearsal), id="rehearsal"
        )
    size = own_size(rehearsal)
    summary = rehearsal.summary(size)
    return element(
        "section",
        element("h2", HEADING),
        element("p", rehearsed_words(rehearsal, size)),
        rates(rehearsal, summary),
        calibration_box(rehearsal),
        said_of_luck(rehearsal),
        element("h3", "What the new policy truly gains there"),
        gains_figure(findings, rehearsal, size),
        kinds_figure(findings, rehearsal, size) if len(rehearsal.family) > 1 else None,
        element("h3", "How much more data would help"),
        power_part(rehearsal, more_data_words(rehearsal, findings.verdict)),
        not_said(rehearsal),
        id="rehearsal",
    )


def luck_parts(findings: Findings, rehearsal: Rehearsal) -> list[Node]:
    """Returns a stress test in worlds in which all actions are alike, and in no others."""
    return [
        element("p", lucky_words(rehearsal)),
        said_of_luck(rehearsal),
        element("p", left_out_words(findings.no_rehearsal.seconds)),
        how_to_make_one(),
        not_said(rehearsal),
    ]


def said_of_luck(rehearsal: Rehearsal) -> list[Node]:
    """Returns what luck alone claims where all actions are alike, and how it misleads beliefs."""
    believed = None if rehearsal.believes_its_claim else belief_words(rehearsal)
    return [
        element("p", luck_words(rehearsal)) if rehearsal.luck.size else None,
        element("p", f"{ONLY_BELIEVED} {believed}") if believed else None,
    ]


def not_said(rehearsal: Rehearsal) -> list[Node]:
    """Returns what the stress test does not say."""
    return [
        element("h3", "What this stress test does not say"),
        element("ul", [element("li", limit) for limit in rehearsal.limits], class_="plain"),
    ]


def how_to_make_one() -> Element:
    """Returns why a stress test is worth it, and how to get it."""
    return element(
        "p",
        "A rehearsal runs all of this again in worlds made from the log, in which the truth is "
        "known. It shows how often the new policy would be worse than the current one, how "
        "often the guarantee would be wrong, and how often it would certify an improvement with "
        "more data. The commands are ",
        element("code", "surestep improve --worlds 10"),
        " and ",
        element("code", "surestep rehearse"),
        ".",
    )


# ---- how often -----------------------------------------------------------------------------------


def rates(rehearsal: Rehearsal, summary: SizeSummary) -> Element:
    """Returns the three shares to remember, each with its interval."""
    violated, certified = summary.violated, summary.certified
    delta = rehearsal.delta
    wrong = f"{rate_words(violated)}. The guarantee allows {percent(delta)}."
    sure = f"{rate_words(certified)}."
    if summary.calibrated_violated is not None and summary.calibrated_certified is not None:
        wrong += f" Calibrated: {percent(summary.calibrated_violated.share)}."
        sure += f" Calibrated: {percent(summary.calibrated_certified.share)}."
    if summary.refused.happened:
        sure += f" No claim was made in {summary.refused.happened:,} worlds."
    mood = "bad" if violated.low > delta else ""
    return element(
        "div",
        key(
            "Harm in the stress test",
            percent(summary.harmed.share),
            harm(summary),
            mood=harmful(summary),
        ),
        key("The guarantee was wrong", percent(violated.share), wrong, mood=mood),
        key("A gain was certified", percent(certified.share), sure),
        class_="keys",
    )


def harm(summary: SizeSummary) -> str:
    """Returns what harm means, and how often it was there."""
    return f"The policy made there was {WORSE} in {rate_words(summary.harmed)}."


def harmful(summary: SizeSummary) -> str:
    """Returns the colour of harm."""
    return "bad" if summary.harmed.happened else "good"


def calibration_box(rehearsal: Rehearsal) -> Element | None:
    """Returns what the worlds leave of the claim; None where it was not calibrated."""
    if rehearsal.calibration is None:
        return None
    mood, headline, sentence = calibration_words(rehearsal.calibration, rehearsal.delta)
    return element(
        "div",
        element("p", headline, class_="loud"),
        element("p", sentence),
        class_=f"box {mood}",
    )


# ---- the true gain -------------------------------------------------------------------------------


def flags_of(findings: Findings) -> list[Flag]:
    """Returns what the true gains are to be compared with."""
    certificate = findings.certificate
    flags = [
        Flag(0.0, "no difference"),
        Flag(findings.gain, f"estimated gain {signed(findings.gain)}"),
    ]
    if certificate.lower is not None:
        flags.append(Flag(certificate.lower, f"guaranteed: L = {signed(certificate.lower)}"))
    return flags


def gains_figure(findings: Findings, rehearsal: Rehearsal, size: float) -> Element:
    """Returns how many worlds have which true gain."""
    gain = rehearsal.gain[:, rehearsal.sizes.index(size)]
    bins, reach = gain_bins(gain, rehearsal.tolerance, findings.gain), gain_range(gain)
    layers = [
        Layer(bins.worse, "vermilion", WORSE),
        Layer(bins.same, "grey", SAME),
        Layer(bins.better, "blue", BETTER),
    ]
    shown = [(layer.name, layer.tone, sum(layer.times)) for layer in layers if sum(layer.times)]
    caption = Caption(
        "gains-picture",
        "Worlds of the stress test by the true gain of the new policy",
        f"From {signed(reach.least)} to {signed(reach.most)}, median {signed(reach.median)}: "
        + "; ".join(f"{counted(many, 'world')} {name}" for name, _, many in shown)
        + ".",
    )
    chart = histogram(caption, bins.edges, layers, "true gain", "world", flags_of(findings))
    text = (
        "What the policy that was made in each world truly gains there, over the current policy. "
        "The dashed lines are what this report says of the real world."
    )
    rows = [
        row(Cell(f"{number(low)} to {number(high)}"), *(Cell(f"{many:,}") for many in times))
        for low, high, *times in zip(bins.edges[:-1], bins.edges[1:], *bins[1:], strict=True)
        if any(times)
    ]
    columns = [
        Column("True gain"),
        *(Column(name.capitalize(), "number") for name in (WORSE, SAME, BETTER)),
    ]
    numbers = data_table("gains-numbers", "Worlds by the true gain", columns, rows)
    named = legend_of_bars([(f"{name}: {many:,}", tone) for name, tone, many in shown])
    return figure(chart, text, legend=named, numbers=numbers)


# ---- by kind of world ----------------------------------------------------------------------------


def kinds_figure(findings: Findings, rehearsal: Rehearsal, size: float) -> Element:
    """Returns the true gain in each kind of world."""
    by_kind = {kind: rehearsal.summary(size, kind) for kind in rehearsal.family}
    ends = [value for summary in by_kind.values() for value in summary.gain_quantiles]
    axis = Axis.around("true gain", [*ends, 0.0, findings.gain])
    caption = Caption(
        "kinds-picture",
        "The true gain of the new policy in each kind of world",
        "; ".join(
            f"{kind}: median {signed(summary.gain_quantiles[2])}, worse in "
            f"{summary.harmed.happened:,} of {summary.harmed.total:,}"
            for kind, summary in by_kind.items()
        )
        + ".",
    )
    strips = [kind_strip(kind, summary) for kind, summary in by_kind.items()]
    text = (
        "The thick part of a strip holds the middle half of the worlds of a kind, the thin one "
        "nine tenths of them; the stroke is the median. Losses are in vermilion."
    )
    return figure(
        strip_chart(caption, strips, axis, flags_of(findings)),
        text,
        numbers=kinds_table(by_kind),
    )


def kind_strip(kind: str, summary: SizeSummary) -> Strip:
    """Returns the quantiles of the gain in one kind of world."""
    least, lower, median, upper, most = summary.gain_quantiles
    segments = [
        Segment(low, high, tone, height)
        for low, high, height in ((least, most, THIN), (lower, upper, THICK))
        for low, high, tone in parts_at_0(low, high)
    ]
    amount = f"worse in {summary.harmed.happened:,} of {summary.harmed.total:,}"
    return Strip(kind, amount=amount, segments=segments, point=median)


def parts_at_0(low: float, high: float) -> list[tuple[float, float, Tone]]:
    """Returns what lies below 0, and what lies above."""
    parts: list[tuple[float, float, Tone]] = []
    if low < 0:
        parts.append((low, min(high, 0.0), "vermilion"))
    if high > 0:
        parts.append((max(low, 0.0), high, "blue"))
    return parts


def kinds_table(by_kind: dict[str, SizeSummary]) -> Element:
    """Returns the shares in each kind of world."""

    def share(rate: Rate) -> Cell:
        return Cell(f"{rate.happened:,} of {rate.total:,}", rate.share)

    rows = [
        row(
            Cell(label(kind)),
            share(summary.harmed),
            share(summary.violated),
            share(summary.certified),
            Cell(signed(summary.gain_quantiles[0]), summary.gain_quantiles[0]),
            Cell(signed(summary.gain_quantiles[2]), summary.gain_quantiles[2]),
        )
        for kind, summary in by_kind.items()
    ]
    columns: list[Column] = [
        Column("Kind of world"),
        *number_columns(
            "Policy worse", "Guarantee wrong", "Gain certified", "Gain at 5 %", "Median gain"
        ),
    ]
    caption: Node = "The stress test by kind of world"
    return data_table("kinds-numbers", caption, columns, rows)


# ---- how much more data would help ---------------------------------------------------------------


def power_part(rehearsal: Rehearsal, said: str | None) -> list[Node]:
    """Returns how much more data would help: in a sentence, if any, a picture and a table."""
    by_size = [rehearsal.summary(size) for size in rehearsal.sizes]
    return [
        element("p", element("strong", said), class_="lead") if said else None,
        power_figure(rehearsal, by_size, said) if len(by_size) >= MANY_SIZES else None,
        power_table(rehearsal, by_size),
    ]


def power_figure(rehearsal: Rehearsal, by_size: list[SizeSummary], said: str | None) -> Element:
    """Returns the share of worlds with a certified gain over the number of episodes."""
    stream = rehearsal.own_episodes == 1
    places = [summary.size * rehearsal.own_episodes for summary in by_size]
    rates = [certified_rate(summary) for summary in by_size]
    calibrated = rehearsal.calibrated_claim is not None
    lines = [
        Line("a gain is certified" + (", calibrated" if calibrated else ""), points(places, rates),
             "blue")
    ]  # fmt: skip
    if calibrated:
        before = [summary.certified for summary in by_size]
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
            f"{times_words(summary.size)} the data: {percent(rate.share)}"
            for summary, rate in zip(by_size, rates, strict=True)
        )
        + (f". {said}" if said else "."),
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
    """Returns the shares in hundredths over their places."""
    return [(place, 100 * rate.share) for place, rate in zip(places, rates, strict=True)]


def power_table(rehearsal: Rehearsal, by_size: list[SizeSummary]) -> Element:
    """Returns the shares at each size."""
    calibrated = rehearsal.calibrated_claim is not None
    columns = [
        *number_columns("Data", "Episodes", "Gain certified"),
        *([Column("… calibrated", "number")] if calibrated else []),
        *number_columns("… 95\u202f% interval", "Guarantee wrong", "Policy worse"),
    ]
    rows = []
    for summary in by_size:
        rate = certified_rate(summary)
        shares = [summary.certified, *([rate] if calibrated else [])]
        rows.append(
            row(
                Cell(f"× {number(summary.size)}", summary.size),
                Cell(f"{summary.episodes:,}", summary.episodes),
                *(Cell(percent(share.share), share.share) for share in shares),
                Cell(f"{percent(rate.low)} to {percent(rate.high)}"),
                Cell(percent(summary.violated.share), summary.violated.share),
                Cell(percent(summary.harmed.share), summary.harmed.share),
            )
        )
    worlds = counted(by_size[0].harmed.total, "world")
    caption = f"The stress test by the amount of data, in {worlds}"
    return data_table("power-numbers", caption, columns, rows)
