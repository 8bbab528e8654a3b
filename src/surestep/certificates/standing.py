"""The standing of a claim: its own word for it, where its kind is built in."""

from __future__ import annotations

from surestep.certificates.registry import BUILT_IN, SHELF
from surestep.model.certificate import Certificate, Standing
from surestep.model.statements import STOPPING

BY_EXTENSION: Standing = "by-extension"


def standing_of(certificate: Certificate) -> Standing:
    """Returns in which sense the confidence is meant, as far as anybody here could know.

    What a kind that is not built in calls proved or a posterior stands by extension alone.
    """
    own, said = certificate.kind not in BUILT_IN, certificate.standing
    return BY_EXTENSION if own and said in ("proved", "posterior") else said


def standing_name(certificate: Certificate) -> str:
    """Returns the standing in words, with who answers for it: 'proved', 'by extension toy-pack'.

    Nobody is named for an object that was handed over without being registered.
    """
    standing = standing_of(certificate)
    if certificate.kind in BUILT_IN or standing == "none":
        open_end = standing == "proved" and certificate.assumes(STOPPING.code)
        return f"{standing} if stopping tells nothing" if open_end else standing
    by = f"by extension {SHELF.source_of(certificate.kind)}".rstrip()
    return by if standing == BY_EXTENSION else f"{standing} {by}"
