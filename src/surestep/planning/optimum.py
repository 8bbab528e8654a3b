"""Finds the best policy of a model, or of many models of one shape at once."""

from dataclasses import dataclass, replace

import numpy as np

import surestep._arrays as arrays
from surestep.errors import NotConverged
from surestep.kernels.elimination import Allowed, Solutions, improve_each, room_to_improve
from surestep.kernels.records import EliminationPlan, Models
from surestep.model import FiniteMDP, MDPBatch
from surestep.model.noun import noun
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
from surestep.planning.total import best_ending, changed, may_last

TRUST_ALL = -1  # an N∧ that every pair exceeds


@noun("value.shape", "value", "iterations", "error_bound")
@dataclass(frozen=True, slots=True, eq=False)
class PlanBatch:
    """A best policy of each of B models; `[b]` gives the `Plan` of one.

    Parameters
    ----------
    probability : array of float [B, K]
        The policies.
    value : array of float [B, S]
        The values of states.
    iterations : array of int [B]
        The rounds that each took.
    residual : array of float [B]
        The largest change that another round would make.
    error_bound : array of float [B]
        The largest error of the values that is possible.
    source : MDPBatch or tuple of Plan
        The models, or the plans that were found one by one.

    Examples
    --------
    >>> from surestep import FiniteMDP, MDPBatch, optimal_batch
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> optimal_batch(MDPBatch.from_models([mdp]))[0].policy.dense()
    array([[1., 0.],
           [0., 1.]])
    """

    probability: arrays.FloatArray  # [B, K]
    value: arrays.FloatArray  # [B, S]
    iterations: arrays.IntArray  # [B]
    residual: arrays.FloatArray  # [B]
    error_bound: arrays.FloatArray  # [B]
    source: MDPBatch | tuple[Plan, ...]

    def __getitem__(self, b: int) -> Plan:
        if isinstance(self.source, tuple):
            return self.source[b]
        model = self.source.model(b)
        value = self.value[b]
        return Plan(
            Policy(model.pairs, self.probability[b]),
            value,
            int(self.iterations[b]),
            float(self.residual[b]),
            float(self.error_bound[b]),
            q_values(model, value),
        )


def optimal(mdp: FiniteMDP, *, minimise: bool = False, tolerance: float | None = None) -> Plan:
    """Returns a best policy π* and its value.

    Among equally good actions the lowest is taken. If some policy may go round for ever without
    discount, π* is the best of the policies that end for certain. If the model says that endless
    episodes are worth 0, policies that go on without rewards count as ending. If it says that they
    are worth ∞ and the value is minimised, states from which no policy ends for certain have the
    value ∞, and other states avoid them.

    Parameters
    ----------
    mdp : FiniteMDP
        The model.
    minimise : bool, default False
        Find the policy of the least value instead.
    tolerance : float, optional
        The largest error allowed in the values. By default 1e-10 of the largest reward and value,
        or as little as doubles can prove.

    Returns
    -------
    Plan
        The policy, its value and the error bound.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved; its `plan` is the plan that was reached.
    NeverEnds
        If no policy ends, a start is worth ∞, or total rewards have no bound.

    Notes
    -----
    Small models go through policy iteration. Larger ones begin with value iteration, unless no
    state leads to an earlier one. If sweeps shrink the residual fast, value iteration solves the
    model. If not, one strongly connected component is solved after the other, each after all that
    it leads to; if sweeps of a component are slow, policy iteration of the whole model follows.

    Examples
    --------
    >>> from surestep import FiniteMDP, optimal
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> plan = optimal(mdp)
    >>> plan.policy.dense(), plan.value.round(6)
    (array([[1., 0.],
           [0., 1.]]), array([2.666667, 4.      ]))
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    return optimal_batch(mdp, minimise=minimise, tolerance=tolerance)[0]


def optimal_batch(
    models: MDPBatch | FiniteMDP, *, minimise: bool = False, tolerance: float | None = None
) -> PlanBatch:
    """Returns a best policy of every model.

    Parameters
    ----------
    models : MDPBatch or FiniteMDP
        B models; one model is a batch of one.
    minimise : bool, default False
        Find the policies of the least value instead.
    tolerance : float, optional
        The largest error allowed; see `optimal`.

    Returns
    -------
    PlanBatch
        The fields of `Plan` along a leading axis.

    Raises
    ------
    NotConverged
        If the tolerance cannot be proved for some model.

    Notes
    -----
    Models are solved by a compiled policy iteration on all cores. If pairs of discount 1 form a
    cycle, or a tolerance is given, they are solved one by one.

    Examples
    --------
    >>> from surestep import FiniteMDP, MDPBatch, optimal_batch
    >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
    >>> mdp = FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 2.0]], discount=0.5)
    >>> batch = MDPBatch.from_models([mdp, mdp.with_rewards([[0.0, 0.0], [0.0, 2.0]])])
    >>> optimal_batch(batch).value.round(3)
    array([[2.667, 4.   ],
           [2.   , 4.   ]])
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
    steps = most_steps(models)
    raw = models_of(models)
    if minimise:
        raw = raw._replace(reward=-raw.reward)
    pairs = models.pairs.num_pairs
    start = np.zeros((models.num_models, models.num_states))
    every = Allowed(np.zeros(pairs), np.zeros((1, pairs), np.int64), np.array([TRUST_ALL]))
    policy, value, residual, number = best_of_each(raw, every, elimination, start, "of model")
    error = proven_errors(models, value, residual, steps, TIE_TOLERANCE)
    return PlanBatch(policy, -value if minimise else value, number, residual, error, models)


