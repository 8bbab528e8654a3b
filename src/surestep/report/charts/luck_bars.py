"""Luck alone as small bars, and where the log is: the picture of a permutation test."""

from __future__ import annotations

from collections.abc import Sequence

from surestep.report.charts.svg import Caption, Tone, picture
from surestep.report.html import Element, element

WIDTH, HEIGHT, FOOT = 200.0, 64.0, 56.0


def luck_bars(
    caption: Caption, bars: Sequence[tuple[float, float, float]], log: float, tone: Tone
) -> Element:
    """Returns bars (low, high, how many), and a stroke where the log is, cut at the right end.

    There is room for half as much again beyond the bars, where a log with an effect lies.
    """
    low, high = bars[0][0], bars[-1][1] + 0.5 * (bars[-1][1] - bars[0][0])
    most = max(many for _, _, many in bars) or 1.0

    def across(value: float) -> float:
        return 4 + (min(max(value, low), high) - low) / (high - low) * (WIDTH - 8)

    drawn = [
        element(
            "rect",
            x=f"{across(left) + 0.5:.1f}",
            y=f"{FOOT - 44 * many / most:.1f}",
            width=f"{across(right) - across(left) - 1:.1f}",
            height=f"{44 * many / most:.1f}",
            class_="bar tone-grey",
        )
        for left, right, many in bars
        if many
    ]
    return picture(
        caption,
        WIDTH,
        HEIGHT,
        drawn,
        element("path", d=f"M4 {FOOT:g}H{WIDTH - 4:g}", class_="axis"),
        element("path", d=f"M{across(log):.1f} 4V{FOOT:g}", class_=f"line tone-{tone}"),
        element("circle", cx=f"{across(log):.1f}", cy="6", r="5", class_=f"dot tone-{tone}"),
    )
