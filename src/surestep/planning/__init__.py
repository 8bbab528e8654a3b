"""Plans in a known MDP: computes values, best policies and visits, each with a proven error."""

from surestep.model.policy import Plan
from surestep.planning.evaluation import (
    Evaluation,
    EvaluationBatch,
    evaluate,
    evaluate_batch,
    evaluate_with_bound,
    occupancy,
    performance,
    q_values,
)
from surestep.planning.iteration import policy_iteration, value_iteration
from surestep.planning.optimum import PlanBatch, optimal, optimal_batch
from surestep.planning.reaching import ReachChance, reachability

__all__ = [
    "Evaluation",
    "EvaluationBatch",
    "Plan",
    "PlanBatch",
    "ReachChance",
    "evaluate",
    "evaluate_batch",
    "evaluate_with_bound",
    "occupancy",
    "optimal",
    "optimal_batch",
    "performance",
    "policy_iteration",
    "q_values",
    "reachability",
    "value_iteration",
]
