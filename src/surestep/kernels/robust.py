"""The worst rows of rectangular sets, in closed form: L1 balls and intervals.

One extreme distribution a pair is written: `room` [K+1] says where, and has a place for every
stored successor of the pair and for as many other states as its mass can reach. Places that are not
needed hold probability 0. A pair without room ends the episode and is worth `ending`.

`l1_rows` and `interval_rows` do a run of pairs; they serve the kernels here, which do all pairs of
one set, and those of `robust_batch`, which bring many sets to their fixed points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IndicesIn, IndicesOut, IntsIn
from surestep.kernels.rows import BLOCK_ROWS


class L1Balls(NamedTuple):
    """Rows within `radius` of a center, in the L1 distance."""

    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    center: FloatsIn  # [T]
    radius: FloatsIn  # [K]
    room: IntsIn  # [K+1]


class Intervals(NamedTuple):
    """Rows with low ≤ p ≤ high at stored successors, and p ≤ `elsewhere` at any other state."""

    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    low: FloatsIn  # [T]
    high: FloatsIn  # [T]
    elsewhere: FloatsIn  # [K]
    room: IntsIn  # [K+1]


class Step(NamedTuple):
    """Rewards of a step at stored successors, at other states and where it ends; discounts."""

    reward: FloatsIn  # [T]
    outside_reward: FloatsIn  # [K]
    ending: FloatsIn  # [K]
    discount: FloatsIn  # [K]


class ExtremeRows(NamedTuple):
    """One row a pair to be written, and what the pair is worth with it."""

    successor: IndicesOut  # [C]
    probability: FloatsOut  # [C]
    earned: FloatsOut  # [K] Σ p R
    q: FloatsOut  # [K]


@helper
def longest_run(first: int, last: int, offsets: IntArray) -> int:
    """Returns the length of the longest of the runs `first` … `last − 1`."""
    longest = 0
    for i in range(first, last):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest


@helper
def sort_rising(keys: FloatArray, size: int, order: IntArray) -> None:
    """Sorts the places of the first `size` keys by rising key, into `order`: Shell's sort.

    Rows are short, and most of them shorter than its first step.
    """
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    for i in range(size):
        order[i] = i
    while gap > 0:
        for i in range(gap, size):
            moving, j = order[i], i
            while j >= gap and keys[order[j - gap]] > keys[moving]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = moving
        gap //= 3


@helper
def store_row(
    k: int,
    offsets: IntArray,
    successor: IndexArray,
    least: FloatArray,
    room: IntArray,
    step: Step,
    value: FloatArray,
    worth: FloatArray,
    extreme: ExtremeRows,
) -> None:
    """Stores the successors of pair k with the chances `least`, and what they are `worth`."""
    reward, _, _, discount = step
    states, probability, _, _ = extreme
    place = room[k]
    for t in range(offsets[k], offsets[k + 1]):
        states[place], probability[place] = successor[t], least[t]
        worth[t - offsets[k]] = reward[t] + discount[k] * value[successor[t]]
        place += 1
    for other in range(place, room[k + 1]):
        states[other], probability[other] = 0, 0.0


@helper
def add_up_row(
    k: int, offsets: IntArray, room: IntArray, step: Step, value: FloatArray, extreme: ExtremeRows
) -> None:
    """Σ p R and q = Σ p R + γ Σ p v of pair k, whose first places are its stored successors."""
    reward, outside_reward, _, discount = step
    states, probability, earned, q = extreme
    total, elsewhere, ahead = 0.0, 0.0, 0.0
    place = room[k]
    for t in range(offsets[k], offsets[k + 1]):
        total += probability[place] * reward[t]
        ahead += probability[place] * value[states[place]]
        place += 1
    for other in range(place, room[k + 1]):
        elsewhere += probability[other]
        ahead += probability[other] * value[states[other]]
    earned[k] = total + elsewhere * outside_reward[k]
    q[k] = earned[k] + discount[k] * ahead


# ---- L1 balls ---------------------------------------------------------------------------------


@helper
def lowest_elsewhere(first: int, last: int, successor: IndexArray, by_value: IntArray) -> int:
    """Returns the state of the lowest value not among successors `first` … `last − 1`, or −1."""
    for s in by_value:
        known = False
        for t in range(first, last):  # the lowest states are seldom stored: few are looked at
            if successor[t] == s:
                known = True
                break
        if not known:
            return int(s)
    return -1


@helper
def l1_rows(
    first_pair: int,
    last_pair: int,
    rows: L1Balls,
    step: Step,
    value: FloatArray,
    by_value: IntArray,
    extreme: ExtremeRows,
) -> None:
    """Writes the p of the smallest Σ p (R + γ v) with ‖p − center‖₁ ≤ radius, for a run of pairs.

    The mass radius/2 goes to the worst outcome, taken from the best ones downward. Outcomes are the
    stored successors, and with room for one more, any other state: those earn `outside_reward`.
    `by_value` [S] lists the states by rising v. A pair with room but without stored successors may
    go anywhere.
    """
    offsets, successor, center, radius, room = rows
    _, outside_reward, ending, discount = step
    states, probability, earned, q = extreme
    longest = longest_run(first_pair, last_pair, offsets)
    worth, order = np.empty(longest), np.empty(longest, np.int64)
    for k in range(first_pair, last_pair):
        size, start, end = offsets[k + 1] - offsets[k], room[k], room[k + 1]
        if start == end:
            earned[k] = q[k] = ending[k]
            continue
        store_row(k, offsets, successor, center, room, step, value, worth, extreme)
        sort_rising(worth, size, order)
        worst = start + order[0] if size > 0 else end - 1
        other = -1
        if end - start > size:
            other = lowest_elsewhere(offsets[k], offsets[k + 1], successor, by_value)
        if other >= 0:
            states[end - 1] = other
            if size > 0 and outside_reward[k] + discount[k] * value[other] < worth[order[0]]:
                worst = end - 1
        left = radius[k] / 2.0 if size > 0 else 0.0
        moved = 0.0 if size > 0 else 1.0
        for i in range(size - 1, -1, -1):
            taken = min(left, probability[start + order[i]])
            probability[start + order[i]] -= taken
            left -= taken
            moved += taken
            if left <= 0.0:
                break
        probability[worst] += moved
        add_up_row(k, offsets, room, step, value, extreme)


@kernel(threads_from=SWEEP_THREADS)
def worst_l1_rows(
    rows: L1Balls, step: Step, value: FloatsIn, by_value: IntsIn, extreme: ExtremeRows
) -> None:
    """Writes the worst rows of all pairs within L1 balls; see `l1_rows`."""
    pairs = extreme.q.size
    for b in prange((pairs - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, pairs)
        l1_rows(first, last, rows, step, value, by_value, extreme)


# ---- intervals --------------------------------------------------------------------------------


@helper
def interval_rows(
    first_pair: int,
    last_pair: int,
    rows: Intervals,
    step: Step,
    value: FloatArray,
    by_value: IntArray,
    extreme: ExtremeRows,
) -> None:
    """Writes the p of the smallest Σ p (R + γ v) with low ≤ p ≤ high, for a run of pairs.

    The mass that the low ends leave goes to the worst outcomes first, up to their tops. A state
    that is not stored can take `elsewhere` [K], and earns `outside_reward`; `by_value` [S] lists
    the states by rising v. Places after the stored ones are filled in the order in which states
    take mass.
    """
    offsets, successor, low, high, elsewhere, room = rows
    _, outside_reward, ending, discount = step
    states, probability, earned, q = extreme
    longest = longest_run(first_pair, last_pair, offsets)
    worth, order = np.empty(longest), np.empty(longest, np.int64)
    owner = np.full(value.size, -1)  # k where a state is stored for pair k
    for k in range(first_pair, last_pair):
        first, size, start, end = offsets[k], offsets[k + 1] - offsets[k], room[k], room[k + 1]
        if start == end:
            earned[k] = q[k] = ending[k]
            continue
        store_row(k, offsets, successor, low, room, step, value, worth, extreme)
        sort_rising(worth, size, order)
        left = 1.0
        for i in range(size):
            owner[successor[first + i]] = k
            left -= low[first + i]
        i, j, place, recent = 0, 0, start + size, start
        while left > 0.0:
            while j < by_value.size and owner[by_value[j]] == k:
                j += 1
            free = place < end and j < by_value.size
            if i == size and not free:
                break
            if i < size and not (
                free and outside_reward[k] + discount[k] * value[by_value[j]] < worth[order[i]]
            ):
                recent = start + order[i]
                given = min(left, high[first + order[i]] - low[first + order[i]])
                i += 1
            else:
                recent = place
                states[place] = by_value[j]
                given = min(left, elsewhere[k])
                place += 1
                j += 1
            probability[recent] += given
            left -= given
        if left > 0.0:  # the upper ends add up to 1 only within rounding
            probability[recent] += left
        add_up_row(k, offsets, room, step, value, extreme)


@kernel(threads_from=SWEEP_THREADS)
def worst_interval_rows(
    rows: Intervals, step: Step, value: FloatsIn, by_value: IntsIn, extreme: ExtremeRows
) -> None:
    """Writes the worst rows of all pairs within intervals; see `interval_rows`."""
    pairs = extreme.q.size
    for b in prange((pairs - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, pairs)
        interval_rows(first, last, rows, step, value, by_value, extreme)
