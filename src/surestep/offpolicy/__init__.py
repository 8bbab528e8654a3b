"""Log + policy to an estimate: importance sampling, and lower bounds on what it estimates.

`importance_weights` compares a policy with the one that made the log; an estimator of `ESTIMATORS`
makes an estimate of the weights; an interval makes a lower bound of the estimate's values.
"""

from surestep.offpolicy.estimators import (
    ESTIMATORS,
    DoublyRobust,
    Estimate,
    Estimator,
    ImportanceSampling,
    MeanEstimate,
    PerDecision,
    RatioEstimate,
    WeightedImportanceSampling,
    WeightedPerDecision,
    paired_returns,
    paired_rewards,
)
from surestep.offpolicy.intervals import (
    bca_bootstrap,
    betting,
    choose_threshold,
    empirical_bernstein,
    hoeffding,
    student_t,
    truncated_bernstein,
)
from surestep.offpolicy.split import first_steps, split_episodes
from surestep.offpolicy.weights import ImportanceWeights, importance_weights, unsupported_pairs

__all__ = [
    "ESTIMATORS",
    "DoublyRobust",
    "Estimate",
    "Estimator",
    "ImportanceSampling",
    "ImportanceWeights",
    "MeanEstimate",
    "PerDecision",
    "RatioEstimate",
    "WeightedImportanceSampling",
    "WeightedPerDecision",
    "bca_bootstrap",
    "betting",
    "choose_threshold",
    "empirical_bernstein",
    "first_steps",
    "hoeffding",
    "importance_weights",
    "paired_returns",
    "paired_rewards",
    "split_episodes",
    "student_t",
    "truncated_bernstein",
    "unsupported_pairs",
]
