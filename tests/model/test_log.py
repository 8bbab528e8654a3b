"""DecisionLog: its counts against a plain dictionary, selections, and what it refuses."""

import copy
import math
import pickle
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.problems import uniform_problem
from support.strategies import all_pairs, decision_logs
from surestep import Counts, DecisionLog, Pairs, _reprs, estimate_mdp
from surestep.errors import InvalidLog, MissingExtra
from surestep.model import LoggedRewards

WHOLE = st.integers(-9, 9).map(float)
COLUMNS = ("state", "action", "reward", "next_state", "terminated", "truncated")
LABELS = {"state_labels": ("ward", "home", "out"), "action_labels": ("wait", "treat")}

# Two episodes: ward → home → out (terminated), and ward → ward (truncated). No treatment at home.
WARD = Pairs.from_enabled([[1, 1], [1, 0], [1, 0]], **LABELS)
GOOD = {
    "pairs": WARD,
    "state": [0, 1, 0],
    "action": [1, 0, 0],
    "reward": [-1.0, 2.0, 0.5],
    "next_state": [1, 2, 0],
    "terminated": [False, True, False],
    "truncated": [False, False, True],
    "episode_offsets": [0, 2, 3],
}


def log_of(**changes):
    return DecisionLog(**{**GOOD, **changes})


def rows_of(log):
    """The log as plain episodes of plain rows."""
    rows = list(zip(*(getattr(log, name).tolist() for name in COLUMNS), strict=True))
    offsets = log.episode_offsets.tolist()
    return [rows[first:last] for first, last in pairwise(offsets)]


# ---- rows -------------------------------------------------------------------------------------


@given(log=decision_logs(), data=st.data())
def test_rows_of_which_nobody_knows_where_they_led_are_no_transitions(log, data):
    last = log.episode_offsets[1:] - 1
    lost = np.isin(np.arange(log.num_steps), data.draw(st.lists(st.sampled_from(last.tolist()))))
    unknown = replace(
        log,
        next_state=np.where(lost, -1, log.next_state),
        terminated=log.terminated & ~lost,
        truncated=log.truncated & ~lost,
    )
    assert (unknown.counts().starts == log.counts().starts).all()
    if lost.all():
        with pytest.raises(InvalidLog, match="no row of the log is left"):
            unknown.with_outcomes()
        return
    known = unknown.with_outcomes()
    shorter = [rows[:-1] if rows[-1][3] == -1 else rows for rows in rows_of(unknown)]
    expected = [
        [*rows[:-1], (*rows[-1][:5], rows[-1][5] or not rows[-1][4])] for rows in shorter if rows
    ]
    assert rows_of(known) == expected
    assert known.continued is None
    counts, without = unknown.counts(), known.counts()
    for name in ("offsets", "successor", "times", "terminal"):
        assert (getattr(counts, name) == getattr(without, name)).all()


def test_an_episode_without_its_first_row_starts_nowhere():
    log = log_of()
    rest = log.rows(np.array([False, True, True]))
    assert rest.continued.tolist() == [True, False]
    assert rest.starts.tolist() == [log.state[2]]
    assert rest.counts().starts.sum() == 1
    assert rest.episodes([1]).starts.size == 1
    assert log.rows(np.array([True, False, True])).truncated.tolist() == [True, True]
    assert log.rows(np.ones(3, bool)) is log


# ---- counts -----------------------------------------------------------------------------------


@given(log=decision_logs())
def test_the_counts_are_those_of_a_plain_dictionary(log):
    times, sums, starts, ends = Counter(), defaultdict(Fraction), Counter(), set()
    for episode in rows_of(log):
        starts[episode[0][0]] += 1
        for state, action, reward, next_state, terminated, _ in episode:
            times[state, action, next_state] += 1
            sums[state, action, next_state] += Fraction(reward)
            ends |= {next_state} if terminated else set()
    found, pairs = log.counts(), log.pairs
    pair = np.repeat(np.arange(pairs.num_pairs), np.diff(found.offsets))
    keys = zip(
        pairs.state[pair].tolist(),
        pairs.action[pair].tolist(),
        found.successor.tolist(),
        strict=True,
    )
    seen = dict(zip(keys, found.times.tolist(), strict=True))
    assert seen == times
    exact = [float(sums[key]) for key in seen]
    assert found.rewards.per == "transition"
    assert not found.rewards.known
    assert_allclose(found.rewards.values, exact, rtol=1e-12, atol=1e-12)
    assert found.starts.tolist() == [starts[s] for s in range(pairs.num_states)]
    assert set(np.flatnonzero(found.terminal).tolist()) == ends
    assert found.pairs is pairs


