"""Pictures inside a page: inline SVG with text alternatives, coloured by the page's style sheet.

A picture that says something has a title, a description and, beside it, its numbers as a table; the
small bars inside tables repeat the text next to them and are hidden from screen readers. Sizes are
in units of the drawing, which is scaled to the width of the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from surestep._words import number, short
from surestep.report.html import Element, Node, element

Tone = Literal["blue", "orange", "green", "vermilion", "purple", "grey"]
TONES: tuple[Tone, ...] = ("blue", "orange", "green", "vermilion", "purple", "grey")

WIDTH, HEIGHT = 680.0, 338.0
LEFT, RIGHT, TOP, BOTTOM = 72.0, 18.0, 48.0, 62.0


class Note(NamedTuple):
    """The words for a point where somebody looks at it: its place, and its name."""

    place: str
    words: str


class Line(NamedTuple):
    """One line of a chart; notes, where there are some, are those of its points."""

    name: str
    points: Sequence[tuple[float, float]]
    tone: Tone
    dashed: bool = False
    notes: Sequence[Note] = ()


class Level(NamedTuple):
    """A value to compare with: a line across the chart, and what lies beyond it in the shade."""

    value: float
    text: str
    shade: Literal["above", "below"] | None = None
    words: Literal["above", "below"] = "above"


class Mark(NamedTuple):
    """A place on the horizontal axis."""

    value: float
    text: str


class Band(NamedTuple):
    """The room of error around a line: its lower and upper end at each place."""

    points: Sequence[tuple[float, float, float]]  # place, low, high
    tone: Tone


class Bar(NamedTuple):
    """One bar of a bar chart."""

    name: str
    value: float
    tone: Tone


@dataclass(frozen=True, slots=True)
class Caption:
    """The name of a picture, and a description of what it shows."""

    identity: str  # unique on the page
    title: str
    description: str


def picture(caption: Caption, width: float, height: float, *drawing: Node) -> Element:
    """Returns a drawing with its text alternative."""
    title, description = f"{caption.identity}-title", f"{caption.identity}-description"
    return element(
        "svg",
        element("title", caption.title, id=title),
        element("desc", caption.description, id=description),
        drawing,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"{title} {description}",
        class_="picture",
    )


def ornament(width: float, height: float, *drawing: Node, class_: str = "ornament") -> Element:
    """Returns a small drawing that says what the text beside it says."""
    return element(
        "svg",
        drawing,
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        height=f"{height:g}",
        aria_hidden="true",
        class_=class_,
    )


def rect(left: str, top: str, width: str, height: str, style: str, *inside: Node) -> Element:
    """Returns a rectangle, placed by numbers that are written out already."""
    return element("rect", inside, x=left, y=top, width=width, height=height, class_=style)


def text_at(words: Node, left: str, top: str, style: str) -> Element:
    """Returns words at a place."""
    return element("text", words, x=left, y=top, class_=style)


def stroke(way: str, style: str) -> Element:
    """Returns a line along a path of SVG."""
    return element("path", d=way, class_=style)


def side_of(left: float, near: float = 0.25) -> str:
    """Returns the class that keeps a text at a place inside the picture; empty for none."""
    share = left / WIDTH
    return "" if share < near else " ends" if share > 1 - near else " centred"


# ---- charts -----------------------------------------------------------------------------------


def line_chart(
    caption: Caption,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    levels: Sequence[Level] = (),
    marks: Sequence[Mark] = (),
    bands: Sequence[Band] = (),
    dots: bool = False,
) -> Element:
    """Returns lines over one axis. What lies beyond the axes is cut off at the edge."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(value: float) -> float:
        return LEFT + x.share(value) * (right - LEFT)

    def up(value: float) -> float:
        return bottom - y.share(value) * (bottom - TOP)

    drawn: list[Node] = []
    for band in bands:
        edge = [(across(place), up(high)) for place, _, high in band.points]
        edge += [(across(place), up(low)) for place, low, _ in reversed(band.points)]
        drawn.append(stroke(f"{path(edge)}Z", f"bar band tone-{band.tone}"))
    for line in lines:
        seen = [
            (across(value), min(max(up(height), -HEIGHT), 2 * HEIGHT))
            for value, height in line.points
        ]
        style = f"line tone-{line.tone}{' dashed' if line.dashed else ''}"
        drawn.append(stroke(path(seen), style))
        if dots:
            drawn += dots_of(line, seen)
    clip = f"{caption.identity}-clip"
    frame = {"x": f"{LEFT:g}", "y": f"{TOP:g}", "width": f"{right - LEFT:g}"}
    return picture(
        caption,
        WIDTH,
        HEIGHT,
        element("clipPath", element("rect", **frame, height=f"{bottom - TOP:g}"), id=clip),
        [shaded(level, up(level.value), bottom) for level in levels],
        [grid_line(up(value), text) for value, text in y.ticks()],
        [grid_column(across(value), text) for value, text in x.ticks()],
        stroke(f"M{LEFT:g} {bottom:g}H{right:g}", "axis"),
        text_at(y.label, "4", "18", "axis-label"),
        text_at(x.label, f"{right:g}", f"{HEIGHT - 6:g}", "axis-label ends"),
        element("g", drawn, clip_path=f"url(#{clip})"),
        [level_line(level, up(level.value)) for level in levels if 0 <= y.share(level.value) <= 1],
        [mark_line(mark, across(mark.value)) for mark in marks if 0 <= x.share(mark.value) <= 1],
    )


