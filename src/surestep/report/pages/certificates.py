"""Certificates: the one that the result stands by, and all guarantees side by side on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from surestep._words import counted, number, percent, signed
from surestep.certificates.registry import BUILT_IN
from surestep.certificates.standing import BY_EXTENSION, standing_name, standing_of
from surestep.model import Certificate
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.report.charts.claim_line import claim_line
from surestep.report.charts.strips import Flag, Segment, Strip, strip_chart
from surestep.report.charts.svg import Axis, Caption, Tone
from surestep.report.html import Element, Node, element, label
from surestep.report.page_tables import (
    Cell,
    Column,
    Row,
    data_table,
    facts,
    figure,
    more,
    number_columns,
    row,
)
from surestep.report.pages.shared_parts import estimated_tag
from surestep.report.words.certificates import (
    asked_kind,
    claim_words,
    names_of,
    refusal_reason,
    together_words,
)
from surestep.report.words.estimates import estimate_words
from surestep.report.words.rehearsal import belief_words
from surestep.report.words.verdict import claim_standing, claimant
from surestep.results.findings import Findings
from surestep.results.ladder import belief_in

STANDING_TONES: dict[str, Tone] = {
    "proved": "blue",
    "asymptotic": "purple",
    "posterior": "orange",
    "as-published": "grey",
    "none": "grey",
    BY_EXTENSION: "grey",
}
FEW = 3.0  # an L further below 0 than this many times what matters is cut
ROOM_FOR_CUT = 0.3  # of what matters, below 0: so that one sees where something is cut
SMALLEST, LARGEST = 1e-300, 1e300  # beyond, differences of numbers are no longer numbers
SETTLED = "settled on before the data"


# ---- the certificate that the result stands by ---------------------------------------------------


def certificate_section(findings: Findings) -> Element:
    """Returns the claim, what it assumes, and what it was computed from."""
    certificate = findings.certificate
    return element(
        "section",
        element("h2", "The certificate", estimated_tag(findings)),
        element("p", lead_words(findings), class_="lead"),
        None
        if certificate.lower is None or certificate.span == 0
        else claim_figure(findings, certificate.lower),
        facts(
            [
                ("Kind", certificate.kind),
                ("Standing", claim_standing(certificate)),
                (
                    "Guaranteed difference L",
                    "no claim" if certificate.lower is None else signed(certificate.lower),
                ),
                ("Possible loss ζ", loss_words(certificate)),
                ("Largest possible difference", number(certificate.span)),
                ("Chance to be wrong δ", number(certificate.delta)),
            ]
        ),
        element("h3", "It assumes"),
        element(
            "ol",
            [element("li", str(statement)) for statement in certificate.assumptions],
            class_="plain",
        ),
        notes(findings),
        computed_from(findings),
        id="certificate",
    )


def lead_words(findings: Findings) -> list[Node]:
    """Returns the claim itself, or that there is none."""
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


def loss_words(certificate: Certificate) -> str:
    """Returns the loss that a claim leaves open: none where it claims a gain."""
    if certificate.lower is None:
        return "no claim"
    return "none" if certificate.lower > 0 else number(0.0 - certificate.lower)


def notes(findings: Findings) -> Node:
    """Returns the remarks on this very claim, or None without any."""
    if not findings.certificate.notes:
        return None
    return [
        element("h3", "Remarks"),
        element(
            "ul",
            [element("li", str(statement)) for statement in findings.certificate.notes],
            class_="plain",
        ),
    ]


def computed_from(findings: Findings) -> Element | None:
    """Returns the certifier's settings and figures, for those who check them."""
    certificate = findings.certificate
    entries: list[tuple[Node, Node]] = [
        (name, scalar_words(value))
        for name, value in (*certificate.parameters.items(), *certificate.figures.items())
    ]
    if not entries:
        return None
    return more("What it was computed from", facts(entries))


