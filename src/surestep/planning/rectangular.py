"""Sets of MDPs in which every row varies on its own, and the worst row of each pair.

A row may be any distribution of its set, whatever the others are. Mass may go to any state; which
ones are *stored* only says of which of them more is known. For given values of the states, the
worst row solves a small linear program in closed form: the outcomes are taken by rising worth
R + γ v until the mass is used up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from surestep._arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    Frozen,
    IndexArray,
    IntArray,
    offsets_of,
    run_lengths,
    run_sums,
)
from surestep.kernels.robust import (
    ExtremeRows,
    Intervals,
    L1Balls,
    Segments,
    Step,
    Trees,
    lowest_of_segments,
    segments,
    tree_nodes,
    tree_sizes,
    worst_interval_rows,
    worst_l1_rows,
    worst_tree_rows,
)
from surestep.kernels.robust_batch import Answer, Game, settle_intervals, settle_l1, settle_trees
from surestep.kernels.types import RoomSize
from surestep.model.noun import noun
from surestep.model.pairs import Pairs


class Earnings(NamedTuple):
    """The rewards of a step: at stored successors, at other states, and where episodes end."""

    stored: FloatArray  # [T]
    outside: FloatArray  # [K]
    ending: FloatArray  # [K]

    @classmethod
    def of_pairs(cls, reward: FloatArray, offsets: IntArray) -> Earnings:
        """Returns the reward [K] of each pair, whatever comes of it."""
        return cls(np.repeat(reward, run_lengths(offsets)), reward, reward)

    def __neg__(self) -> Earnings:
        return Earnings(-self.stored, -self.outside, -self.ending)


class Extreme(NamedTuple):
    """One row a pair, and what the pair is worth with it: q = expected_reward + γ Σ p v."""

    offsets: IntArray  # [K+1]
    successor: IndexArray  # [C]
    probability: FloatArray  # [C]
    expected_reward: FloatArray  # [K]
    q: FloatArray  # [K]


class L1Rows(L1Balls):
    """Rows within `radius` of a center, in the L1 distance; any row where nothing is stored."""

    __slots__ = ()

    @classmethod
    def of(
        cls,
        offsets: IntArray,
        successor: IndexArray,
        center: FloatArray,
        radius: FloatArray,
        ends: BoolArray,
        *,
        closed: bool = False,
    ) -> L1Rows:
        """Makes room for the stored successors, and one state elsewhere unless rows are closed."""
        return cls(
            offsets,
            successor,
            center,
            radius,
            offsets_of(np.where(ends, 0, run_lengths(offsets) + (0 if closed else 1))),
        )

    def worst(self, earnings: Earnings, discount: FloatArray, value: FloatArray) -> Extreme:
        """Returns the row of the smallest Σ p (R + γ v) for every pair."""
        rows = empty_rows(self.room)
        worst_l1_rows(
            self, Step(*earnings, discount), value, np.argsort(value, kind="stable"), rows
        )
        return Extreme(self.room, *rows)

    def settle(self, game: Game, step: Step, answer: Answer) -> None:
        """Brings the values of sets that were joined near their fixed points."""
        sets, states = answer.value.shape
        settle_l1.all(sets, RoomSize(ints=states), game, self, step, empty_rows(self.room), answer)


class IntervalRows(Intervals):
    """Rows with low ≤ p ≤ high at stored successors, and p ≤ `elsewhere` > 0 at any other state."""

    __slots__ = ()

    @classmethod
    def of(
        cls,
        offsets: IntArray,
        successor: IndexArray,
        low: FloatArray,
        high: FloatArray,
        elsewhere: FloatArray,
        *,
        ends: BoolArray,
        support: IntArray | int,
    ) -> IntervalRows:
        """Makes room for as many other states as the mass above the low ends can fill.

        A pair may lead to `support` states, one number for all or one for each [K].
        """
        left = np.maximum(1.0 - run_sums(low, offsets), 0.0)
        stored = run_lengths(offsets)
        others = np.minimum(np.ceil(left / elsewhere) + 1, support - stored)
        return cls(
            offsets,
            successor,
            low,
            high,
            elsewhere,
            offsets_of(np.where(ends, 0, stored + others).astype(np.int64)),
        )

    def worst(self, earnings: Earnings, discount: FloatArray, value: FloatArray) -> Extreme:
        """Returns the row of the smallest Σ p (R + γ v) for every pair."""
        rows = empty_rows(self.room)
        worst_interval_rows(
            self, Step(*earnings, discount), value, np.argsort(value, kind="stable"), rows
        )
        return Extreme(self.room, *rows)

    def settle(self, game: Game, step: Step, answer: Answer) -> None:
        """Brings the values of sets that were joined near their fixed points."""
        sets, states = answer.value.shape
        settle_intervals.all(
            sets, RoomSize(ints=states), game, self, step, empty_rows(self.room), answer
        )


@dataclass(frozen=True, slots=True, eq=False)
class SupportTrees:
    """One balanced binary tree over all states, as far down as each pair's successors need it.

    The left half of the states, in their order, hangs below the left child. Where no successor is
    stored below a node it is a leaf: all that counts is the lowest value below it. *Closed* rows
    lead to their stored successors only, and have trees over these.
    """

    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    room: IntArray  # [K+1] the leaves of each pair
    node_offsets: IntArray  # [K+1]
    child: IntArray  # [X, 2] left and right: an inner node, or ~i for the leaf i
    cuts: IntArray  # [X, 3] transitions below the left child, then below the right one
    leaf: IntArray  # [C] a node of the common tree, or ~t for the transition t
    first: IntArray  # [H] the states below a node of the common tree
    last: IntArray  # [H]

    @classmethod
    def of(
        cls,
        offsets: IntArray,
        successor: IndexArray,
        ends: BoolArray,
        num_states: int,
        *,
        closed: bool = False,
    ) -> SupportTrees:
        """Returns the trees of rows whose successors rise."""
        place: IndexArray = successor
        width: IntArray = np.full_like(ends, num_states, np.int64)
        if closed:
            width = run_lengths(offsets)
            place = (np.arange(successor.size) - np.repeat(offsets[:-1], width)).astype(np.int32)
        sizes = np.empty_like(width)
        tree_sizes(offsets, place, width, sizes)
        node_offsets = offsets_of(np.where(ends, 0, sizes))
        room = offsets_of(np.where(ends, 0, sizes + 1))
        child = np.empty((node_offsets[-1], 2), np.int64)
        cuts = np.empty((node_offsets[-1], 3), np.int64)
        leaf = np.empty(room[-1], np.int64)
        tree_nodes(offsets, place, width, node_offsets, room, child, cuts, leaf)
        first = np.zeros(2 ** ((num_states - 1).bit_length() + 1), np.int64)
        last = np.zeros_like(first)
        last[1] = num_states
        segments(first, last)
        return cls(offsets, successor, room, node_offsets, child, cuts, leaf, first, last)

    def counts(self, times: IntArray) -> tuple[IntArray, IntArray]:
        """Counts how often each inner node was passed, and how often to the left [X]."""
        total = offsets_of(times)
        start, middle, end = (total[self.cuts[:, i]] for i in range(3))
        return end - start, middle - start

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Returns the trees of all parts, over the same states, one after the other."""
        sizes = [(part.offsets[-1], part.room[-1], part.node_offsets[-1]) for part in parts]
        before = np.cumsum([(0, 0, 0), *sizes[:-1]], axis=0).tolist()
        numbered = [
            (
                np.where(part.child < 0, part.child - leaves, part.child + nodes),
                part.cuts + transitions,
                np.where(part.leaf < 0, part.leaf - transitions, part.leaf),
            )
            for part, (transitions, leaves, nodes) in zip(parts, before, strict=True)
        ]
        offsets, successor, room, node_offsets = joined_arrays(
            ("offsets", "successor", "room", "node_offsets"), parts
        )
        child, cuts, leaf = map(np.concatenate, zip(*numbered, strict=True))
        first, last = parts[0].first, parts[0].last
        return cls(offsets, successor, room, node_offsets, child, cuts, leaf, first, last)


