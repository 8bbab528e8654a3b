"""Evaluates policies in many models drawn from a posterior: by elimination, or by iteration.

One model is one task. Drawn models have different successors, so they cannot share a plan of
elimination. Most transitions of a drawn row have next to no weight. So the iteration is iterative
refinement: the residual is computed in the whole model, and its correction in a model without the
many small transitions, by Gauss-Seidel sweeps with Anderson mixing (Walker and Ni 2011). The small
model decides how fast the error shrinks; the proof of the error rests on the residual in the whole
model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
THIN = 0.05  # transitions below this part of the mean of their row are left out of corrections
LEFT = 0.01  # the part of the residual that a correction may leave
MIXED = 5  # earlier sweeps that a sweep is mixed with, and one place for the next
VALUES_BESIDE = 10 + 2 * MIXED  # for every state, on each core that evaluates a large model
MOST_SWEEPS = 1_000  # for one correction
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

    def part(self, begin: int, size: int) -> Chunk:
        """Returns a view of `size` models, from `begin` on."""
        arrays: tuple[Any, ...] = tuple(array[begin : begin + size] for array in self)
        return Chunk(*arrays)


class Aim(NamedTuple):
    """The accuracy that iterations aim for."""

    accuracy: float  # the error aimed for, relative to the largest reward and value
    steps: float  # the rough number of steps until an episode ends or is discounted
    keep: bool  # store the values of this one model, for later models to start from


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
def largest_change(earned: FloatArray, following: FloatArray, value: FloatArray) -> float:
    """Returns max_s |r_π + W v − v|."""
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
    for back in range(size):
        i = size - 1 - back
        total = value[i]
        for c in range(i + 1, size):
            total -= matrix[i * size + c] * value[c]
        value[i] = total / matrix[i * size + i]


@helper
def thin_out(whole: DrawnModel, thin: DrawnModel) -> None:
    """Copies rows without their small transitions; each row is scaled to sum to 1 again."""
    end, ends = 0, whole.ends
    for k in range(ends.size - 1):
        begin, kept = end, 0.0
        thin.ends[k] = begin
        least = THIN / max(ends[k + 1] - ends[k], 1)
        for i in range(np.uint64(ends[k]), np.uint64(ends[k + 1])):
            thin.target[end], thin.share[end] = whole.target[i], whole.share[i]
            if whole.share[i] >= least:
                kept += whole.share[i]
                end += 1
        for i in range(begin, end):
            thin.share[i] /= kept
    thin.ends[-1] = end


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
def mixed_sweeps(
    model: DrawnModel,
    policy: FloatArray,
    earned: FloatArray,
    goal: float,
    value: FloatArray,
    work: FloatArray,
) -> None:
    """Moves `value` towards v = r_π + W v, until a sweep changes it by at most `goal`.

    Earlier sweeps have shown: if the results of two sweeps differ by `moves`[i], their changes
    differ by `images`[i]. All images are orthogonal. So each result is moved to the point at which
    its change has the least squares. The first move and image are given, the others begin anew.
    """
    change, before, images, moves = work[0], work[1], work[2 : 3 + MIXED], work[3 + MIXED :]
    lengths = np.zeros(1 + MIXED)
    lengths[0] = mean_over(images[0], images[0])
    for step in range(MOST_SWEEPS):
        copy_into(before, value)
        add_what_follows(model, policy, earned, value, value)
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
    whole: DrawnModel,
    thin: DrawnModel,
    policy: FloatArray,
    earned: FloatArray,
    goal: float,
    steps: float,
    value: FloatArray,
    work: FloatArray,
) -> float:
    """Moves `value` towards v = r_π + W v until the residual is at most `goal`; returns it.

    The residual is max_s |r_π + W v − v|. Corrections are found in the thin model. If one does not
    help, they are found in the whole model. If that does not help either, sweeps v ← r_π + W v
    follow, which always converge. The first move to mix shifts the start by a constant, where
    sweeps alone gain the least.
    """
    nothing, following, lacking, correction, mixing = work[0], work[1], work[2], work[3], work[4:]
    image, move = mixing[2], mixing[3 + MIXED]
    model, failures, best = thin, -1, 0.0
    sweeps = 40 * steps  # (1 − 1/steps)^sweeps < 1e-17: more cannot help
    nothing[:] = 0.0
    while True:
        add_what_follows(whole, policy, nothing, value, following)
        lack = largest_change(earned, following, value)
        if lack <= goal or not sweeps > 0.0:
            return lack
        if failures < 2 and not lack < 0.5 * best:
            failures += 1
            model = thin if failures == 0 else whole
            move[:] = 1.0
            add_what_follows(model, policy, nothing, move, move)
            for s in range(value.size):
                image[s] = move[s] - 1.0
        best = lack
        for s in range(value.size):
            lacking[s] = earned[s] + following[s] - value[s]
            correction[s] = lacking[s]
        if failures < 2:
            mixed_sweeps(model, policy, lacking, max(LEFT * lack, 0.5 * goal), correction, mixing)
        else:
            sweeps -= 1.0
        for s in range(value.size):
            value[s] += correction[s]
        if not np.isfinite(value).all():
            value[:] = 0.0


def room_to_eliminate(num_states: int) -> RoomSize:
    """Returns the room that `eliminate_drawn` needs: a matrix, and some values."""
    return RoomSize(num_states * num_states + 3 * num_states)


@tasks(threads_from=CHUNK_THREADS)
def eliminate_drawn(
    first_task: int,
    end_task: int,
    room: Room,
    pair_offsets: IntsIn,
    discount: float,
    models: Chunk,
    policy: TableIn,
    firsts: IntsIn,
    performance: Performance,
) -> None:
    """Writes ρ of policies in each drawn model, by elimination; for models with few states.

    D data sets have equally many models each. Those of data set d are evaluated under the policies
    `policy`[firsts[d]:firsts[d+1]].
    """
    ends, target, share, reward, initial = models
    num_states = pair_offsets.size - 1
    cells = num_states * num_states
    matrix, following = room.floats[:cells], room.floats[cells : cells + num_states]
    nothing = matrix[:num_states]  # once all is eliminated
    earned = room.floats[cells + num_states : cells + 2 * num_states]
    value = room.floats[cells + 2 * num_states : cells + 3 * num_states]
    models_each = len(ends) // (firsts.size - 1)
    for b in range(first_task, end_task):
        model = DrawnModel(pair_offsets, discount, ends[b], target[b], share[b])
        first = firsts[b // models_each]
        for p in range(firsts[b // models_each + 1] - first):
            chances = policy[first + p]
            most = earn(pair_offsets, reward[b], chances, earned)
            copy_into(value, earned)
            eliminate(model, chances, matrix, value)
            fill(nothing, 0.0)
            add_what_follows(model, chances, nothing, value, following)
            performance.residual[b, p] = largest_change(earned, following, value)
            performance.scale[b, p] = most + largest_of(value)
            performance.mean[b, p] = mean_over(initial[b], value)


def room_to_count(num_states: int) -> RoomSize:
    """Returns the room that `count_steps_drawn` needs."""
    return RoomSize(3 * num_states)


@tasks(threads_from=CHUNK_THREADS)
def count_steps_drawn(
    first_task: int,
    end_task: int,
    room: Room,
    pair_offsets: IntsIn,
    steps: int,
    models: Chunk,
    policy: TableIn,
    firsts: IntsIn,
    performance: Performance,
) -> None:
    """Writes ρ of policies in each drawn model over `steps` steps, without discounting.

    Only ends earn rewards. Data sets choose their policies as in `eliminate_drawn`.
    """
    ends, target, share, reward, initial = models
    size, models_each = pair_offsets.size - 1, len(ends) // (firsts.size - 1)
    earned, value = room.floats[:size], room.floats[size : 2 * size]
    following = room.floats[2 * size : 3 * size]
    for b in range(first_task, end_task):
        model = DrawnModel(pair_offsets, 1.0, ends[b], target[b], share[b])
        first = firsts[b // models_each]
        for p in range(firsts[b // models_each + 1] - first):
            most = earn(pair_offsets, reward[b], policy[first + p], earned)
            copy_into(value, earned)
            for _ in range(steps):
                add_what_follows(model, policy[first + p], earned, value, following)
                copy_into(value, following)
            performance.residual[b, p] = 0.0
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
    aim: Aim,
    start: TableOut,
    performance: Performance,
) -> None:
    """Writes ρ of each policy [P, K] in each drawn model, iterating from `start` [P, S]."""
    ends, target, share, reward, initial = models
    num_states = pair_offsets.size - 1
    for b in range(first_task, end_task):
        work = np.empty((VALUES_BESIDE - 2, num_states))
        earned, value = np.empty(num_states), np.empty(num_states)
        size = ends[b, -1] + 1
        whole = DrawnModel(pair_offsets, discount, ends[b], target[b], share[b])
        thin = DrawnModel(
            pair_offsets, discount, np.empty_like(ends[b]), np.empty(size, np.int32), np.empty(size)
        )
        thin_out(whole, thin)
        for p in range(policy.shape[0]):
            most = earn(pair_offsets, reward[b], policy[p], earned)
            if p == 0 or aim.keep:
                copy_into(value, start[p])
            else:  # from the policy before: the two differ about as they did in the first model
                for s in range(num_states):
                    value[s] += start[p, s] - start[p - 1, s]
            goal = aim.accuracy * (most + largest_of(value)) / aim.steps
            performance.residual[b, p] = improve(
                whole, thin, policy[p], earned, goal, aim.steps, value, work
            )
            performance.scale[b, p] = most + largest_of(value)
            performance.mean[b, p] = mean_over(initial[b], value)
            if aim.keep:
                copy_into(start[p], value)
