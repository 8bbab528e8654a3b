"""The best policy of a model, and of many models of one shape at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep._reprs import short_repr
from surestep.errors import NotConverged
from surestep.kernels.elimination import Allowed, Solutions, improve_each, room_to_improve
from surestep.kernels.records import EliminationPlan, Models
from surestep.model.batch import MDPBatch
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Plan, Policy, negated
from surestep.planning.batch import (
    may_go_round,
    models_of,
    most_steps,
    one_by_one,
    plan_elimination,
    proven_errors,
    stacked,
)
from surestep.planning.evaluation import Evaluation, evaluate_with_bound, q_values
from surestep.planning.iteration import ITERATION_LIMIT, best_of_all
from surestep.planning.proof import TIE_TOLERANCE
from surestep.planning.total import best_ending, may_last

TRUST_ALL = -1  # an N∧ that every pair exceeds


@dataclass(frozen=True, slots=True, eq=False)
class PlanBatch:
    """A best policy of each model, with the fields of `Plan` along a leading axis; `[b]` is one."""

    probability: FloatArray  # [B, K], the policies
    value: FloatArray  # [B, S]
    iterations: IntArray  # [B]
    residual: FloatArray  # [B]
    error_bound: FloatArray  # [B]
    source: MDPBatch | tuple[Plan, ...]  # the models, or plans that were found one by one

    __repr__ = short_repr("value.shape", "value", "iterations", "error_bound")

    def __getitem__(self, b: int) -> Plan:
        """Returns the plan of one model."""
        if isinstance(self.source, tuple):
            return self.source[b]
        model, value = self.source.model(b), self.value[b]
        errors = float(self.residual[b]), float(self.error_bound[b])
        policy, q = Policy(model.pairs, self.probability[b]), q_values(model, value)
        return Plan(policy, value, int(self.iterations[b]), *errors, q)


def optimal(mdp: FiniteMDP, *, minimise: bool = False, tolerance: float | None = None) -> Plan:
    """Returns a best policy π* and its value; with `minimise`, the policy of the least value.

    Small models go through policy iteration. Larger ones begin with value iteration, unless no
    state leads to an earlier one; it is all that a model needs on which sweeps shrink the residual
    fast. Others are solved one strongly connected component after the other, those that others lead
    to first; where sweeps of a component are slow, policy iteration of the whole takes over. Among
    equally good actions the lowest is taken. `tolerance` is the largest error allowed in the
    values; by default 1e-10 of the largest reward and value, or what doubles prove. One that cannot
    be proved raises NotConverged, whose `plan` is what was reached. Where some policy may go round
    for ever without discount, the best is sought of those that end for certain, or go on for
    nothing if the model says that this is worth 0; see `planning.total`.
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    return optimal_batch(mdp, minimise=minimise, tolerance=tolerance)[0]


def optimal_batch(
    models: MDPBatch | FiniteMDP, *, minimise: bool = False, tolerance: float | None = None
) -> PlanBatch:
    """Finds a best policy of every model, by policy iteration; see `evaluate_batch`, `optimal`.

    Where pairs of discount 1 go round, or a tolerance is asked for, models are solved one by one.
    """
    arrays.expect("models", models, (MDPBatch, FiniteMDP))
    elimination = None
    if isinstance(models, MDPBatch) and tolerance is None and not may_go_round(models):
        elimination = plan_elimination(models.pairs, models.offsets, models.successor)
    if isinstance(models, FiniteMDP) or elimination is None:
        plans = one_by_one(models, [minimise], lambda mdp, least: best_alone(mdp, least, tolerance))
        (policy,) = stacked([plan.policy for plan in plans], "probability")
        value, number, residual, error = stacked(
            plans, "value", "iterations", "residual", "error_bound"
        )
        return PlanBatch(policy, value, number, residual, error, tuple(plans))
    steps, raw = most_steps(models), models_of(models)
    if minimise:
        raw = raw._replace(reward=-raw.reward)
    pairs, start = models.pairs.num_pairs, np.zeros((models.num_models, models.num_states))
    every = Allowed(np.zeros(pairs), np.zeros((1, pairs), np.int64), np.array([TRUST_ALL]))
    policy, value, residual, number = best_of_each(raw, every, elimination, start, "of model")
    error = proven_errors(models, value, residual, steps, TIE_TOLERANCE)
    return PlanBatch(policy, -value if minimise else value, number, residual, error, models)


def best_alone(mdp: FiniteMDP, minimise: bool, tolerance: float | None) -> Plan:
    """Returns the best plan of one model, solved by itself."""
    if mdp.num_pairs == mdp.num_states and mdp.discount.max() == 1.0:  # nothing to choose
        return only_plan(mdp, tolerance)
    if minimise:
        endless = None if mdp.endless is None else -mdp.endless
        costs = replace(mdp, reward=-mdp.reward, ending_reward=-mdp.ending_reward, endless=endless)
        try:
            return negated(best_alone(costs, False, tolerance))
        except NotConverged as problem:
            if problem.plan is not None:
                problem.plan = negated(problem.plan)
            raise
    if mdp.endless != np.inf and may_last(mdp):
        return best_ending(mdp, tolerance, best_of_all)
    return best_of_all(mdp, tolerance)


def only_plan(mdp: FiniteMDP, tolerance: float | None) -> Plan:
    """Returns the plan of a model in which every state has one action."""
    only = Policy.uniform(mdp)
    try:
        found = evaluate_with_bound(mdp, only, tolerance=tolerance)
    except NotConverged as problem:
        if isinstance(problem.evaluation, Evaluation):
            reached = problem.evaluation
            problem.plan = reached.plan(only, 1, q_values(mdp, reached.value))
        raise
    return found.plan(only, 1, q_values(mdp, found.value))


def best_of_each(
    models: Models, allowed: Allowed, plan: EliminationPlan, start: FloatArray, where: str
) -> Solutions:
    """Policy iteration from values [B, S], over what is allowed, compiled and on all cores.

    Of B a multiple of the number of models, each part is for the same models again.
    """
    pairs = allowed.behavior.size
    solutions = Solutions.from_values(start, pairs)
    room = room_to_improve(plan, pairs)
    rules = (TIE_TOLERANCE, ITERATION_LIMIT)
    improve_each.all(len(start), room, models, allowed, plan, *rules, solutions)
    if solutions.iterations.max() > ITERATION_LIMIT:
        first = int(solutions.iterations.argmax()) % len(models.reward)
        raise NotConverged(
            f"policy iteration {where} {first} stopped after {ITERATION_LIMIT} rounds, the limit"
        )
    return solutions