def dots_of(line: Line, seen: Sequence[tuple[float, float]]) -> list[Element]:
    """Returns the points of a line at their places, each with what is said of it."""
    if line.notes:
        said = [f"{line.name}, {note.place}: {note.words}" for note in line.notes]
    else:
        said = [
            f"{line.name}: {number(height)} at {number(value)}" for value, height in line.points
        ]
    notes: Sequence[Note | None] = line.notes or [None] * len(said)
    return [
        element(
            "circle",
            element("title", words),
            cx=f"{left:.1f}",
            cy=f"{top:.1f}",
            r="4",
            class_=f"dot tone-{line.tone}",
            data_name=None if note is None else line.name,
            data_place=None if note is None else note.place,
            data_words=None if note is None else note.words,
        )
        for (left, top), words, note in zip(seen, said, notes, strict=True)
    ]


def path(points: Sequence[tuple[float, float]]) -> str:
    """Returns the way along points, as a path of SVG."""
    return "M" + "L".join(f"{left:.1f} {top:.1f}" for left, top in points) if points else "M0 0"


def grid_line(top: float, text: str) -> list[Element]:
    """Returns a line across, with its number on the left."""
    return [
        stroke(f"M{LEFT:g} {top:.1f}H{WIDTH - RIGHT:g}", "grid"),
        text_at(text, f"{LEFT - 8:g}", f"{top:.1f}", "tick ends middle"),
    ]


def grid_column(left: float, text: str) -> list[Element]:
    """Returns a short line at the foot, with its number below."""
    bottom = HEIGHT - BOTTOM
    return [
        stroke(f"M{left:.1f} {bottom:g}v6", "axis"),
        text_at(text, f"{left:.1f}", f"{bottom + 24:g}", "tick centred"),
    ]


def shaded(level: Level, top: float, bottom: float) -> Element | None:
    """Returns the shade over the part of a chart beyond a level; None where there is none."""
    edge = min(max(top, TOP), bottom)
    first, last = (TOP, edge) if level.shade == "above" else (edge, bottom)
    if level.shade is None or first >= last:
        return None
    return rect(
        f"{LEFT:g}", f"{first:.1f}", f"{WIDTH - RIGHT - LEFT:g}", f"{last - first:.1f}", "shade"
    )


def level_line(level: Level, top: float) -> list[Element]:
    """Returns the line of a value to compare with, and what it is."""
    below = "below" in (level.shade, level.words) or top < TOP + 30
    return [
        stroke(f"M{LEFT:g} {top:.1f}H{WIDTH - RIGHT:g}", "level"),
        text_at(
            level.text,
            f"{WIDTH - RIGHT - 6:g}",
            f"{top + 18 if below else top - 7:.1f}",
            "note ends halo",
        ),
    ]


