"""Plans in a known MDP: computes values, best policies and visits, each with a proven error."""

from surestep.model.policy import Plan
from surestep.planning.backups import Backup, averaged
from surestep.planning.batch import endless_members, plan_elimination
from surestep.planning.ends import breadth_first, endless_circle, refuse_endless, steps_towards
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
from surestep.planning.horizons import better_rows, longest_horizon
from surestep.planning.iteration import (
    ITERATION_LIMIT,
    GreedyStep,
    best_actions,
    policy_iteration,
    value_iteration,
)
from surestep.planning.optimum import TRUST_ALL, PlanBatch, best_of_each, optimal, optimal_batch
from surestep.planning.proof import SMALLEST_NORMAL, TIE_TOLERANCE
from surestep.planning.reaching import ReachChance, reachability
from surestep.planning.total import ending_iteration

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
