"""Data and a policy to a claim: how much better, at least, the policy is than π_b."""

from surestep.certificates.apriori import APriori
from surestep.certificates.certifier import Certifier
from surestep.certificates.certifying import certify, certify_many, verify
from surestep.certificates.episodes import training_for, training_part
from surestep.certificates.posterior import Posterior
from surestep.certificates.registry import (
    CERTIFIERS,
    Asked,
    NoClaim,
    certifier_kind,
    find_kind,
    make_certifier,
)
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory

__all__ = [
    "CERTIFIERS",
    "APriori",
    "Asked",
    "Certifier",
    "NoClaim",
    "Posterior",
    "Robust",
    "Stitched",
    "Trajectory",
    "certifier_kind",
    "certify",
    "certify_many",
    "find_kind",
    "make_certifier",
    "training_for",
    "training_part",
    "verify",
]
