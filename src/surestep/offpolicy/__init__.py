"""Estimates what a policy earns from another policy's log, with lower bounds; without a model.

`importance_weights` compares a policy with the one that made the log; an estimator of `ESTIMATORS`
makes an estimate of the weights; an interval makes a lower bound of the estimate's values.
"""

from surestep.offpolicy.estimators import (
    ESTIMATORS,
    MeanEstimate,
    RatioEstimate,
    doubly_robust,
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
from surestep.offpolicy.split import split_episodes
from surestep.offpolicy.weights import ImportanceWeights, importance_weights

__all__ = [
    "ESTIMATORS",
    "ImportanceWeights",
    "MeanEstimate",
    "RatioEstimate",
    "bca_bootstrap",
    "betting",
    "choose_threshold",
    "doubly_robust",
    "empirical_bernstein",
    "hoeffding",
    "importance_weights",
    "paired_returns",
    "paired_rewards",
    "split_episodes",
    "student_t",
    "truncated_bernstein",
]
