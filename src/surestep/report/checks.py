"""The checks of what claims assume: what was tested, found and missed."""

from __future__ import annotations

from collections.abc import Sequence

import surestep.sections as show
from surestep._words import signed
from surestep.checks import Check, says, title
from surestep.checks.words import aside, summary

TITLE = "Can the claim rest on this log?"
SIGNS: dict[str, tuple[str, show.Mood]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "told": ("•", "plain"),
    "unchecked": ("–", "plain"),
}
NOTE = "A test that finds nothing proves nothing; beside it stands which effect it would notice."
SMALLEST_CHANGE = 1e-4  # of chances, where the picture of hidden causes begins


def checks_section(checks: Sequence[Check], *, folded: bool = True) -> show.Section:
    """Returns a line an assumption, and before them how many fail."""
    items = []
    for check in checks:
        said = (title(check), says(check), aside(check), *SIGNS[check.outcome])
        items.append(show.Item(*said, pictures_of(check)))
    return show.Section("checks", TITLE, [summary(checks), NOTE], items=items, folded=folded)


def pictures_of(check: Check) -> list[show.Picture]:
    """Returns what luck does beside this log, or the numbers that a check compares."""
    if check.outcome == "unchecked" or not (check.picture or check.code == "hidden-causes"):
        return []
    match check.code:
        case "model-returns":
            text = "Strokes are mean returns; bars are where luck leaves them by the model."
            caption = show.Caption("check-returns", "Mean returns, and the model", text)
            strips = [
                show.Strip(x.name, x.low, x.high, x.value, toned(not x.low <= x.value <= x.high))
                for x in check.picture
            ]
            return [show.Strips(caption, "return from there on", strips)]
        case "enough-data":
            text = "Bars are shares of the new policy's time, strokes of the log's decisions."
            caption = show.Caption("check-places", "Where the new policy spends its time", text)
            strips = [
                show.Strip(x.name, 0.0, x.high, x.beside, toned(x.marked)) for x in check.picture
            ]
            return [show.Strips(caption, "share", strips)]
        case "hidden-causes":
            return [hidden(check)]
        case _ if check.statistic is not None:
            return [luck(check, check.statistic)]
    return []


def toned(wrong: bool) -> show.Tone:
    """Returns the tone of a range."""
    return "vermilion" if wrong else "blue"


def luck(check: Check, statistic: float) -> show.Histogram:
    """Returns what shuffled logs do, and where this one is."""
    edges = [check.picture[0].low, *(mark.high for mark in check.picture)]
    text = f"This log is {signed(statistic, 2)} standard deviations from shuffled ones."
    of = "" if check.signal is None else f"-{check.signal.encode().hex()}"  # no name is an id
    caption = show.Caption(f"check-{check.code}{of}", "Luck alone, and this log", text)
    layer = show.Layer([int(mark.value) for mark in check.picture], "grey")
    room = [*edges, max(edges[-1] + 0.5 * (edges[-1] - edges[0]), statistic)]
    layer = layer._replace(times=[*layer.times, 0])
    return show.Histogram(
        caption, "standard deviations", "log", room, [layer], [show.Flag(statistic, "this log")]
    )


def hidden(check: Check) -> show.Strips:
    """Returns the changes of chances that the claim stands, on an axis of powers of ten."""
    low = min(SMALLEST_CHANGE, check.figures["proved"] / 2)
    strips = [
        show.Strip("by the model's values", low, check.figures["estimated"], tone="orange"),
        show.Strip("by value bounds", low, check.figures["proved"]),
    ]
    text = "How much hidden causes may change the chances of every step before the claim falls."
    caption = show.Caption("check-hidden", "How strong hidden causes may be", text)
    return show.Strips(caption, "change of the chances, as a share", strips, log=True)
