"""A claim on the line of all possible differences: what it leaves open, and the estimate."""

from __future__ import annotations

from surestep._words import signed
from surestep.report.charts.svg import WIDTH, Caption, Tone, picture, side_of, stroke, text_at
from surestep.report.html import Element, element

HEIGHT, LEFT, RIGHT = 150.0, 34.0, 646.0
LINE, ABOVE, BELOW, FOOT = 64.0, 34.0, 100.0, 142.0  # heights in the picture


def claim_line(
    caption: Caption, span: float, *, lower: float, estimate: float, tone: Tone
) -> Element:
    """Returns the line from −span to span, coloured from L on, with a dot at the estimate."""

    def across(value: float) -> float:
        return LEFT + (min(max(value / span, -1.0), 1.0) + 1) / 2 * (RIGHT - LEFT)

    beyond = ", beyond the scale" if lower < -span else ""
    return picture(
        caption,
        WIDTH,
        HEIGHT,
        stroke(f"M{LEFT:g} {LINE:g}H{RIGHT:g}", "claim-line"),
        stroke(f"M{across(lower):.1f} {LINE:g}H{RIGHT:g}", f"line claim tone-{tone}"),
        [
            tick(across(value), text)
            for value, text in (
                (-span, signed(-span)),
                (0.0, "no difference"),
                (span, signed(span)),
            )
        ],
        stroke(f"M{across(lower):.1f} {LINE - 18:g}v36", "axis"),
        words_at(across(lower), ABOVE, f"L = {signed(lower)}{beyond}"),
        element("circle", cx=f"{across(estimate):.1f}", cy=f"{LINE:g}", r="7", class_="estimate"),
        words_at(across(estimate), BELOW, f"estimate {signed(estimate)}"),
    )


def words_at(left: float, top: float, text: str) -> Element:
    """Returns a text at a place of the line that does not leave the picture."""
    style = f"strong halo{side_of(left)}"
    return text_at(text, f"{left:.1f}", f"{top:g}", style)


def tick(left: float, text: str) -> list[Element]:
    """Returns a stroke at a place of the line, with its number at the foot of the picture."""
    return [
        stroke(f"M{left:.1f} {LINE - 10:g}v20", "axis"),
        text_at(text, f"{left:.1f}", f"{FOOT:g}", f"tick{side_of(left)}"),
    ]
