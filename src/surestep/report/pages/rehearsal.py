"""The rehearsal: how often the promise, and the policy, fail in worlds where the truth is known."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep.rehearsal import Rate, Rehearsal, SizeSummary
from surestep.report.charts.axes import Axis
from surestep.report.charts.histogram import Layer, histogram
from surestep.report.charts.strips import Flag, Segment, Strip, strip_chart
from surestep.report.charts.svg import Caption, Tone, legend_of_bars
from surestep.report.html import Element, Node, element, label
from surestep.report.numbers import counted, number, percent, signed
from surestep.report.pages.answer import key, none_made
from surestep.report.pages.power import power_part
from surestep.report.tables import Cell, Column, Row, data_table, figure
from surestep.report.words.rehearsal import (
    calibration_words,
    luck_words,
    own_size,
    rate_words,
    times_words,
)
from surestep.results.findings import Findings

HEADING = "Rehearsal: a stress test, not a confidence level"
MOST_BINS = 30
THIN, THICK = 5.0, 16.0  # strips from 5 to 95 %, and from 25 to 75 % of the worlds
WORSE, SAME, BETTER = "worse than the current policy", "no difference", "better"


def rehearsal_section(findings: Findings) -> Element:
    """The stress test, or that none was made."""
    rehearsal = findings.rehearsal
    if rehearsal is None:
        parts = none_made(findings), how_to_make_one()
        return element("section", element("h2", HEADING), parts, id="rehearsal")
    size = own_size(rehearsal)
    found = rehearsal.summary(size)
    return element(
        "section",
        element("h2", HEADING),
        element("p", setting_words(rehearsal, size)),
        rates(rehearsal, found),
        calibration_box(rehearsal),
        element("p", luck_words(rehearsal)) if rehearsal.luck.size else None,
        element("h3", "What the new policy truly gains there"),
        gains_figure(findings, rehearsal, size),
        kinds_figure(findings, rehearsal, size) if len(rehearsal.family) > 1 else None,
        element("h3", "How much more data would help"),
        power_part(rehearsal),
        element("h3", "What this stress test does not say"),
        element("ul", [element("li", each) for each in rehearsal.limits], class_="plain"),
        id="rehearsal",
    )


def how_to_make_one() -> Element:
    """Why a stress test is worth it, and how to get it."""
    return element(
        "p",
        "A rehearsal runs all of this again in worlds made from the log, in which the truth is "
        "known. It shows how often the new policy would be worse than the current one, how "
        "often the guarantee would be wrong, and how many more episodes would probably "
        "certify an improvement. The commands are ",
        element("code", "surestep improve --worlds 10"),
        " and ",
        element("code", "surestep rehearse"),
        ".",
    )


def setting_words(rehearsal: Rehearsal, size: float) -> str:
    """What was rehearsed, and where."""
    worlds = counted(rehearsal.member.size, "world")
    kinds = counted(len(rehearsal.family), "kind")
    other_size = "" if size == 1 else f" In each, {times_words(size)} the data was collected."
    return (
        f"The whole way from a log to a policy and its guarantee ({rehearsal.kind}, δ = "
        f"{number(rehearsal.delta)}) was gone again in {worlds} of {kinds}, made from this log, in "
        f"which the truth is known.{other_size} What follows are shares of these worlds."
    )


# ---- how often -----------------------------------------------------------------------------------


def rates(rehearsal: Rehearsal, found: SizeSummary) -> Element:
    """The three shares to remember, each with its interval."""
    violated, certified = found.violated, found.certified
    delta = rehearsal.delta
    wrong = f"{rate_words(violated)}. The guarantee allows {percent(delta)}."
    sure = f"{rate_words(certified)}."
    if found.calibrated_violated is not None and found.calibrated_certified is not None:
        wrong += f" Calibrated: {percent(found.calibrated_violated.share)}."
        sure += f" Calibrated: {percent(found.calibrated_certified.share)}."
    if found.refused.happened:
        sure += f" No claim was made in {found.refused.happened:,} worlds."
    mood = "bad" if violated.low > delta else ""
    return element(
        "div",
        key(
            "Harm in the stress test", percent(found.harmed.share), harm(found), mood=harmful(found)
        ),
        key("The guarantee was wrong", percent(violated.share), wrong, mood=mood),
        key("A gain was certified", percent(certified.share), sure),
        class_="keys",
    )


def harm(found: SizeSummary) -> str:
    """What harm means, and how often it was there."""
    return f"The policy made there was {WORSE} in {rate_words(found.harmed)}."


def harmful(found: SizeSummary) -> str:
    """The colour of harm."""
    return "bad" if found.harmed.happened else "good"


def calibration_box(rehearsal: Rehearsal) -> Element | None:
    """What the worlds leave of the claim."""
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


class Bins(NamedTuple):
    """Worlds by their true gain: edges of bins, 0 among them, and how many worlds lie between."""

    edges: list[float]
    worse: list[int]
    same: list[int]
    better: list[int]


def gain_bins(gain: FloatArray, tolerance: float, also: float) -> Bins:
    """At most 30 bins of a round width that hold every gain, 0 and another number.

    What is no further from 0 than the tolerance is no difference, and counts from 0 on.
    """
    low, high = min(0.0, also, float(gain.min())), max(0.0, also, float(gain.max()))
    width = round_width((high - low) / (MOST_BINS - 2))
    first, last = math.floor(low / width), max(math.ceil(high / width), math.floor(low / width) + 1)
    same = np.abs(gain) <= tolerance
    place = np.clip(np.floor(gain / width), first, last - 1).astype(int)
    place = np.where(same, min(0, last - 1), place) - first
    sorts = (gain < -tolerance, same, gain > tolerance)
    counts = [np.bincount(place[sort], minlength=last - first).tolist() for sort in sorts]
    return Bins([width * i for i in range(first, last + 1)], *counts)


def round_width(least: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is no smaller; 1 for nothing."""
    if not least > 1e-300:
        return 1.0
    size = 10.0 ** math.floor(math.log10(least))
    return next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least * 0.999)


