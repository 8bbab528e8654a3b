"""Policies evaluated in many drawn models, one model a task: by elimination, or by iteration.

Drawn models have successors of their own, so there is no plan that all of them could share. Most
transitions of a drawn row have next to no weight. So the iteration is iterative refinement: what a
value lacks is found in the whole model, and what to add for it in a model without the many small
transitions, by Gauss-Seidel sweeps with Anderson mixing (Walker and Ni 2011). That changes how soon
an error is small, but not how it is proven: by what the value lacks in the whole model.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    COUNT_TABLE_OUT,
    F64,
    I64,
    INDEX_TABLE_OUT,
    INTS_IN,
    TABLE_IN,
    TABLE_OUT,
    helper,
    tasks,
)
from surestep.kernels.extremes import largest_of

# Drawn models as `draw_models` leaves them, and policies.
CHUNK = (
    INTS_IN, F64, COUNT_TABLE_OUT, INDEX_TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_IN,
)  # fmt: skip
CHUNK_THREADS = 1_000  # entries of all models together
THIN = 0.05  # of the mean transition of a row: smaller ones are left out when values are corrected
LEFT = 0.01  # of what a value lacks: the part that a correction may leave
MIXED = 5  # earlier sweeps that a sweep is mixed with, and one place for the next
VALUES_BESIDE = 9 + 2 * MIXED  # for every state, on each core that evaluates a large model
MOST_SWEEPS = 1_000  # for one correction


@helper
def earn(
    pair_offsets: IntArray,
    reward: FloatArray,
    policy: FloatArray,
    earned: FloatArray,
) -> float:
    """r_π into `earned` [S]; the largest reward of a pair."""
    most = 0.0
    for s in range(earned.size):
        earned[s] = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                most = max(most, abs(reward[k]))
                earned[s] += policy[k] * reward[k]
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
def copy_into(target: FloatArray, source: FloatArray) -> None:
    """Copies a row; to say `target[:] = source` takes seconds to compile, for its messages."""
    for s in range(target.size):
        target[s] = source[s]


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


@helper
def eliminate(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    policy: FloatArray,
    matrix: FloatArray,
    value: FloatArray,
) -> None:
    """From r_π in `value` to v = r_π + W v, without pivoting; see `kernels.elimination`."""
    matrix[:, :] = 0.0
    for s in range(value.size):
        matrix[s, s] = 1.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                weight = policy[k] * discount
                for i in range(ends[k], ends[k + 1]):
                    matrix[s, target[i]] -= weight * share[i]
    solve_in_place(matrix, value)


@helper
def thin_out(
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    thin_ends: IntArray,
    thin_target: IndexArray,
    thin_share: FloatArray,
) -> None:
    """The rows without their small transitions, each with sum 1 again, into the last three."""
    end = 0
    for k in range(ends.size - 1):
        begin, kept = end, 0.0
        thin_ends[k] = begin
        least = THIN / max(ends[k + 1] - ends[k], 1)
        for i in range(np.uint64(ends[k]), np.uint64(ends[k + 1])):
            thin_target[end], thin_share[end] = target[i], share[i]
            if share[i] >= least:
                kept += share[i]
                end += 1
        for i in range(begin, end):
            thin_share[i] /= kept
    thin_ends[-1] = end


@helper
def sweep(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    policy: FloatArray,
    earned: FloatArray,
    value: FloatArray,
) -> None:
    """v(s) ← r_π(s) + (W v)(s), one state after the other (Gauss-Seidel)."""
    states = target.view(np.uint32)
    for s in range(value.size):
        total = earned[s]
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                sum_of_row = 0.0
                for i in range(np.uint64(ends[k]), np.uint64(ends[k + 1])):
                    sum_of_row += share[i] * value[states[i]]
                total += policy[k] * discount * sum_of_row
        value[s] = total


@helper
def take_off(
    image: FloatArray, move: FloatArray, length: float, change: FloatArray, value: FloatArray
) -> None:
    """Makes `change` orthogonal to `image`, with the same multiple of `move` off `value`."""
    if length > 0.0:
        factor = mean_over(change, image) / length
        for s in range(value.size):
            change[s] -= factor * image[s]
            value[s] -= factor * move[s]


@helper
def parts_of(work: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What mixing needs: change and value [S] of a sweep, images and moves [1 + MIXED, S]."""
    return work[0], work[1], work[2 : 3 + MIXED], work[3 + MIXED : 4 + 2 * MIXED]


@helper
def first_move(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    policy: FloatArray,
    work: FloatArray,
) -> None:
    """The move of starts by a constant, where sweeps alone gain the least, and its image."""
    nothing, _, images, moves = parts_of(work)
    nothing[:], moves[0, :] = 0.0, 1.0
    sweep(pair_offsets, discount, ends, target, share, policy, nothing, moves[0])
    for s in range(images.shape[1]):
        images[0, s] = moves[0, s] - 1.0


