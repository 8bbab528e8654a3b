"""Computes Bellman backups, greedy policies, and steps along the chain of a policy.

The inner loop of every sweep sums over rows of weighted successors. A sweep waits for memory, since
the values of successors lie anywhere. A very short loop lets the processor load many values at
once. So all rows of a block share one running position, and it is unsigned. Numba tests a signed
index at every access for being negative, which makes a sweep over 10⁶ states half as fast.
"""

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import LIGHT_THREADS, SWEEP_THREADS, helper, kernel
from surestep.kernels.records import Model
from surestep.kernels.types import FloatsIn, FloatsOut, IndicesIn, IntsIn

BLOCK_ROWS = 1024  # rows that one thread does in one go


@helper
def row_sums(
    first: int,
    last: int,
    offsets: IntArray,
    successor: IndexArray,
    weight: FloatArray,
    value: FloatArray,
    sums: FloatArray,
) -> None:
    """Writes Σ_t weight(t) value(successor(t)) into `sums`, for rows `first` … `last − 1`."""
    targets = successor.view(np.uint32)
    one = np.uint64(1)
    t = np.uint64(offsets[first])
    for row in range(first, last):
        end = np.uint64(offsets[row + 1])
        total = 0.0
        while t < end:
            total += weight[t] * value[targets[t]]
            t += one
        sums[row - first] = total


def difference_range(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Returns min and max of first − second; (NaN, NaN) if a difference is NaN or infinite."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = first - second
    low, high = float(difference.min()), float(difference.max())
    return (low, high) if -np.inf < low <= high < np.inf else (np.nan, np.nan)


@helper
def largest_of(values: FloatArray) -> float:
    """Returns max_i |values_i|; NaN if one of them is NaN."""
    most = 0.0
    for i in range(values.size):
        if abs(values[i]) > most or np.isnan(values[i]):
            most = abs(values[i])
    return most


@kernel(threads_from=SWEEP_THREADS)
def pair_values(model: Model, value: FloatsIn, q: FloatsOut) -> None:
    """Writes q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for all pairs, into `q` [K]."""
    _, offsets, successor, probability, discount, reward = model
    for b in prange((q.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, q.size)
        row_sums(first, last, offsets, successor, probability, value, q[first:last])
        for k in range(first, last):
            q[k] = reward[k] + discount[k] * q[k]


@kernel(threads_from=SWEEP_THREADS)
def chain_step(
    offsets: IntsIn,
    successor: IndicesIn,
    weight: FloatsIn,
    reward: FloatsIn,
    value: FloatsIn,
    result: FloatsOut,
) -> None:
    """Writes r_π + W v for all states of a chain with weights W = Γ_π P_π, into `result` [S]."""
    for b in prange((result.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, result.size)
        row_sums(first, last, offsets, successor, weight, value, result[first:last])
        for s in range(first, last):
            result[s] += reward[s]


@kernel(threads_from=SWEEP_THREADS)
def best_values(model: Model, value: FloatsIn, best: FloatsOut) -> None:
    """Writes max_a q(s,a) for all states, into `best` [S]: a sweep of value iteration.

    Positions run on from row to row and are unsigned; see `kernels.backup`.
    """
    pair_offsets, offsets, successor, probability, discount, reward = model
    targets, one = successor.view(np.uint32), np.uint64(1)
    for b in prange((best.size - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, best.size)
        k = np.uint64(pair_offsets[first])
        t = np.uint64(offsets[k])
        for s in range(first, last):
            highest, last_pair = -np.inf, np.uint64(pair_offsets[s + 1])
            while k < last_pair:
                total, end = 0.0, np.uint64(offsets[k + one])
                while t < end:
                    total += probability[t] * value[targets[t]]
                    t += one
                highest = max(highest, reward[k] + discount[k] * total)
                k += one
            best[s] = highest


@kernel(threads_from=LIGHT_THREADS)
def largest_values(pair_offsets: IntsIn, q: FloatsIn, best: FloatsOut) -> None:
    """Writes max_a q(s,a) for all states, into `best` [S]."""
    for s in prange(best.size):
        highest = -np.inf
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            highest = max(highest, q[k])
        best[s] = highest


@helper
def pair_value(pair: int, model: Model, value: FloatArray) -> float:
    """Returns r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for one pair."""
    _, offsets, successor, probability, discount, reward = model
    total = 0.0
    for t in range(np.uint64(offsets[pair]), np.uint64(offsets[pair + 1])):
        total += probability[t] * value[successor[t]]
    return float(reward[pair] + discount[pair] * total)


@helper
def sweep_in_place(model: Model, rising: bool, value: FloatArray) -> tuple[float, float]:
    """Sets v(s) ← max_a q(s,a), state by state, in `rising` or falling order of the states.

    Returns the largest change, and max |v|.
    """
    change, size = 0.0, 0.0
    for i in range(value.size):
        s = i if rising else value.size - 1 - i
        highest = -np.inf
        for k in range(model.pair_offsets[s], model.pair_offsets[s + 1]):
            highest = max(highest, pair_value(k, model, value))
        change, size = max(change, abs(highest - value[s])), max(size, abs(highest))
        value[s] = highest
    return change, size


@kernel()
def gauss_seidel_sweep(model: Model, rising: bool, value: FloatsOut) -> None:
    """Sets v(s) ← max_a q(s,a) in place, in `rising` or falling order of the states."""
    sweep_in_place(model, rising, value)


@kernel(threads_from=LIGHT_THREADS)
def expected_values(
    pair_offsets: IntsIn, probability: FloatsIn, q: FloatsIn, value: FloatsOut
) -> None:
    """Writes Σ_a π(a|s) q(s,a) for all states, into `value` [S]."""
    for s in prange(value.size):
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            total += probability[k] * q[k]
        value[s] = total


@kernel(threads_from=LIGHT_THREADS)
def greedy(pair_offsets: IntsIn, q: FloatsIn, tie: float, probability: FloatsOut) -> None:
    """Writes probability 1 for the best pair of each state: the first pair within `tie` of max q.

    The loops have no branches: with few pairs a state, branches would take most of the time. If q
    is NaN, the first action gets the mass that is left.
    """
    for s in prange(pair_offsets.size - 1):
        first, last = np.uint64(pair_offsets[s]), np.uint64(pair_offsets[s + 1])
        highest, left = -np.inf, 1.0
        for k in range(first, last):
            highest = max(highest, q[k])
        for k in range(first, last):
            taken = left if q[k] >= highest - tie else 0.0
            probability[k] = taken
            left -= taken
        probability[first] += left
