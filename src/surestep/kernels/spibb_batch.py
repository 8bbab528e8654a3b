"""SPIBB on many small data sets of one shape, one data set a task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep.kernels._compile import tasks
from surestep.kernels._types import CountTableIn, FloatsIn, IndicesIn, IntsIn, TableIn
from surestep.kernels.backup import pair_value
from surestep.kernels.elimination import Work, solve_policy
from surestep.kernels.extremes import largest_of
from surestep.kernels.records import EliminationPlan, Model
from surestep.kernels.small import BATCH_THREADS, Solutions
from surestep.kernels.spibb import best_trusted, free_mass


class DataSets(NamedTuple):
    """Data sets of one shape, and the policy that all of them came from."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    times: CountTableIn  # [B, T]
    discount: FloatsIn  # [K]
    reward: TableIn  # [B, K] what a pair earns in the estimate
    behavior: FloatsIn  # [K]


@tasks(threads_from=BATCH_THREADS)
def improve_each(
    first_task: int,
    end_task: int,
    data: DataSets,
    plan: EliminationPlan,
    n_wedge: int,
    tie_tolerance: float,
    limit: int,
    solutions: Solutions,
) -> None:
    """Iterates policies from π_b over Π_b, in the MLE-MDP of each data set.

    A pair is trusted iff it has more than `n_wedge` visits (−1 trusts all).
    """
    pair_offsets, offsets, successor, times, discount, reward, behavior = data
    num_states, num_pairs = pair_offsets.size - 1, behavior.size
    for b in range(first_task, end_task):
        chances, values, actions = np.empty(successor.size), solutions.value[b], solutions.policy[b]
        model = Model(pair_offsets, offsets, successor, chances, discount, reward[b])
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
        work = Work(np.empty((3, num_states)), np.empty(plan.upper.size))
        rounds, changed = 0, True
        while changed and rounds <= limit:
            rounds += 1
            solve_policy(model, actions, plan, work, values)
            for k in range(num_pairs):
                q[k] = pair_value(k, model, values)
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
            worst = max(worst, abs(total - values[s]))
        solutions.residual[b] = worst
        solutions.iterations[b] = rounds