def scalar_words(value: object) -> str:
    """Returns a setting or figure as text, with all its digits."""
    if value is None:
        return "not given"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def claim_figure(findings: Findings, lower: float) -> Element:
    """Returns the picture of what the claim leaves open, and of the estimate."""
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
    tone: Tone = "vermilion" if certificate.says_nothing else "orange"
    if lower > 0:
        tone = tone_of_gain(certificate)
    drawing = claim_line(caption, span, lower=lower, estimate=findings.gain, tone=tone)
    text = (
        "All differences that two policies can have here, from the largest loss to the largest "
        f"gain. {says} The dot is the estimated gain. {estimate_words(findings.record)}"
    )
    return figure(drawing, text)


def tone_of_gain(certificate: Certificate) -> Tone:
    """Returns the tone of what is guaranteed: green only where it is built in and declared.

    Nor is it green where rows are left out of which nobody knows where they led.
    """
    if certificate.assumes(WITHIN_SEEN, STOPPING.code):
        return STANDING_TONES[standing_of(certificate)]
    return "green" if certificate.kind in BUILT_IN else STANDING_TONES[BY_EXTENSION]


# ---- all of them side by side --------------------------------------------------------------------


def certificates_section(findings: Findings) -> Element | None:
    """Returns every certificate about the policy; None where there is but the one."""
    if not findings.others:
        return None
    claims = (findings.certificate, *findings.others)
    names = names_of(claims)
    return element(
        "section",
        element("h2", "All guarantees side by side"),
        element("p", together_words(claims)),
        beliefs_part(findings, claims),
        claims_figure(findings, claims, names),
        refusals(claims),
        claims_table(findings, claims, names),
        [
            more(
                f"What “{name}” assumes: {counted(len(claim.assumptions), 'thing')}",
                element(
                    "p",
                    f"Standing: {claim_standing(claim)}.",
                ),
                element(
                    "ol",
                    [element("li", str(statement)) for statement in claim.assumptions],
                    class_="plain",
                ),
            )
            for claim, name in zip(claims, names, strict=True)
            if claim.lower is not None
        ],
        id="certificates",
    )


def beliefs_part(findings: Findings, claims: Sequence[Certificate]) -> Element | None:
    """Returns how often beliefs are wrong, as far as there is one and that was measured."""
    rehearsal = findings.rehearsal
    measured = None if rehearsal is None else belief_words(rehearsal)
    belief = belief_in(claims)
    if measured is None or belief is None:
        return None
    return element("p", f"What {claimant(belief, 'a')} says is only believed. {measured}")


def refusals(claims: Sequence[Certificate]) -> Element | None:
    """Returns why there is no claim of some kinds; None where none was refused."""
    refused = [claim for claim in claims if claim.lower is None]
    if not refused:
        return None
    return element(
        "div",
        element("p", f"{counted(len(refused), 'guarantee')} refused", class_="loud"),
        element(
            "ul",
            [
                element(
                    "li",
                    element("strong", f"{asked_kind(claim)}: "),
                    element("bdi", refusal_reason(claim)),
                )
                for claim in refused
            ],
            class_="plain",
        ),
        class_="box bad",
    )


# ---- the picture ---------------------------------------------------------------------------------


def claims_figure(
    findings: Findings, claims: Sequence[Certificate], names: Sequence[str]
) -> Element:
    """Returns the picture of all claims: a strip for each, from L on to the right."""
    axis = claims_axis(findings.gain, claims)
    caption = Caption(
        "certificates-picture",
        "What each guarantee claims at least of the true difference",
        f"The estimate is {signed(findings.gain)}. "
        + "; ".join(
            f"{name}: {claim_words(claim)}" for claim, name in zip(claims, names, strict=True)
        )
        + ".",
    )
    headings = {0: SETTLED.capitalize(), 1: "Further guarantees about the same policy"}
    strips = [
        claim_strip(claim, name, axis, headings.get(i, ""))
        for i, (claim, name) in enumerate(zip(claims, names, strict=True))
    ]
    flags = [
        Flag(0.0, "no difference"),
        Flag(findings.gain, f"estimated gain {signed(findings.gain)}"),
    ]
    text = (
        "Each bar begins at L, the least difference that the guarantee leaves open, and goes on to "
        "the right: the further right it begins, the stronger the claim. To the right of “no "
        "difference” an improvement is certified. An arrow says that L lies beyond the picture. "
        f"The estimated gain: {estimate_words(findings.record)}"
    )
    return figure(strip_chart(caption, strips, axis, flags), text)


