"""Makes and verifies claims about policies: lower bounds on their gain over π_b."""

from surestep.certificates.apriori import APriori
from surestep.certificates.certifying import certify, certify_many, verify
from surestep.certificates.common import (
    Bound,
    Certifier,
    Claim,
    Question,
    bound_of,
    claims_of,
    unless_refused,
    usable,
)
from surestep.certificates.drawn import ModelDraws, drawn_chunk, drawn_models
from surestep.certificates.episodes import (
    holds_out,
    log_of,
    needs_episodes,
    split_of,
    training_for,
    training_part,
)
from surestep.certificates.node_law import LEFT_OVER, estimated_law, log_kt, sampled_log, stepped
from surestep.certificates.node_posterior import NodePosterior
from surestep.certificates.node_stacks import node_draws
from surestep.certificates.node_tables import NodeRobust
from surestep.certificates.nodes import NodeStitched
from surestep.certificates.posterior import (
    MEMORY,
    WIDE_TO_CHOOSE,
    Posterior,
    judged_part,
    model_draws,
)
from surestep.certificates.prior import prior_of
from surestep.certificates.registry import (
    CERTIFIERS,
    SHELF,
    Asked,
    NoClaim,
    certifier_for,
    check_certifier,
    make_certifier,
    may_be_believed,
    only_believed,
    read_settings,
    standing_name,
    standing_of,
    told_to,
)
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
