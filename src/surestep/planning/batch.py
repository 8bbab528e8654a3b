"""Solves many models of one shape at once by elimination, or one by one.

The order of elimination and the entries that fill in are found once for a shape. That takes longer
than the solution of one small model, so a single model is solved by another method.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import scipy  # loads its parts when they are needed

import surestep._arrays as arrays
from surestep.errors import InvalidPolicy, NeverEnds, NotConverged
from surestep.kernels.elimination import evaluate_each, room_to_evaluate
from surestep.kernels.records import EliminationPlan, Models
from surestep.model import FiniteMDP, MDPBatch, Policy
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.planning.backups import FixedRows
from surestep.planning.chain import TOO_MANY_STEPS
from surestep.planning.ends import endless_circle, goes_round
from surestep.planning.horizons import certified_steps, longest_horizon
from surestep.planning.proof import SMALLEST_NORMAL, most_terms

MOST_WORK = 2_000_000  # multiplications of one solve; beyond this, other methods are faster
MOST_STATES = 2_000  # beyond this, the search for an order may take long

Given = TypeVar("Given")
Part = TypeVar("Part")


def plan_elimination(
    pairs: Pairs, offsets: arrays.IntArray, successor: arrays.IndexArray
) -> EliminationPlan | None:
    """Returns the plan for models with these successors, or None if it takes too much work.

    The order is SciPy's minimum degree on the pattern of I − P and its transpose. The fill follows
    from the pattern alone: an eliminated state adds its row of U to all rows below that have its
    column. Plans are cached.
    """
    if pairs.num_states > MOST_STATES:
        return None
    return plan_for_edges(
        pairs.num_states,
        pairs.state[arrays.run_owners(offsets)].astype(np.int32).tobytes(),
        successor.tobytes(),
    )


@lru_cache(maxsize=32)  # an experiment asks for the same shape again and again
def plan_for_edges(size: int, sources: bytes, targets: bytes) -> EliminationPlan | None:
    """Returns the plan for transitions source → target, given as the bytes of 32-bit numbers."""
    source, successor = np.frombuffer(sources, np.int32), np.frombuffer(targets, np.int32)
    place = minimum_degree(size, source, successor)
    order = np.argsort(place)
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


def minimum_degree(
    size: int, source: arrays.IndexArray, target: arrays.IndexArray
) -> arrays.IntArray:
    """Returns the place of each state [S] in an order that leads to little fill."""
    # The order follows from the pattern; entries so small let the diagonal dominate.
    edges = scipy.sparse.coo_array(
        (np.full(source.size, SMALLEST_NORMAL), (source, target)), (size, size)
    ).tocsr()
    dominant = (edges + edges.T + scipy.sparse.eye_array(size)).tocsc()
    factors = scipy.sparse.linalg.splu(dominant, "MMD_AT_PLUS_A", options={"SymmetricMode": True})
    place: arrays.IntArray = factors.perm_c.astype(np.int64)
    return place


def runs_of(lists: list[list[int]]) -> tuple[arrays.IntArray, arrays.IntArray]:
    """Returns lists as offsets and one flat array."""
    return (
        arrays.own(arrays.offsets_of(np.array([len(entries) for entries in lists]))),
        arrays.own(np.array([entry for entries in lists for entry in entries], np.int64)),
    )


def eliminated(
    batch: MDPBatch, probability: arrays.FloatArray
) -> tuple[arrays.FloatArray, arrays.FloatArray, arrays.FloatArray] | None:
    """Returns values [B, S], residuals and proven errors [B] of policies, computed on all cores.

    Returns None if that takes too much work, or if a policy may never end in its model.
    """
    plan = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    around = may_go_round(batch)
    if plan is None or (around and endless_members(batch, probability).any()):
        return None
    steps = steps_under(batch, probability, plan) if around else most_steps(batch)
    value, residual = values_by_plan(models_of(batch), probability, plan)
    return value, residual, proven_errors(batch, value, residual, steps, 0.0)


def values_by_plan(
    models: Models, probability: arrays.FloatArray, plan: EliminationPlan
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns values [B, S] and residuals [B] of policies, one for all models or one for each."""
    size = max(len(models.probability), len(probability))
    value, residual = np.empty((size, plan.order.size)), np.empty(size)
    evaluate_each.all(size, room_to_evaluate(plan), models, probability, plan, value, residual)
    return value, residual


def may_go_round(batch: MDPBatch) -> bool:
    """Tells whether pairs of discount 1 form a cycle in the transitions of all models together."""
    return goes_round(batch_rows(batch, batch.probability.max(axis=0)))


