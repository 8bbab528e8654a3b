"""The stress test: how often the claim, and the policy, fail in worlds where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from surestep._words import about, counted, duration, floored, number, percent, signed
from surestep.model.certificate import Rung
from surestep.rehearsal import Calibration, Rate, Rehearsal, SizeSummary
from surestep.results.chart_bins import gain_bins, gain_range
from surestep.results.findings import Findings, NoRehearsal
from surestep.sections import (
    Amount,
    Caption,
    Column,
    Curve,
    Flag,
    Histogram,
    Item,
    Key,
    Layer,
    Line,
    Mood,
    Section,
    Strip,
    Strips,
    Table,
    Tone,
    numbers,
)

TITLE = "The stress test"
HOW = "`worlds` above 0 or `surestep rehearse` makes one."
WHAT = (
    "A stress test repeats everything in simulated worlds made from the log, in which the truth is "
    "known. It is no confidence level."
)


def stress_test_section(findings: Findings, *, folded: bool = True) -> Section:
    """Returns the stress test, or why none was made."""
    rehearsal = findings.rehearsal
    if rehearsal is None:
        why = no_rehearsal_words(findings.no_rehearsal)
        how = [f"{WHAT} {HOW}"] if findings.changes else []
        return Section("stress-test", TITLE, [why, *how], folded=folded)
    limits = Section(
        "limits",
        "What this stress test does not say",
        items=[Item("", str(limit)) for limit in rehearsal.limits],
    )
    if rehearsal.worlds == 0:
        left = left_out_words(findings.no_rehearsal.seconds)
        sentences = [WHAT, *luck_words(rehearsal), f"{left} {HOW}"]
        return Section("stress-test", TITLE, sentences, parts=[limits], folded=folded)
    size = own_size(rehearsal)
    by_kind = {kind: rehearsal.summary(size, kind) for kind in rehearsal.family}
    more = more_data_words(rehearsal, findings.verdict)
    calibration = rehearsal.calibration
    return Section(
        "stress-test",
        TITLE,
        [
            f"{WHAT} There were {counted(rehearsal.member.size, 'world')} of "
            f"{counted(len(rehearsal.family), 'kind')}{with_data(size)}.",
            *([calibration_words(calibration, rehearsal.delta)] if calibration else []),
            *luck_words(rehearsal),
            *([more] if more else []),
        ],
        keys=keys_of(rehearsal, rehearsal.summary(size)),
        pictures=[
            gains_picture(findings, rehearsal, size),
            *([kinds_picture(findings, by_kind)] if len(by_kind) > 1 else []),
            *([power_picture(rehearsal)] if len(rehearsal.sizes) > 1 else []),
        ],
        tables=[kinds_table(by_kind), power_table(rehearsal)],
        parts=[limits],
        folded=folded,
    )


def keys_of(rehearsal: Rehearsal, summary: SizeSummary) -> list[Key]:
    """Returns the three shares to remember, each with its interval."""
    harmed, violated, certified = summary.harmed, summary.violated, certified_rate(summary)
    refused = summary.refused.happened
    none = f" No claim was made in {refused:,} worlds." if refused else ""
    bad: Mood = "bad" if violated.low > rehearsal.delta else "plain"
    wrong = f"{rate_words(violated)}; {percent(rehearsal.delta)} are allowed."
    return [
        Key(
            "The new policy was worse",
            percent(harmed.share),
            f"{rate_words(harmed)}.",
            "bad" if harmed.happened else "good",
        ),
        Key("The claim was wrong", percent(violated.share), wrong, bad),
        Key("A gain was certified", percent(certified.share), f"{rate_words(certified)}.{none}"),
    ]


# ---- words --------------------------------------------------------------------------------------


def rate_words(rate: Rate) -> str:
    """Returns how often something happened, with an interval."""
    return (
        f"{rate.happened:,} of {counted(rate.total, 'world')}, 95\u202f% interval "
        f"{percent(rate.low)} to {percent(rate.high)}"
    )


def with_data(size: float) -> str:
    """Returns how much data was collected there, unless it is as much as the log has."""
    return "" if size == 1 else f", with {number(size)} times the data"


def own_size(rehearsal: Rehearsal) -> float:
    """Returns the size of the data that is nearest to the log's own."""
    return min(rehearsal.sizes, key=lambda size: abs(size - 1))


def certified_rate(summary: SizeSummary) -> Rate:
    """Returns how often a gain is certified: by the calibrated claims where there are any."""
    calibrated = summary.calibrated_certified
    return summary.certified if calibrated is None else calibrated


