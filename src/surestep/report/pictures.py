"""Draws the pictures of a page as SVG: bars, ranges and histograms, coloured by the style sheet.

Each has a title and a description for those who do not see it. Sizes are in units of the drawing,
which is scaled to the width of the page. Text becomes markup by `Markup.format` alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from surestep._words import counted, harmless, number, short
from surestep.results.plots import round_width
from surestep.sections import Bars, Flag, Histogram, Picture, Strips

WIDTH, HEIGHT = 680.0, 338.0
LEFT, RIGHT, TOP, BOTTOM = 72.0, 18.0, 48.0, 62.0
END, FOOT = WIDTH - RIGHT, HEIGHT - BOTTOM  # of the room for bars and lines
LINE = 26.0  # a line of text, which is large on a narrow screen
STRIP = 16.0  # the height of a range
LONGEST, SHORTEST = 50, 16  # letters of a name with the words at its right, and of it at least

RECT = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}">{}</rect>')
TEXT = Markup('<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>')
PATH = Markup('<path d="{}" class="{}"/>')
TITLE = Markup("<title>{}</title>")
SVG = Markup(
    '<svg viewBox="0 0 {w:g} {h:g}" role="img" class="picture" '
    'aria-labelledby="{id}-title {id}-description"><title id="{id}-title">{title}</title>'
    '<desc id="{id}-description">{description}</desc>{drawing}</svg>'
)


def svg(picture: Picture) -> Markup:
    """Returns the drawing of a picture."""
    draw: Callable[[Picture], tuple[float, Iterable[Markup]]] = DRAWN[type(picture)]  # type: ignore[assignment]
    height, drawing = draw(picture)
    name, title, description = picture.caption
    words = {"id": name, "title": title, "description": description}
    return SVG.format(w=WIDTH, h=height, drawing=Markup("").join(drawing), **words)


# ---- axes: from a number to its place in a picture, and where to write numbers beside it --------


class Axis(NamedTuple):
    """A range of numbers along one side of a picture, from one place in it to another."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float], first: float, last: float, *, log: bool = False
    ) -> Axis:
        """Returns the axis that all finite values fit on, with some room; 1 to 10 without any."""
        fitting = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
        low, high = (min(fitting), max(fitting)) if fitting else (1.0, 10.0)
        if log:
            return cls(low / 1.15, high * 1.15, first, last, log)
        room = 0.06 * (high - low) or abs(high) / 2 or 1.0
        return cls(low - room, high + room, first, last)

    def at(self, value: float) -> float:
        """Returns where a value lies; what is beyond the ends lies at them."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else self[:2]
        place = math.log(max(value, self.low)) if self.log else value
        share = min(max((place - low) / (high - low), 0.0), 1.0)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Returns the places of round numbers on the axis, with their texts."""
        values = log_ticks(self.low, self.high) if self.log else even_ticks(self.low, self.high)
        return [(self.at(value), short(value)) for value in values]


