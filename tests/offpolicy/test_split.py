"""A log in two parts, and the first steps of its episodes: step by step, by plain loops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import decision_logs
from surestep import DecisionLog, Pairs
from surestep.errors import InvalidParameter
from surestep.offpolicy.split import first_steps, split_episodes


def log_of(lengths, ends):
    """Episodes of these lengths through states 0, 1, 2, …, the last state where one is over."""
    last = max(lengths)
    state = [t for length in lengths for t in range(length)]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    over, cut = np.zeros(len(state), bool), np.zeros(len(state), bool)
    over[offsets[1:] - 1], cut[offsets[1:] - 1] = ends, ~np.array(ends)
    following = np.where(over, last + 1, np.array(state) + 1)
    action, reward = np.arange(len(state)) % 2, np.arange(len(state), dtype=float)
    return DecisionLog(
        Pairs.full(last + 2, 2), state, action, reward, following, over, cut, offsets
    )


@given(
    episodes=st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=6),
    horizon=st.integers(1, 6),
)
def test_recording_stops_after_so_many_steps(episodes, horizon):
    log = log_of(*(list(each) for each in zip(*episodes, strict=True)))
    found = first_steps(log, horizon)
    expected = []
    for first, (length, ends) in zip(log.episode_offsets, episodes, strict=False):
        for t in range(min(length, horizon)):
            over = ends and t == length - 1
            stops = t == min(length, horizon) - 1
            expected.append((t, log.action[first + t], log.reward[first + t], over, stops != over))
    columns = (found.state, found.action, found.reward, found.terminated, found.truncated)
    assert [*zip(*columns, strict=True)] == expected
    lengths = [min(length, horizon) for length, _ in episodes]
    np.testing.assert_array_equal(np.diff(found.episode_offsets), lengths)
    assert (found is log) == (max(length for length, _ in episodes) <= horizon)  # no copy of all


def episodes_of(log):
    """The episodes as tuples of rows."""
    if log is None:
        return []
    columns = (log.state, log.action, log.reward, log.next_state, log.terminated, log.truncated)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return [tuple(rows[a:b]) for a, b in itertools.pairwise(log.episode_offsets)]


@given(log=decision_logs(), share=st.floats(0, 1), seed=st.integers(0, 9))
def test_the_first_episodes_are_for_training_and_the_others_for_the_test(log, share, seed):
    everything = episodes_of(log)
    cut = round(share * len(everything))
    order = np.random.default_rng(seed).permutation(len(everything))
    for found, rows in (
        (split_episodes(log, share), everything),
        (split_episodes(log, share, seed), [everything[i] for i in order]),
    ):
        assert [part is None for part in found] == [cut == 0, cut == len(rows)]
        assert [episodes_of(part) for part in found] == [rows[:cut], rows[cut:]]
    first, again = split_episodes(log, share, seed), split_episodes(log, share, seed)
    assert all(a is b for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("share", [-0.01, 1.01, math.nan, None, "0.5", True])
def test_a_share_lies_between_zero_and_one(share):
    log = DecisionLog(Pairs.full(1, 1), [0], [0], [0.0], [0], [False], [True], [0, 1])
    with pytest.raises(InvalidParameter, match=r"train_share is .*, expected a number from 0 to 1"):
        split_episodes(log, share)
