"""Data and a policy to a claim: how much better, at least, the policy is than π_b."""

from surestep.certificates.apriori import APriori
from surestep.certificates.corrected import CorrectedBeta
from surestep.certificates.episodes import training_part
from surestep.certificates.no_claim import NoClaim
from surestep.certificates.posterior import Posterior, posterior_gains
from surestep.certificates.registry import CERTIFIERS, Certifier, certify, verify
from surestep.certificates.robust import Robust
from surestep.certificates.trajectory import Trajectory

__all__ = [
    "CERTIFIERS",
    "APriori",
    "Certifier",
    "CorrectedBeta",
    "NoClaim",
    "Posterior",
    "Robust",
    "Trajectory",
    "certify",
    "posterior_gains",
    "training_part",
    "verify",
]
