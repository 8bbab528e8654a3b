"""Counts and their merging, and the MLE-MDP against a plain computation with dense tables."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.frozen import assert_frozen, assert_independent
from support.strategies import REWARDS, count_tables, counts
from surestep import Counts, FiniteMDP, Pairs, estimate_mdp
from surestep.errors import InvalidCounts, InvalidParameter, ShapeMismatch
from surestep.model import LoggedRewards

WHOLE = st.integers(-9, 9).map(float)
KINDS = st.sampled_from(
    [("rewards", 2), ("rewards", 3), ("reward_sums", 2), ("reward_sums", 3)]  # (kind, dimensions)
)


def drawn_table(draw, shape, elements=REWARDS):
    """A table of independent draws."""
    size = int(np.prod(shape))
    return np.array(draw(st.lists(elements, min_size=size, max_size=size))).reshape(shape)


def drawn_rewards(draw, kind, table, elements=REWARDS):
    """A table of rewards of the kind, 0 where sums must be."""
    word, dimensions = kind
    rewards = drawn_table(draw, table.shape[:dimensions], elements)
    observed = table if dimensions == 3 else table.sum(axis=2)
    return rewards if word == "rewards" else np.where(observed > 0, rewards, 0.0)


@st.composite
def logs(draw, number=1, elements=REWARDS):
    """(kind, tables C, tables of rewards, starts) of some logs of one system."""
    first = draw(count_tables())
    kind = draw(KINDS)
    tables = [first] + [
        drawn_table(draw, first.shape, st.integers(0, 6)) for _ in range(number - 1)
    ]
    if kind[0] == "rewards":
        rewards = [drawn_table(draw, first.shape[: kind[1]], elements)] * number
    else:
        rewards = [drawn_rewards(draw, kind, table, elements) for table in tables]
    starts = [drawn_table(draw, first.shape[0], st.integers(0, 4)) for _ in range(number)]
    for row in starts:
        row[draw(st.integers(0, first.shape[0] - 1))] += 1
    return kind[0], tables, rewards, starts


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


@given(log=logs())
def test_known_rewards_and_their_sums_over_the_visits_give_the_same_estimate(log):
    _, (table,), (rewards,), _ = log
    observed = table if rewards.ndim == 3 else table.sum(axis=2)
    known = estimate_mdp(Counts.from_dense(table, rewards=np.where(observed, rewards, 0.0)), 0.9)
    summed = estimate_mdp(Counts.from_dense(table, reward_sums=observed * rewards), 0.9)
    assert_allclose(summed.reward, known.reward, rtol=1e-12, atol=1e-12)
    assert np.array_equal(summed.probability, known.probability)


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


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float16, np.float32, np.float64])
def test_whole_numbers_of_any_type_are_counts(kind):
    table = np.array([[[1, 0]], [[0, 1]]])
    expected = Counts.from_dense(table, rewards=np.zeros((2, 1)))
    assert Counts.from_dense(table.astype(kind), rewards=np.zeros((2, 1))) == expected


# ---- merging ----------------------------------------------------------------------------------


@given(log=logs(number=2, elements=WHOLE))
def test_merged_counts_are_those_of_the_added_tables(log):
    word, tables, rewards, starts = log
    first, second = (
        Counts.from_dense(table, starts=start, **{word: reward})
        for table, reward, start in zip(tables, rewards, starts, strict=True)
    )
    together = rewards[0] if word == "rewards" else sum(rewards)
    expected = Counts.from_dense(sum(tables), starts=sum(starts), **{word: together})
    assert first + second == expected


def bits(merged):
    """All arrays of the counts, as bytes."""
    arrays = (merged.offsets, merged.successor, merged.times, merged.rewards.values, merged.starts)
    return [array.tobytes() for array in arrays]


@given(log=logs(number=2))
def test_the_order_of_two_logs_does_not_change_a_bit(log):
    word, tables, rewards, starts = log
    first, second = (
        Counts.from_dense(table, starts=start, **{word: reward})
        for table, reward, start in zip(tables, rewards, starts, strict=True)
    )
    assert bits(first + second) == bits(second + first)


@given(log=logs(number=3))
def test_the_grouping_of_logs_changes_no_count_and_sums_by_rounding_only(log):
    word, tables, rewards, starts = log
    a, b, c = (
        Counts.from_dense(table, starts=start, **{word: reward})
        for table, reward, start in zip(tables, rewards, starts, strict=True)
    )
    left, right = (a + b) + c, a + (b + c)
    for name in ("pairs", "offsets", "successor", "times", "visits", "starts", "terminal"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert_allclose(left.rewards.values, right.rewards.values, rtol=1e-12, atol=1e-12)


@given(log=counts())
def test_a_log_merged_with_itself_has_every_count_twice_and_the_same_estimate(log):
    twice = log + log
    assert np.array_equal(twice.visits, 2 * log.visits)
    assert np.array_equal(twice.starts, 2 * log.starts)
    assert estimate_mdp(twice, 0.9) == estimate_mdp(log, 0.9)


def test_labels_of_either_log_are_kept_whichever_comes_first():
    def with_labels(states, actions):
        return Counts(
            Pairs([0, 1], [0], 1, states, actions),
            [0, 1],
            [0],
            [1],
            LoggedRewards([0.0], "pair", True),
            [1],
        )

    parts = with_labels(("ward",), None), with_labels(None, ("wait",)), with_labels(None, None)
    whole = with_labels(("ward",), ("wait",)).pairs
    assert (parts[0] + parts[1]).pairs == (parts[1] + parts[0]).pairs == whole
    assert (parts[2] + parts[1]).pairs == (parts[1] + parts[2]).pairs == parts[1].pairs


def test_states_known_as_terminal_in_either_log_are_terminal_in_both():
    def log(terminal):
        return Counts.from_dense([[[0, 1]], [[0, 0]]], rewards=np.zeros((2, 1)), terminal=terminal)

    merged = log(None) + log([False, True])
    assert merged.terminal.tolist() == [False, True]
    with pytest.raises(InvalidCounts, match="state 1 is marked as terminal, but decisions were"):
        merged + Counts.from_dense([[[0, 0]], [[0, 3]]], rewards=np.zeros((2, 1)))


def test_known_rewards_of_merged_logs_must_be_equal():
    C = [[[1, 1]], [[0, 1]]]
    first, second = (Counts.from_dense(C, rewards=[[1.0], [r]]) for r in (2.0, 3.0))
    with pytest.raises(ShapeMismatch) as refusal:
        first + second
    assert str(refusal.value) == (
        "the known reward of state 1, action 0 is 2.0 in the first counts and 3.0 in the second; "
        "1 of 2 pairs is affected"
    )
    first, second = (Counts.from_dense(C, rewards=[[[1, r]], [[0, 4]]]) for r in (2.0, 3.0))
    with pytest.raises(ShapeMismatch) as refusal:
        first + second
    assert "state 0, action 0 → state 1 is 2.0 in the first counts and 3.0 in the second" in str(
        refusal.value
    )


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


def test_sums_too_large_for_a_double_are_refused_by_name():
    for shape in ((1, 1), (1, 1, 1)):
        log = Counts.from_dense([[[1]]], reward_sums=np.full(shape, 1e308))
        with pytest.raises(InvalidCounts, match=r"reward sum of state 0, action 0.* is inf"):
            log + log


def test_totals_too_large_to_add_up_are_refused():
    half = 2**61
    with pytest.raises(InvalidCounts, match="the sum of all times is more than"):
        Counts.from_dense([[[half, half]], [[0, 0]]], rewards=np.zeros((2, 1)))
    with pytest.raises(InvalidCounts, match="the sum of all starts is more than"):
        Counts.from_dense([[[1]]], rewards=[[0.0]], starts=[2**63 - 1])
    log = Counts.from_dense([[[half]]], rewards=[[0.0]])
    with pytest.raises(InvalidCounts, match="the sum of all times is more than"):
        log + log
    log = Counts.from_dense([[[1]]], rewards=[[0.0]], starts=[half])
    with pytest.raises(InvalidCounts, match="the sum of all starts is more than"):
        log + log


# ---- frozen values ----------------------------------------------------------------------------


@given(log=counts(max_states=2))
def test_counts_are_frozen_even_when_copied(log):
    assert_frozen(log)


def test_the_arrays_of_the_caller_stay_the_callers():
    pairs = Pairs([0, 1, 2], [0, 0], 1)
    assert_independent(
        lambda offsets, successor, times, sums, starts, terminal: Counts(
            pairs,
            offsets,
            successor,
            times,
            LoggedRewards(sums, "transition", False),
            starts,
            terminal,
        ),
        np.array([0, 2, 2]),
        np.array([0, 1]),
        np.array([3, 4]),
        np.array([1.0, 2.0]),
        np.array([1, 0]),
        np.array([0, 1]),
    )
    assert_independent(
        lambda C, rewards, starts: Counts.from_dense(C, rewards=rewards, starts=starts),
        np.array([[[1, 0]], [[0, 1]]]),
        np.array([[1.0], [0.5]]),
        np.array([1, 0]),
    )


def test_counts_compare_by_value():
    def log(**changes):
        return Counts.from_dense([[[2]]], **{"rewards": [[1.0]], **changes})

    assert log() == log()
    assert log() != log(rewards=None, reward_sums=[[1.0]])
    assert log() != log(starts=[2])
    assert log() != Counts.from_dense([[[3]]], rewards=[[1.0]])
    assert log() != "counts"
    with pytest.raises(TypeError, match="unhashable"):
        hash(log())


def test_large_counts_give_exact_visits():
    table = np.array([[[2**53 + 1, 1]], [[0, 2**60]]])
    found = Counts.from_dense(table, rewards=np.zeros((2, 1)))
    assert found.visits.tolist() == [2**53 + 2, 2**60]
    mdp = estimate_mdp(found, 0.5)
    assert isinstance(mdp, FiniteMDP)
    assert_allclose(mdp.probability.sum(), 2.0, rtol=1e-12)


def test_visits_of_a_disabled_action_are_refused_not_lost():
    with pytest.raises(InvalidCounts, match="visits of state 0, action 1, which is not enabled"):
        Counts.from_dense([[[1], [2]]], rewards=[[0.0, 0.0]], enabled=[[True, False]])


def test_known_rewards_per_transition_are_kept_where_nothing_was_seen():
    table = np.array([[[3, 0]], [[0, 0]]])
    rewards = np.array([[[1.0, 2.0]], [[5.0, 6.0]]])
    counts = Counts.from_dense(table, rewards=rewards)
    assert counts.visits.tolist() == [3, 0]
    assert counts.rewards.values.tolist() == [1.0, 2.0, 5.0, 6.0]
    other = np.array([[[1.0, 99.0]], [[5.0, 6.0]]])
    with pytest.raises(ShapeMismatch, match=r"state 0, action 0 → state 1 is 2.0 .* and 99.0"):
        counts + Counts.from_dense(table, rewards=other)
    assert estimate_mdp(counts + counts, 0.9).dense().P[0, 0].tolist() == [1.0, 0.0]


def test_labels_of_counts_reach_the_estimated_model():
    counts = Counts.from_dense(
        [[[1]]], rewards=[[0.0]], state_labels=("ward",), action_labels=("wait",)
    )
    assert estimate_mdp(counts, 0.9).pairs.pair_name(0) == "state 'ward', action 'wait'"


def test_what_is_no_counts_cannot_be_estimated():
    with pytest.raises(InvalidParameter, match="counts is of type NoneType, expected Counts"):
        estimate_mdp(None, 0.9)


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


def test_counts_with_ranges_and_without_do_not_merge():
    """A sum does not say whether rewards vary, so the doubt of the other would be lost."""
    table = [[[2]]]
    with pytest.raises(ShapeMismatch, match="with the least and the greatest reward, per pair"):
        ranged(table, [[4.0]], [[0.0]], [[4.0]]) + Counts.from_dense(table, reward_sums=[[4.0]])


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


def test_ranges_belong_to_sums_and_come_in_twos():
    with pytest.raises(InvalidCounts, match="without the others, or for known ones; expected both"):
        LoggedRewards([1.0], "pair", False, least=[1.0])
    with pytest.raises(
        InvalidCounts, match="or for known ones; expected both with sums, or neither"
    ):
        LoggedRewards([1.0], "pair", True, [1.0], [1.0])
