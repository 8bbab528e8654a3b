"""Counts and their merging, and the MLE-MDP against a plain computation with dense tables."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.strategies import REWARDS, count_tables, drawn_array
from surestep import Counts, FiniteMDP, estimate_mdp
from surestep.errors import InvalidCounts, ShapeMismatch
from surestep.model import LoggedRewards

WHOLE = st.integers(-9, 9).map(float)
KINDS = st.sampled_from(
    [("rewards", 2), ("rewards", 3), ("reward_sums", 2), ("reward_sums", 3)]  # (kind, dimensions)
)


def drawn_rewards(draw, kind, table, elements=REWARDS):
    """A table of rewards of the kind, 0 where sums must be."""
    word, dimensions = kind
    rewards = drawn_array(draw, elements, table.shape[:dimensions])
    observed = table if dimensions == 3 else table.sum(axis=2)
    return rewards if word == "rewards" else np.where(observed > 0, rewards, 0.0)


@st.composite
def logs(draw, number=1, elements=REWARDS):
    """(kind, tables C, tables of rewards, starts) of some logs of one system."""
    first = draw(count_tables())
    kind = draw(KINDS)
    tables = [first] + [
        drawn_array(draw, st.integers(0, 6), first.shape) for _ in range(number - 1)
    ]
    if kind[0] == "rewards":
        rewards = [drawn_array(draw, elements, first.shape[: kind[1]])] * number
    else:
        rewards = [drawn_rewards(draw, kind, table, elements) for table in tables]
    starts = [drawn_array(draw, st.integers(0, 4), first.shape[0]) for _ in range(number)]
    for row in starts:
        row[draw(st.integers(0, first.shape[0] - 1))] += 1
    return kind[0], tables, rewards, starts


def counted(log):
    """The counts of each log."""
    word, *columns = log
    return [
        Counts.from_dense(table, starts=start, **{word: reward})
        for table, reward, start in zip(*columns, strict=True)
    ]


# ---- the estimate -----------------------------------------------------------------------------


@given(log=logs(), discount=st.sampled_from([0.0, 0.5, 0.95]))
def test_the_estimate_is_what_dense_tables_give(log, discount):
    word, (table,), (rewards,), (starts,) = log
    mdp = estimate_mdp(Counts.from_dense(table, starts=starts, **{word: rewards}), discount)
    visits = table.sum(axis=2)
    P = table / np.maximum(visits, 1)[:, :, np.newaxis]
    if word == "rewards" and rewards.ndim == 2:
        expected = rewards  # kept for pairs never visited
    elif word == "rewards":
        expected = (P * rewards).sum(axis=2)
    else:
        totals = rewards if rewards.ndim == 2 else rewards.sum(axis=2)
        expected = totals / np.maximum(visits, 1)  # the mean of what was observed, else 0
    found = mdp.pairs.dense(mdp.expected_reward)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    rows = np.zeros((mdp.num_pairs, mdp.num_states))
    rows[np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets)), mdp.successor] = mdp.probability
    assert np.array_equal(rows.reshape(P.shape), P)
    assert_allclose(mdp.initial, starts / starts.sum(), rtol=1e-12)
    assert set(mdp.discount) == {discount}
    assert np.array_equal(np.diff(mdp.offsets) == 0, visits.ravel() == 0)


def test_unvisited_pairs_end_the_episode_with_their_known_reward_or_none():
    table = np.zeros((2, 2, 2), int)
    table[0, 0] = [1, 3]
    known = estimate_mdp(Counts.from_dense(table, rewards=[[1.0, 2.0], [3.0, 4.0]]), 0.9)
    assert known.ending_reward.tolist() == [0.0, 2.0, 3.0, 4.0]
    assert known.reward.tolist() == [1.0, 1.0]
    cube = estimate_mdp(Counts.from_dense(table, rewards=np.full((2, 2, 2), 5.0)), 0.9)
    assert cube.expected_reward.tolist() == [5.0, 0.0, 0.0, 0.0]
    summed = estimate_mdp(Counts.from_dense(table, reward_sums=[[8.0, 0], [0, 0]]), 0.9)
    assert summed.expected_reward.tolist() == [2.0, 0.0, 0.0, 0.0]


@given(log=logs())
def test_successors_listed_with_count_zero_change_nothing(log):
    word, (table,), (rewards,), starts = log
    lean = Counts.from_dense(table, starts=starts[0], **{word: rewards})
    states, pairs = table.shape[0], lean.pairs
    full_runs = Counts(
        pairs,
        np.arange(pairs.num_pairs + 1) * states,
        np.tile(np.arange(states), pairs.num_pairs),
        table.ravel(),
        LoggedRewards(
            rewards.ravel(), "pair" if rewards.ndim == 2 else "transition", word == "rewards"
        ),
        starts[0],
    )
    assert np.array_equal(full_runs.visits, lean.visits)
    assert estimate_mdp(full_runs, 0.9) == estimate_mdp(lean, 0.9)


# ---- tables -----------------------------------------------------------------------------------


@given(log=logs())
def test_counts_hold_what_their_tables_say(log):
    word, (table,), (rewards,), (starts,) = log
    found = Counts.from_dense(table, starts=starts, **{word: rewards})
    assert np.array_equal(found.pairs.dense(found.visits), table.sum(axis=2))
    kept = word == "rewards" and rewards.ndim == 3  # then with a count of 0 where nothing was seen
    cells = np.argwhere(np.ones_like(table) if kept else table)
    assert np.array_equal(found.successor, cells[:, 2])
    assert np.array_equal(found.times, table[tuple(cells.T)])
    assert np.array_equal(found.starts, starts)
    assert not found.terminal.any()
    assert found.rewards.known == (word == "rewards")


@given(table=count_tables())
def test_the_table_of_counts_gives_the_counts_back(table):
    enabled = table.any(axis=2) | (np.arange(table.shape[1]) == 0)
    counts = Counts.from_dense(table, reward_sums=np.zeros(table.shape[:2]), enabled=enabled)
    assert counts.dense().dtype == np.int64
    assert np.array_equal(counts.dense(), table)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.float32, np.float64])
def test_whole_numbers_of_any_type_are_counts(kind):
    table = np.array([[[1, 0]], [[0, 1]]])
    expected = Counts.from_dense(table, rewards=np.zeros((2, 1)))
    assert Counts.from_dense(table.astype(kind), rewards=np.zeros((2, 1))) == expected


# ---- merging ----------------------------------------------------------------------------------


@given(log=logs(number=2, elements=WHOLE))
def test_merged_counts_are_those_of_the_added_tables(log):
    word, tables, rewards, starts = log
    first, second = counted(log)
    together = rewards[0] if word == "rewards" else sum(rewards)
    expected = Counts.from_dense(sum(tables), starts=sum(starts), **{word: together})
    assert first + second == expected


def bits(merged):
    """All arrays of the counts, as bytes."""
    arrays = (merged.offsets, merged.successor, merged.times, merged.rewards.values, merged.starts)
    return [array.tobytes() for array in arrays]


@given(log=logs(number=3))
def test_the_order_of_logs_changes_no_bit_and_their_grouping_sums_by_rounding_only(log):
    a, b, c = counted(log)
    assert bits(a + b) == bits(b + a)
    left, right = (a + b) + c, a + (b + c)
    for name in ("pairs", "offsets", "successor", "times", "visits", "starts", "terminal"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert_allclose(left.rewards.values, right.rewards.values, rtol=1e-12, atol=1e-12)


def test_labels_of_either_log_are_kept_whichever_comes_first():
    def with_labels(states, actions):
        return Counts.from_dense(
            [[[1]]], rewards=[[0.0]], state_labels=states, action_labels=actions
        )

    parts = with_labels(("ward",), None), with_labels(None, ("wait",)), with_labels(None, None)
    whole = with_labels(("ward",), ("wait",)).pairs
    assert (parts[0] + parts[1]).pairs == (parts[1] + parts[0]).pairs == whole
    assert (parts[2] + parts[1]).pairs == (parts[1] + parts[2]).pairs == parts[1].pairs
    assert estimate_mdp(parts[0] + parts[1], 0.9).pairs == whole


def test_states_known_as_terminal_in_either_log_are_terminal_in_both():
    def log(terminal):
        return Counts.from_dense([[[0, 1]], [[0, 0]]], rewards=np.zeros((2, 1)), terminal=terminal)

    merged = log(None) + log([False, True])
    assert merged.terminal.tolist() == [False, True]
    with pytest.raises(InvalidCounts, match="state 1 is marked as terminal, but decisions were"):
        merged + Counts.from_dense([[[0, 0]], [[0, 3]]], rewards=np.zeros((2, 1)))


@given(data=st.data())
def test_logs_with_different_kinds_of_rewards_do_not_merge(data):
    table = data.draw(count_tables())
    kinds = data.draw(st.lists(KINDS, min_size=2, max_size=2, unique=True))
    first, second = (
        Counts.from_dense(table, **{kind[0]: drawn_rewards(data.draw, kind, table)})
        for kind in kinds
    )
    with pytest.raises(ShapeMismatch, match=r"the first counts have (known rewards|reward sums)"):
        first + second


def test_large_counts_give_exact_visits():
    table = np.array([[[2**53 + 1, 1]], [[0, 2**60]]])
    found = Counts.from_dense(table, rewards=np.zeros((2, 1)))
    assert found.visits.tolist() == [2**53 + 2, 2**60]
    mdp = estimate_mdp(found, 0.5)
    assert isinstance(mdp, FiniteMDP)
    assert_allclose(mdp.probability.sum(), 2.0, rtol=1e-12)


# ---- the least and the greatest rewards -------------------------------------------------------


def ranged(table, sums, least, greatest):
    counts = Counts.from_dense(table, reward_sums=sums)
    stored = np.asarray(table) > 0 if np.ndim(sums) == 3 else np.ones(np.shape(sums), bool)
    ends = (np.asarray(end)[stored] for end in (least, greatest))
    return replace(
        counts, rewards=LoggedRewards(counts.rewards.values, counts.rewards.per, False, *ends)
    )


def test_merged_ranges_hold_both_and_what_was_never_seen_does_not_count():
    first = ranged([[[2, 0]], [[0, 0]]], [[8.0], [0.0]], [[3.0], [0.0]], [[5.0], [0.0]])
    second = ranged([[[0, 1]], [[1, 0]]], [[-1.0], [7.0]], [[-1.0], [7.0]], [[-1.0], [7.0]])
    for found in (first + second, second + first):
        assert found.rewards.least.tolist() == [-1.0, 7.0]
        assert found.rewards.greatest.tolist() == [5.0, 7.0]
    cubes = np.array([[[[4.0], [0.0]]], [[[0.0], [2.0]]]])
    one, other = (ranged(np.sign(each).astype(int), each, each, each) for each in cubes)
    assert (one + other).rewards.least.tolist() == [4.0, 2.0]


@pytest.mark.parametrize(
    ("least", "greatest", "words"),
    [
        ([[3.0], [0.0]], [[1.0], [0.0]], r"are 3\.0 to 1\.0, and their mean is 2\.0; expected it"),
        ([[2.5], [0.0]], [[3.0], [0.0]], r"are 2\.5 to 3\.0, and their mean is 2\.0; expected it"),
        (
            [[2.0], [1.0]],
            [[2.0], [1.0]],
            r"are 1\.0 to 1\.0, but it was never observed; expected 0",
        ),
        ([[np.nan], [0.0]], [[2.0], [0.0]], "least reward of state 0, action 0 is nan"),
    ],
)
def test_ranges_that_do_not_fit_the_sums_are_refused(least, greatest, words):
    with pytest.raises(InvalidCounts, match=words):
        ranged([[[2, 0]], [[0, 0]]], [[4.0], [0.0]], least, greatest)
