"""SPIBB on many small data sets of one shape, one data set a task."""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    COUNT_TABLE_IN,
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
from surestep.kernels.small import BATCH_THREADS
from surestep.kernels.spibb import best_trusted, free_mass


@tasks(
    INTS_IN, INTS_IN, INDICES_IN, COUNT_TABLE_IN, FLOATS_IN, TABLE_IN, FLOATS_IN, *PLAN, I64, F64,
    I64, TABLE_OUT, TABLE_OUT, FLOATS_OUT, INTS_OUT,
    threads_from=BATCH_THREADS,
)  # fmt: skip
def improve_each(
    first_task: int,
    end_task: int,
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    times: IntArray,
    discount: FloatArray,
    reward: FloatArray,
    behavior: FloatArray,
    order: IntArray,
    place: IntArray,
    lower_offsets: IntArray,
    lower: IntArray,
    upper_offsets: IntArray,
    upper: IntArray,
    n_wedge: int,
    tie_tolerance: float,
    limit: int,
    policy: FloatArray,
    value: FloatArray,
    residual: FloatArray,
    iterations: IntArray,
) -> None:
    """Policy iteration from π_b over Π_b, in the MLE-MDP of each data set.

    `times` [B, T] counts transitions, `reward` [B, K] is what a pair earns in the estimate. A pair
    is trusted iff it has more than `n_wedge` visits (−1 trusts all). `policy` [B, K], `value`
    [B, S]; `residual` [B] is max_s |Σ_a π q − v|; `iterations` [B] is above `limit` where the
    policy was still changing.
    """
    num_states, num_pairs = value.shape[1], behavior.size
    for b in range(first_task, end_task):
        chances, rewards, found, actions = np.empty(successor.size), reward[b], value[b], policy[b]
        trusted = np.empty(num_pairs, np.bool_)
        for k in range(num_pairs):
            visits = 0
            for t in range(offsets[k], offsets[k + 1]):
                visits += times[b, t]
            trusted[k] = visits > n_wedge
            for t in range(offsets[k], offsets[k + 1]):
                chances[t] = times[b, t] / visits if visits > 0 else 0.0
            actions[k] = behavior[k]
        free = np.empty(num_states)
        for s in range(num_states):
            free[s] = free_mass(pair_offsets[s], pair_offsets[s + 1], behavior, trusted)
        chosen = np.full(num_states, -1)
        q = np.empty(num_pairs)
        scratch, factor = np.empty((3, num_states)), np.empty(upper.size)
        rounds, changed = 0, True
        while changed and rounds <= limit:
            rounds += 1
            solve_policy(
                pair_offsets, offsets, successor, chances, discount, rewards, actions,
                order, place, lower_offsets, lower, upper_offsets, upper,
                scratch[0], factor, scratch[1], scratch[2], found,
            )  # fmt: skip
            for k in range(num_pairs):
                q[k] = pair_value(k, offsets, successor, chances, discount, rewards, found)
            tie = tie_tolerance * largest_of(q)
            changed = False
            for s in range(num_states):
                first, last = pair_offsets[s], pair_offsets[s + 1]
                best = best_trusted(first, last, q, trusted, tie)
                # A pair that is as good as the best is kept, so that ties make no cycle.
                if best >= 0 and (chosen[s] < 0 or q[chosen[s]] < q[best] - tie):
                    chosen[s] = best
                    changed = True
                    for k in range(first, last):
                        if trusted[k]:
                            actions[k] = 0.0
                    actions[best] = free[s]
        worst = 0.0
        tie = tie_tolerance * largest_of(q)
        for s in range(num_states):
            first, last = pair_offsets[s], pair_offsets[s + 1]
            best = best_trusted(first, last, q, trusted, tie)
            if best >= 0:  # among ties the lowest action, however the loop came to another
                actions[chosen[s]] = 0.0
                actions[best] = free[s]
            total = 0.0
            for k in range(first, last):
                total += actions[k] * q[k]
            worst = max(worst, abs(total - found[s]))
        residual[b] = worst
        iterations[b] = rounds