def best_alone(mdp: FiniteMDP, minimise: bool, tolerance: float | None) -> Plan:
    """Returns the best plan of one model, solved by itself."""
    if mdp.num_pairs == mdp.num_states and mdp.discount.max() == 1.0:  # nothing to choose
        return only_plan(mdp, tolerance)
    if minimise:
        costs = replace(
            mdp,
            reward=-mdp.reward,
            ending_reward=-mdp.ending_reward,
            endless=None if mdp.endless is None else -mdp.endless,
        )
        return changed(lambda: best_alone(costs, False, tolerance), negated)
    if mdp.endless != np.inf and may_last(mdp):
        return best_ending(mdp, tolerance, best_of_all)
    return best_of_all(mdp, tolerance)


def only_plan(mdp: FiniteMDP, tolerance: float | None) -> Plan:
    """Returns the plan of a model in which every state has one action."""
    only = Policy.uniform(mdp)
    try:
        evaluation = evaluate_with_bound(mdp, only, tolerance=tolerance)
    except NotConverged as problem:
        if isinstance(problem.evaluation, Evaluation):
            reached = problem.evaluation
            problem.plan = reached.plan(only, 1, q_values(mdp, reached.value))
        raise
    return evaluation.plan(only, 1, q_values(mdp, evaluation.value))


def best_of_each(
    models: Models, allowed: Allowed, plan: EliminationPlan, start: arrays.FloatArray, where: str
) -> Solutions:
    """Iterates the allowed policies from values [B, S], by a compiled loop on all cores.

    If B is a multiple of the number of models, the models repeat in the same order.
    """
    size = len(start)
    pairs = allowed.behavior.size
    solutions = Solutions(np.empty((size, pairs)), start, np.empty(size), np.empty(size, np.int64))
    improve_each.all(
        size,
        room_to_improve(plan, pairs),
        models,
        allowed,
        plan,
        TIE_TOLERANCE,
        ITERATION_LIMIT,
        solutions,
    )
    if solutions.iterations.max() > ITERATION_LIMIT:
        first = int(solutions.iterations.argmax()) % len(models.reward)
        raise NotConverged(
            f"policy iteration {where} {first} stopped after {ITERATION_LIMIT} rounds, the limit"
        )
    return solutions
