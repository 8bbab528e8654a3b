"""Defines the data types of surestep: immutable, with read-only arrays, validated when made."""

from surestep.model.batch import CountsBatch, MDPBatch, ProblemBatch
from surestep.model.certificate import (
    NO_CLAIM,
    VERDICT,
    Certificate,
    Rung,
    SignalClaim,
    Standing,
    certificate_schema,
    read_unique_json,
)
from surestep.model.counts import LARGEST_TOTAL, Counts, LoggedRewards
from surestep.model.estimates import estimate_behavior, estimate_mdp
from surestep.model.factored import MISSING, ColumnRules, FactoredLog, FactoredProblem, Rule
from surestep.model.known import (
    LARGEST,
    NOTHING,
    Known,
    Logger,
    Ranges,
    Split,
    ends,
    hull,
    single_rewards,
    with_zero,
)
from surestep.model.log import (
    UNKNOWN,
    DecisionLog,
    Excerpt,
    Seen,
    least_and_greatest,
    row_name,
    terminal_states,
)
from surestep.model.mdp import DenseMDP, FiniteMDP, read_initial, spread_discount, spread_initial
from surestep.model.pairs import Labels, LazyLabels, Pairs, check_same_pairs, picked_labels
from surestep.model.policy import Plan, Policy, PolicyLike, negated, policy_of
from surestep.model.problem import (
    Improvement,
    Problem,
    Reach,
    Signal,
    UnseenRule,
    reaching,
    stopped,
)
from surestep.model.statements import (
    OWN_WORDS,
    STOPPING,
    WITHIN_SEEN,
    Scalar,
    Statement,
    is_unicode,
)
from surestep.model.structure import ACTION, END, HERE, LEFT, NEXT, REWARD, RIGHT, Structure
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
