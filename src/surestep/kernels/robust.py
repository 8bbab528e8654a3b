"""The worst rows of rectangular sets, in closed form: L1 balls and intervals.

A kernel writes one extreme distribution a pair: `room` [K+1] says where, and has a place for every
stored successor of the pair and for as many other states as its mass can reach. Places that are not
needed hold probability 0. A pair without room ends the episode and is worth `ending`.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    FLOATS_IN,
    FLOATS_OUT,
    INDICES_IN,
    INDICES_OUT,
    INTS_IN,
    SWEEP_THREADS,
    helper,
    kernel,
)
from surestep.kernels.rows import BLOCK_ROWS


@helper
def stored_worths(
    first: int,
    last: int,
    successor: IndexArray,
    reward: FloatArray,
    discount: float,
    value: FloatArray,
) -> FloatArray:
    """reward + γ v of the stored successors `first` … `last − 1`."""
    worth = np.empty(last - first)
    for t in range(first, last):
        worth[t - first] = reward[t] + discount * value[successor[t]]
    return worth


@helper
def earned_by_row(stored: FloatArray, probability: FloatArray, outside_reward: float) -> float:
    """Σ p R of a row whose first places are those of its stored successors."""
    earned, elsewhere = 0.0, 0.0
    for i in range(stored.size):
        earned += probability[i] * stored[i]
    for i in range(stored.size, probability.size):
        elsewhere += probability[i]
    return earned + elsewhere * outside_reward


@helper
def worth_of_row(
    worth: FloatArray,
    successor: IndexArray,
    probability: FloatArray,
    outside_reward: float,
    discount: float,
    value: FloatArray,
) -> float:
    """Σ p (R + γ v) of a row whose first places are those of its stored successors."""
    total = 0.0
    for i in range(worth.size):
        total += probability[i] * worth[i]
    for i in range(worth.size, probability.size):
        if probability[i] > 0.0:
            total += probability[i] * (outside_reward + discount * value[successor[i]])
    return total


# ---- L1 balls ---------------------------------------------------------------------------------


@helper
def lowest_elsewhere(stored: IndexArray, by_value: IntArray) -> int:
    """The state of the lowest value that is not stored; −1 if all are."""
    for s in by_value:
        known = False
        for t in range(stored.size):  # the lowest states are seldom stored: few are looked at
            if stored[t] == s:
                known = True
                break
        if not known:
            return int(s)
    return -1


@helper
def move_to_worst(
    worth: FloatArray, moving: float, elsewhere_worth: float, probability: FloatArray
) -> None:
    """Moves mass from the best outcomes of a row downward to its worst one, in place.

    The last place of `probability` is that of the outcome elsewhere, worth `elsewhere_worth`.
    """
    worst, floor = worth.size, elsewhere_worth
    for i in range(worth.size):
        if worth[i] < floor or (worst == worth.size and worth[i] == floor):
            worst, floor = i, worth[i]
    moved = 0.0
    for i in np.argsort(-worth):
        taken = min(moving - moved, probability[i])
        probability[i] -= taken
        moved += taken
        if moved >= moving:
            break
    probability[worst] += moved


@kernel(
    INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, INTS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN,
    FLOATS_IN, INTS_IN, INDICES_OUT, FLOATS_OUT, FLOATS_OUT, FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)  # fmt: skip
def worst_l1_rows(
    offsets: IntArray,
    successor: IndexArray,
    center: FloatArray,
    radius: FloatArray,
    room: IntArray,
    reward: FloatArray,
    outside_reward: FloatArray,
    ending: FloatArray,
    discount: FloatArray,
    value: FloatArray,
    by_value: IntArray,
    worst_successor: IndexArray,
    probability: FloatArray,
    earned: FloatArray,
    q: FloatArray,
) -> None:
    """The p of the smallest Σ p (R + γ v) with ‖p − center‖₁ ≤ radius, for all pairs.

    The mass radius/2 goes to the worst outcome, taken from the best ones downward. Outcomes are the
    stored successors, and with room for one more, any other state: those earn `outside_reward`.
    `by_value` [S] lists the states by rising v. A pair with room but without stored successors may
    go anywhere.
    """
    for k in prange(q.size):
        first, last = offsets[k], offsets[k + 1]
        size, start, end = last - first, room[k], room[k + 1]
        if start == end:
            earned[k] = q[k] = ending[k]
        else:
            worth = stored_worths(first, last, successor, reward, discount[k], value)
            worst_successor[start : start + size] = successor[first:last]
            probability[start : start + size] = center[first:last]
            elsewhere_worth = np.inf
            if end - start > size:
                other = lowest_elsewhere(successor[first:last], by_value)
                if other >= 0:
                    elsewhere_worth = outside_reward[k] + discount[k] * value[other]
                worst_successor[end - 1] = max(other, 0)
                probability[end - 1] = 1.0 if size == 0 else 0.0
            if size > 0:
                move_to_worst(worth, radius[k] / 2.0, elsewhere_worth, probability[start:end])
            row = probability[start:end]
            earned[k] = earned_by_row(reward[first:last], row, outside_reward[k])
            q[k] = worth_of_row(
                worth, worst_successor[start:end], row, outside_reward[k], discount[k], value
            )


# ---- intervals --------------------------------------------------------------------------------


@helper
def raise_lowest(
    k: int,
    worth: FloatArray,
    spare: FloatArray,
    elsewhere: float,
    outside_reward: float,
    discount: float,
    value: FloatArray,
    by_value: IntArray,
    owner: IntArray,
    successor: IndexArray,
    probability: FloatArray,
) -> None:
    """Gives out the mass that a row's lower ends leave: to the worst outcomes first, up to the top.

    A stored successor can take `spare` more, any other state `elsewhere`; `owner[s]` is k where s
    is stored. Places after the stored ones are filled in the order in which states take mass.
    """
    size = worth.size
    left = 1.0
    for i in range(size):
        left -= probability[i]
    order = np.argsort(worth)
    i, j, place, recent = 0, 0, size, 0
    while left > 0.0:
        while j < by_value.size and owner[by_value[j]] == k:
            j += 1
        free = place < probability.size and j < by_value.size
        if i == size and not free:
            break
        if i < size and not (
            free and outside_reward + discount * value[by_value[j]] < worth[order[i]]
        ):
            recent = order[i]
            given = min(left, spare[recent])
            i += 1
        else:
            recent = place
            successor[place] = by_value[j]
            given = min(left, elsewhere)
            place += 1
            j += 1
        probability[recent] += given
        left -= given
    if left > 0.0:  # the upper ends add up to 1 only within rounding
        probability[recent] += left


@kernel(
    INTS_IN, INDICES_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN, INTS_IN, FLOATS_IN, FLOATS_IN, FLOATS_IN,
    FLOATS_IN, FLOATS_IN, INTS_IN, INDICES_OUT, FLOATS_OUT, FLOATS_OUT, FLOATS_OUT,
    threads_from=SWEEP_THREADS,
)  # fmt: skip
def worst_interval_rows(
    offsets: IntArray,
    successor: IndexArray,
    low: FloatArray,
    high: FloatArray,
    elsewhere: FloatArray,
    room: IntArray,
    reward: FloatArray,
    outside_reward: FloatArray,
    ending: FloatArray,
    discount: FloatArray,
    value: FloatArray,
    by_value: IntArray,
    worst_successor: IndexArray,
    probability: FloatArray,
    earned: FloatArray,
    q: FloatArray,
) -> None:
    """The p of the smallest Σ p (R + γ v) with low ≤ p ≤ high, for all pairs.

    A state that is not stored has at most the probability `elsewhere` [K], and earns
    `outside_reward`. `by_value` [S] lists the states by rising v.
    """
    for b in prange((q.size - 1) // BLOCK_ROWS + 1):
        owner = np.full(value.size, -1)
        for k in range(b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, q.size)):
            first, last = offsets[k], offsets[k + 1]
            size, start, end = last - first, room[k], room[k + 1]
            if start == end:
                earned[k] = q[k] = ending[k]
                continue
            for t in range(first, last):
                owner[successor[t]] = k
            worth = stored_worths(first, last, successor, reward, discount[k], value)
            row, states = probability[start:end], worst_successor[start:end]
            row[:size], row[size:] = low[first:last], 0.0
            states[:size], states[size:] = successor[first:last], 0
            raise_lowest(
                k,
                worth,
                high[first:last] - low[first:last],
                elsewhere[k],
                outside_reward[k],
                discount[k],
                value,
                by_value,
                owner,
                states,
                row,
            )
            earned[k] = earned_by_row(reward[first:last], row, outside_reward[k])
            q[k] = worth_of_row(worth, states, row, outside_reward[k], discount[k], value)
