"""Many models of one shape at once: evaluation and optimisation along a leading axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import (
    FloatArray,
    IndexArray,
    IntArray,
    RunWords,
    expect,
    floats,
    normalised_runs,
    numbers,
)
from surestep._reprs import short_repr
from surestep.errors import InvalidPolicy, NotConverged
from surestep.kernels.small import evaluate_each, optimise_each
from surestep.model.batch import MDPBatch
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Policy
from surestep.planning.elimination import plan_elimination
from surestep.planning.evaluation import evaluate_with_bound
from surestep.planning.iteration import ITERATION_LIMIT, optimal
from surestep.planning.proof import (
    SMALLEST_NORMAL,
    TIE_TOLERANCE,
    certified_steps,
    longest_horizon,
    most_terms,
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

    A batch of one model takes any number of policies. Models in which little fills in are solved by
    a compiled elimination on all cores, others one by one.
    """
    expect("batch", batch, MDPBatch)
    probability = policies_of(batch, policy)
    size = max(batch.num_models, probability.shape[0])
    steps = most_steps(batch)
    plan = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    if plan is None:
        parts = [
            evaluate_with_bound(
                batch.model(b % batch.num_models),
                Policy(batch.pairs, probability[b % probability.shape[0]]),
            )
            for b in range(size)
        ]
        return EvaluationBatch(
            np.stack([part.value for part in parts]),
            np.array([part.residual for part in parts]),
            np.array([part.error_bound for part in parts]),
        )
    value, residual = np.empty((size, batch.num_states)), np.empty(size)
    evaluate_each.all(size, *kernel_arguments(batch), probability, *plan, value, residual)
    return EvaluationBatch(value, residual, proven_errors(batch, value, residual, steps, 0.0))


def optimal_batch(batch: MDPBatch) -> PlanBatch:
    """A best policy of every model, by policy iteration; see `evaluate_batch` and `optimal`."""
    expect("batch", batch, MDPBatch)
    steps = most_steps(batch)
    elimination = plan_elimination(batch.pairs, batch.offsets, batch.successor)
    if elimination is None:
        plans = [optimal(batch.model(b)) for b in range(batch.num_models)]
        return PlanBatch(
            np.stack([plan.policy.probability for plan in plans]),
            np.stack([plan.value for plan in plans]),
            np.array([plan.iterations for plan in plans]),
            np.array([plan.residual for plan in plans]),
            np.array([plan.error_bound for plan in plans]),
        )
    probability = np.zeros((batch.num_models, batch.pairs.num_pairs))
    value = np.empty((batch.num_models, batch.num_states))
    residual, iterations = np.empty(batch.num_models), np.empty(batch.num_models, np.int64)
    optimise_each.all(
        batch.num_models,
        *kernel_arguments(batch),
        *elimination,
        TIE_TOLERANCE,
        ITERATION_LIMIT,
        probability,
        value,
        residual,
        iterations,
    )
    if iterations.max() > ITERATION_LIMIT:
        raise NotConverged(
            f"policy iteration of model {int(iterations.argmax())} stopped after "
            f"{ITERATION_LIMIT} rounds, the limit"
        )
    error = proven_errors(batch, value, residual, steps, TIE_TOLERANCE)
    return PlanBatch(probability, value, iterations, residual, error)


def policies_of(batch: MDPBatch, policy: Policy | FloatArray) -> FloatArray:
    """Probabilities [1, K] or [B, K], validated."""
    if isinstance(policy, Policy):
        check_same_pairs("the batch", batch.pairs, "the policy", policy.pairs)
        return policy.probability[np.newaxis]
    rows = numbers("policies", policy, InvalidPolicy).shape[:1]
    shape = (rows[0] if batch.num_models == 1 and rows else batch.num_models, batch.pairs.num_pairs)
    words = RunWords(
        "action probabilities",
        "row",
        batch.pairs.state_name,
        batch.pairs.pair_name,
        layer="policy",
    )
    probability = floats("policies", policy, shape, InvalidPolicy)
    return np.ascontiguousarray(
        normalised_runs(probability, batch.pairs.offsets, words, InvalidPolicy)
    )


def kernel_arguments(
    batch: MDPBatch,
) -> tuple[IntArray, IntArray, IndexArray, FloatArray, FloatArray, FloatArray]:
    """The arrays of a batch in the order in which the kernels take them."""
    return (
        batch.pairs.offsets,
        batch.offsets,
        batch.successor,
        batch.probability,
        batch.discount,
        batch.expected_reward,
    )


def most_steps(batch: MDPBatch) -> float:
    """The largest expected discounted number of steps of any model and policy."""
    if batch.discount.max() == 1.0:
        return max(certified_steps(batch.model(b)) for b in range(batch.num_models))
    return longest_horizon(float(batch.discount.max()))


def proven_errors(
    batch: MDPBatch, value: FloatArray, residual: FloatArray, steps: float, tie_tolerance: float
) -> FloatArray:
    """The proven error of each model's values [B]; see `planning.proof`."""
    scale = np.abs(batch.expected_reward).max(axis=1) + np.abs(value).max(axis=1) + SMALLEST_NORMAL
    rounding = most_terms(batch.offsets, batch.pairs.offsets) * 2.0**-52 + tie_tolerance
    errors: FloatArray = (residual + rounding * scale) * steps
    if not np.isfinite(errors).all():
        raise NotConverged(
            f"the values of model {int(np.argmin(np.isfinite(errors)))} are too large for doubles; "
            "scale the rewards down"
        )
    return errors
