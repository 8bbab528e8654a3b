"""Many small models of one shape: exact evaluation and policy iteration, one model a task.

The linear systems are solved by Gaussian elimination without pivoting: I − ΓP is a nonsingular
M-matrix, weakly diagonally dominant by rows, for which elimination in any order is stable.
"""

from __future__ import annotations

import numpy as np
from numba import prange

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
    helper,
    kernel,
)
from surestep.kernels.backup import pair_value
from surestep.kernels.greedy import best_pair

BATCH_THREADS = 5_000  # entries of all models together


@helper
def eliminate(system: FloatArray, value: FloatArray) -> None:
    """Solves the system [n, n+1] (matrix and right side, overwritten) into `value` [n]."""
    n = value.size
    for i in range(n):
        inverse = 1.0 / system[i, i]
        for j in range(i + 1, n):
            factor = system[j, i] * inverse
            if factor != 0.0:
                for c in range(i + 1, n + 1):
                    system[j, c] -= factor * system[i, c]
    for back in range(n):
        i = n - 1 - back
        total = system[i, n]
        for c in range(i + 1, n):
            total -= system[i, c] * value[c]
        value[i] = total / system[i, i]


@helper
def set_row(
    s: int,
    k: int,
    share: float,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    system: FloatArray,
) -> None:
    """Adds `share` of pair k to row s of the system (I − ΓP | r)."""
    system[s, system.shape[1] - 1] += share * reward[k]
    for t in range(offsets[k], offsets[k + 1]):
        system[s, successor[t]] -= share * discount[k] * probability[t]


@kernel(
    INTS_IN,
    INTS_IN,
    INDICES_IN,
    TABLE_IN,
    FLOATS_IN,
    TABLE_IN,
    TABLE_IN,
    TABLE_OUT,
    FLOATS_OUT,
    threads_from=BATCH_THREADS,
)
def evaluate_each(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    policy: FloatArray,
    value: FloatArray,
    residual: FloatArray,
) -> None:
    """V^π of each model, into `value` [B, S], with max_s |(T_π v)(s) − v(s)| into `residual` [B].

    `probability` [B, T], `reward` [B, K]; `policy` [B, K], or [1, K] for one policy for all.
    """
    num_states = value.shape[1]
    for b in prange(value.shape[0]):
        chances, rewards, actions = probability[b], reward[b], policy[b % policy.shape[0]]
        system = np.zeros((num_states, num_states + 1))
        for s in range(num_states):
            system[s, s] = 1.0
            for k in range(pair_offsets[s], pair_offsets[s + 1]):
                if actions[k] > 0.0:
                    set_row(
                        s, k, actions[k], offsets, successor, chances, discount, rewards, system
                    )
        found = value[b]
        eliminate(system, found)
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


@kernel(
    INTS_IN,
    INTS_IN,
    INDICES_IN,
    TABLE_IN,
    FLOATS_IN,
    TABLE_IN,
    F64,
    I64,
    TABLE_OUT,
    TABLE_OUT,
    FLOATS_OUT,
    INTS_OUT,
    threads_from=BATCH_THREADS,
)
def optimise_each(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
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
    for b in prange(value.shape[0]):
        chances, rewards, found = probability[b], reward[b], value[b]
        q = rewards.copy()
        chosen = np.full(num_states, -1)
        system = np.empty((num_states, num_states + 1))
        rounds, changed = 0, True
        while changed and rounds <= limit:
            rounds += 1
            tie = tie_tolerance * np.abs(q).max()
            changed = False
            for s in range(num_states):
                first, last = pair_offsets[s], pair_offsets[s + 1]
                best = best_pair(first, last, q, tie)
                # A pair that is as good as the best is kept, so that ties make no cycle.
                if chosen[s] < 0 or q[chosen[s]] < q[best] - tie:
                    chosen[s] = best
                    changed = True
            if changed:
                system[:] = 0.0
                for s in range(num_states):
                    system[s, s] = 1.0
                    set_row(
                        s, chosen[s], 1.0, offsets, successor, chances, discount, rewards, system
                    )
                eliminate(system, found)
                for k in range(q.size):
                    q[k] = pair_value(k, offsets, successor, chances, discount, rewards, found)
        worst = 0.0
        tie = tie_tolerance * np.abs(q).max()
        for s in range(num_states):
            first, last = pair_offsets[s], pair_offsets[s + 1]
            highest = q[first:last].max()
            worst = max(worst, abs(highest - found[s]))
            policy[b, best_pair(first, last, q, tie)] = 1.0
        residual[b] = worst
        iterations[b] = rounds
