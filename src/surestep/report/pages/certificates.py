"""All guarantees side by side: what each claims, on one axis, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surestep.certificates import CERTIFIERS
from surestep.model import Certificate
from surestep.report.charts.axes import Axis
from surestep.report.charts.strips import Flag, Segment, Strip, strip_chart
from surestep.report.charts.svg import Caption, Tone
from surestep.report.html import Element, Node, element, label
from surestep.report.numbers import counted, number, percent, signed
from surestep.report.tables import Cell, Column, Row, data_table, figure, more
from surestep.report.words.verdict import STANDINGS
from surestep.results.findings import Findings
from surestep.results.ladder import is_held_out

STANDING_TONES: dict[str, Tone] = {
    "proved": "blue",
    "asymptotic": "purple",
    "posterior": "orange",
    "as-published": "grey",
}
FEW = 3.0  # an L further below 0 than this many times what matters is cut
ROOM_FOR_CUT = 0.3  # of what matters, below 0: so that one sees where something is cut
SMALLEST, LARGEST = 1e-300, 1e300  # beyond, differences of numbers are no longer numbers
SETTLED = "settled on before the data"


def certificates_section(findings: Findings) -> Element | None:
    """Every certificate about the policy; none where there is but the one."""
    if not findings.others:
        return None
    claims = (findings.certificate, *findings.others)
    names = names_of(claims)
    return element(
        "section",
        element("h2", "All guarantees side by side"),
        element("p", together_words(claims)),
        claims_figure(findings, claims, names),
        refusals(claims),
        claims_table(findings, claims, names),
        [
            more(
                f"What “{name}” assumes: {counted(len(claim.assumptions), 'thing')}",
                element("p", f"Standing: {claim.standing}, that is, {STANDINGS[claim.standing]}."),
                element("ol", [element("li", each) for each in claim.assumptions], class_="plain"),
            )
            for claim, name in zip(claims, names, strict=True)
            if claim.lower is not None
        ],
        id="certificates",
    )


def together_words(claims: Sequence[Certificate], *, settled: bool = True) -> str:
    """What may be claimed of one of them, of all, and of the best.

    `settled` says that the first was settled on before the data.
    """
    made = [claim for claim in claims if claim.lower is not None]
    deltas = [claim.delta for claim in made]
    if len(made) < 2:
        return "Other guarantees were asked for as well, about the same policy and the same data."
    same = len(set(deltas)) == 1
    left, many = 1 - math.fsum(deltas), len(made)
    each = f"1 − δ = {percent(1 - deltas[0])}" if same else "its own 1 − δ"
    joint = f"1 − {many}δ" if same else "1 less the sum of their δ"
    worth = f" = {percent(left)}" if left > 0 else ", that is, nothing"
    return (
        f"Each claim holds on its own with confidence {each}, in the sense of its standing. That "
        f"all {many} hold at once has only {joint}{worth}. "
        + ("The one at the top was settled on before the data; choosing" if settled else "Choosing")
        + f" the best of them afterwards would claim only {joint}."
    )


# ---- names and refusals --------------------------------------------------------------------------


def names_of(claims: Sequence[Certificate]) -> list[str]:
    """What each is called here: kind and main settings, and δ where that tells them apart."""
    names = [certificate_name(claim) for claim in claims]
    return [
        f"{name}, δ = {number(claim.delta)}"
        if names.count(name) > 1 and claim.lower is not None
        else name
        for name, claim in zip(names, claims, strict=True)
    ]


def certificate_name(claim: Certificate) -> str:
    """The kind with its main settings: 'robust, interval, strict'."""
    if claim.lower is None:
        return refusal_of(claim)[0]
    given = claim.parameters
    weight = given.get("prior_weight")
    settings = {
        "a-priori": [given.get("bound")],
        "robust": [given.get("set"), "strict" if given.get("strict") else None],
        "posterior": [
            f"prior weight {number(weight)}"
            if given.get("prior") == "weight" and isinstance(weight, int | float)
            else given.get("prior"),
            "held-out data" if is_held_out(claim) else None,
        ],
        "trajectory": [given.get("interval")],
    }.get(claim.kind, [])
    return ", ".join([claim.kind, *(str(each) for each in settings if each is not None)])


def refusal_of(claim: Certificate) -> tuple[str, str]:
    """Which kind was asked for, as far as the refusal says so, and why there is none."""
    given = claim.parameters.get("refusal")
    refusal = given if isinstance(given, str) else " ".join(claim.notes) or "no reason was given"
    asked, _, reason = refusal.partition(": ")
    return (asked, reason) if asked in CERTIFIERS and reason else (claim.kind, refusal)


def refusals(claims: Sequence[Certificate]) -> Element | None:
    """Why there is no claim of some kinds."""
    refused = [refusal_of(claim) for claim in claims if claim.lower is None]
    if not refused:
        return None
    return element(
        "div",
        element("p", f"{counted(len(refused), 'guarantee')} refused", class_="loud"),
        element(
            "ul",
            [
                element("li", element("strong", f"{asked}: "), element("bdi", reason))
                for asked, reason in refused
            ],
            class_="plain",
        ),
        class_="box bad",
    )


# ---- the picture ---------------------------------------------------------------------------------


def claims_figure(
    findings: Findings, claims: Sequence[Certificate], names: Sequence[str]
) -> Element:
    """A strip a claim, from L on to the right."""
    axis = claims_axis(findings.gain, claims)
    caption = Caption(
        "certificates-picture",
        "What each guarantee claims at least of the true difference",
        f"The estimate is {signed(findings.gain)}. "
        + "; ".join(
            f"{name}: {claim_words(each)}" for each, name in zip(claims, names, strict=True)
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
        "difference” an improvement is certified. An arrow says that L lies beyond the picture."
    )
    return figure(strip_chart(caption, strips, axis, flags), text)


def claim_words(claim: Certificate) -> str:
    """A claim in a few words, for those who do not see the picture."""
    if claim.lower is None:
        return "refused"
    nothing = ", says nothing" if claim.says_nothing else ""
    return f"{claim.standing}, L = {signed(claim.lower)}{nothing}"


def claim_strip(claim: Certificate, name: str, axis: Axis, heading: str) -> Strip:
    """A claim as a strip."""
    if claim.lower is None:
        return Strip(name, empty="refused", words="refused: the reason is below", heading=heading)
    tone, lower = STANDING_TONES[claim.standing], f"L = {signed(claim.lower)}"
    if claim.says_nothing:
        return Strip(
            name,
            claim.standing,
            tone,
            lower,
            empty="nothing",
            words="says nothing",
            heading=heading,
        )
    bar = Segment(claim.lower, axis.high, tone, faint=True)
    return Strip(name, claim.standing, tone, lower, [bar], claim.lower, heading=heading)


def claims_axis(gain: float, claims: Sequence[Certificate]) -> Axis:
    """An axis on which 0, the gain and the claims near them can be told apart.

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
    """A number that an axis can hold."""
    return 0.0 if abs(value) < SMALLEST else min(max(value, -LARGEST), LARGEST)


