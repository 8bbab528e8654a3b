"""The standing of a claim: its own word for it, where its kind is built in."""

from __future__ import annotations

from surestep.certificates.registry import BUILT_IN, SHELF
from surestep.model.certificate import Certificate

BY_EXTENSION = "by extension"  # the standing of all claims of kinds that are not built in


def standing_of(certificate: Certificate) -> str:
    """Returns in which sense the confidence is meant, which only kinds that are built in may say.

    What others claim is at most believed.
    """
    if certificate.kind in BUILT_IN or certificate.standing == "none":
        return certificate.standing
    return BY_EXTENSION


def standing_name(certificate: Certificate) -> str:
    """Returns the standing with who answers for it: 'proved', or 'by extension toy-pack'.

    Nobody is named for an object that was handed over without being registered.
    """
    standing = standing_of(certificate)
    by = SHELF.source_of(certificate.kind) if standing == BY_EXTENSION else ""
    return f"{standing} {by}" if by else standing
