"""Small bars inside tables and text: they repeat the number beside them."""

from __future__ import annotations

from surestep.report.charts.svg import Tone, ornament
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
        element("rect", x="0", y="0.5", width=f"{width:g}", height="13", class_="track"),
        [
            element(
                "rect", x="0", y=f"{y:g}", width=f"{share * width:.1f}", height=f"{h:g}", class_=c
            )
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
        element("rect", x="0", y="0", width=f"{width:g}", height="8", class_="track"),
        element("rect", x="0", y="0", width=f"{length:.1f}", height="8", class_=f"bar tone-{tone}"),
    )
