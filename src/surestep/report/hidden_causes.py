"""Writes how strong an unrecorded cause of decisions would have to be to undo a gain."""

from collections.abc import Sequence

import surestep.sections as show
from surestep._words import number
from surestep.checks import Check
from surestep.checks.hidden_causes import KIND, odds_to_undo, strongest

HIDDEN = "If people decided by what the log does not record, the gain may not exist."


def hidden_words(checks: Sequence[Check]) -> str:
    """Says which hidden cause would undo the gain, compared with a column; "" if none can be."""
    odds = odds_to_undo(checks)
    if odds is None:
        reasons = [check.why for check in checks if check.code == KIND.code]
        return "" if {"behavior-known", "not-assumed"}.intersection(reasons) else HIDDEN
    times = number(odds, 2)
    often = "a little more" if times == "1" else f"{times} times as"
    said = (
        f"The gain may be gone if something unrecorded makes people choose an action {often} often "
        "(in odds) in situations that look the same; less is enough if it lasts from step to step."
    )
    column = strongest(checks)
    if column is None:
        return said
    strength = f"“{column.name}”, which is recorded ({number(column.value, 2)} times)"
    return f"{said} One as strong as {strength}, would {'not ' * (column.value < odds)}undo it."


def condition(checks: Sequence[Check]) -> str:
    """Says under which condition a gain holds, if a cause like a recorded column may undo it."""
    odds = odds_to_undo(checks)
    column = strongest(checks)
    if odds is None or column is None or odds >= column.value:
        return ""
    return (
        f"Only if nothing unrecorded sways decisions as much as “{column.name}” does (odds of "
        f"{number(column.value, 2)}; {number(odds, 2)} may undo the gain). "
    )


def curve(check: Check) -> list[show.Picture]:
    """Draws the gain that is left over the odds of a hidden cause; none for older results."""
    points = [(mark.low, mark.value) for mark in check.picture if not mark.name]
    if len(points) < 2:
        return []
    columns = [mark for mark in check.picture if mark.name]
    odds = ", ".join(f"{mark.name} {number(mark.value, 2)}" for mark in columns)
    return [
        show.Curves(
            show.Caption(
                "check-hidden-causes",
                "The gain that is left if a hidden cause is so strong",
                "The line is the estimated gain in the worst case."
                f"{f' Columns, had nobody recorded them: {odds}.' * bool(odds)}",
            ),
            "odds",
            "gain",
            {"gain": points},
            [show.Flag(0.0, "none")],
            [show.Flag(mark.value, mark.name) for mark in columns if mark.value < points[-1][0]],
        )
    ]
