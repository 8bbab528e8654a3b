"""The nouns: immutable values of read-only arrays, validated once, when they are made."""

from surestep.model.batch import MDPBatch
from surestep.model.certificate import Certificate, certificate_schema
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.estimate import estimate_behavior, estimate_mdp
from surestep.model.log import DecisionLog
from surestep.model.mdp import DenseMDP, FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.plan import Plan
from surestep.model.policy import Policy
from surestep.model.problem import Improvement, Problem
from surestep.model.problem_batch import CountsBatch, ProblemBatch
from surestep.model.statements import Statement
from surestep.model.successors import Successors

__all__ = [
    "Certificate",
    "Counts",
    "CountsBatch",
    "DecisionLog",
    "DenseMDP",
    "FiniteMDP",
    "Improvement",
    "LoggedRewards",
    "MDPBatch",
    "Pairs",
    "Plan",
    "Policy",
    "Problem",
    "ProblemBatch",
    "Statement",
    "Successors",
    "certificate_schema",
    "estimate_behavior",
    "estimate_mdp",
]