def even_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Returns multiples of a round step, about as many as wanted.

    >>> even_ticks(-0.3, 1.1)
    [0.0, 0.5, 1.0]
    """
    rough = (high - low) / wanted
    step = round_width(rough)
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


def frame(across: Axis | None, up: Axis | None, label: str, upwards: str = "") -> Iterable[Markup]:
    """Yields the axes of a chart, with their numbers and labels."""
    for top, text in [] if up is None else up.ticks():
        yield PATH.format(f"M{LEFT:g} {top:.1f}H{END:g}", "grid")
        yield TEXT.format(LEFT - 8, top, "tick ends middle", text)
    for left, text in [] if across is None else across.ticks():
        yield PATH.format(f"M{left:.1f} {FOOT:g}v6", "axis")
        yield TEXT.format(left, FOOT + 24, "tick centred", text)
    yield PATH.format(f"M{LEFT if up else 12:g} {FOOT:g}H{END:g}", "axis")
    yield TEXT.format(4, 18, "axis-label", upwards)
    yield TEXT.format(END, HEIGHT - 6, "axis-label ends", label)


def flagged(flags: Sequence[Flag], across: Axis, top: float, bottom: float) -> Iterable[Markup]:
    """Yields a dashed line for each flag; its words stand above, a line each."""
    for i, (value, text) in enumerate(flags):
        left, line = across.at(value), top - LINE * (len(flags) - i) + 18
        side = " ends" if left > WIDTH * 0.7 else "" if left < WIDTH * 0.3 else " centred"
        yield PATH.format(f"M{left:.1f} {line + 5:.1f}V{bottom:.1f}", "mark")
        yield TEXT.format(left, line, f"note halo{side}", text)


# ---- the kinds of pictures ----------------------------------------------------------------------


def bars(picture: Bars) -> tuple[float, Iterable[Markup]]:
    """Draws standing bars, each with its value above it and its name below."""
    left, largest = 12.0, max([bar.value for bar in picture.bars], default=0.0) or 1.0
    step = (END - left) / max(len(picture.bars), 1)
    drawn: list[Markup] = []
    for i, (name, value, tone) in enumerate(picture.bars):
        middle, height = left + (i + 0.5) * step, value / largest * (FOOT - TOP - 24)
        drawn += [
            RECT.format(
                middle - 0.38 * step, FOOT - height, 0.76 * step, height, f"bar tone-{tone}", ""
            ),
            TEXT.format(middle, FOOT - height - 7, "tick strong centred", number(value)),
            TEXT.format(middle, FOOT + 24, "tick centred", name),
        ]
    return HEIGHT, [*drawn, *frame(None, None, picture.label)]


def strips(picture: Strips) -> tuple[float, Iterable[Markup]]:
    """Draws ranges below each other; words stand above each, so that a phone has room for them."""
    values = [flag.value for flag in picture.flags]
    for strip in picture.strips:
        values += [strip.low, strip.high, *([] if strip.point is None else [strip.point])]
    across = Axis.around(values, 12.0, WIDTH - 12.0, log=picture.log)
    above = LINE * len(picture.flags) + 4
    bottom = above + len(picture.strips) * (LINE + STRIP + 14)
    drawn = [*flagged(picture.flags, across, above, bottom)]
    for i, strip in enumerate(picture.strips):
        top = above + i * (LINE + STRIP + 14) + LINE
        name = harmless(strip.name, max(LONGEST - len(strip.words), SHORTEST))
        drawn.append(TEXT.format(0, top - 8, "strong wide halo", name))
        drawn.append(TEXT.format(WIDTH, top - 8, "strong wide halo ends", strip.words))
        outer = (strip.low, strip.high, STRIP / 2 if strip.inner else STRIP)
        for low, high, height in (outer, *([(*strip.inner, STRIP)] if strip.inner else [])):
            first, last = across.at(low), across.at(high)
            style = f"bar tone-{strip.tone}{'' if strip.inner else ' faint'}"
            y = top + (STRIP - height) / 2
            drawn.append(RECT.format(first, y, max(last - first, 1), height, style, ""))
        if strip.point is not None:
            way = f"M{across.at(strip.point):.1f} {top - 3:.1f}v{STRIP + 6:g}"
            drawn.append(PATH.format(way, "point"))
    for left, text in across.ticks():
        drawn.append(PATH.format(f"M{left:.1f} {bottom:.1f}v6", "axis"))
        drawn.append(TEXT.format(left, bottom + 24, "tick centred", text))
    drawn.append(PATH.format(f"M12 {bottom:.1f}H{WIDTH - 12:g}", "axis"))
    drawn.append(TEXT.format(WIDTH - 12, bottom + 50, "axis-label ends", picture.label))
    return bottom + 56, drawn


def histogram(picture: Histogram) -> tuple[float, Iterable[Markup]]:
    """Draws bars without gaps; those of a layer stand on those of the layer before."""
    edges, above = picture.edges, LINE * len(picture.flags)
    totals = [sum(times) for times in zip(*(layer.times for layer in picture.layers), strict=True)]
    across = Axis(edges[0], edges[-1], LEFT, END)
    up = Axis(0.0, 1.05 * max([*totals, 1]), FOOT, TOP)
    drawn = [*frame(across, up, picture.label, f"{picture.noun}s")]
    below = [0] * len(totals)
    for layer in picture.layers:
        for i, many in enumerate(layer.times):
            left, right = across.at(edges[i]), across.at(edges[i + 1])
            top, height = up.at(below[i] + many), up.at(below[i]) - up.at(below[i] + many)
            words = f"{number(edges[i])} to {number(edges[i + 1])}: {counted(many, picture.noun)}"
            title = TITLE.format(f"{words}, {layer.name}" if layer.name else words)
            if many:
                width, style = max(right - left - 1, 0.5), f"bar tone-{layer.tone}"
                drawn.append(RECT.format(left + 0.5, top, width, max(height, 1.5), style, title))
            below[i] += many
    drawn += flagged(picture.flags, across, 10.0, FOOT)
    moved = Markup('<g transform="translate(0 {:g})">{}</g>').format(above, Markup("").join(drawn))
    return HEIGHT + above, [moved]


DRAWN = {Bars: bars, Strips: strips, Histogram: histogram}
