"""Bellman backups: one pass over the transitions of a model."""

from __future__ import annotations

from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    F64,
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INTS_IN,
    SWEEP_THREADS,
    helper,
    kernel,
)


@helper
def pair_value(
    pair: int,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
) -> float:
    """r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s')."""
    total = 0.0
    for t in range(offsets[pair], offsets[pair + 1]):
        total += probability[t] * value[successor[t]]
    return float(reward[pair] + discount[pair] * total)


@kernel(
    INTS_IN,
    INDICES_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def pair_values(
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
    q: FloatArray,
) -> None:
    """q(s,a) = r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for all pairs, into `q` [K]."""
    for k in prange(q.size):
        q[k] = pair_value(k, offsets, successor, probability, discount, reward, value)


@kernel(
    INTS_IN,
    INTS_IN,
    INDICES_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_IN,
    FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)
def best_values(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
    best: FloatArray,
) -> None:
    """max_a q(s,a) for all states, into `best` [S]: a sweep of value iteration."""
    for s in prange(best.size):
        first = pair_offsets[s]
        highest = pair_value(first, offsets, successor, probability, discount, reward, value)
        for k in range(first + 1, pair_offsets[s + 1]):
            q = pair_value(k, offsets, successor, probability, discount, reward, value)
            highest = max(highest, q)
        best[s] = highest


@kernel(INTS_IN, INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_OUT, returns=F64)
def gauss_seidel_sweep(
    pair_offsets: IntArray,
    offsets: IntArray,
    successor: IndexArray,
    probability: FloatArray,
    discount: FloatArray,
    reward: FloatArray,
    value: FloatArray,
) -> float:
    """v(s) ← max_a q(s,a) in place, from the last state to the first; the largest change.

    The states go backwards because auxiliary states stand behind the states that lead to them.
    """
    change = 0.0
    for i in range(value.size):
        s = value.size - 1 - i
        first = pair_offsets[s]
        highest = pair_value(first, offsets, successor, probability, discount, reward, value)
        for k in range(first + 1, pair_offsets[s + 1]):
            q = pair_value(k, offsets, successor, probability, discount, reward, value)
            highest = max(highest, q)
        change = max(change, abs(highest - value[s]))
        value[s] = highest
    return change


@kernel(INTS_IN, FLOATS_IN, FLOATS_IN, FLOATS_OUT, threads_from=SWEEP_THREADS)
def expected_values(
    pair_offsets: IntArray, probability: FloatArray, q: FloatArray, value: FloatArray
) -> None:
    """Σ_a π(a|s) q(s,a) for all states, into `value` [S]."""
    for s in prange(value.size):
        total = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            total += probability[k] * q[k]
        value[s] = total
