"""Certificates in plain words: what each is called, what it claims, and what all claim together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from surestep._words import number, percent, signed
from surestep.certificates.protocol import Labelled
from surestep.certificates.registry import find_kind
from surestep.certificates.standing import standing_name
from surestep.model import Certificate


def together_words(claims: Sequence[Certificate], *, settled: bool = True) -> str:
    """Returns what may be claimed of one of the certificates, of all, and of the best.

    `settled` says that the first was settled on before the data.
    """
    made = [claim for claim in claims if claim.lower is not None]
    deltas = [claim.delta for claim in made]
    if len(made) < 2:
        return "Other guarantees were asked for as well, about the same policy and the same data."
    same = len(set(deltas)) == 1
    left, many = 1 - math.fsum(deltas), len(made)
    alone = f"1 − δ = {percent(1 - deltas[0])}" if same else "its own 1 − δ"
    joint = f"1 − {many}δ" if same else "1 less the sum of their δ"
    worth = f" = {percent(left)}" if left > 0 else ", that is, nothing"
    return (
        f"Each claim holds on its own with confidence {alone}, in the sense of its standing. That "
        f"{'both' if many == 2 else f'all {many}'} hold at once has only {joint}{worth}. "
        + ("The one at the top was settled on before the data; choosing" if settled else "Choosing")
        + f" the best of them afterwards would claim only {joint}."
    )


def names_of(claims: Sequence[Certificate]) -> list[str]:
    """Returns a name for each: kind and main settings, and δ where that tells them apart."""
    names = [certificate_name(claim) for claim in claims]
    return [
        f"{name}, δ = {number(claim.delta)}"
        if names.count(name) > 1 and claim.lower is not None
        else name
        for name, claim in zip(names, claims, strict=True)
    ]


def certificate_name(claim: Certificate) -> str:
    """Returns the kind with its main settings: 'robust, interval, strict'."""
    if claim.lower is None:
        return asked_kind(claim)
    kind = find_kind(claim.kind)
    parts: Sequence[object] = kind.label(claim.parameters) if isinstance(kind, Labelled) else ()
    return ", ".join([claim.kind, *(str(part) for part in parts if part is not None)])


def asked_kind(refused: Certificate) -> str:
    """Returns the kind that was asked for in place of a certificate without a claim."""
    asked = refused.parameters.get("asked")
    return asked if isinstance(asked, str) else refused.kind


def refusal_reason(refused: Certificate) -> str:
    """Returns why there is no claim."""
    reason = refused.parameters.get("refusal")
    if isinstance(reason, str):
        return reason
    return " ".join(map(str, refused.notes)) or "no reason was given"


def claim_words(claim: Certificate) -> str:
    """Returns a claim in a few words: 'proved, L = +12.3'."""
    if claim.lower is None:
        return "refused"
    nothing = ", says nothing" if claim.says_nothing else ""
    return f"{standing_name(claim)}, L = {signed(claim.lower)}{nothing}"