def flags_of(findings: Findings) -> list[Flag]:
    """What the true gains are to be compared with."""
    certificate = findings.certificate
    flags = [
        Flag(0.0, "no difference"),
        Flag(findings.gain, f"estimated gain {signed(findings.gain)}"),
    ]
    if certificate.lower is not None:
        flags.append(Flag(certificate.lower, f"guaranteed: L = {signed(certificate.lower)}"))
    return flags


def gains_figure(findings: Findings, rehearsal: Rehearsal, size: float) -> Element:
    """How many worlds have which true gain."""
    gain = rehearsal.gain[:, rehearsal.sizes.index(size)]
    bins = gain_bins(gain, rehearsal.tolerance, findings.gain)
    layers = [
        Layer(bins.worse, "vermilion", WORSE),
        Layer(bins.same, "grey", SAME),
        Layer(bins.better, "blue", BETTER),
    ]
    shown = [(layer.name, layer.tone, sum(layer.times)) for layer in layers if sum(layer.times)]
    caption = Caption(
        "gains-picture",
        "Worlds of the stress test by the true gain of the new policy",
        f"From {signed(float(gain.min()))} to {signed(float(gain.max()))}, median "
        f"{signed(float(np.median(gain)))}: "
        + "; ".join(f"{counted(many, 'world')} {name}" for name, _, many in shown)
        + ".",
    )
    chart = histogram(caption, bins.edges, layers, "true gain", "world", flags_of(findings))
    text = (
        "What the policy that was made in each world truly gains there, over the current policy. "
        "The dashed lines are what this report says of the real world."
    )
    rows = [
        Row([Cell(f"{number(low)} to {number(high)}"), *(Cell(f"{many:,}") for many in times)])
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
    """The true gain in each kind of world."""
    found = {kind: rehearsal.summary(size, kind) for kind in rehearsal.family}
    ends = [value for each in found.values() for value in each.gain_quantiles]
    axis = Axis.around("true gain", [*ends, 0.0, findings.gain])
    caption = Caption(
        "kinds-picture",
        "The true gain of the new policy in each kind of world",
        "; ".join(
            f"{kind}: median {signed(each.gain_quantiles[2])}, worse in "
            f"{each.harmed.happened:,} of {each.harmed.total:,}"
            for kind, each in found.items()
        )
        + ".",
    )
    strips = [kind_strip(kind, each) for kind, each in found.items()]
    text = (
        "The thick part of a strip holds the middle half of the worlds of a kind, the thin one "
        "nine tenths of them; the stroke is the median. Losses are in vermilion."
    )
    return figure(
        strip_chart(caption, strips, axis, flags_of(findings)),
        text,
        numbers=kinds_table(found),
    )


def kind_strip(kind: str, found: SizeSummary) -> Strip:
    """The quantiles of the gain in one kind of world."""
    least, lower, median, upper, most = found.gain_quantiles
    segments = [
        Segment(low, high, tone, height)
        for low, high, height in ((least, most, THIN), (lower, upper, THICK))
        for low, high, tone in parts_at_0(low, high)
    ]
    amount = f"worse in {found.harmed.happened:,} of {found.harmed.total:,}"
    return Strip(kind, amount=amount, segments=segments, point=median)


def parts_at_0(low: float, high: float) -> list[tuple[float, float, Tone]]:
    """What lies below 0, and what lies above."""
    parts: list[tuple[float, float, Tone]] = []
    if low < 0:
        parts.append((low, min(high, 0.0), "vermilion"))
    if high > 0:
        parts.append((max(low, 0.0), high, "blue"))
    return parts


def kinds_table(found: dict[str, SizeSummary]) -> Element:
    """The shares in each kind of world."""

    def share(rate: Rate) -> Cell:
        return Cell(f"{rate.happened:,} of {rate.total:,}", rate.share)

    rows = [
        Row(
            [
                Cell(label(kind)),
                share(each.harmed),
                share(each.violated),
                share(each.certified),
                Cell(signed(each.gain_quantiles[0]), each.gain_quantiles[0]),
                Cell(signed(each.gain_quantiles[2]), each.gain_quantiles[2]),
            ]
        )
        for kind, each in found.items()
    ]
    columns: list[Column] = [
        Column("Kind of world"),
        Column("Policy worse", "number"),
        Column("Guarantee wrong", "number"),
        Column("Gain certified", "number"),
        Column("Gain at 5 %", "number"),
        Column("Median gain", "number"),
    ]
    caption: Node = "The stress test by kind of world"
    return data_table("kinds-numbers", caption, columns, rows)