@given(log=decision_logs(), data=st.data())
def test_known_rewards_are_taken_as_counts_of_tables_take_them(log, data):
    pairs = log.pairs
    table = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states), int)
    np.add.at(table, (log.state, log.action, log.next_state), 1)
    shape = data.draw(st.sampled_from([table.shape, table.shape[:2]]))
    cells = data.draw(st.lists(WHOLE, min_size=math.prod(shape), max_size=math.prod(shape)))
    rewards = np.array(cells).reshape(shape)
    expected = Counts.from_dense(
        table,
        rewards=rewards,
        starts=np.bincount(log.state[log.episode_offsets[:-1]], minlength=pairs.num_states),
        enabled=pairs.enabled(),
        terminal=log.counts().terminal,
    )
    assert log.counts(rewards) == expected
    if rewards.ndim == 2:
        assert log.counts(rewards[pairs.state, pairs.action]) == expected


@given(log=decision_logs(rewards=WHOLE), data=st.data())
def test_parts_of_a_log_have_counts_that_add_up_to_the_whole(log, data):
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=log.num_episodes, max_size=log.num_episodes))
    )
    if mask.any() and not mask.all():
        assert log.episodes(mask).counts() + log.episodes(~mask).counts() == log.counts()


def test_the_estimated_model_ends_where_the_log_terminated():
    mdp = estimate_mdp(log_of().counts(), 0.5)
    assert mdp.dense().P[0].tolist() == [[1, 0, 0], [0, 1, 0]]
    assert mdp.dense().P[1, 0].tolist() == [0, 0, 1]
    assert not mdp.dense().P[2].any()
    assert mdp.expected_reward.tolist() == [0.5, -1.0, 2.0, 0.0]


def test_the_counts_of_ten_thousand_states_need_no_square_of_them():
    states = 10_000
    walk = np.arange(states - 1)
    log = DecisionLog(
        Pairs.full(states, 1),
        walk,
        np.zeros(walk.size, int),
        np.ones(walk.size),
        walk + 1,
        walk == walk[-1],
        np.zeros(walk.size, bool),
        [0, walk.size],
    )
    assert log.counts().times.size == walk.size
    assert np.flatnonzero(log.counts().terminal).tolist() == [states - 1]


# ---- episodes and steps -----------------------------------------------------------------------


@given(log=decision_logs(), data=st.data())
def test_a_selection_holds_the_chosen_episodes_in_the_order_of_the_choice(log, data):
    episodes = rows_of(log)
    numbers = data.draw(st.lists(st.integers(0, log.num_episodes - 1), min_size=1, max_size=6))
    assert rows_of(log.episodes(numbers)) == [episodes[e] for e in numbers]
    some = data.draw(st.slices(log.num_episodes))
    if episodes[some]:
        assert rows_of(log.episodes(some)) == episodes[some]
    assert log.episodes(slice(None)) == log
    assert log.episodes(np.ones(log.num_episodes, bool)) == log


@given(log=decision_logs(), data=st.data())
def test_a_selection_is_the_log_that_its_own_columns_make(log, data):
    chosen = data.draw(st.lists(st.integers(0, log.num_episodes - 1), min_size=1, max_size=4))
    part = log.episodes(chosen)
    made = replace(part)
    assert part == made
    for name in (*COLUMNS, "pair", "episode_offsets"):
        assert getattr(part, name).dtype == getattr(made, name).dtype
        assert not getattr(part, name).flags.writeable


@given(log=decision_logs())
def test_what_is_remembered_of_a_log_is_no_part_of_it(log):
    again, size = copy.copy(log), len(pickle.dumps(log))
    assert log.counts() is log.counts()
    assert log == again
    assert len(pickle.dumps(log)) == size
    assert log.counts() == again.counts() == log.episodes(slice(None)).counts()


@given(log=decision_logs())
def test_steps_are_numbered_within_their_episodes(log):
    assert log.step.tolist() == [i for episode in rows_of(log) for i in range(len(episode))]
    assert log.num_steps == sum(map(len, rows_of(log)))
    assert log.num_episodes == len(rows_of(log))
    assert np.array_equal(log.pairs.state[log.pair], log.state)
    assert np.array_equal(log.pairs.action[log.pair], log.action)


