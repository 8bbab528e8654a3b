"""Writes the section on the stress test: how often claim and policy failed in simulated worlds."""

from collections.abc import Iterator, Mapping, Sequence

import surestep.sections as show
from surestep._words import about, counted, number, percent, signed
from surestep.model.certificate import Rung
from surestep.rehearsal import Calibration, Rate, Rehearsal, SizeSummary
from surestep.results.findings import Findings
from surestep.results.plots import flags_of, gains_picture, own_size

TITLE = "The stress test"
HOW = "`worlds` above 0 or `surestep rehearse` makes one."
WHAT = (
    "A stress test repeats everything in simulated worlds made from the log, in which the truth is "
    "known. It is no confidence level."
)


def stress_test_section(findings: Findings, *, folded: bool = True) -> show.Section:
    """Returns the stress test, or why none was made."""
    rehearsal = findings.rehearsal
    if rehearsal is None:
        how = [f"{WHAT} {HOW}"] if findings.changes else []
        return show.Section(
            "stress-test", TITLE, [no_rehearsal_words(findings), *how], folded=folded
        )
    limits = show.Section(
        "limits",
        "What this stress test does not say",
        items=[show.Item("", str(limit)) for limit in rehearsal.limits],
    )
    sentences = [WHAT, *claims_words(rehearsal)]
    if rehearsal.worlds == 0:
        return show.Section(
            "stress-test",
            TITLE,
            [
                *sentences,
                "Only worlds without any benefit were simulated: the log is too large for others "
                f"by default. {HOW}",
            ],
            parts=[limits],
            folded=folded,
        )
    size = own_size(rehearsal)
    kinds = counted(len(rehearsal.family), "kind")
    by_kind = {kind: rehearsal.summary(size, kind) for kind in rehearsal.family}
    by_size = [rehearsal.summary(size) for size in rehearsal.sizes]
    worlds = f"There were {counted(rehearsal.member.size, 'world')} of {kinds}{with_data(size)}."
    more = more_data_words(rehearsal, findings.verdict)
    lower = findings.certificates[0].lower
    pictures: list[show.Picture] = [gains_picture(findings.estimated_gain, lower, rehearsal)]
    if len(by_kind) > 1:
        pictures.append(kinds_picture(by_kind, flags_of(findings.estimated_gain, lower)))
    if len(by_size) > 1:
        pictures.append(power_picture(rehearsal, by_size))
    return show.Section(
        "stress-test",
        TITLE,
        [f"{WHAT} {worlds}", *sentences[1:], *more],
        keys=keys_of(rehearsal, rehearsal.summary(size)),
        pictures=pictures,
        tables=[rates_table(by_kind, by_size)],
        parts=[limits],
        folded=folded,
    )


def keys_of(rehearsal: Rehearsal, summary: SizeSummary) -> list[show.Key]:
    """Returns the three main shares, each with its interval."""
    harmed = summary.harmed
    violated = summary.violated
    certified = certified_rate(summary)
    refused = summary.refused.happened
    none = f" No claim was made in {refused:,} worlds." if refused else ""
    allowed = f"{rate_words(violated)}; {percent(rehearsal.delta)} are allowed."
    return [
        show.Key(
            "The new policy was worse",
            percent(harmed.share),
            f"{rate_words(harmed)}.",
            "bad" if harmed.happened else "good",
        ),
        show.Key(
            "The claim was wrong",
            percent(violated.share),
            allowed,
            "bad" if violated.low > rehearsal.delta else "plain",
        ),
        show.Key(
            "A gain was certified", percent(certified.share), f"{rate_words(certified)}.{none}"
        ),
    ]


# ---- words --------------------------------------------------------------------------------------


def rate_words(rate: Rate) -> str:
    """Returns how often something happened, with an interval."""
    return (
        f"{rate.happened:,} of {counted(rate.total, 'world')}, 95\u202f% interval "
        f"{percent(rate.low)} to {percent(rate.high)}"
    )


def with_data(size: float) -> str:
    """Returns the amount of data in a world; empty if it is as much as the log has."""
    return "" if size == 1 else f", with {number(size)} times the data"


def certified_rate(summary: SizeSummary) -> Rate:
    """Returns how often a gain is certified: by the calibrated claims where there are any."""
    calibrated = summary.calibrated_certified
    return summary.certified if calibrated is None else calibrated


def claims_words(rehearsal: Rehearsal) -> Iterator[str]:
    """Says what came of calibration, and how often luck alone claimed a gain."""
    if rehearsal.calibration is not None:
        yield calibration_words(rehearsal.calibration, rehearsal.delta)
    if rehearsal.luck.size:
        lucky = int((rehearsal.luck > rehearsal.tolerance).sum())
        bound = rehearsal.luck_bound
        worlds = counted(rehearsal.luck.size, "simulated world")
        up_to = f" Claims up to {number(bound)} may be luck." if lucky and bound else ""
        yield (
            f"In {worlds} without any benefit, this method claimed one in {lucky or 'none'}.{up_to}"
        )
    wrong = rehearsal.wrong_beliefs
    if wrong is not None and not rehearsal.believes_its_claim:
        yield f"Its beliefs were wrong there in {rate_words(wrong)}."


