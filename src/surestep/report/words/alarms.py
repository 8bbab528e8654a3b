"""Alarms, and what the current policy earned, in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from surestep._words import counted, number, percent, signed
from surestep.checks import CheckCode
from surestep.report.words.checks import FAILED
from surestep.results.alarms import Alarm, AlarmCode
from surestep.results.findings import StateChange
from surestep.results.record import Record

# The check that each alarm of a check is about.
CHECK_OF: Mapping[AlarmCode, CheckCode] = {
    "not-markov": "markov-next-state",
    "rewards-remember": "markov-reward",
    "values-off": "model-returns",
    "drift": "drift-next-state",
    "reward-drift": "drift-reward",
    "behavior-remembers": "behavior-memory",
    "practice-changed": "practice-changed",
}


def baseline_words(record: Record) -> str:
    """Returns what the log's own episodes earned, beside the model's figure; empty without any."""
    earned = record.baseline
    if earned is None:
        return ""
    after = (
        f"; for {earned.cut_off:,} that were cut off, the model adds what would have come"
        if earned.cut_off
        else ""
    )
    return (
        f"The {earned.episodes:,} episodes of the log earned {number(earned.mean)} on average "
        f"(95\u202f% interval {number(earned.low)} to {number(earned.high)}{after})."
    )


def estimate_words(record: Record) -> str:
    """Returns by which data the gain is estimated, and how far the estimate may be off."""
    found = record.estimates
    if "held_out_gain" not in found:
        if record.parameters.get("train_share") is None:
            return "Estimated by the same data that chose the policy, which flatter it."
        return (
            "Estimated by the part of the log that chose the policy, which flatters it: in the "
            "rest of the log episodes need not end, so that it says nothing of the gain."
        )
    sure = percent(1 - float(record.parameters["delta"]))
    return (
        f"Between {signed(found['held_out_low'])} and {signed(found['held_out_high'])} (about "
        f"{sure}), estimated by the part of the log that did not choose the policy."
    )


def evidence_words(changes: Sequence[StateChange]) -> str:
    """Returns how many changes the rows that judge confirm, leave open or contradict."""
    found = Counter(change.evidence for change in changes if change.evidence is not None)
    if not found:
        return ""
    words = (f"{found[word]:,} {word}" for word in ("confirmed", "open", "contradicted"))
    return f"By the rest of the log: {', '.join(words)}."


def alarm_words(alarm: Alarm) -> str:
    """Returns the sentence of an alarm."""
    given = alarm.figures

    def shown(name: str) -> str:
        return number(given[name])

    match alarm.code:
        case "claim-above-estimate":
            return (
                f"A gain of at least {shown('claim')} is claimed, but no more than "
                f"{shown('estimate')} is estimated: one of the two is wrong."
            )
        case "claim-above-returns":
            return (
                f"A gain of at least {shown('claim')} is claimed, but the episodes of the log only "
                f"earned {shown('low')} to {shown('high')}."
            )
        case "time-in-scarce-states":
            return (
                f"The new policy spends {percent(given['share'])} of its time in situations that "
                f"the log hardly visits ({counted(int(given['decisions']), 'decision')}): what it "
                "is worth there is mostly guessed."
            )
        case "time-in-open-bins":
            return (
                f"The new policy spends {percent(given['share'])} of its time in bins that are "
                f"open to one side ({counted(int(given['decisions']), 'decision')} in the log): "
                "what happens far out in them is not told apart from their edge."
            )
        case "baseline-gap":
            return (
                f"The model says that the current policy earns {shown('model')} an episode, but "
                f"the episodes of the log say {shown('low')} to {shown('high')}: the model does "
                "not describe the log, so that its gains may be wrong as well."
            )
        case "rewards-vary":
            return "Rewards vary, but a claim takes their means for exact."
        case "acted-on-more":
            return (
                "A gain is claimed for states, but whoever acted looked at more than these: the "
                "probabilities that the log names vary within them. If what was seen also matters "
                "for what came of it, the gain may not be there. Make it a part of the state, or "
                "stand by a trajectory certificate, which allows for it."
            )
        case "first-on-few":
            return (
                f"In {counted(int(given['situations']), 'situation')} the first choice rests on "
                f"few decisions: in one of them on {int(given['visits']):,} of "
                f"{int(given['decisions']):,}."
            )
        case code:
            tested = f"The test has p = {shown('p_value')}, and fails at {shown('level')} or less."
            return f"{FAILED[CHECK_OF[code]]} {tested}"