@given(pairs=all_pairs())
def test_pairs_are_found_by_state_and_action(pairs):
    enabled = pairs.enabled()
    state, action = (grid.ravel() for grid in np.indices(enabled.shape))
    found = pairs.find(state, action)
    assert np.array_equal(found >= 0, enabled.ravel())
    assert found[found >= 0].tolist() == list(range(pairs.num_pairs))


# ---- in a problem -----------------------------------------------------------------------------


def problem(log, counts):
    return uniform_problem(counts, 0.9, (0.0, 1.0), log=log)


@given(log=decision_logs())
def test_a_problem_takes_a_log_with_its_own_counts(log):
    states, actions = log.pairs.num_states, log.pairs.num_actions
    assert problem(log, log.counts()).log is log
    assert problem(log, log.counts(np.zeros((states, actions)))).log is log
    assert problem(log, log.counts(np.zeros((states, actions, states)))).log is log
    assert problem(None, log.counts()).log is None


@given(log=decision_logs())
def test_sums_per_pair_or_in_another_order_are_the_logs_too(log):
    counts = log.counts()
    backwards = log.episodes(slice(None, None, -1)).counts()
    assert problem(log, backwards).log is log
    totals = [
        counts.rewards.values[first:last].sum()
        for first, last in zip(counts.offsets[:-1], counts.offsets[1:], strict=True)
    ]
    per_pair = replace(counts, rewards=LoggedRewards(np.array(totals), "pair", False))
    assert problem(log, per_pair).log is log


@given(log=decision_logs(), data=st.data())
def test_the_least_and_the_greatest_rewards_are_those_of_any_parts_together(log, data):
    counts = log.counts()
    rewards = defaultdict(list)
    for pair, led_to, reward in zip(log.pair, log.next_state, log.reward, strict=True):
        rewards[int(pair), int(led_to)].append(float(reward))
    by_hand = [rewards[key] for key in sorted(rewards)]
    assert counts.rewards.least.tolist() == [min(each) for each in by_hand]
    assert counts.rewards.greatest.tolist() == [max(each) for each in by_hand]
    cut = data.draw(st.integers(1, log.num_episodes))
    if cut < log.num_episodes:
        parts = [log.episodes(each).counts() for each in (slice(None, cut), slice(cut, None))]
        for together in (parts[0] + parts[1], parts[1] + parts[0]):
            assert np.array_equal(together.rewards.least, counts.rewards.least)
            assert np.array_equal(together.rewards.greatest, counts.rewards.greatest)


# ---- a log as a table in memory ------------------------------------------------------------------


@given(log=decision_logs(), labelled=st.booleans())
def test_a_frame_has_the_rows_of_the_log(log, labelled):
    pandas = pytest.importorskip("pandas")
    if labelled:
        pairs = replace(
            log.pairs,
            state_labels=tuple(f"s{s}" for s in range(log.pairs.num_states)),
            action_labels=tuple(f"a{a}" for a in range(log.pairs.num_actions)),
        )
        log = replace(log, pairs=pairs)
    frame = log.to_pandas()
    assert type(frame) is pandas.DataFrame
    assert len(log) == len(frame) == log.num_steps
    state, action = ("s{}".format, "a{}".format) if labelled else (int, int)
    lengths = np.diff(log.episode_offsets)
    assert frame["episode"].tolist() == np.repeat(np.arange(lengths.size), lengths).tolist()
    assert frame["step"].tolist() == log.step.tolist()
    assert frame["state"].tolist() == list(map(state, log.state))
    assert frame["action"].tolist() == list(map(action, log.action))
    assert frame["reward"].tolist() == log.reward.tolist()
    for found, led in zip(frame["next_state"].tolist(), log.next_state, strict=True):
        assert pandas.isna(found) if labelled and led < 0 else found == state(led)
    assert frame["terminated"].tolist() == log.terminated.tolist()
    assert frame["truncated"].tolist() == log.truncated.tolist()
    assert ("propensity" in frame) == (log.propensity is not None)


def test_a_frame_has_propensities_and_needs_pandas(monkeypatch):
    log = log_of()
    chances = np.full(log.num_steps, 0.5)
    assert (replace(log, propensity=chances).to_pandas()["propensity"] == 0.5).all()
    monkeypatch.setattr(_reprs, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="needs one of pandas, and none is installed"):
        log.to_pandas()
