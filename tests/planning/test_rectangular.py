"""The worst rows of rectangular sets, against linear programs over all states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oracles import best_bounded_row, solved, worst_row
from surestep.planning.rectangular import (
    Earnings,
    joined_rows,
    passes,
    rows_along_trees,
    rows_in_balls,
    rows_in_intervals,
    worst_rows,
)

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50, allow_subnormal=False))
SHARES = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.floats(0, 1))


class Row:
    """One row over some of the states: weights of stored successors, rewards, and values."""

    def __init__(self, draw, max_states=7):
        self.states = draw(st.integers(1, max_states))
        stored = draw(st.permutations(range(self.states)))[: draw(st.integers(0, self.states))]
        self.stored = np.array(sorted(stored), np.int32)
        size = self.stored.size
        self.times = np.array(draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)), int)
        self.reward = np.array(draw(st.lists(NUMBERS, min_size=size, max_size=size)))
        self.outside = draw(NUMBERS)
        self.value = np.array(draw(st.lists(NUMBERS, min_size=self.states, max_size=self.states)))
        self.discount = draw(st.sampled_from([0.0, 0.5, 0.9]))

    @property
    def offsets(self):
        return np.array([0, self.stored.size])

    @property
    def worth(self):
        """R + γ v of every state."""
        worth = self.outside + self.discount * self.value
        worth[self.stored] = self.reward + self.discount * self.value[self.stored]
        return worth

    def check(self, rows, expected_row):
        """The worst row of the set is as bad as the one expected, and a member of the set."""
        earnings = Earnings(self.reward, np.array([self.outside]), np.array([np.nan]))
        found = worst_rows(rows, earnings, np.array([self.discount]), self.value)
        scale = max(1.0, np.abs(self.worth).max())
        assert found.q[0] == pytest.approx(self.worth @ expected_row, abs=1e-9 * scale, rel=1e-9)
        dense = np.bincount(found.successor, found.probability, minlength=self.states)
        assert dense.sum() == pytest.approx(1.0, abs=1e-12)
        # Every place is another state, so that rewards of the row are those of its states.
        assert found.q[0] == pytest.approx(self.worth @ dense, abs=1e-11 * scale)
        earned = found.q[0] - self.discount * (dense @ self.value)
        assert found.earned[0] == pytest.approx(earned, abs=1e-11 * scale)
        return dense


GOES_ON = np.array([False])


@given(data=st.data(), radius=st.one_of(st.sampled_from([0.0, 0.2, 1.9, 2.0]), st.floats(0, 2)))
def test_the_worst_row_of_an_l1_ball_is_that_of_the_linear_program(data, radius):
    row = Row(data.draw)
    times = row.times + (row.times.sum() == 0)
    center = times / max(times.sum(), 1)
    rows = rows_in_balls(row.offsets, row.stored, center, np.array([radius]), GOES_ON)
    whole = np.zeros(row.states)
    whole[row.stored] = center
    if row.stored.size == 0:  # nothing was seen: any row
        whole, radius = np.eye(1, row.states)[0], 2.0
    dense = row.check(rows, worst_row(whole, row.worth, radius))
    assert np.abs(dense - whole).sum() <= radius + 1e-12


@given(data=st.data())
def test_the_worst_row_of_intervals_is_that_of_the_linear_program(data):
    row = Row(data.draw)
    size = row.stored.size
    times = row.times + (row.times.sum() == 0)
    center = times / max(times.sum(), 1)
    low, high = (
        np.array(data.draw(st.lists(SHARES, min_size=size, max_size=size))) for _ in range(2)
    )
    low, high = center * low, center + (1 - center) * high
    elsewhere = 1.0 if size == 0 else data.draw(st.sampled_from([1e-3, 0.07, 0.3, 1.0]))
    rows = rows_in_intervals(
        row.offsets, row.stored, low, high, np.array([elsewhere]), ends=GOES_ON, support=row.states
    )
    least, most = np.zeros(row.states), np.full(row.states, elsewhere)
    least[row.stored], most[row.stored] = low, high
    dense = row.check(rows, best_bounded_row(-row.worth, least, most))
    assert (dense >= least - 1e-12).all()
    assert (dense <= most + 1e-12).all()


def tree_cuts(first, last):
    """Every inner node of the balanced tree over the states first … last − 1, as three cuts."""
    if last - first > 1:
        middle = (first + last) // 2
        yield first, middle, last
        yield from tree_cuts(first, middle)
        yield from tree_cuts(middle, last)


@given(data=st.data())
def test_the_worst_row_of_a_tree_is_that_of_the_linear_program(data):
    row = Row(data.draw, max_states=9)
    trees = rows_along_trees(row.offsets, row.stored, GOES_ON, row.states)
    passed, left = passes(trees, row.times)
    share = left / np.maximum(passed, 1)
    width = data.draw(st.sampled_from([0.0, 0.1, 0.4, 1.0]))
    low = np.where(passed > 0, share * (1 - width), 0.0)
    high = np.where(passed > 0, share + (1 - share) * width, 1.0)
    # The mass left of a node, in units of the mass of the node, is an interval. In the program all
    # nodes of the whole tree stand, from counts of their own.
    times = np.zeros(row.states, int)
    times[row.stored] = row.times
    limits = []
    for first, middle, last in tree_cuts(0, row.states):
        total, part = times[first:last].sum(), times[first:middle].sum()
        ends = (0.0, 1.0)
        if total > 0:
            ends = (part / total * (1 - width), part / total + (1 - part / total) * width)
        for end, sign in zip(ends, (1, -1), strict=True):
            limit = np.zeros(row.states)
            limit[first:last] = sign * end
            limit[first:middle] -= sign
            limits.append(limit)
    terms = {"A_ub": limits, "b_ub": np.zeros(len(limits))} if limits else {}
    expected = solved(-row.worth, A_eq=[np.ones(row.states)], b_eq=[1.0], **terms)
    dense = row.check(trees._replace(low=low, high=high), expected)
    assert (np.array(limits).reshape(-1, row.states) @ dense <= 1e-12).all()


@given(data=st.data())
def test_trees_hold_as_many_nodes_as_stored_successors_need(data):
    row = Row(data.draw, max_states=40)
    trees = rows_along_trees(row.offsets, row.stored, GOES_ON, row.states)
    kept = set(row.stored.tolist())
    needed = [cut for cut in tree_cuts(0, row.states) if kept & set(range(cut[0], cut[2]))]
    assert trees.child.shape[0] == len(needed)
    passed, left = passes(trees, row.times)
    times = np.zeros(row.states, int)
    times[row.stored] = row.times
    assert passed.tolist() == [times[a:c].sum() for a, _, c in needed]
    assert left.tolist() == [times[a:b].sum() for a, b, _ in needed]


def test_pairs_that_end_the_episode_are_worth_their_end():
    offsets, nothing, ends = np.array([0, 0, 1]), np.zeros(1), np.array([True, True])
    stored = np.array([0], np.int32)
    trees = rows_along_trees(offsets, stored, ends, 2)
    for rows in (
        rows_in_balls(offsets, stored, nothing + 1, np.zeros(2), ends),
        rows_in_intervals(offsets, stored, nothing, nothing + 1, np.ones(2), ends=ends, support=2),
        trees,
    ):
        earnings = Earnings(nothing, np.full(2, 9.0), np.array([7.0, -3.0]))
        found = worst_rows(rows, earnings, np.full(2, 0.5), np.array([1.0, 2.0]))
        assert found.q.tolist() == found.earned.tolist() == [7.0, -3.0]
        assert rows.room.tolist() == [0, 0, 0]


def test_rows_of_many_pairs_do_not_mix():
    # Two thousand pairs, more than a thread takes at once, each with one stored successor of its
    # own and room for one tenth elsewhere.
    size = 2000
    offsets, stored = np.arange(size + 1), np.arange(size, dtype=np.int32)
    value = np.random.default_rng(0).permutation(size).astype(float)
    rows = rows_in_intervals(
        offsets, stored, np.full(size, 0.9), np.ones(size), np.full(size, 0.1),
        ends=np.zeros(size, bool), support=size,
    )  # fmt: skip
    earnings = Earnings(np.zeros(size), np.zeros(size), np.zeros(size))
    found = worst_rows(rows, earnings, np.full(size, 0.5), value)
    assert found.q == pytest.approx(0.45 * value, abs=1e-12)  # the rest goes to value 0


def test_closed_rows_have_no_room_elsewhere():
    offsets, ends = np.array([0, 2, 3, 3]), np.array([False, False, True])
    successor, center = np.array([0, 1, 1], np.int32), np.array([0.5, 0.5, 1.0])
    for closed, lengths in ((False, [3, 2, 0]), (True, [2, 1, 0])):
        rows = rows_in_balls(offsets, successor, center, np.full(3, 0.5), ends, closed=closed)
        assert np.diff(rows.room).tolist() == lengths


@pytest.mark.parametrize(
    ("left", "elsewhere", "support", "room"),
    [
        (0.35, 0.1, 20, 2 + 5),  # 0.35 fills four other states, and one more for rounding
        (0.35, 0.1, 6, 6),  # no more than there are
        (0.0, 0.1, 20, 2 + 1),
        (-0.5, 0.1, 20, 2 + 1),
    ],
)
def test_intervals_have_room_for_the_states_that_their_mass_can_fill(
    left, elsewhere, support, room
):
    rows = rows_in_intervals(
        np.array([0, 2]),
        np.array([0, 1], np.int32),
        np.full(2, (1 - left) / 2),
        np.ones(2),
        np.array([elsewhere]),
        ends=GOES_ON,
        support=support,
    )
    assert rows.room.tolist() == [0, room]


@pytest.mark.parametrize(("states", "nodes"), [(1, 2), (2, 4), (5, 16), (8, 16), (9, 32)])
def test_the_common_tree_has_a_node_for_every_segment(states, nodes):
    stored = np.array([0], np.int32)
    trees = rows_along_trees(np.array([0, 1]), stored, GOES_ON, states)
    assert trees.first.size == trees.last.size == nodes
    assert (trees.first[1], trees.last[1]) == (0, states)


def test_closed_trees_are_over_the_stored_successors_of_each_pair():
    stored = [[0, 2, 3], [1], [0, 1, 4, 5, 6]]
    offsets = np.cumsum([0, *map(len, stored)])
    successor = np.array([s for row in stored for s in row], np.int32)
    trees = rows_along_trees(offsets, successor, np.zeros(3, bool), 7, closed=True)
    cuts = [
        [start + cut for cut in node]
        for start, row in zip(offsets.tolist(), stored, strict=False)
        for node in tree_cuts(0, len(row))
    ]
    assert trees.cuts.tolist() == cuts
    assert np.diff(trees.room).tolist() == [3, 1, 5]


def test_trees_that_are_joined_count_as_they_did_alone():
    parts, times = [], []
    for stored in ([[0, 2, 3], [1]], [[4], [0, 1, 2, 3, 4]]):
        offsets = np.cumsum([0, *map(len, stored)])
        successor = np.array([s for row in stored for s in row], np.int32)
        parts.append(rows_along_trees(offsets, successor, np.zeros(2, bool), 5))
        times.append(np.arange(1, successor.size + 1))
    joined = joined_rows(parts)
    alone = [passes(part, each) for part, each in zip(parts, times, strict=True)]
    together = passes(joined, np.concatenate(times))
    for found, expected in zip(together, zip(*alone, strict=True), strict=True):
        assert found.tolist() == np.concatenate(expected).tolist()
    first = joined_rows(parts[:1])
    for name in ("offsets", "room", "node_offsets", "child", "cuts", "leaf"):
        assert getattr(first, name).tolist() == getattr(parts[0], name).tolist()