def mark_line(mark: Mark, left: float) -> list[Element]:
    """Returns the line at a place of the horizontal axis, and what is there."""
    side = " ends" if left > WIDTH * 0.7 else ""
    return [
        stroke(f"M{left:.1f} {TOP:g}V{HEIGHT - BOTTOM:g}", "mark"),
        text_at(
            mark.text,
            f"{left + (-6 if side else 6):.1f}",
            f"{TOP - 6:g}",
            f"note strong halo{side}",
        ),
    ]


def bar_chart(caption: Caption, bars: Sequence[Bar], label: str) -> Element:
    """Returns standing bars, each with its value above it and its name below."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    left, largest = 12.0, max([bar.value for bar in bars], default=0.0) or 1.0
    step = (right - left) / max(len(bars), 1)
    drawn: list[Node] = []
    for i, bar in enumerate(bars):
        middle, height = left + (i + 0.5) * step, bar.value / largest * (bottom - TOP - 24)
        drawn += [
            rect(
                f"{middle - 0.38 * step:.1f}",
                f"{bottom - height:.1f}",
                f"{0.76 * step:.1f}",
                f"{height:.1f}",
                f"bar tone-{bar.tone}",
            ),
            text_at(
                number(bar.value),
                f"{middle:.1f}",
                f"{bottom - height - 7:.1f}",
                "tick strong centred",
            ),
            text_at(bar.name, f"{middle:.1f}", f"{bottom + 24:g}", "tick centred"),
        ]
    return picture(
        caption,
        WIDTH,
        HEIGHT,
        drawn,
        stroke(f"M{left:g} {bottom:g}H{right:g}", "axis"),
        text_at(label, f"{right:g}", f"{HEIGHT - 6:g}", "axis-label ends"),
    )


def legend(lines: Sequence[Line]) -> Element:
    """Returns which line is which, as text that does not shrink with the picture."""
    return legend_list(
        (
            line.name,
            stroke("M1 5H25", f"line tone-{line.tone}{' dashed' if line.dashed else ''}"),
        )
        for line in lines
    )


def legend_of_bars(bars: Sequence[tuple[str, Tone]]) -> Element:
    """Returns which colour is which."""
    return legend_list(
        (name, rect("6", "0", "14", "10", f"bar tone-{tone}")) for name, tone in bars
    )


def legend_list(entries: Iterable[tuple[str, Element]]) -> Element:
    """Returns names, each with its sign before it."""
    return element(
        "ul",
        [element("li", ornament(26.0, 10.0, sign), name) for name, sign in entries],
        class_="legend",
    )


# ---- axes: from a number to its place in a picture, and where to write numbers beside it --------


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of numbers along one side of a picture."""

    label: str
    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        """Checks that the range has a length, which places are measured in."""
        if not -math.inf < self.low < self.high < math.inf or (self.log and self.low <= 0):
            raise ValueError(f"the axis {self.label!r} goes from {self.low} to {self.high}")

    @classmethod
    def around(cls, label: str, values: Iterable[float], *, log: bool = False) -> Axis:
        """Returns the axis that all finite values fit on, with some room; 1 to 10 without any."""
        fitting = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        if not fitting:
            return cls(label, 1.0, 10.0, log)
        low, high = min(fitting), max(fitting)
        if log:
            return cls(label, low / 1.15, high * 1.15, log)
        room = 0.06 * (high - low) or abs(high) / 2 or 1.0
        return cls(label, low - room, high + room)

    def share(self, value: float) -> float:
        """Returns where a value lies, from 0 (low) to 1 (high); beyond the ends outside of that."""
        if self.log:
            if value <= 0:
                return -1.0
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Returns round numbers on the axis, with their texts."""
        values = log_ticks(self.low, self.high) if self.log else even_ticks(self.low, self.high)
        return tuple((value, short(value)) for value in values)


def even_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Returns multiples of a round step, about as many as wanted.

    >>> even_ticks(-0.3, 1.1)
    [0.0, 0.5, 1.0]
    """
    rough = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Returns powers of ten, evenly thinned out; with twos and fives where there are few.

    >>> log_ticks(8, 1200), log_ticks(3, 30)
    ([10.0, 100.0, 1000.0], [5.0, 10.0, 20.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks[:: math.ceil(len(ticks) / most)]
    return ticks or [low, high]
