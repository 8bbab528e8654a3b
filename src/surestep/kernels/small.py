"""Many small models of one shape: exact evaluation and policy iteration, one model a task."""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    F64,
    FLOATS_IN,
    FLOATS_OUT,
    I64,
    INDICES_IN,
    INTS_IN,
    INTS_OUT,
    TABLE_IN,
    TABLE_OUT,
    tasks,
)
from surestep.kernels.backup import pair_value
from surestep.kernels.elimination import PLAN, solve_policy
from surestep.kernels.extremes import largest_of
from surestep.kernels.greedy import best_pair

BATCH_THREADS = 5_000  # entries of all models together


@tasks(
    INTS_IN, INTS_IN, INDICES_IN, TABLE_IN, FLOATS_IN, TABLE_IN, TABLE_IN, *PLAN, TABLE_OUT,
    FLOATS_OUT,
    threads_from=BATCH_THREADS,
)  # fmt: skip
def evaluate_each(
    first_task: int,
    end_task: int,
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    policy: FloatArray,
    order: IntArray,
    place: IntArray,
    lower_offsets: IntArray,
    lower: IntArray,
    upper_offsets: IntArray,
    upper: IntArray,
    value: FloatArray,
    residual: FloatArray,
) -> None:
    """V^π of each model, into `value` [B, S], with max_s |(T_π v)(s) − v(s)| into `residual` [B].

    `probability` [B, T], `reward` [B, K] and `policy` [B, K] may also be one row for all.
    """
    num_states = value.shape[1]
    for b in range(first_task, end_task):
        chances, rewards = probability[b % probability.shape[0]], reward[b % reward.shape[0]]
        actions, found = policy[b % policy.shape[0]], value[b]
        scratch, factor = np.empty((3, num_states)), np.empty(upper.size)
        solve_policy(
            pair_offsets, offsets, successor, chances, discount, rewards, actions,
            order, place, lower_offsets, lower, upper_offsets, upper,
            scratch[0], factor, scratch[1], scratch[2], found,
        )  # fmt: skip
        worst = 0.0
        for s in range(num_states):
            total = 0.0
            for k in range(pair_offsets[s], pair_offsets[s + 1]):
                if actions[k] > 0.0:
                    total += actions[k] * pair_value(
                        k, offsets, successor, chances, discount, rewards, found
                    )
            worst = max(worst, abs(total - found[s]))
        residual[b] = worst


@tasks(
    INTS_IN, INTS_IN, INDICES_IN, TABLE_IN, FLOATS_IN, TABLE_IN, *PLAN, F64, I64, TABLE_OUT,
    TABLE_OUT, FLOATS_OUT, INTS_OUT,
    threads_from=BATCH_THREADS,
)  # fmt: skip
def optimise_each(
    first_task: int,
    end_task: int,
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    order: IntArray,
    place: IntArray,
    lower_offsets: IntArray,
    lower: IntArray,
    upper_offsets: IntArray,
    upper: IntArray,
    tie_tolerance: float,
    limit: int,
    policy: FloatArray,
    value: FloatArray,
    residual: FloatArray,
    iterations: IntArray,
) -> None:
    """Policy iteration on each model, into `policy` [B, K] (zeros before) and `value` [B, S].

    `residual` [B] is max_s |max_a q(s,a) − v(s)| at the end; `iterations` [B] is above `limit`
    where the policy was still changing.
    """
    num_states = value.shape[1]
    for b in range(first_task, end_task):
        chances, rewards, found, actions = probability[b], reward[b], value[b], policy[b]
        q = rewards.copy()
        chosen = np.full(num_states, -1)
        scratch, factor = np.empty((3, num_states)), np.empty(upper.size)
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
                solve_policy(
                    pair_offsets, offsets, successor, chances, discount, rewards, actions,
                    order, place, lower_offsets, lower, upper_offsets, upper,
                    scratch[0], factor, scratch[1], scratch[2], found,
                )  # fmt: skip
                for k in range(q.size):
                    q[k] = pair_value(k, offsets, successor, chances, discount, rewards, found)
        worst = 0.0
        tie = tie_tolerance * largest_of(q)
        for s in range(num_states):
            first, last = pair_offsets[s], pair_offsets[s + 1]
            highest = q[first:last].max()
            worst = max(worst, abs(highest - found[s]))
            actions[chosen[s]] = 0.0
            actions[best_pair(first, last, q, tie)] = 1.0
        residual[b] = worst
        iterations[b] = rounds
