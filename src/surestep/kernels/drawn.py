"""Policies evaluated in many drawn models, one model a task: by elimination, or by iteration.

Drawn models have successors of their own, so there is no plan that all of them could share. The
iteration is BiCGSTAB, as in `kernels.krylov`, but without threads inside a solution: there are more
models than threads.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    COUNT_TABLE_OUT,
    F64,
    FLOATS_IN,
    FLOATS_OUT,
    I64,
    INDEX_TABLE_OUT,
    INTS_IN,
    TABLE_IN,
    TABLE_OUT,
    helper,
    kernel,
)

# Drawn models as `draw_models` leaves them, and policies with what is left over for them.
CHUNK = (
    INTS_IN, F64, COUNT_TABLE_OUT, INDEX_TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT,
    FLOATS_OUT, TABLE_IN, FLOATS_IN, FLOATS_IN,
)  # fmt: skip
MOST_STEPS, RESTARTS = 200, 20  # of BiCGSTAB


@helper
def earn(
    pair_offsets: IntArray,
    reward: FloatArray,
    rest: FloatArray,
    policy: FloatArray,
    rest_worth: float,
    earned: FloatArray,
) -> float:
    """r_π into `earned` [S], what is left over included; the largest reward of a pair."""
    most = 0.0
    for s in range(earned.size):
        earned[s] = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                whole = reward[k] + rest[k] * rest_worth
                most = max(most, abs(whole))
                earned[s] += policy[k] * whole
    return most


@helper
def follow(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    policy: FloatArray,
    value: FloatArray,
    result: FloatArray,
) -> None:
    """W value, with W = γ P_π, into `result` [S]."""
    states = target.view(np.uint32)
    for s in range(result.size):
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                sum_of_row = 0.0
                for i in range(np.uint64(ends[k]), np.uint64(ends[k + 1])):
                    sum_of_row += share[i] * value[states[i]]
                total += policy[k] * discount * sum_of_row
        result[s] = total


@helper
def largest_change(earned: FloatArray, following: FloatArray, value: FloatArray) -> float:
    """max_s |r_π + W v − v|."""
    worst = 0.0
    for s in range(value.size):
        worst = max(worst, abs(earned[s] + following[s] - value[s]))
    return worst


@helper
def mean_over(initial: FloatArray, value: FloatArray) -> float:
    """Σ_s ι(s) v(s)."""
    total = 0.0
    for s in range(value.size):
        total += initial[s] * value[s]
    return total


@helper
def solve_in_place(matrix: FloatArray, right: FloatArray) -> None:
    """Solves matrix · x = right by elimination without pivoting; x into `right`."""
    size = right.size
    for i in range(size):
        inverse = 1.0 / matrix[i, i]
        for j in range(i + 1, size):
            factor = matrix[j, i] * inverse
            if factor != 0.0:
                right[j] -= factor * right[i]
                for c in range(i + 1, size):
                    matrix[j, c] -= factor * matrix[i, c]
    for back in range(size):
        i = size - 1 - back
        total = right[i]
        for c in range(i + 1, size):
            total -= matrix[i, c] * right[c]
        right[i] = total / matrix[i, i]


@kernel(*CHUNK, TABLE_OUT, TABLE_OUT, TABLE_OUT, threads_from=1_000)
def eliminate_drawn(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    rest: FloatArray,
    initial: FloatArray,
    initial_rest: FloatArray,
    policy: FloatArray,
    rest_worth: FloatArray,
    rest_value: FloatArray,
    performance: FloatArray,
    residual: FloatArray,
    scale: FloatArray,
) -> None:
    """ρ of each policy [P, K] in each drawn model, into `performance` [B, P], by elimination.

    What is left over of a row is worth `rest_worth` [P], and of the starts `rest_value` [P].
    `residual` [B, P] is max_s |(T_π v)(s) − v(s)|, and `scale` what its rounding is relative to.
    Elimination needs no pivoting; see `kernels.elimination`.
    """
    num_states = pair_offsets.size - 1
    for b in prange(ends.shape[0]):
        matrix = np.empty((num_states, num_states))
        value, earned, following = np.empty((3, num_states))
        for p in range(policy.shape[0]):
            most = earn(pair_offsets, reward[b], rest[b], policy[p], rest_worth[p], earned)
            matrix[:, :] = 0.0
            for s in range(num_states):
                matrix[s, s] = 1.0
                value[s] = earned[s]
                for k in range(pair_offsets[s], pair_offsets[s + 1]):
                    if policy[p, k] > 0.0:
                        weight = policy[p, k] * discount
                        for i in range(ends[b, k], ends[b, k + 1]):
                            matrix[s, target[b, i]] -= weight * share[b, i]
            solve_in_place(matrix, value)
            follow(
                pair_offsets, discount, ends[b], target[b], share[b], policy[p], value, following
            )
            residual[b, p] = largest_change(earned, following, value)
            scale[b, p] = most + np.abs(value).max()
            performance[b, p] = mean_over(initial[b], value) + initial_rest[b] * rest_value[p]


@helper
def bicgstab(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    policy: FloatArray,
    earned: FloatArray,
    goal: float,
    value: FloatArray,
    work: FloatArray,
) -> None:
    """Moves `value` towards v = r_π + W v, until the change is at most `goal` or nothing helps."""
    residual, shadow, direction, image, scratch = work
    size = value.size
    for _ in range(RESTARTS):
        follow(pair_offsets, discount, ends, target, share, policy, value, scratch)
        for s in range(size):
            residual[s] = earned[s] + scratch[s] - value[s]
            shadow[s] = residual[s]
            direction[s], image[s] = 0.0, 0.0
        first = np.abs(residual).max()
        if not first > goal:
            return
        rho, alpha, omega = 1.0, 1.0, 1.0
        for _ in range(MOST_STEPS):
            before, rho = rho, mean_over(shadow, residual)
            if rho == 0.0 or omega == 0.0:
                break
            beta = (rho / before) * (alpha / omega)
            for s in range(size):
                direction[s] = residual[s] + beta * (direction[s] - omega * image[s])
            follow(pair_offsets, discount, ends, target, share, policy, direction, image)
            for s in range(size):
                image[s] = direction[s] - image[s]
            bottom = mean_over(shadow, image)
            if bottom == 0.0:
                break
            alpha = rho / bottom
            for s in range(size):
                residual[s] -= alpha * image[s]
            follow(pair_offsets, discount, ends, target, share, policy, residual, scratch)
            for s in range(size):
                scratch[s] = residual[s] - scratch[s]
            bottom = mean_over(scratch, scratch)
            omega = mean_over(scratch, residual) / bottom if bottom > 0.0 else 0.0
            largest = 0.0
            for s in range(size):
                value[s] += alpha * direction[s] + omega * residual[s]
                residual[s] -= omega * scratch[s]
                largest = max(largest, abs(residual[s]))
            if not goal < largest < 1e3 * first:  # done, broken down, or diverging
                break


@helper
def sweep(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    policy: FloatArray,
    earned: FloatArray,
    goal: float,
    value: FloatArray,
    following: FloatArray,
) -> float:
    """Sweeps v ← r_π + W v, which always get there, until the change is at most `goal`."""
    if not np.isfinite(value).all():
        value[:] = 0.0
    limit = 40 / (1.0 - discount)  # γ^limit < 1e-17: more sweeps cannot help
    while True:
        follow(pair_offsets, discount, ends, target, share, policy, value, following)
        change = largest_change(earned, following, value)
        if change <= goal or not limit > 0.0:
            return change
        value[:] = earned + following
        limit -= 1.0


@kernel(*CHUNK, F64, I64, TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT, threads_from=1_000)
def iterate_drawn(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    rest: FloatArray,
    initial: FloatArray,
    initial_rest: FloatArray,
    policy: FloatArray,
    rest_worth: FloatArray,
    rest_value: FloatArray,
    accuracy: float,
    keep: int,
    start: FloatArray,
    performance: FloatArray,
    residual: FloatArray,
    scale: FloatArray,
) -> None:
    """As `eliminate_drawn`, by iterations from the values `start` [P, S].

    They aim for an error of `accuracy` times the largest reward and value. With `keep`, for one
    model only, its values are left in `start`.
    """
    num_states = pair_offsets.size - 1
    for b in prange(ends.shape[0]):
        work, earned, value = np.empty((5, num_states)), np.empty(num_states), np.empty(num_states)
        for p in range(policy.shape[0]):
            most = earn(pair_offsets, reward[b], rest[b], policy[p], rest_worth[p], earned)
            value[:] = start[p]
            goal = accuracy * (most + np.abs(value).max()) * (1.0 - discount)
            model = (pair_offsets, discount, ends[b], target[b], share[b], policy[p])
            bicgstab(*model, earned, goal, value, work)
            residual[b, p] = sweep(*model, earned, goal, value, work[0])
            scale[b, p] = most + np.abs(value).max()
            performance[b, p] = mean_over(initial[b], value) + initial_rest[b] * rest_value[p]
            if keep:
                start[p] = value
