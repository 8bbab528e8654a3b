"""Computes values of policies by Gaussian elimination: dense, or by a plan shared by all models.

Elimination goes without pivoting: I − ΓP is a nonsingular M-matrix, weakly diagonally dominant by
rows, for which elimination in any order of the states is stable.

The kernels evaluate policies, or iterate policies, on many small models of one shape; one model is
one task.
"""

from __future__ import annotations

from typing import NamedTuple

from surestep._arrays import FloatArray
from surestep.kernels._compile import helper, tasks
from surestep.kernels.backup import largest_of, pair_value
from surestep.kernels.records import EliminationPlan, Model, Models
from surestep.kernels.spibb import best_trusted, free_mass
from surestep.kernels.types import (
    BatchIn,
    BatchOut,
    CountBatchIn,
    FloatsIn,
    FloatsOut,
    IntsIn,
    IntsOut,
    Room,
    RoomSize,
)

BATCH_THREADS = 5_000  # entries of all models together


@helper
def solve_dense(system: FloatArray, value: FloatArray) -> None:
    """Solves a dense system; `value` holds the right side, then the solution."""
    size = value.size
    for i in range(size):
        for s in range(i + 1, size):
            share = system[s, i] / system[i, i]
            if share != 0.0:
                value[s] -= share * value[i]
                for j in range(i + 1, size):
                    system[s, j] -= share * system[i, j]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            value[i] -= system[i, j] * value[j]
        value[i] /= system[i, i]


@helper
def solve_policy(
    model: Model, policy: FloatArray, plan: EliminationPlan, work: FloatArray, value: FloatArray
) -> None:
    """Writes V = (I − Γ_π P_π)⁻¹ r_π into `value` [S]; works in room of `room_to_evaluate`."""
    pair_offsets, offsets, successor, chance, discount, reward = model
    order, place, lower_offsets, lower, upper_offsets, upper = plan
    states = order.size
    row, inverse = work[:states], work[states : 2 * states]
    right, factor = work[2 * states : 3 * states], work[3 * states : 3 * states + upper.size]
    for i in range(order.size):
        s = order[i]
        for j in range(lower_offsets[i], lower_offsets[i + 1]):
            row[lower[j]] = 0.0
        for j in range(upper_offsets[i], upper_offsets[i + 1]):
            row[upper[j]] = 0.0
        row[i] = 1.0
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                total += policy[k] * reward[k]
                weight = policy[k] * discount[k]
                for t in range(offsets[k], offsets[k + 1]):
                    row[place[successor[t]]] -= weight * chance[t]
        for j in range(lower_offsets[i], lower_offsets[i + 1]):
            c = lower[j]
            share = row[c] * inverse[c]
            if share != 0.0:
                total -= share * right[c]
                for u in range(upper_offsets[c], upper_offsets[c + 1]):
                    row[upper[u]] -= share * factor[u]
        inverse[i] = 1.0 / row[i]
        right[i] = total
        for u in range(upper_offsets[i], upper_offsets[i + 1]):
            factor[u] = row[upper[u]]
    for i in range(order.size - 1, -1, -1):
        total = right[i]
        for u in range(upper_offsets[i], upper_offsets[i + 1]):
            total -= factor[u] * right[upper[u]]
        right[i] = total * inverse[i]
        value[order[i]] = right[i]


class Solutions(NamedTuple):
    """Output: a policy and its value for each model."""

    policy: BatchOut  # [B, K]
    value: BatchOut  # [B, S]
    residual: FloatsOut  # [B] max_s |Σ_a π q − v|
    iterations: IntsOut  # [B] above the limit if the policy was still changing


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
    """Returns the room that `evaluate_each` needs for one elimination."""
    return RoomSize(3 * plan.order.size + plan.upper.size)


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
    """Writes V^π of each model into `value` [B, S], max_s |(T_π v)(s) − v(s)| into `residual` [B].

    `policy` [B, K] may also be one row for all models.
    """
    pair_offsets = models.pair_offsets
    for b in range(first_task, end_task):
        model, actions, values = model_of(models, b), policy[b % policy.shape[0]], value[b]
        solve_policy(model, actions, plan, room.floats, values)
        worst = 0.0
        for s in range(values.size):
            total = 0.0
            for k in range(pair_offsets[s], pair_offsets[s + 1]):
                if actions[k] > 0.0:
                    total += actions[k] * pair_value(k, model, values)
            worst = max(worst, abs(total - values[s]))
        residual[b] = worst


