"""Histograms for a page: bars without gaps over one axis of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from surestep._words import counted, number
from surestep.report.charts.strips import LINE, Flag, flag_lines
from surestep.report.charts.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Caption,
    Tone,
    grid_column,
    grid_line,
    picture,
    rect,
    stroke,
    text_at,
)
from surestep.report.charts.svg import HEIGHT as CHART
from surestep.report.html import Element, Node, element


class Layer(NamedTuple):
    """Numbers of things of one sort between each edge and the next."""

    times: Sequence[int]
    tone: Tone = "blue"
    name: str = ""


def histogram(
    caption: Caption,
    edges: Sequence[float],
    layers: Sequence[Layer],
    label: str,
    noun: str,
    flags: Sequence[Flag] = (),
) -> Element:
    """Returns bars between rising edges, one more than bars; layers stand on each other."""
    across = Axis(label, edges[0], edges[-1])
    totals = [sum(times) for times in zip(*(layer.times for layer in layers), strict=True)]
    up = Axis(f"{noun}s", 0.0, 1.05 * max([*totals, 1]))
    right, bottom = WIDTH - RIGHT, CHART - BOTTOM

    def left(value: float) -> float:
        return LEFT + min(max(across.share(value), 0.0), 1.0) * (right - LEFT)

    def top(value: float) -> float:
        return bottom - up.share(value) * (bottom - TOP)

    bars: list[Node] = []
    below = [0] * len(totals)
    for layer in layers:
        for i, many in enumerate(layer.times):
            low, high = edges[i], edges[i + 1]
            words = f"{number(low)} to {number(high)}: {counted(many, noun)}"
            if many:
                bars.append(
                    rect(
                        f"{left(low) + 0.5:.1f}",
                        f"{min(top(below[i] + many), top(below[i]) - 1.5):.1f}",
                        f"{max(left(high) - left(low) - 1, 0.5):.1f}",
                        f"{max(top(below[i]) - top(below[i] + many), 1.5):.1f}",
                        f"bar tone-{layer.tone}",
                        element("title", f"{words}, {layer.name}" if layer.name else words),
                    )
                )
            below[i] += many
    above = LINE * len(flags)  # room for the words of the flags
    return picture(
        caption,
        WIDTH,
        CHART + above,
        element(
            "g",
            [grid_line(top(value), text) for value, text in up.ticks() if value == int(value)],
            [grid_column(left(value), text) for value, text in across.ticks()],
            bars,
            stroke(f"M{LEFT:g} {bottom:g}H{right:g}", "axis"),
            text_at(up.label, "4", "18", "axis-label"),
            text_at(label, f"{right:g}", f"{CHART - 6:g}", "axis-label ends"),
            flag_lines(flags, across, left, 10.0, bottom),
            transform=f"translate(0 {above:g})" if flags else None,
        ),
    )
