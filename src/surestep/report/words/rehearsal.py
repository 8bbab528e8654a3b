"""The findings of a rehearsal, in plain words: a stress test, and how much more data would help."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surestep._words import about, counted, duration, number, percent
from surestep.model.certificate import Rung
from surestep.rehearsal import Calibration, Rate, Rehearsal, SizeSummary
from surestep.results.findings import NoRehearsal

ONLY_BELIEVED = "What a posterior says is only believed."
TIMES = {0.5: "half", 2.0: "twice", 5.0: "five times", 10.0: "ten times"}


def own_size(rehearsal: Rehearsal) -> float:
    """Returns the size that is nearest to the log at hand, which is 1."""
    return min(rehearsal.sizes, key=lambda size: abs(math.log(size)))


def times_words(size: float) -> str:
    """Returns 'ten times', 'half' or '2.5 times'."""
    return TIMES.get(size, f"{size:g} times")


def rate_words(rate: Rate) -> str:
    """Returns '3 of 40 worlds; 95 % interval 1.6 % to 20 %'."""
    return (
        f"{rate.happened:,} of {rate.total:,} worlds; 95\u202f% interval {percent(rate.low)} to "
        f"{percent(rate.high)}"
    )


def harm_words(rehearsal: Rehearsal) -> str:
    """Returns how often the policy was worse than π_b."""
    size = own_size(rehearsal)
    harmed = rehearsal.summary(size).harmed
    other_size = "" if size == 1 else f" with {times_words(size)} the data"
    return (
        f"In a stress test{other_size}, a policy made the same way was worse than the current "
        f"one in {harmed.happened:,} of {harmed.total:,} worlds ({percent(harmed.share)})."
    )


def luck_words(rehearsal: Rehearsal) -> str:
    """Returns what luck alone would claim where all actions are alike."""
    lucky = int((rehearsal.luck > rehearsal.tolerance).sum())
    sentence = (
        f"Where all actions are alike, so that nothing can be gained, luck alone claims a gain in "
        f"{lucky:,} of {rehearsal.luck.size:,} worlds"
    )
    bound = rehearsal.luck_bound
    if lucky == 0 or bound is None or bound <= 0:
        return f"{sentence}."
    return f"{sentence}; claims up to {number(bound)} are no more than that."


def belief_words(rehearsal: Rehearsal) -> str | None:
    """Returns how often such beliefs are wrong where actions do nothing; None: none was held."""
    wrong = rehearsal.wrong_beliefs
    if wrong is None:
        return None
    return (
        "Where all actions are alike, so that nothing can be gained, such a belief was wrong in "
        f"{wrong.happened:,} of {wrong.total:,} worlds of the stress test (95\u202f% interval "
        f"{percent(wrong.low)} to {percent(wrong.high)})."
    )


def left_out_words(seconds: float) -> str:
    """Returns that only worlds of luck were gone through, and what the others would take."""
    return (
        "Only worlds in which all actions are alike were gone through. For a problem of this size "
        f"those of other kinds take about {duration(seconds)} of one core more: they are gone "
        "through only if that is asked for."
    )


def worlds_words(parameters: Mapping[str, Any]) -> str:
    """Returns how many worlds of each kind there are, also where there are only those of luck."""
    if parameters["worlds"] == 0 and parameters.get("sizes"):
        return "0, but for those in which all actions are alike"
    return str(parameters["worlds"])


def certified_rate(summary: SizeSummary) -> Rate:
    """Returns how often a gain is certified: by the calibrated claims where there are any."""
    calibrated = summary.calibrated_certified
    return summary.certified if calibrated is None else calibrated


def more_data_words(rehearsal: Rehearsal, rung: Rung) -> str | None:
    """Returns what it would take to certify an improvement in half of the worlds.

    Worlds take the luck of the log for the truth. So nothing is promised unless other data than
    those that chose the policy make one believe in a gain, nor where one is proved already.
    """
    if rung == "proved better":
        return None
    more, largest = rehearsal.more_episodes(), rehearsal.sizes[-1]
    aim = "certify an improvement"
    if rehearsal.calibration is not None and rehearsal.calibration.rank == 0:
        return (
            f"How much data it would take to {aim} cannot be told: calibrated by the stress test, "
            "no claim of this guarantee is left."
        )
    if more is None and largest > 1:
        return (
            f"Even {times_words(largest)} the data would not be enough to {aim} in half of the "
            "worlds."
        )
    if more is None:
        return f"The data would not be enough to {aim} in half of the worlds; no more was tried."
    if rung != "believed better":
        return None
    if more > 0:
        noun = "episode" if rehearsal.own_episodes > 1 else "log as long as this one"
        plural = "episodes" if rehearsal.own_episodes > 1 else "logs as long as this one"
        return (
            f"With {about(more)} more {noun if more == 1 else plural} you would probably be able "
            f"to {aim}."
        )
    if 1.0 not in rehearsal.sizes:
        return f"The log at hand is probably enough to {aim}."
    rate = certified_rate(rehearsal.summary(1.0))
    enough = f"The log at hand is enough to {aim} in {rate.happened:,} of {rate.total:,} worlds"
    if rate.share >= 0.5:
        return f"{enough}, without further data."
    return (
        f"{enough}. Less data was enough in half of them, so that these worlds are too few to tell "
        "how much it takes."
    )


def calibration_words(calibration: Calibration, delta: float) -> tuple[str, str, str]:
    """Returns what the worlds leave of a claim from draws: a mood, a headline, a sentence."""
    draws, prior, rank = calibration.draws, calibration.rank_of_prior, calibration.rank
    strictest = f"Worlds of the kind “{calibration.strictest}”"
    if rank == 0:
        return (
            "bad",
            "No claim survives the stress test",
            f"{strictest} leave nothing of it: even the least of {draws:,} draws exceeds the truth "
            "there too often. Calibrated, the guarantee is refused.",
        )
    if rank < prior:
        left = rank / (draws + 1)
        return (
            "caution",
            "The stress test leaves a weaker claim",
            f"By its own prior, the guarantee claims number {prior:,} of {draws:,} draws, counted "
            f"from the least. {strictest} leave number {rank:,}: as if δ = {left:.3g} had been "
            f"asked for instead of {delta:g}.",
        )
    return (
        "good",
        "The stress test leaves the claim as it is",
        f"In no kind of world is number {prior:,} of {draws:,} draws, counted from the least, "
        "above the truth too often.",
    )


def found_words(rehearsal: Rehearsal) -> list[str]:
    """Returns sentences about harm, what is left of a claim from draws, and luck."""
    sentences = [harm_words(rehearsal), luck_words(rehearsal)]
    if rehearsal.calibration is not None:
        _, headline, sentence = calibration_words(rehearsal.calibration, rehearsal.delta)
        sentences.insert(1, f"{headline}. {sentence}")
    return sentences


def rehearsed_words(rehearsal: Rehearsal, size: float) -> str:
    """Returns what was rehearsed, and where."""
    worlds = counted(rehearsal.member.size, "world")
    kinds = counted(len(rehearsal.family), "kind")
    other_size = "" if size == 1 else f" In each, {times_words(size)} the data was collected."
    return (
        f"{way_words(rehearsal)} was gone again in {worlds} of {kinds}, made from this log, in "
        f"which the truth is known.{other_size} What follows are shares of these worlds."
    )


def lucky_words(rehearsal: Rehearsal) -> str:
    """Returns what was rehearsed where only worlds of luck were gone through."""
    worlds = counted(rehearsal.luck.size, "world")
    return (
        f"{way_words(rehearsal)} was gone again in {worlds}, made from this log, in which all "
        "actions are alike. What follows are shares of these worlds."
    )


def way_words(rehearsal: Rehearsal) -> str:
    """Returns what is gone through again in each world."""
    return (
        f"The whole way from a log to a policy and its guarantee ({rehearsal.kind}, δ = "
        f"{number(rehearsal.delta)})"
    )


def no_rehearsal_words(missing: NoRehearsal) -> tuple[str, str]:
    """Returns that there was no stress test, and why: a headline and a sentence or two."""
    match missing.why:
        case "declined":
            return "No stress test was made", "None was asked for. "
        case "to come":
            return (
                "Not yet stress tested",
                "This page was saved before its stress test, which was not finished then. The "
                "command that made it goes on with it. ",
            )
        case "too much work":
            return (
                "No stress test was made",
                "For a problem of this size it takes about "
                f"{duration(missing.seconds)} of one core: it is made only if it is asked for. ",
            )
        case "impossible":
            return "No stress test was made", f"None is possible: {missing.obstacle}. "
        case "nothing changed":
            return "No stress test was made", "Nothing changed, so there is nothing to test. "
