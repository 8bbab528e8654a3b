"""Solves many small rectangular sets of one shape for their worst-case values, one set a task.

The sets stand one after the other in all arrays: pair k of set b is entry b·K + k, and successors
are states of their own set. The loop is the same as in `planning.robust`: the worst rows for v are
held fixed, and their chain is solved; if that brings v no nearer, nature and the agent take turns.
The proof does not rest on this loop, but on the residuals that are written at the end.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.kernels._compile import helper, tasks
from surestep.kernels.elimination import BATCH_THREADS, solve_dense
from surestep.kernels.records import fill
from surestep.kernels.robust import (
    ExtremeRows,
    Intervals,
    L1Balls,
    Step,
    Trees,
    interval_rows,
    l1_rows,
    lowest_below,
    sort_rising,
    tree_rows,
)
from surestep.kernels.types import FloatsIn, IntsIn, IntsOut, Room, TableIn, TableOut

ENOUGH = 0.5  # if a step of both sides leaves more of the residual than this, they take turns
MOST_ROUNDS = 1_000  # many times the largest number seen


class Game(NamedTuple):
    """The policies and floors to solve the sets for, and the accuracy.

    A residual is small enough if it is at most `enough` times (max |v| + `reward_scale`).
    """

    pair_offsets: IntsIn  # [S+1]
    policy: TableIn  # [B, K]
    floor: TableIn  # [B, S]
    enough: FloatsIn  # [B]
    reward_scale: FloatsIn  # [B]
    tie_tolerance: float


class Answer(NamedTuple):
    """Output: the worst-case values of each set, and their residuals."""

    value: TableOut  # [B, S]
    residuals: TableOut  # [B, 2] the lowest and the highest
    rounds: IntsOut  # [B]


class OneSet(NamedTuple):
    """One of the sets: its first pair, the policy, and the floor of its values."""

    first: int
    pair_offsets: IntArray  # [S+1]
    policy: FloatArray  # [K]
    floor: FloatArray  # [S]


@helper
def rank_by_value(_: Any, value: FloatArray, ranking: IntArray) -> None:
    """Writes the states into `ranking`, by rising v."""
    sort_rising(value, value.size, ranking)


@helper
def worth(s: int, one: OneSet, q: FloatArray) -> float:
    """Returns Σ_a π q in state s."""
    total = 0.0
    for k in range(one.pair_offsets[s], one.pair_offsets[s + 1]):
        total += one.policy[k] * q[one.first + k]
    return total


@helper
def residuals_of(one: OneSet, q: FloatArray, value: FloatArray) -> tuple[float, float, float]:
    """Returns the least and the most of max(Σ_a π q, floor) − v, and max |v|."""
    low, high, size = np.inf, -np.inf, 0.0
    for s in range(value.size):
        after = max(worth(s, one, q), one.floor[s])
        low, high = min(low, after - value[s]), max(high, after - value[s])
        size = max(size, abs(value[s]))
    return low, high, size


@helper
def gained(one: OneSet, held: BoolArray, q: FloatArray, value: FloatArray) -> float:
    """Returns max (v − Σ_a π q) over states that are not held: the loss by the worst rows for v."""
    most = 0.0
    for s in range(value.size):
        if not held[s]:
            most = max(most, value[s] - worth(s, one, q))
    return most


@helper
def solve_rows(
    one: OneSet,
    room: IntArray,
    discount: FloatArray,
    extreme: ExtremeRows,
    held: BoolArray,
    system: FloatArray,
    value: FloatArray,
) -> None:
    """Writes the value of the chain of rows and policy; held states have the value of the floor."""
    first, pair_offsets, policy, floor = one
    states, probability, earned, _ = extreme
    size = value.size
    for s in range(size):
        fill(system[s], 0.0)
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
    solve_dense(system, value)


def settling(rank: Callable[..., None], worst_rows: Callable[..., None]) -> Callable[..., None]:
    """Returns the loop for one kind of set.

    `rank` writes the ranking by v that `worst_rows` needs.
    """

    @helper
    def settle(
        b: int,
        game: Game,
        room: Room,
        rows: Any,
        step: Step,
        extreme: ExtremeRows,
        answer: Answer,
    ) -> None:
        """Brings the values of set b near their fixed point, from 0."""
        pair_offsets, policies, floors, enough, reward_scale, tie_tolerance = game
        value, q, last = answer.value[b], extreme.q, (b + 1) * policies.shape[1]
        one = OneSet(b * policies.shape[1], pair_offsets, policies[b], floors[b])
        size = value.size
        system, held = np.empty((size, size)), np.zeros(size, np.bool_)
        fill(value, 0.0)
        rounds, together, before = 0, True, np.inf
        while True:
            rounds += 1
            rank(rows, value, room.ints)
            worst_rows(one.first, last, room, rows, step, value, room.ints, extreme)
            low, high, scale = residuals_of(one, q, value)
            residual, scale = max(-low, high), reward_scale[b] + scale
            if residual <= enough[b] * scale or not residual < np.inf or rounds >= MOST_ROUNDS:
                break
            together = together and residual <= ENOUGH * before
            before = residual
            tie = 0.0 if together else tie_tolerance * scale
            if together or gained(one, held, q, value) <= tie:
                for s in range(size):  # hold the floor if it is better; keep ties
                    held[s] = worth(s, one, q) <= one.floor[s] + (tie if held[s] else -tie)
            solve_rows(one, rows.room, step.discount, extreme, held, system, value)
        answer.residuals[b, 0], answer.residuals[b, 1], answer.rounds[b] = low, high, rounds

    return settle


settle_ball = settling(rank_by_value, helper(l1_rows))
settle_interval = settling(rank_by_value, helper(interval_rows))
settle_tree = settling(helper(lowest_below), helper(tree_rows))


@tasks(threads_from=BATCH_THREADS, on_gpu=False)
def settle_l1(
    first_task: int,
    end_task: int,
    room: Room,
    game: Game,
    rows: L1Balls,
    step: Step,
    extreme: ExtremeRows,
    answer: Answer,
) -> None:
    """Brings the values of sets of L1 balls to their fixed points."""
    for b in range(first_task, end_task):
        settle_ball(b, game, room, rows, step, extreme, answer)


@tasks(threads_from=BATCH_THREADS, on_gpu=False)
def settle_intervals(
    first_task: int,
    end_task: int,
    room: Room,
    game: Game,
    rows: Intervals,
    step: Step,
    extreme: ExtremeRows,
    answer: Answer,
) -> None:
    """Brings the values of sets of intervals to their fixed points."""
    for b in range(first_task, end_task):
        settle_interval(b, game, room, rows, step, extreme, answer)


@tasks(threads_from=BATCH_THREADS, on_gpu=False)
def settle_trees(
    first_task: int,
    end_task: int,
    room: Room,
    game: Game,
    rows: Trees,
    step: Step,
    extreme: ExtremeRows,
    answer: Answer,
) -> None:
    """Brings the values of sets of trees over the same states to their fixed points."""
    for b in range(first_task, end_task):
        settle_tree(b, game, room, rows, step, extreme, answer)
