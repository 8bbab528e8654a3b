"""The value of a policy by Gaussian elimination along a plan made once for all models of a shape.

Elimination goes without pivoting: I − ΓP is a nonsingular M-matrix, weakly diagonally dominant by
rows, for which elimination in any order of the states is stable.
"""

from __future__ import annotations

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import INTS_IN, helper

# The arrays of an `EliminationPlan`, as every kernel that solves takes them.
PLAN = (INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN)


@helper
def solve_policy(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    chance: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    policy: FloatArray,
    order: IntArray,
    place: IntArray,
    lower_offsets: IntArray,
    lower: IntArray,
    upper_offsets: IntArray,
    upper: IntArray,
    row: FloatArray,
    factor: FloatArray,
    inverse: FloatArray,
    right: FloatArray,
    value: FloatArray,
) -> None:
    """V = (I − Γ_π P_π)⁻¹ r_π, into `value` [S].

    `row`, `inverse`, `right` [S] and `factor` (one entry for each of `upper`) are scratch.
    """
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
