"""The certificate with its assumptions, and how the published bounds and settings compare."""

from __future__ import annotations

from collections.abc import Callable

from surestep.report.charts.svg import WIDTH, Caption, picture, side_of
from surestep.report.html import Element, Node, element
from surestep.report.numbers import number, percent, signed
from surestep.report.pages.changes import estimated_tag
from surestep.report.tables import facts, figure, more
from surestep.report.words.verdict import standing_words
from surestep.results.findings import Findings

HEIGHT, LEFT, RIGHT = 150.0, 34.0, 646.0
LINE, ABOVE, BELOW, FOOT = 64.0, 34.0, 100.0, 142.0  # heights in the picture of the claim


def certificate_section(findings: Findings) -> Element:
    """The claim, what it assumes, and what it was computed from."""
    certificate = findings.certificate
    return element(
        "section",
        element("h2", "The certificate", estimated_tag(findings)),
        element("p", claim_words(findings), class_="lead"),
        None
        if certificate.lower is None or certificate.span == 0
        else claim_figure(findings, certificate.lower),
        facts(
            [
                ("Kind", certificate.kind),
                ("Standing", standing_words(certificate.standing)),
                ("Guaranteed difference L", or_none(certificate.lower, signed)),
                ("Possible loss ζ = −L", or_none(certificate.zeta, number)),
                ("Largest possible difference", number(certificate.span)),
                ("Chance to be wrong δ", number(certificate.delta)),
            ]
        ),
        element("h3", "It assumes"),
        element(
            "ol",
            [element("li", sentence) for sentence in certificate.assumptions],
            class_="plain",
        ),
        notes(findings),
        computed_from(findings),
        id="certificate",
    )


def claim_words(findings: Findings) -> list[Node]:
    """The claim itself, or that there is none."""
    certificate = findings.certificate
    if certificate.lower is None:
        words = "No guarantee covers this policy: there is no claim."
        return [element("strong", words, class_="nothing")]
    sure = f"With confidence {percent(1 - certificate.delta)}, the new policy"
    claim = (
        f"gains at least L = {signed(certificate.lower)} over the current one"
        if certificate.lower > 0
        else f"loses at most ζ = {number(0.0 - certificate.lower)} against the current one"
    )
    text = f"{sure} {claim}, if all that is listed below holds."
    nothing = element("strong", " This guarantee says nothing.", class_="nothing")
    return [text, nothing if certificate.says_nothing else None]


def or_none(value: float | None, words: Callable[[float], str]) -> str:
    """A number in words, or that there is none."""
    return "none" if value is None else words(value)


def notes(findings: Findings) -> Node:
    """Remarks on this very claim."""
    if not findings.certificate.notes:
        return None
    return [
        element("h3", "Remarks"),
        element(
            "ul",
            [element("li", sentence) for sentence in findings.certificate.notes],
            class_="plain",
        ),
    ]


def computed_from(findings: Findings) -> Element | None:
    """The certifier's settings and figures, for those who check them."""
    certificate = findings.certificate
    entries: list[tuple[Node, Node]] = [
        (name, scalar_words(value))
        for name, value in (*certificate.parameters.items(), *certificate.figures.items())
    ]
    if not entries:
        return None
    return more("What it was computed from", facts(entries))


def scalar_words(value: object) -> str:
    """A setting or figure as text, with all its digits."""
    if value is None:
        return "not given"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# ---- the claim as a picture ----------------------------------------------------------------------


def claim_figure(findings: Findings, lower: float) -> Element:
    """On the line of all possible differences: what the claim leaves open, and the estimate."""
    certificate = findings.certificate
    span = certificate.span
    says = (
        "The claim leaves every possible difference open."
        if certificate.says_nothing
        else f"The claim leaves open what lies to the right of L = {signed(lower)}."
    )
    caption = Caption(
        "claim-picture",
        "What the claim says about the true difference of the two policies",
        f"A line from {signed(-span)} to {signed(span)}, the largest possible loss and gain. "
        f"{says} The estimate is {signed(findings.gain)}.",
    )

    def across(value: float) -> float:
        return LEFT + (min(max(value / span, -1.0), 1.0) + 1) / 2 * (RIGHT - LEFT)

    tone = "vermilion" if certificate.says_nothing else "green" if lower > 0 else "orange"
    beyond = ", beyond the scale" if lower < -span else ""
    drawing = picture(
        caption,
        WIDTH,
        HEIGHT,
        element("path", d=f"M{LEFT:g} {LINE:g}H{RIGHT:g}", class_="claim-line"),
        element(
            "path",
            d=f"M{across(lower):.1f} {LINE:g}H{RIGHT:g}",
            class_=f"line claim tone-{tone}",
        ),
        [
            tick(across(value), text)
            for value, text in (
                (-span, signed(-span)),
                (0.0, "no difference"),
                (span, signed(span)),
            )
        ],
        element("path", d=f"M{across(lower):.1f} {LINE - 18:g}v36", class_="axis"),
        words_at(across(lower), ABOVE, f"L = {signed(lower)}{beyond}"),
        element(
            "circle", cx=f"{across(findings.gain):.1f}", cy=f"{LINE:g}", r="7", class_="estimate"
        ),
        words_at(across(findings.gain), BELOW, f"estimate {signed(findings.gain)}"),
    )
    text = (
        "All differences that two policies can have here, from the largest loss to the largest "
        f"gain. {says} The dot is the estimate from the log."
    )
    return figure(drawing, text)


def words_at(left: float, top: float, text: str) -> Element:
    """A text at a place of the line that does not leave the picture."""
    style = f"strong halo{side_of(left)}"
    return element("text", text, x=f"{left:.1f}", y=f"{top:g}", class_=style)


def tick(left: float, text: str) -> list[Element]:
    """A place on the line with its number at the foot of the picture."""
    return [
        element("path", d=f"M{left:.1f} {LINE - 10:g}v20", class_="axis"),
        element("text", text, x=f"{left:.1f}", y=f"{FOOT:g}", class_=f"tick{side_of(left)}"),
    ]
