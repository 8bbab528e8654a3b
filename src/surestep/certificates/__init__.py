"""Makes and verifies claims about policies: lower bounds on their gain over π_b."""

from surestep.certificates.apriori import APriori
from surestep.certificates.certifying import certify, certify_many, verify
from surestep.certificates.common import Certifier
from surestep.certificates.episodes import training_for, training_part
from surestep.certificates.node_posterior import NodePosterior
from surestep.certificates.node_tables import NodeRobust
from surestep.certificates.nodes import NodeStitched
from surestep.certificates.posterior import Posterior
from surestep.certificates.registry import CERTIFIERS, make_certifier
from surestep.certificates.robust import Robust
from surestep.certificates.stitched import Stitched
from surestep.certificates.trajectory import Trajectory

__all__ = [
    "CERTIFIERS",
    "APriori",
    "Certifier",
    "NodePosterior",
    "NodeRobust",
    "NodeStitched",
    "Posterior",
    "Robust",
    "Stitched",
    "Trajectory",
    "certify",
    "certify_many",
    "make_certifier",
    "training_for",
    "training_part",
    "verify",
]