def more_data_words(rehearsal: Rehearsal, rung: Rung) -> list[str]:
    """Returns how many more data would certify a gain in half of the worlds; maybe nothing.

    Worlds take the luck of the log for the truth. So the list is empty unless data that did not
    choose the policy support a belief in a gain. It is also empty if a gain is proved already.
    """
    if rung == "proved better":
        return []
    more = rehearsal.more_episodes()
    largest = rehearsal.sizes[-1]
    if rehearsal.calibration is not None and rehearsal.calibration.rank == 0:
        return ["Calibrated by the stress test, no claim is left, whatever the data."]
    if more is None:
        tried = f"{number(largest)} times the data" if largest > 1 else "Data like these"
        return [f"{tried} would not certify a gain in half of the worlds."]
    if rung != "believed better":
        return []
    if more > 0:
        noun = "episode" if rehearsal.own_episodes > 1 else "log"
        many = f"{noun}{'' if more == 1 else 's'}"
        long = "" if rehearsal.own_episodes > 1 else " as long as this one"
        return [f"With {about(more)} more {many}{long} you could probably certify a gain."]
    rate = certified_rate(rehearsal.summary(own_size(rehearsal)))
    return [f"Data like these certify a gain in {rate.happened:,} of {rate.total:,} worlds."]


def calibration_words(calibration: Calibration, delta: float) -> str:
    """Says how much calibration in simulated worlds lowers a posterior's claim."""
    draws = calibration.draws
    prior = calibration.rank_of_prior
    rank = calibration.rank
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


def outcome_words(rehearsal: Rehearsal) -> str:
    """Returns how often the policy did harm; without such worlds, how often claims were luck."""
    if rehearsal.worlds == 0:
        return next(claims_words(rehearsal))
    size = own_size(rehearsal)
    harmed = rehearsal.summary(size).harmed
    worlds = f"{counted(harmed.total, 'simulated world')}{with_data(size)}"
    return (
        f"In {worlds}, a policy made this way was worse than the current one in "
        f"{harmed.happened or 'none'}."
    )


def no_rehearsal_words(findings: Findings) -> str:
    """Returns a sentence that says why there was no stress test."""
    if findings.awaits_stress_test:
        return "Not yet stress tested: the command that made this result goes on with it."
    return f"Not stress tested: {findings.no_rehearsal}."


# ---- pictures and tables ------------------------------------------------------------------------


def kinds_picture(by_kind: Mapping[str, SizeSummary], flags: Sequence[show.Flag]) -> show.Strips:
    """Returns the true gain in each kind of world."""
    strips = []
    for kind, summary in by_kind.items():
        least, lower, median, upper, most = summary.gain_quantiles
        strips.append(
            show.Strip(
                kind,
                least,
                most,
                median,
                "vermilion" if median < 0 else "blue",
                f"worse in {summary.harmed.happened:,} of {summary.harmed.total:,}",
                (lower, upper),
            )
        )
    return show.Strips(
        show.Caption(
            "kinds-picture",
            "The true gain in each kind of world",
            "The true gain by kind of world: median, middle half (thick) and nine tenths (thin).",
        ),
        "true gain",
        strips,
        flags,
    )


def rates_table(by_kind: Mapping[str, SizeSummary], by_size: Sequence[SizeSummary]) -> show.Table:
    """Returns rates of harm, wrong claims and proofs, by kind of world and amount of data."""
    named = {**by_kind, **{f"× {number(one.size)}: {one.episodes:,}": one for one in by_size}}
    rows: list[list[show.Cell]] = []
    for name, one in named.items():
        rates = (one.harmed, one.violated, certified_rate(one))
        cells = [show.Amount(f"{rate.happened:,} of {rate.total:,}", rate.share) for rate in rates]
        cells += [
            show.Amount(signed(gain), gain)
            for gain in (one.gain_quantiles[0], one.gain_quantiles[2])
        ]
        rows.append([name, *cells])
    columns = [
        show.Column("Kind of world, or data: episodes"),
        *show.numbers(
            "Policy worse", "Claim wrong", "Gain certified", "Gain at 5 %", "Median gain"
        ),
    ]
    return show.Table("kinds", "By kind of world and amount of data", columns, rows, sortable=True)


def power_picture(rehearsal: Rehearsal, by_size: Sequence[SizeSummary]) -> show.Strips:
    """Returns the share of worlds with a certified gain, for each amount of data."""
    noun = "times the steps" if rehearsal.own_episodes == 1 else "episodes"
    names = [f"{number(one.size * rehearsal.own_episodes)} {noun}" for one in by_size]
    strips = [
        show.Strip(
            name, 100 * rate.low, 100 * rate.high, 100 * rate.share, words=percent(rate.share)
        )
        for name, rate in zip(names, map(certified_rate, by_size), strict=True)
    ]
    return show.Strips(
        show.Caption(
            "power-picture",
            "How much more data would help",
            "Worlds in which a gain is certified with so much data, with 95\u202f% intervals.",
        ),
        "% of the worlds",
        strips,
        [show.Flag(50.0, "half of the worlds")],
    )
