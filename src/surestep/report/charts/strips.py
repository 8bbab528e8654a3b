"""Strips: named things below each other over one axis, with lines through all of them.

Words stand above each strip, not beside it, so that there is room for them on a narrow screen too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from surestep.report.charts.svg import (
    WIDTH,
    Axis,
    Caption,
    Tone,
    picture,
    rect,
    side_of,
    stroke,
    text_at,
)
from surestep.report.html import Element, Node, element

LEFT, RIGHT = 12.0, WIDTH - 12.0
LINE = 26.0  # a line of text, which is large on a narrow screen
LETTER = 12.0  # the width of a letter there, and a little more
LONGEST = 48  # letters of a name
STRIP, GAP = 20.0, 16.0  # the height of a strip, and the room below it
FOOT = 56.0  # numbers and label of the axis


class Flag(NamedTuple):
    """A place on the axis: a line through the whole picture, with words on a line of their own."""

    value: float
    text: str


class Segment(NamedTuple):
    """A part of a strip."""

    low: float
    high: float
    tone: Tone
    height: float = STRIP
    faint: bool = False


class Strip(NamedTuple):
    """A row of the picture: its name, and what is drawn below it."""

    name: str
    aside: str = ""  # beside the name
    tone: Tone | None = None  # of a dot before the words beside the name
    amount: str = ""  # at the right end
    segments: Sequence[Segment] = ()
    point: float | None = None  # what matters most, as a stroke
    empty: Literal["nothing", "refused"] | None = None  # an outline instead, with these words on it
    words: str = ""
    heading: str = ""  # of the group that begins here


def strip_chart(
    caption: Caption, strips: Sequence[Strip], axis: Axis, flags: Sequence[Flag]
) -> Element:
    """Returns strips over an axis. What lies beyond its ends is cut, with an arrow."""

    def across(value: float) -> float:
        return LEFT + min(max(axis.share(value), 0.0), 1.0) * (RIGHT - LEFT)

    top = LINE * len(flags) + 10
    drawn: list[Node] = []
    for strip in strips:
        if strip.heading:
            drawn.append(text_at(strip.heading, "0", f"{top + 18:g}", "axis-label wide halo"))
            top += LINE + 4
        drawn.append(words_of(strip, top + 18))
        top += LINE * (2 if is_long(strip) else 1)
        drawn.append(drawing_of(strip, axis, across, top))
        top += STRIP + GAP
    return picture(
        caption,
        WIDTH,
        top + FOOT,
        [stroke(f"M{across(value):.1f} {top:g}v6", "axis") for value, _ in axis.ticks()],
        [
            text_at(
                text,
                f"{across(value):.1f}",
                f"{top + 24:g}",
                f"tick{side_of(across(value), 0.04) or ''}",
            )
            for value, text in axis.ticks()
        ],
        stroke(f"M{LEFT:g} {top:g}H{RIGHT:g}", "axis"),
        text_at(axis.label, f"{RIGHT:g}", f"{top + 50:g}", "axis-label ends"),
        flag_lines(flags, axis, across, LINE * len(flags), top),
        drawn,
    )


def is_long(strip: Strip) -> bool:
    """Returns whether the words of a strip need a second line."""
    return LETTER * len(f"{strip.name} ● {strip.aside}  {strip.amount}") > WIDTH


def words_of(strip: Strip, top: float) -> list[Node]:
    """Returns the name of a strip, what is beside it, and the number at the right end."""
    dot = element("tspan", "● ", class_=f"dot tone-{strip.tone}") if strip.tone else None
    shown = strip.name if len(strip.name) <= LONGEST else f"{strip.name[: LONGEST - 1]}…"
    name: list[Node] = [element("tspan", shown, class_="strong")]
    aside: list[Node] = [dot, strip.aside] if strip.aside else []
    last = top + LINE if is_long(strip) else top
    lines = [(top, name), (last, aside)] if is_long(strip) else [(top, [*name, " ", *aside])]
    return [
        [text_at(words, "0", f"{y:g}", "wide halo") for y, words in lines if words],
        text_at(
            strip.amount,
            f"{WIDTH:g}",
            f"{last:g}",
            f"{'loss' if strip.empty else 'strong'} wide halo ends",
        )
        if strip.amount
        else None,
    ]


def drawing_of(
    strip: Strip, axis: Axis, across: Callable[[float], float], top: float
) -> list[Node]:
    """Returns the segments of a strip, the stroke at its point, and arrows where it is cut."""
    middle = top + STRIP / 2
    if strip.empty is not None:
        outline = rect(
            f"{LEFT:g}", f"{top:g}", f"{RIGHT - LEFT:g}", f"{STRIP:g}", f"outline {strip.empty}"
        )
        place = {"x": f"{LEFT + 26:g}", "y": f"{middle:g}"}
        words = element("text", strip.words, **place, class_="loss middle halo")
        arrow = arrow_head(top, "vermilion") if strip.empty == "nothing" else None
        return [outline, arrow, words]
    drawn: list[Node] = []
    for part in strip.segments:
        drawn.append(
            rect(
                f"{across(part.low):.1f}",
                f"{middle - part.height / 2:g}",
                f"{max(across(part.high) - across(part.low), 1.0):.1f}",
                f"{part.height:g}",
                f"bar tone-{part.tone}{' faint' if part.faint else ''}",
            )
        )
        if part.low < axis.low:
            drawn.append(arrow_head(top, part.tone))
    if strip.point is not None and 0 <= axis.share(strip.point) <= 1:
        left = across(strip.point)
        drawn.append(stroke(f"M{left:.1f} {top - 3:g}v{STRIP + 6:g}", "point"))
    return drawn


def arrow_head(top: float, tone: Tone) -> Element:
    """Returns the sign that a strip goes on to the left."""
    way = f"M{LEFT - 10:g} {top + STRIP / 2:g}L{LEFT + 14:g} {top - 3:g}v{STRIP + 6:g}Z"
    return stroke(way, f"bar tone-{tone}")


def flag_lines(
    flags: Sequence[Flag], axis: Axis, across: Callable[[float], float], foot: float, bottom: float
) -> list[Node]:
    """Returns lines down to `bottom`, with the words of the last flag just above `foot`.

    Words begin at their line, or end there where they would leave the picture. The leftmost is
    highest, so that no line runs through words that begin further right.
    """
    lines: list[Node] = []
    words: list[Node] = []
    for i, flag in enumerate(sorted(flags, key=lambda flag: flag.value)):
        left, base = across(flag.value), foot - LINE * (len(flags) - 1 - i) - 8
        share = axis.share(flag.value)
        text = f"← {flag.text}" if share < 0 else f"{flag.text} →" if share > 1 else flag.text
        side = " ends" if left + LETTER * len(text) > WIDTH else ""
        if 0 <= share <= 1:
            lines.append(stroke(f"M{left:.1f} {base - 12:g}V{bottom:g}", "mark"))
        words.append(
            text_at(
                text, f"{left + (-6 if side else 6):.1f}", f"{base:g}", f"note strong halo{side}"
            )
        )
    return [*lines, *words]