@dataclass(frozen=True, slots=True, eq=False)
class TreeRows:
    """Rows that are products along a tree: node x goes left with a chance in [low, high]."""

    trees: SupportTrees
    low: FloatArray  # [X]
    high: FloatArray  # [X]

    @property
    def offsets(self) -> IntArray:
        """Returns the stored successors of each pair [K+1]."""
        return self.trees.offsets

    @property
    def room(self) -> IntArray:
        """Returns the leaves of each pair's tree."""
        return self.trees.room

    def worst(self, earnings: Earnings, discount: FloatArray, value: FloatArray) -> Extreme:
        """Returns the row of the smallest Σ p (R + γ v) for every pair."""
        trees = self.trees
        rows = empty_rows(self.room)
        lowest = np.empty(trees.first.size, np.int64)
        lowest_of_segments(Segments(trees.first, trees.last), value, lowest)
        worst_tree_rows(self.products(), Step(*earnings, discount), value, lowest, rows)
        return Extreme(self.room, *rows)

    def products(self) -> Trees:
        """Returns the rows as kernels take them."""
        trees = self.trees
        return Trees(
            trees.successor,
            trees.node_offsets,
            trees.child,
            trees.leaf,
            self.low,
            self.high,
            trees.room,
        )

    def settle(self, game: Game, step: Step, answer: Answer) -> None:
        """Brings the values of sets that were joined near their fixed points."""
        nodes = Segments(self.trees.first, self.trees.last)
        settle_trees.all(
            len(answer.value),
            RoomSize(ints=nodes.first.size),
            game,
            self.products(),
            step,
            empty_rows(self.room),
            nodes,
            answer,
        )


