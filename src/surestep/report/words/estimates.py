"""Estimates in plain words: what the current policy earned, the gain, and its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from surestep._words import number, percent, signed
from surestep.results.findings import StateChange
from surestep.results.record import Record


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
