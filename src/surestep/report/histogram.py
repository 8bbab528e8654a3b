"""Histograms for a page: bars without gaps over one axis of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from surestep.report.axes import Axis
from surestep.report.html import Element, element
from surestep.report.numbers import counted, number
from surestep.report.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Caption,
    grid_column,
    grid_line,
    picture,
)
from surestep.report.svg import HEIGHT as CHART


def histogram(
    caption: Caption, edges: Sequence[float], times: Sequence[int], label: str, noun: str
) -> Element:
    """How many things lie between each edge and the next; the edges rise, one more than bars."""
    across = Axis(label, edges[0], edges[-1])
    up = Axis(f"{noun}s", 0.0, 1.05 * max([*times, 1]))
    right, bottom = WIDTH - RIGHT, CHART - BOTTOM

    def left(value: float) -> float:
        return LEFT + across.share(value) * (right - LEFT)

    def top(value: float) -> float:
        return bottom - up.share(value) * (bottom - TOP)

    bars = [
        element(
            "rect",
            element("title", f"{number(low)} to {number(high)}: {counted(many, noun)}"),
            x=f"{left(low) + 0.5:.1f}",
            y=f"{min(top(many), bottom - 1.5):.1f}",
            width=f"{max(left(high) - left(low) - 1, 0.5):.1f}",
            height=f"{max(bottom - top(many), 1.5):.1f}",
            class_="bar tone-blue",
        )
        for low, high, many in zip(edges[:-1], edges[1:], times, strict=True)
        if many
    ]
    return picture(
        caption,
        WIDTH,
        CHART,
        [grid_line(top(value), text) for value, text in up.ticks() if value == int(value)],
        [grid_column(left(value), text) for value, text in across.ticks()],
        bars,
        element("path", d=f"M{LEFT:g} {bottom:g}H{right:g}", class_="axis"),
        element("text", up.label, x="4", y="18", class_="axis-label"),
        element("text", label, x=f"{right:g}", y=f"{CHART - 6:g}", class_="axis-label ends"),
    )
