"""SPIBB on many small data sets of one shape, one data set a task."""

from __future__ import annotations

from typing import NamedTuple

from surestep.kernels._compile import tasks
from surestep.kernels._types import (
    BatchIn,
    CountBatchIn,
    FloatsIn,
    IndicesIn,
    IntsIn,
    Room,
    RoomSize,
)
from surestep.kernels.backup import pair_value
from surestep.kernels.elimination import solve_policy, work_in, work_size
from surestep.kernels.extremes import largest_of
from surestep.kernels.records import EliminationPlan, Model
from surestep.kernels.small import BATCH_THREADS, Solutions
from surestep.kernels.spibb import best_trusted, free_mass


class DataSets(NamedTuple):
    """Data sets of one shape, and the policy that all of them came from."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    times: CountBatchIn  # [B, T]
    discount: FloatsIn  # [K]
    reward: BatchIn  # [B, K] what a pair earns in the estimate
    behavior: FloatsIn  # [K]


def room_to_improve(data: DataSets, plan: EliminationPlan) -> RoomSize:
    """Returns the room of `improve_each`: an elimination, an estimate, notes."""
    num_pairs, num_states = data.behavior.size, plan.order.size
    floats = work_size(plan) + data.successor.size + num_pairs + num_states
    return RoomSize(floats, num_states + num_pairs)


@tasks(threads_from=BATCH_THREADS)
def improve_each(
    first_task: int,
    end_task: int,
    room: Room,
    data: DataSets,
    plan: EliminationPlan,
    n_wedges: IntsIn,
    tie_tolerance: float,
    limit: int,
    solutions: Solutions,
) -> None:
    """Iterates policies from π_b over Π_b, in the MLE-MDP of each data set, for several N∧.

    The first B tasks are for the first N∧, and so on. A pair is trusted iff it has more than N∧
    visits (−1 trusts all).
    """
    pair_offsets, offsets, successor, times, discount, reward, behavior = data
    num_states, num_pairs = pair_offsets.size - 1, behavior.size
    work = work_in(room.floats, plan)
    begin = 3 * num_states + plan.upper.size
    chances = room.floats[begin : begin + successor.size]
    begin += successor.size
    q = room.floats[begin : begin + num_pairs]
    free = room.floats[begin + num_pairs : begin + num_pairs + num_states]
    chosen, trusted = room.ints[:num_states], room.ints[num_states : num_states + num_pairs]
    for task in range(first_task, end_task):
        b, n_wedge = task % times.shape[0], n_wedges[task // times.shape[0]]
        values, actions = solutions.value[task], solutions.policy[task]
        model = Model(pair_offsets, offsets, successor, chances, discount, reward[b])
        for k in range(num_pairs):
            visits = 0
            for t in range(offsets[k], offsets[k + 1]):
                visits += times[b, t]
            trusted[k] = 1 if visits > n_wedge else 0
            for t in range(offsets[k], offsets[k + 1]):
                chances[t] = times[b, t] / visits if visits > 0 else 0.0
            actions[k] = behavior[k]
        for s in range(num_states):
            free[s] = free_mass(pair_offsets[s], pair_offsets[s + 1], behavior, trusted)
            chosen[s] = -1
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
        solutions.residual[task] = worst
        solutions.iterations[task] = rounds