def harm_words(rehearsal: Rehearsal) -> str:
    """Returns how often the policy was worse than π_b."""
    size = own_size(rehearsal)
    harmed = rehearsal.summary(size).harmed
    return (
        f"In {counted(harmed.total, 'simulated world')}{with_data(size)}, a policy made this way "
        f"was worse than the current one in {harmed.happened or 'none'}."
    )


def luck_words(rehearsal: Rehearsal) -> list[str]:
    """Returns how often luck alone claims a gain, and is believed, where nothing can be gained."""
    said = []
    if rehearsal.luck.size:
        lucky = int((rehearsal.luck > rehearsal.tolerance).sum())
        worlds = counted(rehearsal.luck.size, "simulated world")
        bound = rehearsal.luck_bound
        up_to = f" Claims up to {number(bound)} may be luck." if lucky and bound else ""
        said.append(
            f"In {worlds} without any benefit, this method claimed one in {lucky or 'none'}.{up_to}"
        )
    wrong = rehearsal.wrong_beliefs
    if wrong is not None and not rehearsal.believes_its_claim:
        said.append(f"Its beliefs were wrong there in {rate_words(wrong)}.")
    return said


def left_out_words(seconds: float) -> str:
    """Returns that only worlds of luck were gone through, and what the others would take."""
    return (
        "Only worlds without any benefit were simulated; other kinds take about "
        f"{duration(seconds)} of one core more."
    )


def worlds_words(parameters: Mapping[str, Any]) -> str:
    """Returns how many worlds of each kind there are, also where there are only those of luck."""
    if parameters["worlds"] == 0 and parameters.get("sizes"):
        return "0, but for those without any benefit"
    return str(parameters["worlds"])


def more_data_words(rehearsal: Rehearsal, rung: Rung) -> str | None:
    """Returns what it would take to certify a gain in half of the worlds.

    Worlds take the luck of the log for the truth. So nothing is promised unless other data than
    those that chose the policy make one believe in a gain, nor where one is proved already.
    """
    if rung == "proved better":
        return None
    more, largest = rehearsal.more_episodes(), rehearsal.sizes[-1]
    if rehearsal.calibration is not None and rehearsal.calibration.rank == 0:
        return "Calibrated by the stress test, no claim is left, whatever the data."
    if more is None:
        tried = f"{number(largest)} times the data" if largest > 1 else "Data like these"
        return f"{tried} would not certify a gain in half of the worlds."
    if rung != "believed better":
        return None
    if more > 0:
        noun = "episode" if rehearsal.own_episodes > 1 else "log as long as this one"
        plural = "episodes" if rehearsal.own_episodes > 1 else "logs as long as this one"
        many = noun if more == 1 else plural
        return f"With {about(more)} more {many} you could probably certify a gain."
    rate = certified_rate(rehearsal.summary(own_size(rehearsal)))
    return f"Data like these certify a gain in {rate.happened:,} of {rate.total:,} worlds."


def calibration_words(calibration: Calibration, delta: float) -> str:
    """Returns what the worlds leave of a claim from draws."""
    draws, prior, rank = calibration.draws, calibration.rank_of_prior, calibration.rank
    strictest = f"worlds of the kind “{calibration.strictest}”"
    if rank == 0:
        return f"No claim survives: {strictest} leave nothing of it. Calibrated, it is refused."
    if rank < prior:
        return (
            f"A weaker claim survives: of {draws:,} draws, {strictest} leave number {rank:,} "
            f"instead of {prior:,}, as if δ = {rank / (draws + 1):.3g} had been asked for instead "
            f"of {delta:g}."
        )
    return f"The claim survives: number {prior:,} of {draws:,} draws is not too high."


def found_words(rehearsal: Rehearsal) -> list[str]:
    """Returns sentences about harm, what is left of a claim from draws, and luck."""
    calibration = rehearsal.calibration
    left = [] if calibration is None else [calibration_words(calibration, rehearsal.delta)]
    return [harm_words(rehearsal), *left, *luck_words(rehearsal)]


def no_rehearsal_words(missing: NoRehearsal) -> str:
    """Returns that there was no stress test, and why."""
    match missing.why:
        case "to come":
            return "Not yet stress tested: the command that made this result goes on with it."
        case "too much work":
            seconds = duration(missing.seconds)
            return f"Not stress tested: that takes about {seconds} of one core."
        case "impossible":
            return f"Not stress tested: {missing.obstacle}."
        case "nothing changed":
            return "Not stress tested: nothing changed."
        case "declined":
            return "Not stress tested: none was asked for."


# ---- pictures and tables ------------------------------------------------------------------------