# ---- the table -----------------------------------------------------------------------------------


def claims_table(
    findings: Findings, claims: Sequence[Certificate], names: Sequence[str]
) -> Element:
    """The numbers of all claims."""
    columns = [
        Column("Guarantee"),
        Column("Standing"),
        Column("Guaranteed: L", "number"),
        Column("Possible loss ζ", "number"),
        Column("δ", "number"),
        Column("Certified of the estimated gain", "number"),
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
    """One claim, or that it was refused."""
    mark = element("span", f" {SETTLED}", class_="used below") if settled else None
    named = Cell([label(name), mark])
    if claim.lower is None:
        refused: Node = element("span", "refused", class_="nothing")
        return Row([named, Cell("–"), *[Cell("–")] * 4, Cell(refused)])
    share = claim.lower / findings.gain if findings.gain > 0 and claim.lower > 0 else None
    says: Node = element("span", "says nothing", class_="nothing") if claim.says_nothing else "no"
    return Row(
        [
            named,
            Cell(element("span", claim.standing, class_="word")),
            Cell(signed(claim.lower), claim.lower),
            Cell(number(0.0 - claim.lower), 0.0 - claim.lower),
            Cell(number(claim.delta), claim.delta),
            Cell("none" if share is None else percent(share), share),
            Cell(says),
        ]
    )