@helper
def mixed_sweeps(
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
    """Moves `value` towards v = r_π + W v, until a sweep changes it by at most `goal`.

    Results of sweeps that differ by `moves`[i] have changes that differ by `images`[i], as earlier
    sweeps have shown; all images are orthogonal. So each result is moved to where its change has
    the least squares. The first move and image are given, the others begin anew.
    """
    change, before, images, moves = parts_of(work)
    lengths = np.zeros(1 + MIXED)
    lengths[0] = mean_over(images[0], images[0])
    for step in range(MOST_SWEEPS):
        copy_into(before, value)
        sweep(pair_offsets, discount, ends, target, share, policy, earned, value)
        largest = 0.0
        for s in range(value.size):
            change[s] = value[s] - before[s]
            largest = max(largest, abs(change[s]))
        if not goal < largest < np.inf:
            return
        last, next_one = 1 + (step - 1) % MIXED, 1 + step % MIXED
        if step > 0:
            for s in range(value.size):
                images[last, s] += change[s]
                moves[last, s] += value[s]
            for i in range(1 + MIXED):
                if i != last:
                    take_off(images[i], moves[i], lengths[i], images[last], moves[last])
            lengths[last] = mean_over(images[last], images[last])
        lengths[next_one] = 0.0
        for s in range(value.size):  # the sweep after this one adds its own
            images[next_one, s], moves[next_one, s] = -change[s], -value[s]
        for i in range(1 + MIXED):
            take_off(images[i], moves[i], lengths[i], change, value)


@helper
def improve(
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    thin_ends: IntArray,
    thin_target: IndexArray,
    thin_share: FloatArray,
    policy: FloatArray,
    earned: FloatArray,
    goal: float,
    steps: float,
    value: FloatArray,
    work: FloatArray,
) -> float:
    """Moves `value` towards v = r_π + W v, until max_s |r_π + W v − v| is at most `goal`; that max.

    By corrections in the thin model; where one does not help, in the whole one; and where that does
    not help either, by sweeps v ← r_π + W v, which always get there.
    """
    following, lacking, correction = work[0], work[1], work[2]
    thin = (pair_offsets, discount, thin_ends, thin_target, thin_share, policy)
    whole = (pair_offsets, discount, ends, target, share, policy)
    model, failures, best = thin, -1, 0.0
    sweeps = 40 * steps  # (1 − 1/steps)^sweeps < 1e-17: more cannot help
    while True:
        follow(*whole, value, following)
        lack = largest_change(earned, following, value)
        if lack <= goal or not sweeps > 0.0:
            return lack
        if failures < 2 and not lack < 0.5 * best:
            failures += 1
            model = thin if failures == 0 else whole
            first_move(*model, work[3:])
        best = lack
        for s in range(value.size):
            lacking[s] = earned[s] + following[s] - value[s]
            correction[s] = lacking[s]
        if failures < 2:
            mixed_sweeps(*model, lacking, max(LEFT * lack, 0.5 * goal), correction, work[3:])
        else:
            sweeps -= 1.0
        for s in range(value.size):
            value[s] += correction[s]
        if not np.isfinite(value).all():
            value[:] = 0.0


@tasks(*CHUNK, TABLE_OUT, TABLE_OUT, TABLE_OUT, threads_from=CHUNK_THREADS)
def eliminate_drawn(
    first_task: int,
    end_task: int,
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    initial: FloatArray,
    policy: FloatArray,
    performance: FloatArray,
    residual: FloatArray,
    scale: FloatArray,
) -> None:
    """ρ of each policy [P, K] in each drawn model, into `performance` [B, P]; for few states.

    `residual` [B, P] is max_s |(T_π v)(s) − v(s)|, and `scale` what its rounding is relative to.
    """
    num_states = pair_offsets.size - 1
    matrix, following = np.empty((num_states, num_states)), np.empty(num_states)
    earned, value = np.empty(num_states), np.empty(num_states)
    for b in range(first_task, end_task):
        model = (pair_offsets, discount, ends[b], target[b], share[b])
        for p in range(policy.shape[0]):
            most = earn(pair_offsets, reward[b], policy[p], earned)
            copy_into(value, earned)
            eliminate(*model, policy[p], matrix, value)
            follow(*model, policy[p], value, following)
            residual[b, p] = largest_change(earned, following, value)
            scale[b, p] = most + largest_of(value)
            performance[b, p] = mean_over(initial[b], value)


@tasks(
    *CHUNK, F64, F64, I64, TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT, threads_from=CHUNK_THREADS
)  # fmt: skip
def iterate_drawn(
    first_task: int,
    end_task: int,
    pair_offsets: IntArray,
    discount: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    initial: FloatArray,
    policy: FloatArray,
    accuracy: float,
    steps: float,
    keep: int,
    start: FloatArray,
    performance: FloatArray,
    residual: FloatArray,
    scale: FloatArray,
) -> None:
    """What `eliminate_drawn` does, by iterations from the values `start` [P, S].

    They aim for an error of `accuracy` times the largest reward and value, if it takes `steps` or
    so until an episode ends or is discounted. With `keep`, for one model only, its values are left
    in `start`.
    """
    num_states = pair_offsets.size - 1
    for b in range(first_task, end_task):
        work = np.empty((VALUES_BESIDE - 2, num_states))
        earned, value = np.empty(num_states), np.empty(num_states)
        whole, size = (ends[b], target[b], share[b]), ends[b, -1] + 1
        thin = (np.empty_like(ends[b]), np.empty(size, np.int32), np.empty(size))
        thin_out(*whole, *thin)
        for p in range(policy.shape[0]):
            most = earn(pair_offsets, reward[b], policy[p], earned)
            copy_into(value, start[p])
            goal = accuracy * (most + largest_of(value)) / steps
            residual[b, p] = improve(
                pair_offsets, discount, *whole, *thin, policy[p], earned, goal, steps, value, work
            )
            scale[b, p] = most + largest_of(value)
            performance[b, p] = mean_over(initial[b], value)
            if keep:
                copy_into(start[p], value)
