"""Evaluates policies in many models drawn from a posterior: by elimination, or by iteration.

One model is one task. Drawn models have different successors, so they cannot share a plan of
elimination. The iteration is Gauss-Seidel sweeps with Anderson mixing (Walker and Ni 2011). The
proof of its error rests on the residual alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import helper, tasks
from surestep.kernels.backup import largest_of
from surestep.kernels.records import copy_into, fill
from surestep.kernels.types import (
    BatchOut,
    CountBatchOut,
    IndexBatchOut,
    IntsIn,
    Room,
    RoomSize,
    TableIn,
    TableOut,
)

CHUNK_THREADS = 1_000  # entries of all models together
MIXED = 5  # earlier sweeps that a sweep is mixed with, and one place for the next
VALUES_BESIDE = 6 + 2 * MIXED  # for every state, on each core that evaluates a large model
PATIENCE = 1_000  # mixed sweeps in which the change must halve
ENDLESS = -1  # stands for the number of steps if all of them count
PARTS = 8  # threads that share the sum of one state on a GPU


class Chunk(NamedTuple):
    """Drawn models: row k of model b is `target`, `share`[b, ends[b, k]:ends[b, k+1]].

    The row earns `reward`[b, k] on average. If a model does not fit, `ends`[b, K] is −1.
    """

    ends: CountBatchOut  # [B, K+1]
    target: IndexBatchOut  # [B, cells]
    share: BatchOut  # [B, cells]
    reward: BatchOut  # [B, K]
    initial: BatchOut  # [B, S]


class Performance(NamedTuple):
    """Output: the performance of each policy in each drawn model, and its residual."""

    mean: BatchOut  # [B, P] ρ = Σ_s ι(s) v(s)
    residual: BatchOut  # [B, P] max_s |(T_π v)(s) − v(s)|
    scale: BatchOut  # [B, P] the rounding of the residual is relative to this


class DrawnModel(NamedTuple):
    """One drawn model."""

    pair_offsets: IntArray  # [S+1]
    discount: float
    ends: IntArray  # [K+1]
    target: IndexArray
    share: FloatArray


@helper
def earn(
    pair_offsets: IntArray,
    reward: FloatArray,
    policy: FloatArray,
    earned: FloatArray,
) -> float:
    """Writes r_π into `earned` [S]; returns the largest reward of a pair."""
    most = 0.0
    for s in range(earned.size):
        earned[s] = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                most = max(most, abs(reward[k]))
                earned[s] += policy[k] * reward[k]
    return most


@helper
def add_what_follows(
    model: DrawnModel,
    policy: FloatArray,
    earned: FloatArray,
    value: FloatArray,
    result: FloatArray,
) -> None:
    """Writes earned + W value, with W = γ P_π, into `result` [S].

    If `result` is `value` itself, this is a Gauss-Seidel sweep.
    """
    pair_offsets, discount, ends, target, share = model
    states = target.view(np.uint32)
    for s in range(result.size):
        total = earned[s]
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                sum_of_row = 0.0
                for i in range(np.uint64(ends[k]), np.uint64(ends[k + 1])):
                    sum_of_row += share[i] * value[states[i]]
                total += policy[k] * discount * sum_of_row
        result[s] = total


@helper
def residual_of(
    model: DrawnModel,
    policy: FloatArray,
    earned: FloatArray,
    value: FloatArray,
    nothing: FloatArray,
    following: FloatArray,
) -> float:
    """Returns max_s |r_π + W v − v|; `nothing` and `following` are written to."""
    fill(nothing, 0.0)
    add_what_follows(model, policy, nothing, value, following)
    worst = 0.0
    for s in range(value.size):
        worst = max(worst, abs(earned[s] + following[s] - value[s]))
    return worst


@helper
def mean_over(initial: FloatArray, value: FloatArray) -> float:
    """Returns Σ_s ι(s) v(s)."""
    total = 0.0
    for s in range(value.size):
        total += initial[s] * value[s]
    return total


@helper
def eliminate(model: DrawnModel, policy: FloatArray, matrix: FloatArray, value: FloatArray) -> None:
    """Solves v = r_π + W v without pivoting; `value` has r_π, then v. See `kernels.elimination`.

    The rows of the matrix I − W follow each other in one array.
    """
    pair_offsets, discount, ends, target, share = model
    size = value.size
    fill(matrix, 0.0)
    for s in range(size):
        matrix[s * size + s] = 1.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                weight = policy[k] * discount
                for i in range(ends[k], ends[k + 1]):
                    matrix[s * size + target[i]] -= weight * share[i]
    for i in range(size):
        upper = matrix[i * size : (i + 1) * size]
        inverse = 1.0 / upper[i]
        for j in range(i + 1, size):
            row = matrix[j * size : (j + 1) * size]
            factor = row[i] * inverse
            if factor != 0.0:
                value[j] -= factor * value[i]
                for c in range(i + 1, size):
                    row[c] -= factor * upper[c]
    for i in range(size - 1, -1, -1):
        total = value[i]
        for c in range(i + 1, size):
            total -= matrix[i * size + c] * value[c]
        value[i] = total / matrix[i * size + i]


@helper
def take_off(
    image: FloatArray, move: FloatArray, length: float, change: FloatArray, value: FloatArray
) -> None:
    """Makes `change` orthogonal to `image`; subtracts the same multiple of `move` from `value`."""
    if length > 0.0:
        factor = mean_over(change, image) / length
        for s in range(value.size):
            change[s] -= factor * image[s]
            value[s] -= factor * move[s]


@helper
def sweep_until_near(
    model: DrawnModel,
    policy: FloatArray,
    earned: FloatArray,
    most: float,
    accuracy: float,
    steps: float,
    value: FloatArray,
    work: FloatArray,
) -> None:
    """Moves `value` to v = r_π + W v, until a sweep changes it by `accuracy` · scale / `steps`.

    The scale is `most` + max |v|. No residual is larger than the change by the sweep before, since
    no row of W sums to more than 1.

    Earlier sweeps have shown: if the results of two sweeps differ by `moves`[i], their changes
    differ by `images`[i]. All images are orthogonal. So each result is moved to the point at which
    its change has the least squares. The first move shifts values by a constant, where sweeps alone
    gain the least. If mixing does not help, sweeps without it follow, which always converge.
    """
    change, before, images, moves = work[0], work[1], work[2 : 3 + MIXED], work[3 + MIXED :]
    lengths = np.zeros(1 + MIXED)
    fill(before, 0.0)
    fill(moves[0], 1.0)
    add_what_follows(model, policy, before, moves[0], moves[0])
    for s in range(value.size):
        images[0, s] = moves[0, s] - 1.0
    lengths[0] = mean_over(images[0], images[0])
    step, mixing, best = 0, True, np.inf
    sweeps = 40 * steps  # (1 − 1/steps)^sweeps < 1e-17: more cannot help
    while sweeps > 0.0:
        copy_into(before, value)
        add_what_follows(model, policy, earned, value, value)
        largest = 0.0
        for s in range(value.size):
            change[s] = value[s] - before[s]
            largest = max(largest, abs(change[s]))
        if not np.isfinite(value).all():
            fill(value, 0.0)
            mixing = False
        elif largest <= accuracy * (most + largest_of(value)) / steps:
            return
        if step % PATIENCE == 0:
            mixing = mixing and largest < 0.5 * best
            best = largest
        last, next_one = 1 + (step - 1) % MIXED, 1 + step % MIXED
        step += 1
        if not mixing:
            sweeps -= 1.0
            continue
        if step > 1:
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


def room_to_solve(num_states: int, steps: int) -> RoomSize:
    """Returns the room that `solve_drawn` needs: some values, and a matrix to eliminate."""
    return RoomSize(3 * num_states + (num_states * num_states if steps == ENDLESS else 0))


@tasks(threads_from=CHUNK_THREADS)
def solve_drawn(
    first_task: int,
    end_task: int,
    room: Room,
    pair_offsets: IntsIn,
    discount: float,
    steps: int,
    models: Chunk,
    policy: TableIn,
    firsts: IntsIn,
    performance: Performance,
) -> None:
    """Writes ρ of policies in each drawn model, over a number of steps or over ENDLESS ones.

    The latter is done by elimination, for models with few states. D data sets have equally many
    models each. Those of data set d are evaluated under the policies
    `policy`[firsts[d]:firsts[d+1]]. The `performance` is 0 at first.
    """
    ends, target, share, reward, initial = models
    size, models_each = pair_offsets.size - 1, len(ends) // (firsts.size - 1)
    earned, value = room.floats[:size], room.floats[size : 2 * size]
    following, matrix = room.floats[2 * size : 3 * size], room.floats[3 * size :]
    nothing = matrix[:size]  # once all is eliminated
    for b in range(first_task, end_task):
        model = DrawnModel(pair_offsets, discount, ends[b], target[b], share[b])
        first = firsts[b // models_each]
        for p in range(firsts[b // models_each + 1] - first):
            chances = policy[first + p]
            most = earn(pair_offsets, reward[b], chances, earned)
            copy_into(value, earned)
            for _ in range(steps):
                add_what_follows(model, chances, earned, value, following)
                copy_into(value, following)
            if steps == ENDLESS:
                eliminate(model, chances, matrix, value)
                performance.residual[b, p] = residual_of(
                    model, chances, earned, value, nothing, following
                )
            performance.scale[b, p] = most + largest_of(value)
            performance.mean[b, p] = mean_over(initial[b], value)


@tasks(threads_from=CHUNK_THREADS)
def step_drawn(
    first_task: int,
    end_task: int,
    room: Room,
    pair_offsets: IntsIn,
    discount: float,
    models: Chunk,
    policy: TableIn,
    value: TableIn,
    result: TableOut,
) -> None:
    """Writes r_π + W v of each policy [P, K] in each drawn model, from `value` [B·P, S], in parts.

    `result` [B·P, S · PARTS] has the parts of a state side by side; a part is a task. This is for a
    GPU: a model is too much for one thread, and neighbouring threads read neighbouring cells.
    """
    ends, target, share, reward, _ = models
    num_states, num_policies = pair_offsets.size - 1, policy.shape[0]
    for task in range(first_task, end_task):
        part, s, row = task % PARTS, task // PARTS % num_states, task // PARTS // num_states
        b, p = row // num_policies, row % num_policies
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            chance = policy[p, k]
            if chance > 0.0:
                sum_of_part = 0.0
                for i in range(ends[b, k] + part, ends[b, k + 1], PARTS):
                    sum_of_part += share[b, i] * value[row, target[b, i]]
                total += chance * discount * sum_of_part
                if part == 0:
                    total += chance * reward[b, k]
        result[row, s * PARTS + part] = total


@tasks(threads_from=CHUNK_THREADS, on_gpu=False)
def iterate_drawn(
    first_task: int,
    end_task: int,
    room: Room,
    pair_offsets: IntsIn,
    discount: float,
    models: Chunk,
    policy: TableIn,
    accuracy: float,
    steps: TableIn,
    performance: Performance,
) -> None:
    """Writes ρ of each policy [P, K] in each drawn model, by iteration.

    The error aimed for is `accuracy` times the largest reward and value, if an episode takes
    `steps` [B, P] until it ends or is discounted.
    """
    ends, target, share, reward, initial = models
    for b in range(first_task, end_task):
        work = np.empty((VALUES_BESIDE, pair_offsets.size - 1))
        earned, value = work[0], work[1]
        model = DrawnModel(pair_offsets, discount, ends[b], target[b], share[b])
        fill(value, 0.0)
        for p in range(policy.shape[0]):  # each from the values of the policy before
            most = earn(pair_offsets, reward[b], policy[p], earned)
            sweep_until_near(model, policy[p], earned, most, accuracy, steps[b, p], value, work[2:])
            performance.residual[b, p] = residual_of(
                model, policy[p], earned, value, work[2], work[3]
            )
            performance.scale[b, p] = most + largest_of(value)
            performance.mean[b, p] = mean_over(initial[b], value)
