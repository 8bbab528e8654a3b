"""The value of a policy by Gaussian elimination, dense or along a plan made once for all models.

Elimination goes without pivoting: I − ΓP is a nonsingular M-matrix, weakly diagonally dominant by
rows, for which elimination in any order of the states is stable.
"""

from __future__ import annotations

from typing import NamedTuple

from surestep._arrays import FloatArray
from surestep.kernels._compile import helper
from surestep.kernels.records import EliminationPlan, Model


class Work(NamedTuple):
    """The memory that a solution needs."""

    row: FloatArray  # [S]
    inverse: FloatArray  # [S]
    right: FloatArray  # [S]
    factor: FloatArray  # an entry for each of `upper`


def work_size(plan: EliminationPlan) -> int:
    """Returns how many numbers a solution has to remember."""
    return 3 * plan.order.size + plan.upper.size


@helper
def work_in(floats: FloatArray, plan: EliminationPlan) -> Work:
    """Takes the first `work_size` numbers for a solution to work in."""
    states = plan.order.size
    last = 3 * states + plan.upper.size
    return Work(
        floats[:states],
        floats[states : 2 * states],
        floats[2 * states : 3 * states],
        floats[3 * states : last],
    )


@helper
def solve_dense(system: FloatArray, value: FloatArray) -> None:
    """Solves a dense system in place, for the right side that stands in `value`."""
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
    model: Model, policy: FloatArray, plan: EliminationPlan, work: Work, value: FloatArray
) -> None:
    """V = (I − Γ_π P_π)⁻¹ r_π, into `value` [S]."""
    pair_offsets, offsets, successor, chance, discount, reward = model
    order, place, lower_offsets, lower, upper_offsets, upper = plan
    row, inverse, right, factor = work
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
    for back in range(order.size):
        i = order.size - 1 - back
        total = right[i]
        for u in range(upper_offsets[i], upper_offsets[i + 1]):
            total -= factor[u] * right[upper[u]]
        right[i] = total * inverse[i]
        value[order[i]] = right[i]
