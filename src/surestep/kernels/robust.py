"""Finds the worst transition probabilities in rectangular sets: L1 balls, intervals and trees.

The worst row of each pair has a closed form. The row of pair k is written to the places
`room`[k] … `room`[k+1] − 1: one for every stored successor, and one for each other state that its
mass can reach. Unneeded places hold probability 0. A pair without room ends the episode and is
worth `ending`.

`l1_rows`, `interval_rows` and `tree_rows` do a run of pairs, as tasks over all pairs of one set, or
compiled into the kernels of `robust_batch`, which bring many sets to their fixed points.

**Binary trees over all states.** All pairs share one tree, and each pair keeps the part of it that
its successors need. Node i covers the states `first` … `last − 1`; the root is node 1, and the
children of node i, 2i and 2i + 1, cover the two halves. For one pair, a subtree without a stored
successor is a leaf, and only the lowest value below it counts. If all possible successors of the
pairs are stored, the trees may be over these instead, numbered from 0 on.
"""

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, kernel, tasks
from surestep.kernels.records import copy_into
from surestep.kernels.types import (
    BoolsIn,
    CountTableIn,
    CountTableOut,
    FloatsIn,
    FloatsOut,
    IndicesIn,
    IndicesOut,
    IntsIn,
    IntsOut,
    Room,
)

DEEPEST = 64  # halvings of 2³¹ states, with room to spare


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
    """The rewards of a step to stored successors, to other states and to the end; discounts."""

    reward: FloatsIn  # [T]
    outside_reward: FloatsIn  # [K]
    ending: FloatsIn  # [K]
    discount: FloatsIn  # [K]


class ExtremeRows(NamedTuple):
    """Output: one row for each pair, and the value of the pair with it."""

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
    """Writes the successors of pair k with the chances `least`, and the `worth` of each."""
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
    """Writes Σ p R and q = Σ p R + γ Σ p v of pair k, its stored successors in the first places."""
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
        for t in range(first, last):  # the lowest states are seldom stored: this loop ends soon
            if successor[t] == s:
                known = True
                break
        if not known:
            return int(s)
    return -1


