"""Many small models of one shape: exact evaluation and policy iteration, one model a task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep.kernels._compile import helper, tasks
from surestep.kernels._types import BatchIn, BatchOut, FloatsOut, IntsOut, Room, RoomSize
from surestep.kernels.backup import pair_value
from surestep.kernels.elimination import solve_policy, work_in, work_size
from surestep.kernels.extremes import largest_of
from surestep.kernels.greedy import best_pair, highest_within
from surestep.kernels.records import EliminationPlan, Model, Models

BATCH_THREADS = 5_000  # entries of all models together


class Solutions(NamedTuple):
    """A policy and its value for each model, to be written."""

    policy: BatchOut  # [B, K]
    value: BatchOut  # [B, S]
    residual: FloatsOut  # [B] max_s |Σ_a π q − v|
    iterations: IntsOut  # [B] above the limit where the policy was still changing

    @classmethod
    def to_write(cls, models: int, pairs: int, states: int) -> Solutions:
        """Returns arrays for so many models; all policies are 0."""
        return cls(
            np.zeros((models, pairs)),
            np.empty((models, states)),
            np.empty(models),
            np.empty(models, np.int64),
        )


@helper
def model_of(models: Models, b: int) -> Model:
    """Returns the model b."""
    return Model(
        models.pair_offsets,
        models.offsets,
        models.successor,
        models.probability[b % models.probability.shape[0]],
        models.discount,
        models.reward[b % models.reward.shape[0]],
    )


def room_to_evaluate(plan: EliminationPlan) -> RoomSize:
    """Returns the room that `evaluate_each` needs: for one elimination."""
    return RoomSize(work_size(plan))


@tasks(threads_from=BATCH_THREADS)
def evaluate_each(
    first_task: int,
    end_task: int,
    room: Room,
    models: Models,
    policy: BatchIn,
    plan: EliminationPlan,
    value: BatchOut,
    residual: FloatsOut,
) -> None:
    """V^π of each model, into `value` [B, S], with max_s |(T_π v)(s) − v(s)| into `residual` [B].

    `policy` [B, K] may also be one row for all.
    """
    pair_offsets = models.pair_offsets
    for b in range(first_task, end_task):
        model, actions, values = model_of(models, b), policy[b % policy.shape[0]], value[b]
        solve_policy(model, actions, plan, work_in(room.floats, plan), values)
        worst = 0.0
        for s in range(values.size):
            total = 0.0
            for k in range(pair_offsets[s], pair_offsets[s + 1]):
                if actions[k] > 0.0:
                    total += actions[k] * pair_value(k, model, values)
            worst = max(worst, abs(total - values[s]))
        residual[b] = worst


def room_to_optimise(plan: EliminationPlan, num_pairs: int) -> RoomSize:
    """Returns the room of `optimise_each`: an elimination, values of pairs, choices of states."""
    return RoomSize(work_size(plan) + num_pairs, plan.order.size)


@tasks(threads_from=BATCH_THREADS)
def optimise_each(
    first_task: int,
    end_task: int,
    room: Room,
    models: Models,
    plan: EliminationPlan,
    tie_tolerance: float,
    limit: int,
    solutions: Solutions,
) -> None:
    """Iterates policies on each model; all of them are 0 before."""
    pair_offsets, num_states = models.pair_offsets, solutions.value.shape[1]
    work, first_q = work_in(room.floats, plan), 3 * num_states + plan.upper.size
    q, chosen = room.floats[first_q : first_q + models.discount.size], room.ints[:num_states]
    for b in range(first_task, end_task):
        model, values, actions = model_of(models, b), solutions.value[b], solutions.policy[b]
        for k in range(q.size):
            q[k] = model.reward[k]
        for s in range(num_states):
            chosen[s] = -1
        rounds, changed = 0, True
        while changed and rounds <= limit:
            rounds += 1
            tie = tie_tolerance * largest_of(q)
            changed = False
            for s in range(num_states):
                first, last = pair_offsets[s], pair_offsets[s + 1]
                best = best_pair(first, last, q, tie)
                # A pair that is as good as the best is kept, so that ties make no cycle.
                if chosen[s] < 0 or q[chosen[s]] < q[best] - tie:
                    if chosen[s] >= 0:
                        actions[chosen[s]] = 0.0
                    chosen[s] = best
                    actions[best] = 1.0
                    changed = True
            if changed:
                solve_policy(model, actions, plan, work, values)
                for k in range(q.size):
                    q[k] = pair_value(k, model, values)
        worst = 0.0
        tie = tie_tolerance * largest_of(q)
        for s in range(num_states):
            first, last = pair_offsets[s], pair_offsets[s + 1]
            worst = max(worst, abs(highest_within(first, last, q, 0.0) - values[s]))
            actions[chosen[s]] = 0.0
            actions[best_pair(first, last, q, tie)] = 1.0
        solutions.residual[b] = worst
        solutions.iterations[b] = rounds
