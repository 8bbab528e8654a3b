"""Writes the section on checks: which assumptions were tested, and with what outcome."""

from collections.abc import Sequence

import surestep.sections as show
from surestep._words import signed
from surestep.checks import Check, says, title
from surestep.checks.words import aside, summary
from surestep.report.hidden_causes import curve

TITLE = "Can the claim rest on this log?"
SIGNS: dict[str, tuple[str, show.Mood]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "told": ("•", "plain"),
    "unchecked": ("–", "plain"),
}
NOTE = "A test that finds nothing proves nothing; beside it stands which effect it would notice."


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
