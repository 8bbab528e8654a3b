"""Many models of one shape at once: evaluation and optimisation along a leading axis.

In which order states are eliminated, and where entries fill in, is found once for a shape. That
takes longer than one small model does by itself, which is why `evaluate` is no batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, BoolArray, FloatArray, IndexArray, IntArray, RunWords
from surestep._reprs import short_repr
from surestep.errors import InvalidPolicy, NeverEnds, NotConverged
from surestep.kernels.elimination import (
    Allowed,
    Solutions,
    evaluate_each,
    improve_each,
    room_to_evaluate,
    room_to_improve,
)
from surestep.kernels.records import EliminationPlan, Models
from surestep.model.batch import MDPBatch
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.model.policy import Policy
from surestep.planning.chain import TOO_MANY_STEPS
from surestep.planning.ends import endless_circle, goes_round, refuse_endless
from surestep.planning.evaluation import evaluate_with_bound
from surestep.planning.horizons import certified_steps, longest_horizon
from surestep.planning.iteration import ITERATION_LIMIT, optimal
from surestep.planning.proof import SMALLEST_NORMAL, TIE_TOLERANCE, most_terms
from surestep.planning.pruning import FixedRows

MOST_WORK = 2_000_000  # multiplications of one solve; beyond, other ways to a value are faster
MOST_STATES = 2_000  # beyond, even looking for an order takes long where much fills in
TRUST_ALL = -1  # an N∧ that every pair exceeds


def plan_elimination(
    pairs: Pairs, offsets: IntArray, successor: IndexArray
) -> EliminationPlan | None:
    """Returns the plan for models with these successors, or None where that takes too much work.

    The order is SciPy's minimum degree on the pattern of I − P and its transpose. Filling in
    follows from the pattern alone: what is eliminated leaves its row of U to all rows below that
    have its column. Plans are remembered.
    """
    if pairs.num_states > MOST_STATES:
        return None
    source = pairs.state[arrays.run_owners(offsets)].astype(np.int32)
    return plan_for_edges(pairs.num_states, source.tobytes(), successor.tobytes())


@lru_cache(maxsize=32)  # an experiment asks for the same shape again and again
def plan_for_edges(size: int, sources: bytes, targets: bytes) -> EliminationPlan | None:
    """Returns the plan for transitions source → target, given as the bytes of 32-bit numbers."""
    source, successor = np.frombuffer(sources, np.int32), np.frombuffer(targets, np.int32)
    order = minimum_degree(size, source, successor)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    rows: list[set[int]] = [set() for _ in range(size)]
    for i, j in zip(place[source].tolist(), place[successor].tolist(), strict=True):
        rows[i].add(j)
    lower: list[list[int]] = []
    upper: list[list[int]] = []
    work = 0
    for i, row in enumerate(rows):
        below = []
        waiting = {j for j in row if j < i}
        while waiting:
            c = min(waiting)
            waiting.remove(c)
            below.append(c)
            work += len(upper[c])
            row.update(upper[c])
            waiting.update(j for j in upper[c] if j < i)
        if work > MOST_WORK:
            return None
        lower.append(below)
        upper.append(sorted(j for j in row if j > i))
    return EliminationPlan(arrays.own(order), arrays.own(place), *runs_of(lower), *runs_of(upper))


def minimum_degree(size: int, source: IndexArray, target: IndexArray) -> IntArray:
    """Returns an order of the states in which little fills in."""
    from scipy.sparse import coo_array, eye_array
    from scipy.sparse.linalg import splu

    # The order follows from the pattern; entries so small let the diagonal dominate.
    entries = np.full(source.size, SMALLEST_NORMAL)
    edges = coo_array((entries, (source, target)), (size, size)).tocsr()
    dominant = (edges + edges.T + eye_array(size)).tocsc()
    factors = splu(dominant, "MMD_AT_PLUS_A", options={"SymmetricMode": True})
    place: IntArray = factors.perm_c.astype(np.int64)
    order = np.empty(size, np.int64)
    order[place] = np.arange(size)
    return order


def runs_of(lists: list[list[int]]) -> tuple[IntArray, IntArray]:
    """Lists as offsets and one flat array."""
    flat = np.array([entry for entries in lists for entry in entries], np.int64)
    return arrays.own(arrays.offsets_of(np.array([len(entries) for entries in lists]))), arrays.own(
        flat
    )


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """V^π of each model, with the fields of `Evaluation` along a leading axis."""

    value: FloatArray  # [B, S]
    residual: FloatArray  # [B]
    error_bound: FloatArray  # [B]

    __repr__ = short_repr("value.shape", "value", "error_bound")


@dataclass(frozen=True, slots=True, eq=False)
class PlanBatch:
    """A best policy of each model, with the fields of `Plan` along a leading axis."""

    probability: FloatArray  # [B, K], the policies
    value: FloatArray  # [B, S]
    iterations: IntArray  # [B]
    residual: FloatArray  # [B]
    error_bound: FloatArray  # [B]

    __repr__ = short_repr("value.shape", "value", "iterations", "error_bound")


def evaluate_batch(batch: MDPBatch, policy: Policy | FloatArray) -> EvaluationBatch:
    """V^π of every model, for one policy or one each (probabilities [B, K]).

    Of several times as many policies, those after the first B are for the same models again. Models
    in which little fills in are solved by a compiled elimination on all cores, others one by one.
    """
    arrays.expect("batch", batch, MDPBatch)
    probability = policies_of(batch, policy)
    size = max(batch.num_models, probability.shape[0])
    around = goes_round(batch_rows(batch, batch.probability.max(axis=0)))
    if around:
        refuse_endless_members(batch, probability)
    plan = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    if plan is None:
        parts = [
            evaluate_with_bound(
                batch.model(b % batch.num_models),
                Policy(batch.pairs, probability[b % probability.shape[0]]),
            )
            for b in range(size)
        ]
        return EvaluationBatch(*stacked(parts, "value", "residual", "error_bound"))
    steps = steps_under(batch, probability, plan, size) if around else most_steps(batch)
    value, residual = np.empty((size, batch.num_states)), np.empty(size)
    room = room_to_evaluate(plan)
    evaluate_each.all(size, room, models_of(batch), probability, plan, value, residual)
    return EvaluationBatch(value, residual, proven_errors(batch, value, residual, steps, 0.0))


def steps_under(
    batch: MDPBatch, probability: FloatArray, plan: EliminationPlan, size: int
) -> FloatArray:
    """Bounds the steps of each policy in its model [B]; see `planning.evaluation.chain_steps`.

    Every policy must end for certain in its model.
    """
    clock = models_of(batch)._replace(reward=np.ones((1, batch.pairs.num_pairs)))
    steps, residual = np.empty((size, batch.num_states)), np.empty(size)
    try:
        evaluate_each.all(size, room_to_evaluate(plan), clock, probability, plan, steps, residual)
    except ZeroDivisionError:  # a chain is singular, up to rounding
        raise NotConverged(TOO_MANY_STEPS) from None
    most = steps.max(axis=1)
    theta = 1 - residual - most_terms(batch.offsets, batch.pairs.offsets) * 2.0**-52 * most
    proven = (theta > 0) & (steps.min(axis=1) > 0)
    if not proven.all():
        raise NotConverged(f"{member_name(batch, int(np.argmin(proven)))}: {TOO_MANY_STEPS}")
    bounds: FloatArray = most / theta
    return bounds


def refuse_endless_members(batch: MDPBatch, probability: FloatArray) -> None:
    """Refuses a batch in which a policy may never end, naming the model and a state."""
    endless = endless_members(batch, probability)
    if endless.any():
        first = int(endless.argmax())
        chances = batch.probability[first % batch.num_models]
        try:
            refuse_endless(batch_rows(batch, chances), probability[first % len(probability)])
        except NeverEnds as problem:
            raise NeverEnds(f"{member_name(batch, first)}: {problem}") from None


def member_name(batch: MDPBatch, place: int) -> str:
    """Returns which model has that place among policies, and which policy where models repeat."""
    model = f"model {place % batch.num_models}"
    return model if place < batch.num_models else f"{model} with policy {place}"


def endless_members(batch: MDPBatch, probability: FloatArray) -> BoolArray:
    """Tells for each policy [B, K] whether it may never end in its model [B].

    That depends on which transitions and actions are possible only, so that models with the same
    ones are looked at once.
    """
    size = max(batch.num_models, len(probability))
    known: dict[tuple[bytes, bytes], bool] = {}
    endless = np.zeros(size, np.bool_)
    for b in range(size):
        chances = batch.probability[b % batch.num_models]
        policy = probability[b % len(probability)]
        kind = ((chances > 0).tobytes(), (policy > 0).tobytes())
        if kind not in known:
            known[kind] = endless_circle(batch_rows(batch, chances), policy).size > 0
        endless[b] = known[kind]
    return endless


def batch_rows(batch: MDPBatch, chances: FloatArray) -> FixedRows:
    """Returns the shape of the batch with these probabilities [T]."""
    return FixedRows(
        batch.pairs,
        batch.discount,
        batch.offsets,
        batch.successor,
        chances,
        batch.expected_reward[0],
    )


def optimal_batch(batch: MDPBatch) -> PlanBatch:
    """Finds a best policy of every model, by policy iteration; see `evaluate_batch`, `optimal`.

    Where pairs of discount 1 go round, the models are solved one by one.
    """
    arrays.expect("batch", batch, MDPBatch)
    around = goes_round(batch_rows(batch, batch.probability.max(axis=0)))
    elimination = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    if elimination is None or around:
        plans = [optimal(batch.model(b)) for b in range(batch.num_models)]
        policies = np.array([plan.policy.probability for plan in plans])
        return PlanBatch(
            policies, *stacked(plans, "value", "iterations", "residual", "error_bound")
        )
    steps = most_steps(batch)
    size, pairs = batch.num_models, batch.pairs.num_pairs
    start = np.zeros((size, batch.num_states))
    every = Allowed(np.zeros(pairs), np.zeros((1, pairs), np.int64), np.array([TRUST_ALL]))
    found = best_of_each(models_of(batch), every, elimination, start, "of model")
    error = proven_errors(batch, found.value, found.residual, steps, TIE_TOLERANCE)
    return PlanBatch(found.policy, found.value, found.iterations, found.residual, error)


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


def stacked(parts: Sequence[object], *names: str) -> list[AnyArray]:
    """Returns each attribute of all parts, along a leading axis."""
    return [np.array([getattr(part, name) for part in parts]) for name in names]


def policies_of(batch: MDPBatch, policy: Policy | FloatArray) -> FloatArray:
    """Probabilities [1, K] or [B, K], validated."""
    if isinstance(policy, Policy):
        check_same_pairs("the batch", batch.pairs, "the policy", policy.pairs)
        return policy.probability[np.newaxis]
    rows = arrays.numbers("policies", policy, InvalidPolicy).shape[:1]
    times = max(1, rows[0] // batch.num_models) if rows else 1
    shape = (times * batch.num_models, batch.pairs.num_pairs)
    words = RunWords("action probabilities", "row", batch.pairs.state_name, layer="policy")
    probability = arrays.floats("policies", policy, shape, InvalidPolicy, least=0)
    return np.ascontiguousarray(
        arrays.normalised_runs(probability, batch.pairs.offsets, words, InvalidPolicy)
    )


def models_of(batch: MDPBatch) -> Models:
    """Returns the arrays of a batch as kernels take them."""
    return Models(
        batch.pairs.offsets,
        batch.offsets,
        batch.successor,
        batch.probability,
        batch.discount,
        batch.expected_reward,
    )


def most_steps(batch: MDPBatch) -> float:
    """Returns the largest expected discounted number of steps of any model and policy."""
    if batch.discount.max() == 1.0:
        return max(certified_steps(batch.model(b)) for b in range(batch.num_models))
    return longest_horizon(float(batch.discount.max()))


def proven_errors(
    batch: MDPBatch,
    value: FloatArray,
    residual: FloatArray,
    steps: FloatArray | float,
    tie_tolerance: float,
) -> FloatArray:
    """Returns the proven error of each model's values [B]; see `planning.proof`."""
    reward = np.resize(np.abs(batch.expected_reward).max(axis=1), len(value))  # again and again
    scale = reward + np.abs(value).max(axis=1) + SMALLEST_NORMAL
    rounding = most_terms(batch.offsets, batch.pairs.offsets) * 2.0**-52 + tie_tolerance
    errors: FloatArray = (residual + rounding * scale) * steps
    if not np.isfinite(errors).all():
        first = member_name(batch, int(np.argmin(np.isfinite(errors))))
        raise NotConverged(
            f"the values of {first} are too large for doubles; scale the rewards down"
        )
    return errors