def one_by_one(
    models: MDPBatch | FiniteMDP, given: Sequence[Given], solve: Callable[[FiniteMDP, Given], Part]
) -> list[Part]:
    """Calls `solve(model, item)` for each model and its item of `given`, in turn.

    An error message begins with the name of its model in a batch.
    """
    if isinstance(models, FiniteMDP):
        return [solve(models, item) for item in given]
    parts = []
    for place in range(max(models.num_models, len(given))):
        try:
            item = given[place % len(given)]
            parts.append(solve(models.model(place % models.num_models), item))
        except (NeverEnds, NotConverged) as problem:
            problem.args = (f"{member_name(models, place)}: {problem}",)
            raise
    return parts


def steps_under(
    batch: MDPBatch, probability: arrays.FloatArray, plan: EliminationPlan
) -> arrays.FloatArray:
    """Bounds the steps of each policy in its model [B]; see `planning.horizons.chain_steps`.

    Every policy must end for certain in its model.
    """
    clock = models_of(batch)._replace(reward=np.ones((1, batch.pairs.num_pairs)))
    try:
        steps, residual = values_by_plan(clock, probability, plan)
    except ZeroDivisionError:  # a chain is singular, up to rounding
        raise NotConverged(TOO_MANY_STEPS) from None
    most = steps.max(axis=1)
    theta = 1 - residual - most_terms(batch.offsets, batch.pairs.offsets) * 2.0**-52 * most
    proven = (theta > 0) & (steps.min(axis=1) > 0)
    if not proven.all():
        raise NotConverged(f"{member_name(batch, int(np.argmin(proven)))}: {TOO_MANY_STEPS}")
    bounds: arrays.FloatArray = most / theta
    return bounds


def member_name(batch: MDPBatch, place: int) -> str:
    """Names the model of a policy by its number, and the policy too if models repeat."""
    model = f"model {place % batch.num_models}"
    return model if place < batch.num_models else f"{model} with policy {place}"


def endless_members(batch: MDPBatch, probability: arrays.FloatArray) -> arrays.BoolArray:
    """Tells for each policy [B, K] whether it may never end in its model [B].

    The answer depends only on the possible transitions and actions, so it is found once for all
    models that agree in them.
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


def batch_rows(batch: MDPBatch, chances: arrays.FloatArray) -> FixedRows:
    """Returns the shape of the batch with these probabilities [T]."""
    return FixedRows(
        batch.pairs,
        batch.discount,
        batch.offsets,
        batch.successor,
        chances,
        batch.expected_reward[0],
    )


def stacked(parts: Sequence[object], *names: str) -> list[arrays.AnyArray]:
    """Stacks each attribute of all parts along a leading axis; a single part is not copied."""
    rows = ([getattr(part, name) for part in parts] for name in names)
    return [np.array(row) if len(row) > 1 else np.asarray(row[0])[np.newaxis] for row in rows]


def policies_of(
    models: MDPBatch | FiniteMDP, policy: Policy | arrays.FloatArray
) -> arrays.FloatArray:
    """Validates policies, and returns their probabilities [1, K] or [B, K]."""
    pairs = models.pairs
    number, name = (models.num_models, "batch") if isinstance(models, MDPBatch) else (1, "model")
    if isinstance(policy, Policy):
        check_same_pairs(f"the {name}", pairs, "the policy", policy.pairs)
        return policy.probability[np.newaxis]
    rows = arrays.numbers("policies", policy, InvalidPolicy).shape[:1]
    times = max(1, rows[0] // number) if rows else 1
    probability = arrays.floats(
        "policies", policy, (times * number, pairs.num_pairs), InvalidPolicy, least=0
    )
    return np.ascontiguousarray(
        arrays.normalised_runs(
            probability,
            pairs.offsets,
            arrays.RunWords("action probabilities", "row", pairs.state_name, layer="policy"),
            InvalidPolicy,
        )
    )


def models_of(batch: MDPBatch) -> Models:
    """Returns the arrays of a batch as a record for kernels."""
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
    value: arrays.FloatArray,
    residual: arrays.FloatArray,
    steps: arrays.FloatArray | float,
    tie_tolerance: float,
) -> arrays.FloatArray:
    """Returns the proven error of each model's values [B]; see `planning.proof`."""
    reward = np.resize(np.abs(batch.expected_reward).max(axis=1), len(value))  # repeats rows
    rounding = most_terms(batch.offsets, batch.pairs.offsets) * 2.0**-52 + tie_tolerance
    errors: arrays.FloatArray = (
        residual + rounding * (reward + np.abs(value).max(axis=1) + SMALLEST_NORMAL)
    ) * steps
    if not np.isfinite(errors).all():
        first = member_name(batch, int(np.argmin(np.isfinite(errors))))
        raise NotConverged(
            f"the values of {first} are too large for doubles; scale the rewards down"
        )
    return errors
