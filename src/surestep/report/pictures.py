"""Draws the pictures of a page as SVG: bars, ranges and lines, coloured by the style sheet.

Each has a title and a description for those who do not see it. Sizes are in units of the drawing,
which is scaled to the width of the page. Text becomes markup by `Markup.format` alone.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple, Self

from markupsafe import Markup

from surestep._words import counted, harmless, number, short
from surestep.results.plots import round_width
from surestep.sections import Bars, Curves, Flag, Histogram, Picture, Strips

WIDTH, HEIGHT = 680.0, 338.0
LEFT, RIGHT, TOP, BOTTOM = 72.0, 18.0, 48.0, 62.0
END, FOOT = WIDTH - RIGHT, HEIGHT - BOTTOM  # right and lower edge of the plot
LINE = 26.0  # a line of text, which is large on a narrow screen
STRIP = 10.0  # the height of a range
STRIPS_APART = LINE + STRIP + 6
LONG = 20_000  # letters of a description
TONES = ("blue", "vermilion", "green")  # colours of lines
LONGEST, SHORTEST = 50, 16  # letters of a name and the words beside it; least letters of the name
LONGEST_FLAG = 24  # letters of a flag

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
    return SVG.format(
        w=WIDTH,
        h=height,
        id=picture.caption.name,
        title=harmless(picture.caption.title),
        description=harmless(picture.caption.description, LONG),
        drawing=Markup("").join(drawing),
    )


# ---- axes: from a number to its place in a picture, and where to write numbers beside it --------


class Axis(NamedTuple):
    """A range of numbers along one side of a picture, from one place in it to another."""

    low: float
    high: float
    first: float
    last: float

    @classmethod
    def around(cls, values: Iterable[float], first: float, last: float) -> Self:
        """Returns an axis that fits all finite values, with some room; 1 to 10 without values."""
        fitting = [value for value in values if math.isfinite(value)] or [1.0, 10.0]
        low = min(fitting)
        high = max(fitting)
        room = 0.06 * (high - low) or abs(high) / 2 or 1.0
        return cls(low - room, high + room, first, last)

    def at(self, value: float) -> float:
        """Returns the place of a value; values beyond the ends lie at them."""
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> list[tuple[float, str]]:
        """Returns the places of round numbers on the axis, with their texts."""
        return [(self.at(value), short(value)) for value in even_ticks(self.low, self.high)]


def even_ticks(low: float, high: float) -> list[float]:
    """Returns multiples of a round step, about five of them.

    >>> even_ticks(-0.3, 1.1)
    [0.0, 0.5, 1.0]
    """
    step = round_width((high - low) / 5)
    return [
        float(f"{i * step:.12g}")
        for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def flagged(flags: Sequence[Flag], across: Axis, top: float, bottom: float) -> Iterable[Markup]:
    """Yields a dashed line for each flag; its words stand above, a line each."""
    for i, (value, text) in enumerate(flags):
        left = across.at(value)
        line = top - LINE * (len(flags) - i) + 18
        side = " ends" if left > WIDTH * 0.7 else "" if left < WIDTH * 0.3 else " centred"
        yield PATH.format(f"M{left:.1f} {line + 5:.1f}V{bottom:.1f}", "mark")
        yield TEXT.format(left, line, f"note halo{side}", harmless(text, LONGEST_FLAG))


# ---- the kinds of pictures ----------------------------------------------------------------------


def bars(picture: Bars) -> tuple[float, Iterable[Markup]]:
    """Draws standing bars, each with its value above it and its name below."""
    largest = max([bar.value for bar in picture.bars], default=0.0) or 1.0
    step = (END - 12.0) / max(len(picture.bars), 1)
    drawn: list[Markup] = []
    for i, (name, value, tone) in enumerate(picture.bars):
        middle = 12.0 + (i + 0.5) * step
        height = value / largest * (FOOT - TOP - 24)
        drawn += [
            RECT.format(
                middle - 0.38 * step, FOOT - height, 0.76 * step, height, f"bar tone-{tone}", ""
            ),
            TEXT.format(middle, FOOT - height - 7, "tick strong centred", number(value)),
            TEXT.format(middle, FOOT + 24, "tick centred", name),
        ]
    drawn += [
        PATH.format(f"M12 {FOOT:g}H{END:g}", "axis"),
        TEXT.format(END, HEIGHT - 6, "axis-label ends", picture.label),
    ]
    return HEIGHT, drawn


def strips(picture: Strips) -> tuple[float, Iterable[Markup]]:
    """Draws ranges below each other; words stand above each, so that a phone has room for them."""
    values = [flag.value for flag in picture.flags]
    for strip in picture.strips:
        values += [strip.low, strip.high, strip.low if strip.point is None else strip.point]
    across = Axis.around(values, 12.0, WIDTH - 12.0)
    above = LINE * len(picture.flags) + 4
    bottom = above + len(picture.strips) * STRIPS_APART
    drawn = [*flagged(picture.flags, across, above, bottom)]
    for i, strip in enumerate(picture.strips):
        top = above + i * STRIPS_APART + LINE
        name = harmless(strip.name, max(LONGEST - len(strip.words), SHORTEST))
        drawn.append(TEXT.format(WIDTH, top - 8, "strong wide halo ends", strip.words))
        if strip.name:
            drawn.append(TEXT.format(0, top - 8, "strong wide halo", name))
        ranges = [(strip.low, strip.high, STRIP / 2 if strip.inner else STRIP)]
        if strip.inner is not None:
            ranges.append((*strip.inner, STRIP))
        for low, high, height in ranges if math.isfinite(strip.low) else ():
            first = across.at(low)
            width = max(across.at(high) - first, 1)
            style = f"bar tone-{strip.tone}{'' if strip.inner else ' faint'}"
            drawn.append(RECT.format(first, top + (STRIP - height) / 2, width, height, style, ""))
        if strip.point is not None:
            way = f"M{across.at(strip.point):.1f} {top - 3:.1f}v{STRIP + 6:g}"
            drawn.append(PATH.format(way, "point"))
    for left, text in across.ticks():
        drawn += [
            PATH.format(f"M{left:.1f} {bottom:.1f}v6", "axis"),
            TEXT.format(left, bottom + 24, "tick centred", text),
        ]
    drawn += [
        PATH.format(f"M12 {bottom:.1f}H{WIDTH - 12:g}", "axis"),
        TEXT.format(WIDTH - 12, bottom + 50, "axis-label ends", picture.label),
    ]
    return bottom + 56, drawn


def histogram(picture: Histogram) -> tuple[float, Iterable[Markup]]:
    """Draws bars without gaps; those of a layer stand on those of the layer before."""
    edges = picture.edges
    totals = [sum(times) for times in zip(*(layer.times for layer in picture.layers), strict=True)]
    across = Axis(edges[0], edges[-1], LEFT, END)
    up = Axis(0.0, 1.05 * max([*totals, 1]), FOOT, TOP)
    drawn = frame(across, up, f"{picture.noun}s", picture.label)
    below = [0] * len(totals)
    for layer in picture.layers:
        for i, many in enumerate(layer.times):
            left = across.at(edges[i])
            width = max(across.at(edges[i + 1]) - left - 1, 0.5)
            top = up.at(below[i] + many)
            height = max(up.at(below[i]) - top, 1.5)
            words = f"{number(edges[i])} to {number(edges[i + 1])}: {counted(many, picture.noun)}"
            title = TITLE.format(f"{words}, {layer.name}" if layer.name else words)
            if many:
                drawn.append(
                    RECT.format(left + 0.5, top, width, height, f"bar tone-{layer.tone}", title)
                )
            below[i] += many
    return below_flags(picture.flags, across, drawn)


def below_flags(
    flags: Sequence[Flag], across: Axis, drawn: Iterable[Markup]
) -> tuple[float, Iterable[Markup]]:
    """Moves a drawing down, so that the words of its flags have room above; adds the flags."""
    above = LINE * len(flags)
    all_drawn = Markup("").join([*drawn, *flagged(flags, across, 10.0, FOOT)])
    return HEIGHT + above, [
        Markup('<g transform="translate(0 {:g})">{}</g>').format(above, all_drawn)
    ]


def frame(across: Axis, up: Axis, above: str, below: str) -> list[Markup]:
    """Draws two axes with their ticks, and the words of each."""
    drawn: list[Markup] = []
    for top, text in up.ticks():
        drawn += [
            PATH.format(f"M{LEFT:g} {top:.1f}H{END:g}", "grid"),
            TEXT.format(LEFT - 8, top, "tick ends middle", text),
        ]
    for left, text in across.ticks():
        drawn += [
            PATH.format(f"M{left:.1f} {FOOT:g}v6", "axis"),
            TEXT.format(left, FOOT + 24, "tick centred", text),
        ]
    return [
        *drawn,
        PATH.format(f"M{LEFT:g} {FOOT:g}H{END:g}", "axis"),
        TEXT.format(4, 18, "axis-label", above),
        TEXT.format(END, HEIGHT - 6, "axis-label ends", below),
    ]


def curves(picture: Curves) -> tuple[float, Iterable[Markup]]:
    """Draws lines; the words of a level stand at the right, just above it."""
    points = [*chain(*picture.curves.values())]
    across = Axis.around((x for x, _ in points), LEFT, END)
    heights = [*(y for _, y in points), *(level.value for level in picture.levels)]
    up = Axis.around(heights, FOOT, TOP)
    drawn = frame(across, up, picture.noun, picture.label)
    for line, tone in zip(picture.curves.values(), TONES, strict=False):
        way = "L".join(f"{across.at(x):.1f} {up.at(y):.1f}" for x, y in line)
        drawn += [PATH.format(f"M{way}", f"line tone-{tone}")] if line else []
    for level in picture.levels:
        top = up.at(level.value)
        drawn += [
            PATH.format(f"M{LEFT:g} {top:.1f}H{END:g}", "mark"),
            TEXT.format(END, top - 6, "note halo ends", level.text),
        ]
    return below_flags(picture.flags, across, drawn)


DRAWN = {Bars: bars, Strips: strips, Histogram: histogram, Curves: curves}
