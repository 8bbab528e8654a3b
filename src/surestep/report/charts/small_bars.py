"""Small bars inside tables and text: they repeat the number beside them."""

from __future__ import annotations

from surestep.report.charts.svg import Tone, ornament, rect
from surestep.report.html import Element


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
