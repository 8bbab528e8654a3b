"""Writes the section on certificates: the claim of each, its standing and its assumptions."""

import math
from collections.abc import Sequence

from surestep._words import ceiled, counted, floored, number, percent, signed
from surestep.certificates.registry import standing_name, standing_of
from surestep.model import Certificate
from surestep.report.answer import STANDINGS
from surestep.results.findings import Findings
from surestep.results.plots import claims_picture
from surestep.results.structured import StructuredResult
from surestep.sections import Amount, Cell, Column, Item, Section, Table, numbers

MAIN_SETTINGS = {  # that certificates of a kind are told apart by
    "a-priori": ("bound",),
    "posterior": ("prior",),
    "robust": ("set",),
    "trajectory": ("interval",),
}


def certificates_section(findings: Findings | StructuredResult) -> Section:
    """Returns every claim about the policy, with its assumptions."""
    claims = findings.certificates
    names = [certificate_name(claim) for claim in claims]
    names = [  # if several have the same name, δ is added
        f"{name}, δ = {number(claim.delta)}"
        if names.count(name) > 1 and claim.lower is not None
        else name
        for name, claim in zip(names, claims, strict=True)
    ]
    return Section(
        "certificates",
        "The certificates" if len(claims) > 1 else "The certificate",
        [together_words(claims)] if len(claims) > 1 else [],
        items=[
            Item(asked_kind(claim), refusal_reason(claim), sign="✗", mood="bad")
            for claim in claims
            if claim.lower is None
        ],
        pictures=[claims_picture(findings.estimated_gain, claims, names)],
        tables=[claims_table(findings, claims, names)],
        parts=[
            of_one(claim, name, place)
            for place, (claim, name) in enumerate(zip(claims, names, strict=True), 1)
            if claim.lower is not None
        ],
        folded=True,
    )


def of_one(claim: Certificate, name: str, place: int = 1) -> Section:
    """Returns the assumptions of a claim, its notes, and its settings and figures."""
    return Section(
        f"assumed-{place}",
        f"{name}: assumes {counted(len(claim.assumptions), 'thing')}",
        [f"{standing_name(claim).capitalize()}: {STANDINGS[standing_of(claim)]}."],
        items=[
            *(Item("", str(said), sign=f"{i}.") for i, said in enumerate(claim.assumptions, 1)),
            *(Item("Remark", str(said)) for said in claim.notes),
        ],
        facts=[
            (key, scalar_words(value))
            for key, value in (*claim.parameters.items(), *claim.figures.items())
        ],
        folded=True,
    )


def scalar_words(value: object) -> str:
    """Returns a setting or figure as text, with all its digits."""
    if value is None:
        return "not given"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# ---- words --------------------------------------------------------------------------------------


def together_words(claims: Sequence[Certificate], *, settled: bool = True) -> str:
    """Says how sure each certificate is, all together, and the best one.

    `settled`: the first kind was settled on before the data.
    """
    made = [claim for claim in claims if claim.lower is not None]
    deltas = [claim.delta for claim in made]
    if len(made) < 2:
        return "Other guarantees were asked for as well, about the same policy and the same data."
    left = 1 - math.fsum(deltas)
    alone = f"with {percent(1 - deltas[0])}" if len(set(deltas)) == 1 else "with its own"
    joint = f"trust it only {percent(left)}" if left > 0 else "it promises nothing"
    first = " The first was settled on before the data." if settled else ""
    return (
        f"Each holds {alone} confidence. If you pick the best of {len(made)} afterwards, {joint}."
        f"{first}"
    )


def certificate_name(claim: Certificate) -> str:
    """Returns the kind with its main settings: 'robust, interval, strict'."""
    if claim.lower is None:
        return asked_kind(claim)
    given = claim.parameters
    parts = [given.get(name) for name in MAIN_SETTINGS.get(claim.kind, ())]
    if claim.kind == "robust" and given.get("strict"):
        parts.append("strict")
    if claim.kind == "posterior":
        weight = given.get("prior_weight")
        if parts[0] in ("cautious", "weight") and isinstance(weight, int | float):
            parts = [f"prior weight {weight:.4g}"]
        parts.append("held-out data" if given.get("train_share") else None)
    return ", ".join([claim.kind, *(str(part) for part in parts if part is not None)])


def asked_kind(refused: Certificate) -> str:
    """Returns the kind that was asked for in place of a certificate without a claim."""
    return str(refused.parameters.get("asked") or refused.kind)


def refusal_reason(refused: Certificate) -> str:
    """Returns why there is no claim."""
    noted = " ".join(map(str, refused.notes)) or "no reason was given"
    return str(refused.parameters.get("refusal") or noted)


def claims_table(
    findings: Findings | StructuredResult, claims: Sequence[Certificate], names: Sequence[str]
) -> Table:
    """Returns the numbers of all claims."""
    rows: list[list[Cell]] = []
    for claim, name in zip(claims, names, strict=True):
        if claim.lower is None:
            rows.append([name, "refused", "–", "–", "–"])
            continue
        share = (
            claim.lower / findings.estimated_gain
            if findings.estimated_gain > 0 and claim.lower > 0
            else 0.0
        )
        rows.append(
            [
                name,
                f"{standing_name(claim)}{', says nothing' if claim.says_nothing else ''}",
                Amount(signed(floored(claim.lower)), claim.lower),
                Amount(number(claim.delta), claim.delta),
                Amount(percent(1 - ceiled(1 - share)) if share else "none", share),
            ]
        )
    return Table(
        "claims",
        f"No two policies can differ by more than {number(findings.certificates[0].span)} here; "
        "δ is the chance to be wrong",
        [
            Column("Certificate"),
            Column("Standing"),
            *numbers("At least: L", "δ", "Of the estimated gain"),
        ],
        rows,
        sortable=True,
    )
