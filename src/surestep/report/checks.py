"""The checks of what claims assume: what was tested, found and missed."""

from __future__ import annotations

from collections.abc import Sequence

from surestep._words import signed
from surestep.checks import Check, Mark, aside, says, summary, title
from surestep.sections import (
    Caption,
    Flag,
    Histogram,
    Item,
    Layer,
    Mood,
    Picture,
    Section,
    Strip,
    Strips,
)

TITLE = "Can the claim rest on this log?"
SIGNS: dict[str, tuple[str, Mood]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "told": ("•", "plain"),
    "unchecked": ("–", "plain"),
}
NOTE = "A test that finds nothing proves nothing; beside it stands which effect it would notice."
SMALLEST_CHANGE = 1e-4  # of chances, where the picture of hidden causes begins


def checks_section(checks: Sequence[Check], *, folded: bool = True) -> Section:
    """Returns a line an assumption, and before them how many fail."""
    items = []
    for check in checks:
        said = (title(check), says(check), aside(check), *SIGNS[check.outcome])
        items.append(Item(*said, pictures_of(check)))
    return Section("checks", TITLE, [summary(checks), NOTE], items=items, folded=folded)


def pictures_of(check: Check) -> list[Picture]:
    """Returns what luck does beside this log, or the numbers that a check compares."""
    if check.outcome == "unchecked" or not (check.picture or check.code == "hidden-causes"):
        return []
    match check.code:
        case "model-returns":
            text = "Strokes are mean returns; bars are where luck leaves them by the model."
            return [ranges("returns", "Mean returns, and the model", text, check.picture)]
        case "enough-data":
            text = "Bars are shares of the new policy's time, strokes of the log's decisions."
            return [shares("Where the new policy spends its time", text, check.picture)]
        case "hidden-causes":
            return [hidden(check)]
        case _ if check.statistic is not None:
            return [luck(check, check.statistic)]
    return []


def luck(check: Check, statistic: float) -> Histogram:
    """Returns what shuffled logs do, and where this one is."""
    edges = [check.picture[0].low, *(mark.high for mark in check.picture)]
    text = f"This log is {signed(statistic, 2)} standard deviations from shuffled ones."
    caption = Caption(f"check-{check.code}", "Luck alone, and this log", text)
    layer = Layer([int(mark.value) for mark in check.picture], "grey")
    room = [*edges, max(edges[-1] + 0.5 * (edges[-1] - edges[0]), statistic)]
    layer = layer._replace(times=[*layer.times, 0])
    return Histogram(
        caption, "standard deviations", "log", room, [layer], [Flag(statistic, "this log")]
    )


def ranges(name: str, heading: str, text: str, marks: Sequence[Mark]) -> Strips:
    """Returns values beside the ranges they should lie in."""
    strips = [
        Strip(
            mark.name,
            mark.low,
            mark.high,
            mark.value,
            "blue" if mark.low <= mark.value <= mark.high else "vermilion",
        )
        for mark in marks
    ]
    return Strips(Caption(f"check-{name}", heading, text), "return from there on", strips)


def shares(heading: str, text: str, marks: Sequence[Mark]) -> Strips:
    """Returns the shares of the new policy's time and of the log's decisions."""
    strips = [
        Strip(mark.name, 0.0, mark.high, mark.beside, "vermilion" if mark.marked else "blue")
        for mark in marks
    ]
    return Strips(Caption("check-places", heading, text), "share", strips)


def hidden(check: Check) -> Strips:
    """Returns the changes of chances that the claim stands, on an axis of powers of ten."""
    low = min(SMALLEST_CHANGE, check.figures["proved"] / 2)
    strips = [
        Strip("by the model's values", low, check.figures["estimated"], tone="orange"),
        Strip("by value bounds", low, check.figures["proved"]),
    ]
    text = "How much hidden causes may change the chances of every step before the claim falls."
    caption = Caption("check-hidden", "How strong hidden causes may be", text)
    return Strips(caption, "change of the chances, as a share", strips, log=True)