def claim_strip(claim: Certificate, name: str, axis: Axis, heading: str) -> Strip:
    """Returns a claim as a strip."""
    if claim.lower is None:
        return Strip(name, empty="refused", words="refused: the reason is below", heading=heading)
    tone, lower = STANDING_TONES[standing_of(claim)], f"L = {signed(claim.lower)}"
    if claim.says_nothing:
        return Strip(
            name,
            standing_of(claim),
            tone,
            lower,
            empty="nothing",
            words="says nothing",
            heading=heading,
        )
    bar = Segment(claim.lower, axis.high, tone, faint=True)
    return Strip(name, standing_of(claim), tone, lower, [bar], claim.lower, heading=heading)


def claims_axis(gain: float, claims: Sequence[Certificate]) -> Axis:
    """Returns an axis on which 0, the gain and the claims near them can be told apart.

    What matters is the larger of the estimated gain and the L nearest to 0 that says something. An
    L further below 0 than a few times that is cut.
    """
    label = "difference to the current policy"
    said = [
        within_reach(claim.lower)
        for claim in claims
        if claim.lower is not None and not claim.says_nothing
    ]
    gain = within_reach(gain)
    scale = max(abs(gain), min(map(abs, said), default=0.0), *said, SMALLEST)
    shown = [lower for lower in said if lower >= -FEW * scale]
    ends = [0.0, gain, *shown]
    if scale <= SMALLEST:
        ends += [-1.0, 1.0]
    elif len(shown) < len(claims):
        ends.append(-ROOM_FOR_CUT * scale)
    return Axis.around(label, ends)


def within_reach(value: float) -> float:
    """Returns the nearest number that an axis can hold."""
    return 0.0 if abs(value) < SMALLEST else min(max(value, -LARGEST), LARGEST)


# ---- the table -----------------------------------------------------------------------------------


def claims_table(
    findings: Findings, claims: Sequence[Certificate], names: Sequence[str]
) -> Element:
    """Returns the numbers of all claims."""
    columns = [
        Column("Guarantee"),
        Column("Standing"),
        *number_columns("Guaranteed: L", "Possible loss ζ", "δ", "Certified of the estimated gain"),
        Column("Says nothing?"),
    ]
    rows = [
        claim_row(findings, claim, name, settled=i == 0)
        for i, (claim, name) in enumerate(zip(claims, names, strict=True))
    ]
    return data_table(
        "certificates-numbers", "What each guarantee claims", columns, rows, sortable=True
    )


def claim_row(findings: Findings, claim: Certificate, name: str, *, settled: bool) -> Row:
    """Returns the numbers of one claim, or that it was refused."""
    mark = element("span", f" {SETTLED}", class_="used below") if settled else None
    named = Cell([label(name), mark])
    if claim.lower is None:
        refused: Node = element("span", "refused", class_="nothing")
        return row(named, Cell("–"), *[Cell("–")] * 4, Cell(refused))
    share = claim.lower / findings.gain if findings.gain > 0 and claim.lower > 0 else None
    says: Node = element("span", "says nothing", class_="nothing") if claim.says_nothing else "no"
    return row(
        named,
        Cell(element("span", standing_name(claim), class_="word")),
        Cell(signed(claim.lower), claim.lower),
        Cell(loss_words(claim), max(0.0, 0.0 - claim.lower)),
        Cell(number(claim.delta), claim.delta),
        Cell("none" if share is None else percent(share), share),
        Cell(says),
    )
