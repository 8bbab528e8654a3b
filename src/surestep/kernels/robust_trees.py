"""Binary trees over all states: the part of them that a pair's successors need, and worst rows.

The tree is the same for every pair. Its node i covers the states `first` … `last − 1`; the root is
node 1, and the children of node i, 2i and 2i + 1, cover the two halves. For one pair, subtrees
without a stored successor are leaves, of which only the lowest value below them counts. Pairs of
which all possible successors are stored may have trees over these instead, numbered from 0 on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, kernel
from surestep.kernels._types import (
    CountTableIn,
    CountTableOut,
    FloatsIn,
    IndicesIn,
    IntsIn,
    IntsOut,
)
from surestep.kernels.robust import ExtremeRows, Step, longest_run
from surestep.kernels.rows import BLOCK_ROWS

DEEPEST = 64  # halvings of 2³¹ states, with room to spare


class Segments(NamedTuple):
    """The states `first` … `last − 1` that each node of the common tree covers."""

    first: IntsIn  # [H]
    last: IntsIn  # [H]


class Trees(NamedTuple):
    """Rows that are products along trees: node x goes left with a chance in [low, high]."""

    successor: IndicesIn  # [T]
    node_offsets: IntsIn  # [K+1]
    child: CountTableIn  # [X, 2]
    leaf: IntsIn  # [C]
    low: FloatsIn  # [X]
    high: FloatsIn  # [X]
    room: IntsIn  # [K+1]


@kernel()
def segments(first: IntsOut, last: IntsOut) -> None:
    """Finds the states that each node covers; root and size stand in entry 1 beforehand."""
    for node in range(1, first.size // 2):
        if last[node] - first[node] > 1:
            middle = (first[node] + last[node]) // 2
            first[2 * node], last[2 * node] = first[node], middle
            first[2 * node + 1], last[2 * node + 1] = middle, last[node]


@helper
def lowest_below(nodes: Segments, value: FloatArray, lowest: IntArray) -> None:
    """Writes the state of the lowest value below each node, the first among equals."""
    first, last = nodes
    for node in range(first.size - 1, 0, -1):
        if last[node] - first[node] == 1:
            lowest[node] = first[node]
        elif last[node] > first[node]:
            left, right = lowest[2 * node], lowest[2 * node + 1]
            lowest[node] = left if value[left] <= value[right] else right


@kernel()
def lowest_of_segments(nodes: Segments, value: FloatsIn, lowest: IntsOut) -> None:
    """Writes the state of the lowest value below each node of one tree, the first among equals."""
    lowest_below(nodes, value, lowest)


@helper
def below(stored: IndexArray, first: int, last: int, bound: int) -> int:
    """Returns the first place of `first` … `last` with a state of at least `bound`; they rise."""
    while first < last:
        middle = (first + last) // 2
        if stored[middle] < bound:
            first = middle + 1
        else:
            last = middle
    return first


@helper
def put(values: tuple[int, ...], row: IntArray) -> None:
    """Writes a row; to say `row[:] = values` takes seconds to compile, for its messages."""
    for i in range(row.size):
        row[i] = values[i]


@kernel()
def tree_sizes(offsets: IntsIn, place: IndicesIn, width: IntsIn, sizes: IntsOut) -> None:
    """Counts the inner nodes of each pair's tree: those with a stored successor below them.

    The tree of pair k is over 0 … `width`[k] − 1; its successors stand at `place` [T], rising.
    """
    stack = np.empty((DEEPEST, 4), np.int64)
    for k in range(sizes.size):
        count, top = 0, 0
        put((0, width[k], offsets[k], offsets[k + 1]), stack[0])
        while top >= 0:
            first, last, start, end = stack[top]
            top -= 1
            if start < end and last - first > 1:
                count += 1
                middle = (first + last) // 2
                cut = below(place, start, end, middle)
                put((first, middle, start, cut), stack[top + 1])
                put((middle, last, cut, end), stack[top + 2])
                top += 2
        sizes[k] = count


@kernel()
def tree_nodes(
    offsets: IntsIn,
    place: IndicesIn,
    width: IntsIn,
    node_offsets: IntsIn,
    room: IntsIn,
    child: CountTableOut,
    cuts: CountTableOut,
    leaf: IntsOut,
) -> None:
    """Writes the trees of all pairs, parents before their children.

    `child` [X, 2] is an inner node x ≥ 0, or ~i for the leaf at place i of the room. `cuts` [X, 3]
    are the transitions below a node: left from the first to the second, right up to the third.
    `leaf` [C] is the node of the common tree, or ~t for the transition t. Rows must be sorted.
    """
    stack = np.empty((DEEPEST, 7), np.int64)
    for k in range(offsets.size - 1):
        node, free, top = node_offsets[k], room[k], 0
        put((1, 0, width[k], offsets[k], offsets[k + 1], -1, 0), stack[0])
        if room[k] == room[k + 1]:
            continue
        while top >= 0:
            segment, first, last, start, end, parent, side = stack[top]
            top -= 1
            if start < end and last - first > 1:
                name = node
                middle = (first + last) // 2
                cut = below(place, start, end, middle)
                put((start, cut, end), cuts[node])
                put((2 * segment + 1, middle, last, cut, end, node, 1), stack[top + 1])
                put((2 * segment, first, middle, start, cut, node, 0), stack[top + 2])
                top += 2
                node += 1
            else:
                name = ~free
                leaf[free] = ~start if start < end else segment
                free += 1
            if parent >= 0:
                child[parent, side] = name


@helper
def tree_rows(
    first_pair: int,
    last_pair: int,
    rows: Trees,
    step: Step,
    value: FloatArray,
    lowest: IntArray,
    extreme: ExtremeRows,
) -> None:
    """Finds the worst rows of a run of pairs; node x goes left with a chance in [low, high].

    Upwards, a node is worth the less of its two ends; downwards, the chances multiply.
    """
    successor, node_offsets, child, leaf, low, high, room = rows
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


@kernel(threads_from=SWEEP_THREADS)
def worst_tree_rows(
    rows: Trees, step: Step, value: FloatsIn, lowest: IntsIn, extreme: ExtremeRows
) -> None:
    """Writes the worst rows of all pairs along trees; see `tree_rows`."""
    pairs = extreme.q.size
    for b in prange((pairs - 1) // BLOCK_ROWS + 1):
        first, last = b * BLOCK_ROWS, min((b + 1) * BLOCK_ROWS, pairs)
        tree_rows(first, last, rows, step, value, lowest, extreme)