def l1_rows(
    first_pair: int,
    last_pair: int,
    memory: Room,
    rows: L1Balls,
    step: Step,
    value: FloatsIn,
    by_value: IntsIn,
    extreme: ExtremeRows,
) -> None:
    """Writes the p of the smallest Σ p (R + γ v) with ‖p − center‖₁ ≤ radius, for a run of pairs.

    The mass radius/2 goes to the worst outcome, taken from the best ones downward. Outcomes are the
    stored successors and, if there is room for one more, any other state, which earns
    `outside_reward`. `by_value` [S] lists the states by rising v. A pair with room but without
    stored successors may go anywhere.
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
        elsewhere = end - start > size  # there is room for a state that is not stored
        other = (
            lowest_elsewhere(offsets[k], offsets[k + 1], successor, by_value) if elsewhere else -1
        )
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


worst_l1_rows = tasks(threads_from=SWEEP_THREADS, on_gpu=False)(l1_rows)


# ---- intervals --------------------------------------------------------------------------------


def interval_rows(
    first_pair: int,
    last_pair: int,
    memory: Room,
    rows: Intervals,
    step: Step,
    value: FloatsIn,
    by_value: IntsIn,
    extreme: ExtremeRows,
) -> None:
    """Writes the p of the smallest Σ p (R + γ v) with low ≤ p ≤ high, for a run of pairs.

    The mass that the low ends leave goes to the worst outcomes first, up to their high ends. A
    state that is not stored can take `elsewhere` [K], and earns `outside_reward`; `by_value` [S]
    lists the states by rising v. Places after the stored ones are filled in the order in which
    states take mass.
    """
    offsets, successor, low, high, elsewhere, room = rows
    _, outside_reward, ending, discount = step
    states, probability, earned, q = extreme
    longest = longest_run(first_pair, last_pair, offsets)
    worth, order = np.empty(longest), np.empty(longest, np.int64)
    owner = np.full(value.size, -1)  # the last pair for which a state is stored
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


worst_interval_rows = tasks(threads_from=SWEEP_THREADS, on_gpu=False)(interval_rows)


class Trees(NamedTuple):
    """Rows that are products along trees: node x goes left with a chance in [low, high]."""

    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    room: IntsIn  # [K+1] the leaves of each pair
    node_offsets: IntsIn  # [K+1]
    child: CountTableIn  # [X, 2] left and right: an inner node, or ~i for the leaf i
    cuts: CountTableIn  # [X, 3] transitions below the left child, then below the right one
    leaf: IntsIn  # [C] a node of the common tree, or ~t for the transition t
    first: IntsIn  # [H] the states `first` … `last − 1` are below a node of the common tree
    last: IntsIn  # [H]
    low: FloatsIn  # [X]
    high: FloatsIn  # [X]


@kernel()
def segments(first: IntsOut, last: IntsOut) -> None:
    """Writes the states that each node covers; entry 1, the root, must be set beforehand."""
    for node in range(1, first.size // 2):
        if last[node] - first[node] > 1:
            middle = (first[node] + last[node]) // 2
            first[2 * node], last[2 * node] = first[node], middle
            first[2 * node + 1], last[2 * node + 1] = middle, last[node]


def lowest_below(rows: Trees, value: FloatsIn, lowest: IntsOut) -> None:
    """Writes the state of the lowest value below each node, the first among equals."""
    first, last = rows.first, rows.last
    for node in range(first.size - 1, 0, -1):
        if last[node] - first[node] == 1:
            lowest[node] = first[node]
        elif last[node] > first[node]:
            left, right = lowest[2 * node], lowest[2 * node + 1]
            lowest[node] = left if value[left] <= value[right] else right


lowest_of_segments = kernel()(lowest_below)


@kernel()
def tree_nodes(
    offsets: IntsIn,
    place: IndicesIn,
    width: IntsIn,
    ends: BoolsIn,
    node_offsets: IntsOut,
    room: IntsOut,
    child: CountTableOut,
    cuts: CountTableOut,
    leaf: IntsOut,
) -> None:
    """Writes the trees of all pairs that do not end an episode, parents before their children.

    The tree of pair k is over 0 … `width`[k] − 1; its successors stand at `place` [T], rising. Each
    inner node has a stored successor below it. `child` [X, 2] is an inner node x ≥ 0, or ~i for the
    leaf at place i of the room. `cuts` [X, 3] are the transitions below a node: left from the first
    to the second, right up to the third. `leaf` [C] is the node of the common tree, or ~t for the
    transition t.
    """
    stack = np.empty((DEEPEST, 7), np.int64)
    node_offsets[0], room[0] = 0, 0
    for k in range(offsets.size - 1):
        node, free, top = node_offsets[k], room[k], -1 if ends[k] else 0
        copy_into(stack[0], (1, 0, width[k], offsets[k], offsets[k + 1], -1, 0))
        while top >= 0:
            segment, first, last, start, end, parent, side = stack[top]
            top -= 1
            if start < end and last - first > 1:
                name = node
                middle = (first + last) // 2
                cut = start + np.searchsorted(place[start:end], middle)
                copy_into(cuts[node], (start, cut, end))
                copy_into(stack[top + 1], (2 * segment + 1, middle, last, cut, end, node, 1))
                copy_into(stack[top + 2], (2 * segment, first, middle, start, cut, node, 0))
                top += 2
                node += 1
            else:
                name = ~free
                leaf[free] = ~start if start < end else segment
                free += 1
            if parent >= 0:
                child[parent, side] = name
        node_offsets[k + 1], room[k + 1] = node, free


def tree_rows(
    first_pair: int,
    last_pair: int,
    memory: Room,
    rows: Trees,
    step: Step,
    value: FloatsIn,
    lowest: IntsIn,
    extreme: ExtremeRows,
) -> None:
    """Finds the worst rows of a run of pairs; node x goes left with a chance in [low, high].

    From the leaves up, a node is worth the lower of its two ends. From the root down, the chances
    multiply.
    """
    _, successor, room, node_offsets, child, _, leaf, _, _, low, high = rows
    reward, outside_reward, ending, discount = step
    states, probability, earned, q = extreme
    places = longest_run(first_pair, last_pair, room)
    gain, worth = np.empty(places), np.empty(places)
    nodes = longest_run(first_pair, last_pair, node_offsets)
    node_worth, chance, reach = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    for k in range(first_pair, last_pair):
        start, end, first, last = room[k], room[k + 1], node_offsets[k], node_offsets[k + 1]
        if start == end:
            earned[k] = q[k] = ending[k]
            continue
        for i in range(start, end):
            if leaf[i] < 0:
                states[i], gain[i - start] = successor[~leaf[i]], reward[~leaf[i]]
            else:
                states[i], gain[i - start] = lowest[leaf[i]], outside_reward[k]
            worth[i - start] = gain[i - start] + discount[k] * value[states[i]]
        for x in range(last - 1, first - 1, -1):
            left, right = child[x, 0], child[x, 1]
            at_left = node_worth[left - first] if left >= 0 else worth[~left - start]
            at_right = node_worth[right - first] if right >= 0 else worth[~right - start]
            share = high[x] if at_left < at_right else low[x]
            chance[x - first] = share
            node_worth[x - first] = share * at_left + (1.0 - share) * at_right
        q[k] = node_worth[0] if last > first else worth[0]
        probability[start] = 1.0
        if last > first:
            reach[0] = 1.0
        for x in range(first, last):
            for side in range(2):
                share = chance[x - first] if side == 0 else 1.0 - chance[x - first]
                target = child[x, side]
                if target >= 0:
                    reach[target - first] = reach[x - first] * share
                else:
                    probability[~target] = reach[x - first] * share
        total = 0.0
        for i in range(start, end):
            total += probability[i] * gain[i - start]
        earned[k] = total


worst_tree_rows = tasks(threads_from=SWEEP_THREADS, on_gpu=False)(tree_rows)