class Allowed(NamedTuple):
    """The policies to choose from: equal to π_b on untrusted pairs, free on trusted ones.

    A pair is trusted iff it has more than N∧ visits (−1 trusts all).
    """

    behavior: FloatsIn  # [K]
    visits: CountBatchIn  # [B, K], or one row for all models
    n_wedges: IntsIn  # [N]


def room_to_improve(plan: EliminationPlan, num_pairs: int) -> RoomSize:
    """Returns the room of `improve_each`: one elimination, values of pairs, choices of states."""
    num_states = plan.order.size
    return RoomSize(room_to_evaluate(plan).floats + num_pairs + num_states, num_states + num_pairs)


@tasks(threads_from=BATCH_THREADS)
def improve_each(
    first_task: int,
    end_task: int,
    room: Room,
    models: Models,
    allowed: Allowed,
    plan: EliminationPlan,
    tie_tolerance: float,
    limit: int,
    solutions: Solutions,
) -> None:
    """Iterates policies on each model; the first is greedy for the values in `solutions`.

    The first B tasks are for the first N∧, the next B for the second, and so on.
    """
    pair_offsets, num_models = models.pair_offsets, models.probability.shape[0]
    num_states, num_pairs = pair_offsets.size - 1, models.discount.size
    begin = 3 * num_states + plan.upper.size
    q = room.floats[begin : begin + num_pairs]
    free = room.floats[begin + num_pairs : begin + num_pairs + num_states]
    chosen, trusted = room.ints[:num_states], room.ints[num_states : num_states + num_pairs]
    for task in range(first_task, end_task):
        model, values, actions = (
            model_of(models, task),
            solutions.value[task],
            solutions.policy[task],
        )
        visits = allowed.visits[task % allowed.visits.shape[0]]
        for k in range(num_pairs):
            trusted[k] = 1 if visits[k] > allowed.n_wedges[task // num_models] else 0
            actions[k] = allowed.behavior[k]
        for s in range(num_states):
            free[s] = free_mass(pair_offsets[s], pair_offsets[s + 1], allowed.behavior, trusted)
            chosen[s] = -1
        rounds, changed, tie = 0, True, 0.0
        while changed and rounds <= limit:
            rounds += 1
            changed = False
            for k in range(num_pairs):
                q[k] = pair_value(k, model, values)
            tie = tie_tolerance * largest_of(q)
            for s in range(num_states):
                first, last = pair_offsets[s], pair_offsets[s + 1]
                best = best_trusted(first, last, q, trusted, tie)
                # A chosen pair that ties with the best is kept, so that ties make no cycle.
                if best >= 0 and (chosen[s] < 0 or q[chosen[s]] < q[best] - tie):
                    chosen[s] = best
                    changed = True
                    for k in range(first, last):
                        if trusted[k]:
                            actions[k] = 0.0
                    actions[best] = free[s]
            if changed:
                solve_policy(model, actions, plan, room.floats, values)
        worst = 0.0
        for s in range(num_states):
            first, last = pair_offsets[s], pair_offsets[s + 1]
            best = best_trusted(first, last, q, trusted, tie)
            if best >= 0:  # among ties the lowest action, even if the loop chose another
                actions[chosen[s]] = 0.0
                actions[best] = free[s]
            total = 0.0
            for k in range(first, last):
                total += actions[k] * q[k]
            worst = max(worst, abs(total - values[s]))
        solutions.residual[task] = worst
        solutions.iterations[task] = rounds
