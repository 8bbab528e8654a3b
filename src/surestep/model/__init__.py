"""Defines the data types of surestep: immutable, with read-only arrays, validated when made."""

from surestep.model.batch import CountsBatch, MDPBatch, ProblemBatch
from surestep.model.certificate import Certificate, SignalClaim, certificate_schema
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.estimates import estimate_behavior, estimate_mdp
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem
from surestep.model.log import DecisionLog
from surestep.model.mdp import DenseMDP, FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Plan, Policy
from surestep.model.problem import Improvement, Problem, Reach, Signal, reaching
from surestep.model.statements import Statement
from surestep.model.structure import Structure
from surestep.model.successors import Successors

__all__ = [
    "Certificate",
    "ColumnRules",
    "Counts",
    "CountsBatch",
    "DecisionLog",
    "DenseMDP",
    "FactoredLog",
    "FactoredProblem",
    "FiniteMDP",
    "Improvement",
    "LoggedRewards",
    "MDPBatch",
    "Pairs",
    "Plan",
    "Policy",
    "Problem",
    "ProblemBatch",
    "Reach",
    "Signal",
    "SignalClaim",
    "Statement",
    "Structure",
    "Successors",
    "certificate_schema",
    "estimate_behavior",
    "estimate_mdp",
    "reaching",
]
