"""Many small rectangular sets of one shape: each is brought to its fixed point, one set a task.

The sets stand one after the other in all arrays: pair k of set b is entry b·K + k, and successors
are states of their own set. The loop is that of `planning.robust`: the worst rows found for v are
taken for fixed and the chain that they make is solved; where that brings v no nearer, nature and we
take turns. What is proven does not rest on it, but on the residuals that are written at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange, types

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.kernels._compile import (
    F64,
    FLOATS_IN,
    I64,
    INTS_IN,
    INTS_OUT,
    TABLE_IN,
    TABLE_OUT,
    helper,
    kernel,
)
from surestep.kernels.greedy import best_pair
from surestep.kernels.robust import (
    FOUND,
    INTERVALS,
    L1_BALLS,
    STEP,
    Found,
    IntervalSet,
    L1Set,
    Step,
    interval_rows,
    l1_rows,
    sort_rising,
)
from surestep.kernels.robust_trees import TREES, TreeSet, lowest_below, tree_rows
from surestep.kernels.small import BATCH_THREADS

Ranking = Callable[[FloatArray, Any, IntArray], None]  # v, what a ranking needs, the ranking
WorstRows = Callable[[int, int, Any, Step, FloatArray, IntArray, Found], None]
# Whether policies are sought, pairs [S+1], floor [B, S]; a residual is small enough where it is
# below `enough` [B] times max |v| + `reward_scale` [B]; the share of a residual that a step of both
# sides may leave, the tolerance of ties, and the most rounds.
Game = tuple[bool, IntArray, FloatArray, FloatArray, FloatArray, float, float, int]
# Policies [B, K], v [B, S], the lowest and the highest residual [B, 2], rounds [B].
Answer = tuple[FloatArray, FloatArray, FloatArray, IntArray]

Settle = Callable[[int, Game, Any, IntArray, Any, IntArray, Step, Found, Answer], None]

# The same as kernels take them.
GAME = types.Tuple((types.boolean, INTS_IN, TABLE_IN, FLOATS_IN, FLOATS_IN, F64, F64, I64))
STEPS, FINDINGS = types.Tuple(STEP), types.Tuple(FOUND)
ANSWER = (TABLE_OUT, TABLE_OUT, TABLE_OUT, INTS_OUT)


@helper
def rank_by_value(value: FloatArray, _: IntArray, ranking: IntArray) -> None:
    """The states by rising v."""
    sort_rising(value, value.size, ranking)


@helper
def rank_by_segment(value: FloatArray, segments: tuple[IntArray, IntArray], low: IntArray) -> None:
    """The state of the lowest v below each node of the common tree."""
    lowest_below(segments[0], segments[1], value, low)


@helper
def choose_best(
    first: int, pair_offsets: IntArray, q: FloatArray, tie_tolerance: float, policy: FloatArray
) -> None:
    """All mass on the best pair of each state, the first among those within the tolerance."""
    largest = 0.0
    for k in range(policy.size):
        largest = max(largest, abs(q[first + k]))
    for s in range(pair_offsets.size - 1):
        start, end = pair_offsets[s], pair_offsets[s + 1]
        chosen = best_pair(first + start, first + end, q, tie_tolerance * largest) - first
        for k in range(start, end):
            policy[k] = 1.0 if k == chosen else 0.0


@helper
def worth(s: int, first: int, pair_offsets: IntArray, policy: FloatArray, q: FloatArray) -> float:
    """Σ_a π q in state s."""
    total = 0.0
    for k in range(pair_offsets[s], pair_offsets[s + 1]):
        total += policy[k] * q[first + k]
    return total


@helper
def residuals_of(
    first: int,
    pair_offsets: IntArray,
    floor: FloatArray,
    policy: FloatArray,
    q: FloatArray,
    value: FloatArray,
) -> tuple[float, float, float]:
    """The least and the most of max(Σ_a π q, floor) − v, and max |v|."""
    low, high, size = np.inf, -np.inf, 0.0
    for s in range(value.size):
        after = max(worth(s, first, pair_offsets, policy, q), floor[s])
        low, high = min(low, after - value[s]), max(high, after - value[s])
        size = max(size, abs(value[s]))
    return low, high, size


@helper
def gained(
    first: int,
    pair_offsets: IntArray,
    policy: FloatArray,
    held: BoolArray,
    q: FloatArray,
    value: FloatArray,
) -> float:
    """max (v − Σ_a π q), not held: what the worst rows for v take away under our choice."""
    most = 0.0
    for s in range(value.size):
        if not held[s]:
            most = max(most, value[s] - worth(s, first, pair_offsets, policy, q))
    return most


@helper
def choose_anew(
    first: int,
    pair_offsets: IntArray,
    floor: FloatArray,
    best: FloatArray,
    q: FloatArray,
    tie: float,
    ours: FloatArray,
    held: BoolArray,
) -> None:
    """The best policy in place of ours, and the floor where that is better; ties stay as before."""
    for s in range(held.size):
        going_on = worth(s, first, pair_offsets, ours, q)
        after = worth(s, first, pair_offsets, best, q)
        if not going_on >= after - tie:  # also where nothing was chosen before
            going_on = after
            for k in range(pair_offsets[s], pair_offsets[s + 1]):
                ours[k] = best[k]
        held[s] = going_on <= floor[s] + (tie if held[s] else -tie)


@helper
def solve_rows(
    first: int,
    pair_offsets: IntArray,
    room: IntArray,
    discount: FloatArray,
    found: Found,
    floor: FloatArray,
    policy: FloatArray,
    held: BoolArray,
    system: FloatArray,
    value: FloatArray,
) -> None:
    """The value of the chain of the rows and the policy, which ends where the floor is held.

    Elimination goes without pivoting: I − W is a nonsingular M-matrix, dominant by rows.
    """
    states, probability, earned, _ = found
    size = value.size
    for s in range(size):
        for j in range(size):
            system[s, j] = 0.0
        system[s, s] = 1.0
        value[s] = floor[s]
        if held[s]:
            continue
        value[s] = 0.0
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            if policy[k] > 0.0:
                value[s] += policy[k] * earned[first + k]
                weight = policy[k] * discount[first + k]
                for place in range(room[first + k], room[first + k + 1]):
                    system[s, states[place]] -= weight * probability[place]
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


def settling(rank: Ranking, worst_rows: WorstRows) -> Settle:
    """The loop for one kind of set."""

    @helper
    def settle(
        b: int,
        game: Game,
        ranked_by: Any,
        ranking: IntArray,
        rows: Any,
        room: IntArray,
        step: Step,
        found: Found,
        answer: Answer,
    ) -> None:
        """Brings the values of set b near their fixed point, from 0."""
        choosing, pair_offsets, floors, enough, reward_scale, half, tie_tolerance, limit = game
        policy, value, floor = answer[0][b], answer[1][b], floors[b]
        size, first = value.size, b * policy.size
        system, held = np.empty((size, size)), np.zeros(size, np.bool_)
        ours = np.full(policy.size, np.nan)
        for s in range(size):
            value[s] = 0.0
        rounds, together, before = 0, True, np.inf
        while True:
            rounds += 1
            rank(value, ranked_by, ranking)
            worst_rows(first, first + policy.size, rows, step, value, ranking, found)
            q = found[3]
            if choosing:
                choose_best(first, pair_offsets, q, tie_tolerance, policy)
            low, high, scale = residuals_of(first, pair_offsets, floor, policy, q, value)
            residual, scale = max(-low, high), reward_scale[b] + scale
            if residual <= enough[b] * scale or not residual < np.inf or rounds >= limit:
                break
            together = together and residual <= half * before
            before = residual
            tie = 0.0 if together else tie_tolerance * scale
            if together or gained(first, pair_offsets, ours, held, q, value) <= tie:
                choose_anew(first, pair_offsets, floor, policy, q, tie, ours, held)
            solve_rows(first, pair_offsets, room, step[3], found, floor, ours, held, system, value)
        answer[2][b, 0], answer[2][b, 1], answer[3][b] = low, high, rounds

    return settle


settle_ball = settling(rank_by_value, l1_rows)
settle_interval = settling(rank_by_value, interval_rows)
settle_tree = settling(rank_by_segment, tree_rows)


@kernel(GAME, types.Tuple(L1_BALLS), STEPS, FINDINGS, *ANSWER, threads_from=BATCH_THREADS)
def settle_l1(
    game: Game,
    rows: L1Set,
    step: Step,
    found: Found,
    policy: FloatArray,
    value: FloatArray,
    residuals: FloatArray,
    rounds: IntArray,
) -> None:
    """The fixed points of all sets, of L1 balls."""
    answer = (policy, value, residuals, rounds)
    for b in prange(rounds.size):
        order = np.empty(value.shape[1], np.int64)
        settle_ball(b, game, order, order, rows, rows[4], step, found, answer)


@kernel(GAME, types.Tuple(INTERVALS), STEPS, FINDINGS, *ANSWER, threads_from=BATCH_THREADS)
def settle_intervals(
    game: Game,
    rows: IntervalSet,
    step: Step,
    found: Found,
    policy: FloatArray,
    value: FloatArray,
    residuals: FloatArray,
    rounds: IntArray,
) -> None:
    """The fixed points of all sets, of intervals."""
    answer = (policy, value, residuals, rounds)
    for b in prange(rounds.size):
        order = np.empty(value.shape[1], np.int64)
        settle_interval(b, game, order, order, rows, rows[5], step, found, answer)


@kernel(
    GAME, types.Tuple(TREES), STEPS, FINDINGS, INTS_IN, INTS_IN, *ANSWER,
    threads_from=BATCH_THREADS,
)  # fmt: skip
def settle_trees(
    game: Game,
    rows: TreeSet,
    step: Step,
    found: Found,
    first: IntArray,
    last: IntArray,
    policy: FloatArray,
    value: FloatArray,
    residuals: FloatArray,
    rounds: IntArray,
) -> None:
    """The fixed points of all sets, of trees; a node of the common tree covers `first` … `last`."""
    answer, segments = (policy, value, residuals, rounds), (first, last)
    for b in prange(rounds.size):
        lowest = np.empty(first.size, np.int64)
        settle_tree(b, game, segments, lowest, rows, rows[6], step, found, answer)
