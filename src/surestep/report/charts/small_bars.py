"""Small bars inside tables and text: they repeat the number beside them."""

from __future__ import annotations

from collections.abc import Sequence

from surestep.report.charts.svg import Caption, Tone, ornament, picture, rect
from surestep.report.html import Element, element


def change_bar(before: float, after: float) -> Element:
    """Returns two shares of a whole, one above the other: before in grey, after in blue.

    Where they are the same, there is only the one in grey.
    """
    width = 88.0
    rows = [(1.0, 4.0, before, "bar tone-grey"), (6.0, 7.0, after, "bar tone-blue")]
    if before == after:
        rows = [(3.0, 8.0, before, "bar tone-grey")]
    return ornament(
        width,
        14.0,
        rect("0", "0.5", f"{width:g}", "13", "track"),
        [
            rect("0", f"{y:g}", f"{share * width:.1f}", f"{h:g}", c)
            for y, h, share, c in rows
            if share > 0
        ],
    )


def share_bar(share: float, tone: Tone = "grey") -> Element:
    """Returns a share of a whole as a bar."""
    width, length = 64.0, min(max(share, 0.0), 1.0) * 64.0
    return ornament(
        width,
        8.0,
        rect("0", "0", f"{width:g}", "8", "track"),
        rect("0", "0", f"{length:.1f}", "8", f"bar tone-{tone}"),
    )


# ---- luck alone as small bars, and where the log is: the picture of a permutation test ----------

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
