"""Limits that were set to the recommendations, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surestep.report.numbers import counted
from surestep.results.table import PolicyTable


def limits_words(table: PolicyTable, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns which pairs may be recommended, a sentence a limit; none where all may."""
    said, coverage, possible = list[str](), table.coverage, parameters.get("possible")
    if table.allowed is not None:
        allowed = int(table.allowed.sum())
        said.append(
            f"Limits were set: {allowed:,} of {counted(coverage.pairs, 'pair')} of a situation and "
            "an action may be recommended, and no other is taken more often than before."
        )
    if possible == "seen":
        said.append(
            "No action is recommended where the log does not show it: "
            f"{coverage.never:,} of {counted(coverage.pairs, 'pair')} of a situation and an action "
            "were never tried."
        )
    if possible == "listed":
        said.append(
            f"What is possible was declared: {counted(coverage.pairs, 'pair')} of a situation and "
            "an action."
        )
    return tuple(said)