SetRows = L1Rows | IntervalRows | TreeRows


@noun("pairs.num_states", "pairs.num_pairs", "discount")
@dataclass(frozen=True, slots=True, eq=False)
class RectangularSet(Frozen):
    """Rows and rewards that vary independently, pair by pair; the discounts are known."""

    pairs: Pairs
    discount: FloatArray  # [K]
    rows: SetRows
    low: Earnings  # the least that a step may earn
    high: Earnings  # the most

    def worst(self, value: FloatArray) -> Extreme:
        """Returns the row of the smallest Σ p (R + γ v) for every pair."""
        return self.rows.worst(self.low, self.discount, value)

    def mirrored(self) -> RectangularSet:
        """Returns the set with negated rewards: its worst values are minus the best here."""
        return RectangularSet(self.pairs, self.discount, self.rows, -self.high, -self.low)


def empty_rows(room: IntArray) -> ExtremeRows:
    """Returns rows to be written."""
    size = int(room[-1])
    pairs = room.size - 1
    return ExtremeRows(np.empty(size, np.int32), np.empty(size), np.empty(pairs), np.empty(pairs))


def joined_rows(parts: Sequence[Any]) -> SetRows:
    """Returns the rows of all parts, which are of one kind, one after the other."""
    if isinstance(parts[0], TreeRows):
        low, high = joined_arrays(("low", "high"), parts)
        return TreeRows(SupportTrees.joined([part.trees for part in parts]), low, high)
    joined: SetRows = type(parts[0])(*joined_arrays(parts[0]._fields, parts))
    return joined


def joined_arrays(names: Sequence[str], parts: Sequence[Any]) -> list[AnyArray]:
    """Returns the arrays of all parts one after the other, by name; offsets of runs go on."""
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in names]
    for place, name in enumerate(names):
        if name in ("offsets", "room", "node_offsets"):
            joined[place] = offsets_of(
                np.concatenate([run_lengths(getattr(part, name)) for part in parts])
            )
    return joined
