"""Many models of one shape at once: evaluation and optimisation along a leading axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import SUM_TOLERANCE, FloatArray, IndexArray, IntArray, floats, refuse_where
from surestep.errors import InvalidPolicy, NotConverged
from surestep.kernels.small import evaluate_each, optimise_each
from surestep.model.batch import MDPBatch
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Policy
from surestep.planning.evaluation import DENSE_STATES, evaluate_with_bound
from surestep.planning.iteration import ITERATION_LIMIT, optimal
from surestep.planning.proof import ROW_EXCESS, TIE_TOLERANCE, certified_steps, most_terms


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """V^π of each model, with the fields of `Evaluation` along a leading axis."""

    value: FloatArray  # [B, S]
    residual: FloatArray  # [B]
    error_bound: FloatArray  # [B]


@dataclass(frozen=True, slots=True, eq=False)
class PlanBatch:
    """A best policy of each model, with the fields of `Plan` along a leading axis."""

    probability: FloatArray  # [B, K], the policies
    value: FloatArray  # [B, S]
    iterations: IntArray  # [B]
    residual: FloatArray  # [B]
    error_bound: FloatArray  # [B]


def evaluate_batch(batch: MDPBatch, policy: Policy | FloatArray) -> EvaluationBatch:
    """V^π of every model, for one policy or one each (probabilities [B, K]).

    Small models are solved by a compiled loop over the batch on all cores, others one by one.
    """
    probability = policies_of(batch, policy)
    if batch.num_states > DENSE_STATES:
        parts = [
            evaluate_with_bound(
                batch.model(b), Policy(batch.pairs, probability[b % probability.shape[0]])
            )
            for b in range(batch.num_models)
        ]
        return EvaluationBatch(
            np.stack([part.value for part in parts]),
            np.array([part.residual for part in parts]),
            np.array([part.error_bound for part in parts]),
        )
    value = np.empty((batch.num_models, batch.num_states))
    residual = np.empty(batch.num_models)
    evaluate_each(*kernel_arguments(batch), probability, value, residual)
    return EvaluationBatch(value, residual, proven_errors(batch, value, residual, 0.0))


def optimal_batch(batch: MDPBatch) -> PlanBatch:
    """A best policy of every model, by policy iteration; see `evaluate_batch` and `optimal`."""
    if batch.num_states > DENSE_STATES:
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
    optimise_each(
        *kernel_arguments(batch),
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
    error = proven_errors(batch, value, residual, TIE_TOLERANCE)
    return PlanBatch(probability, value, iterations, residual, error)


def policies_of(batch: MDPBatch, policy: Policy | FloatArray) -> FloatArray:
    """Probabilities [1, K] or [B, K], validated."""
    if isinstance(policy, Policy):
        check_same_pairs("the batch", batch.pairs, "the policy", policy.pairs)
        return policy.probability[np.newaxis]
    shape = (batch.num_models, batch.pairs.num_pairs)
    probability = np.ascontiguousarray(floats("policies", policy, shape, InvalidPolicy))
    sums = np.add.reduceat(probability, batch.pairs.offsets[:-1], axis=1)
    wrong = (np.abs(sums - 1) > SUM_TOLERANCE) | (
        np.minimum.reduceat(probability, batch.pairs.offsets[:-1], axis=1) < 0
    )
    refuse_where(
        wrong,
        lambda i: (
            f"policy {i // batch.num_states} is no distribution in "
            f"{batch.pairs.state_name(i % batch.num_states)}: its probabilities sum to "
            f"{sums.flat[i]:.10g}, expected 1 and none below 0"
        ),
        "row",
        InvalidPolicy,
    )
    return probability


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


def proven_errors(
    batch: MDPBatch, value: FloatArray, residual: FloatArray, tie_tolerance: float
) -> FloatArray:
    """The proven error of each model's values [B]; see `planning.proof`."""
    largest = float(batch.discount.max()) * (1 + ROW_EXCESS)
    if batch.discount.max() == 1.0:
        steps = max(certified_steps(batch.model(b)) for b in range(batch.num_models))
    else:
        steps = 1 / (1 - largest) if largest < 1 else np.inf
    scale = np.abs(batch.expected_reward).max(axis=1) + np.abs(value).max(axis=1)
    rounding = most_terms(batch.offsets, batch.pairs.offsets) * 2.0**-52 + tie_tolerance
    errors: FloatArray = (residual + rounding * scale) * steps
    if not np.isfinite(errors).all():
        raise NotConverged(
            f"the values of model {int(np.argmin(np.isfinite(errors)))} are too large for doubles, "
            "or its discounts too near 1"
        )
    return errors
