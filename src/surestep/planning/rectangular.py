"""Defines rectangular sets of MDPs, in which every row varies on its own, and finds worst rows.

A row may be any distribution of its set, independently of the other rows. Mass may go to any state;
more is known only about the *stored* successors. For given values of the states, the worst row
solves a small linear program in closed form: the outcomes are taken by rising worth R + γ v until
the mass is used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    Frozen,
    IndexArray,
    IntArray,
    offsets_of,
    ranges,
    run_lengths,
    run_sums,
)
from surestep.kernels.robust import (
    ExtremeRows,
    Intervals,
    L1Balls,
    Step,
    Trees,
    lowest_of_segments,
    segments,
    tree_nodes,
    worst_interval_rows,
    worst_l1_rows,
    worst_tree_rows,
)
from surestep.kernels.robust_batch import settle_intervals, settle_l1, settle_trees
from surestep.kernels.types import RoomSize
from surestep.model.noun import noun
from surestep.model.pairs import Pairs


class Earnings(NamedTuple):
    """The rewards of a step: to stored successors, to other states, and to the end."""

    stored: FloatArray  # [T]
    outside: FloatArray  # [K]
    ending: FloatArray  # [K]

    @classmethod
    def of_pairs(cls, reward: FloatArray, offsets: IntArray) -> Earnings:
        """Returns the rewards of pairs [K], which do not depend on the successor."""
        return cls(np.repeat(reward, run_lengths(offsets)), reward, reward)

    def __neg__(self) -> Earnings:
        return Earnings(-self.stored, -self.outside, -self.ending)


def rows_in_balls(
    offsets: IntArray,
    successor: IndexArray,
    center: FloatArray,
    radius: FloatArray,
    ends: BoolArray,
    *,
    closed: bool = False,
) -> L1Balls:
    """Returns the rows within `radius` of a center, in the L1 distance; any if nothing is stored.

    There is room for the stored successors, and for one other state unless rows are closed.
    """
    return L1Balls(
        offsets,
        successor,
        center,
        radius,
        offsets_of(np.where(ends, 0, run_lengths(offsets) + (0 if closed else 1))),
    )


def rows_in_intervals(
    offsets: IntArray,
    successor: IndexArray,
    low: FloatArray,
    high: FloatArray,
    elsewhere: FloatArray,
    *,
    ends: BoolArray,
    support: IntArray | int,
) -> Intervals:
    """Returns the rows with low ≤ p ≤ high at stored successors, and p ≤ `elsewhere` > 0 elsewhere.

    There is room for as many other states as the mass above the low ends can fill. A pair may lead
    to `support` states, one number for all or one for each [K].
    """
    left = np.maximum(1.0 - run_sums(low, offsets), 0.0)
    stored = run_lengths(offsets)
    others = np.minimum(np.ceil(left / elsewhere) + 1, support - stored)
    return Intervals(
        offsets,
        successor,
        low,
        high,
        elsewhere,
        offsets_of(np.where(ends, 0, stored + others).astype(np.int64)),
    )


def rows_along_trees(
    offsets: IntArray,
    successor: IndexArray,
    ends: BoolArray,
    num_states: int,
    *,
    closed: bool = False,
) -> Trees:
    """Returns rows that are products along a tree, with rising successors and any chance at a node.

    Each pair has a part of one balanced binary tree over all states, as far down as its successors
    need it. The left half of the states, in their order, hangs below the left child. A node without
    a stored successor below it is a leaf, and only the lowest value below it counts. *Closed* rows
    lead to their stored successors only, and have trees over these.
    """
    place: IndexArray = successor
    width: IntArray = np.full_like(ends, num_states, np.int64)
    if closed:
        width = run_lengths(offsets)
        place = ranges(0, width).astype(np.int32)
    depth = (num_states - 1).bit_length()
    most = int(offsets[-1]) * depth  # each inner node is above a stored successor
    child = np.empty((most, 2), np.int64)
    cuts = np.empty((most, 3), np.int64)
    leaf = np.empty(most + ends.size, np.int64)
    node_offsets, room = np.empty((2, ends.size + 1), np.int64)
    tree_nodes(offsets, place, width, ends, node_offsets, room, child, cuts, leaf)
    inner = int(node_offsets[-1])
    first = np.zeros(2 ** (depth + 1), np.int64)
    last = np.zeros_like(first)
    last[1] = num_states
    segments(first, last)
    return Trees(
        offsets,
        successor,
        room,
        node_offsets,
        child[:inner],
        cuts[:inner],
        leaf[: room[-1]],
        first,
        last,
        np.zeros(inner),
        np.ones(inner),
    )


def passes(trees: Trees, times: IntArray) -> tuple[IntArray, IntArray]:
    """Counts the passes through each inner node, and the passes to its left [X]."""
    total = offsets_of(times)
    start, middle, end = (total[trees.cuts[:, i]] for i in range(3))
    return end - start, middle - start


SetRows = L1Balls | Intervals | Trees

# The kernels of each kind of rows: one set at a time, and many sets to their fixed points.
WORST_ROWS: dict[type, Any] = {
    L1Balls: worst_l1_rows,
    Intervals: worst_interval_rows,
    Trees: worst_tree_rows,
}
SETTLE: dict[type, Any] = {
    L1Balls: settle_l1,
    Intervals: settle_intervals,
    Trees: settle_trees,
}


def worst_rows(
    rows: SetRows, earnings: Earnings, discount: FloatArray, value: FloatArray
) -> ExtremeRows:
    """Finds the row of the smallest Σ p (R + γ v) for every pair, at the places of `rows.room`."""
    worst = empty_rows(rows.room)
    ranking = np.argsort(value, kind="stable")
    if isinstance(rows, Trees):
        ranking = np.empty(rows.first.size, np.int64)
        lowest_of_segments(rows, value, ranking)
    step = Step(*earnings, discount)
    WORST_ROWS[type(rows)].all(worst.q.size, RoomSize(), rows, step, value, ranking, worst)
    return worst


@noun("pairs.num_states", "pairs.num_pairs", "discount")
@dataclass(frozen=True, slots=True, eq=False)
class RectangularSet(Frozen):
    """Rows and rewards that vary independently, pair by pair; the discounts are known."""

    pairs: Pairs
    discount: FloatArray  # [K]
    rows: SetRows
    low: Earnings  # the least that a step may earn
    high: Earnings  # the most

    def worst(self, value: FloatArray) -> ExtremeRows:
        """Finds the row of the smallest Σ p (R + γ v) for every pair."""
        return worst_rows(self.rows, self.low, self.discount, value)

    def mirrored(self) -> RectangularSet:
        """Returns the set with negated rewards: its worst values are minus the best here."""
        return RectangularSet(self.pairs, self.discount, self.rows, -self.high, -self.low)


def empty_rows(room: IntArray) -> ExtremeRows:
    """Returns uninitialised rows."""
    size = int(room[-1])
    pairs = room.size - 1
    return ExtremeRows(np.empty(size, np.int32), np.empty(size), np.empty(pairs), np.empty(pairs))


def joined_rows(parts: Sequence[Any]) -> SetRows:
    """Joins the rows of parts of one kind over the same states, end to end."""
    if isinstance(parts[0], Trees):
        parts = trees_numbered_on(parts)
    joined = type(parts[0])._make(map(np.concatenate, zip(*parts, strict=True)))
    for name in {"offsets", "room", "node_offsets"}.intersection(joined._fields):
        lengths = np.concatenate([run_lengths(getattr(part, name)) for part in parts])
        joined = joined._replace(**{name: offsets_of(lengths)})
    if isinstance(joined, Trees):
        joined = joined._replace(first=parts[0].first, last=parts[0].last)
    rows: SetRows = joined
    return rows


def trees_numbered_on(parts: Sequence[Trees]) -> list[Trees]:
    """Renumbers nodes, leaves and transitions, so that each part continues the part before."""
    sizes = [(part.offsets[-1], part.room[-1], part.node_offsets[-1]) for part in parts]
    before = np.cumsum([(0, 0, 0), *sizes[:-1]], axis=0).tolist()
    return [
        part._replace(
            child=np.where(part.child < 0, part.child - leaves, part.child + nodes),
            cuts=part.cuts + transitions,
            leaf=np.where(part.leaf < 0, part.leaf - transitions, part.leaf),
        )
        for part, (transitions, leaves, nodes) in zip(parts, before, strict=True)
    ]
