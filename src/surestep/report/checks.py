"""Writes the section on checks: which assumptions were tested, and with what outcome.

The first section says which hidden cause would undo a gain.
"""

from collections.abc import Sequence

import surestep.sections as show
from surestep._words import number, signed
from surestep.checks import Check, says, title
from surestep.checks.hidden_causes import KIND, odds_to_undo, strongest
from surestep.checks.words import aside, summary

TITLE = "Can the claim rest on this log?"
SIGNS: dict[str, tuple[str, show.Mood]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "told": ("•", "plain"),
    "unchecked": ("–", "plain"),
}
NOTE = "A test that finds nothing proves nothing; beside it stands which effect it would notice."
HIDDEN = "If people decided by what the log does not record, the gain may not exist."


def checks_section(checks: Sequence[Check], *, folded: bool = True) -> show.Section:
    """Returns a section with a line for each check, and first how many failed."""
    return show.Section(
        "checks",
        TITLE,
        [summary(checks), NOTE],
        items=[
            show.Item(
                title(check), says(check), aside(check), *SIGNS[check.outcome], pictures_of(check)
            )
            for check in checks
        ],
        folded=folded,
    )


def pictures_of(check: Check) -> list[show.Picture]:
    """Returns the pictures of a check: this log among shuffled ones, or the compared numbers."""
    if check.outcome == "unchecked" or not check.picture:
        return []
    match check.code:
        case "model-returns":
            caption = show.Caption(
                "check-returns",
                "Mean returns, and the model",
                "Strokes are mean returns; bars are where luck leaves them by the model.",
            )
            strips = [
                show.Strip(x.name, x.low, x.high, x.value, toned(not x.low <= x.value <= x.high))
                for x in check.picture
            ]
            return [show.Strips(caption, "return from there on", strips)]
        case "enough-data":
            caption = show.Caption(
                "check-places",
                "Where the new policy spends its time",
                "Bars are shares of the new policy's time, strokes of the log's decisions.",
            )
            strips = [
                show.Strip(x.name, 0.0, x.high, x.beside, toned(x.marked)) for x in check.picture
            ]
            return [show.Strips(caption, "share", strips)]
        case "hidden-causes":
            return curve(check)
        case _ if check.statistic is not None:
            return [luck(check, check.statistic)]
    return []


def toned(wrong: bool) -> show.Tone:
    """Returns the colour of a range: red if it is evidence against the claim, else blue."""
    return "vermilion" if wrong else "blue"


def luck(check: Check, statistic: float) -> show.Histogram:
    """Returns a histogram of the statistic in shuffled logs, with a flag at this log's."""
    edges = [check.picture[0].low, *(mark.high for mark in check.picture)]
    of = "" if check.signal is None else f"-{check.signal.encode().hex()}"  # ids are plain
    room = max(edges[-1] + 0.5 * (edges[-1] - edges[0]), statistic)  # room for the flag of this log
    return show.Histogram(
        show.Caption(
            f"check-{check.code}{of}",
            "Luck alone, and this log",
            f"This log is {signed(statistic, 2)} standard deviations from shuffled ones.",
        ),
        "standard deviations",
        "log",
        [*edges, room],
        [show.Layer([*(int(mark.value) for mark in check.picture), 0], "grey")],
        [show.Flag(statistic, "this log")],
    )


# ---- hidden causes -----------------------------------------------------------------------------


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