def gains_picture(findings: Findings, rehearsal: Rehearsal, size: float) -> Histogram:
    """Returns how many worlds have which true gain."""
    gain = rehearsal.gain[:, rehearsal.sizes.index(size)]
    bins, reach = gain_bins(gain, rehearsal.tolerance, findings.gain), gain_range(gain)
    layers = [
        Layer(bins.worse, "vermilion", "worse than the current policy"),
        Layer(bins.same, "grey", "no difference"),
        Layer(bins.better, "blue", "better"),
    ]
    text = (
        f"Worlds by the true gain of the policy made there: {signed(reach.least)} to "
        f"{signed(reach.most)}, median {signed(reach.median)}. Dashed: this report's numbers."
    )
    caption = Caption("gains-picture", "The true gain in simulated worlds", text)
    return Histogram(caption, "true gain", "world", bins.edges, layers, flags_of(findings))


def flags_of(findings: Findings) -> list[Flag]:
    """Returns what the true gains are to be compared with."""
    gain, lower = findings.gain, findings.certificate.lower
    flags = [Flag(0.0, "no difference"), Flag(gain, f"estimate {signed(gain)}")]
    return flags if lower is None else [*flags, Flag(lower, f"L = {signed(floored(lower))}")]


def kinds_picture(findings: Findings, by_kind: Mapping[str, SizeSummary]) -> Strips:
    """Returns the true gain in each kind of world."""
    strips = []
    for kind, summary in by_kind.items():
        least, lower, median, upper, most = summary.gain_quantiles
        words = f"worse in {summary.harmed.happened:,} of {summary.harmed.total:,}"
        tone: Tone = "vermilion" if median < 0 else "blue"
        strips.append(Strip(kind, least, most, median, tone, words, (lower, upper)))
    text = "The true gain by kind of world: median, middle half (thick) and nine tenths (thin)."
    caption = Caption("kinds-picture", "The true gain in each kind of world", text)
    return Strips(caption, "true gain", strips, flags_of(findings))


def kinds_table(by_kind: Mapping[str, SizeSummary]) -> Table:
    """Returns the shares in each kind of world."""

    def share(rate: Rate) -> Amount:
        return Amount(f"{rate.happened:,} of {rate.total:,}", rate.share)

    rows = [
        [
            kind,
            *map(share, (summary.harmed, summary.violated, summary.certified)),
            *(Amount(signed(summary.gain_quantiles[i]), summary.gain_quantiles[i]) for i in (0, 2)),
        ]
        for kind, summary in by_kind.items()
    ]
    headings = ("Policy worse", "Claim wrong", "Gain certified", "Gain at 5 %", "Median gain")
    columns = [Column("Kind of world"), *numbers(*headings)]
    return Table("kinds", "By kind of world", columns, rows, sortable=True)


def summaries(rehearsal: Rehearsal) -> Sequence[SizeSummary]:
    """Returns the summary at each size of the data."""
    return [rehearsal.summary(size) for size in rehearsal.sizes]


def power_picture(rehearsal: Rehearsal) -> Curve:
    """Returns the share of worlds with a certified gain over the number of episodes."""
    rates = [
        (one.size * rehearsal.own_episodes, certified_rate(one)) for one in summaries(rehearsal)
    ]
    stream = rehearsal.own_episodes == 1
    line = Line(
        "a gain is certified",
        [(place, 100 * rate.share) for place, rate in rates],
        band=[(100 * rate.low, 100 * rate.high) for _, rate in rates],
    )
    here = "this log" if stream else f"{counted(rehearsal.own_episodes, 'episode')} now"
    text = "Worlds in which a gain is certified with so much data, with 95\u202f% intervals."
    return Curve(
        Caption("power-picture", "How much more data would help", text),
        "times the steps of the log" if stream else "episodes",
        "% of the worlds",
        100.0,
        [line],
        Flag(float(rehearsal.own_episodes), here),
        Flag(50.0, "half of the worlds"),
    )


def power_table(rehearsal: Rehearsal) -> Table:
    """Returns the shares at each size of the data."""
    rows = []
    for one in summaries(rehearsal):
        rate = certified_rate(one)
        rows.append(
            [
                Amount(f"× {number(one.size)}", one.size),
                Amount(f"{one.episodes:,}", one.episodes),
                Amount(percent(rate.share), rate.share),
                f"{percent(rate.low)} to {percent(rate.high)}",
                Amount(percent(one.violated.share), one.violated.share),
                Amount(percent(one.harmed.share), one.harmed.share),
            ]
        )
    headings = ("Data", "Episodes", "Gain certified", "95 % interval", "Claim wrong")
    return Table("power", "By the amount of data", numbers(*headings, "Policy worse"), rows)
