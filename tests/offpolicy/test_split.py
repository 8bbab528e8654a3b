"""A log in two parts, and the first steps of its episodes: step by step, by plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep import DecisionLog, Pairs
from surestep.errors import InvalidParameter
from surestep.offpolicy import first_steps, split_episodes


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


@given(number=st.integers(1, 9), share=st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
def test_every_episode_is_in_one_part(number, share):
    log = log_of([*range(1, number + 1)], [True] * number)  # told apart by their lengths
    for seed in (None, 3):
        parts = split_episodes(log, share, seed)
        lengths = [[] if part is None else [*np.diff(part.episode_offsets)] for part in parts]
        assert len(lengths[0]) == round(share * number)
        assert sorted(lengths[0] + lengths[1]) == [*range(1, number + 1)]
        assert seed is not None or lengths[0] + lengths[1] == [*range(1, number + 1)]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "half", None])
def test_a_share_is_a_share(share):
    with pytest.raises(InvalidParameter, match=r"train_share is .*, expected 0 to 1"):
        split_episodes(log_of([1], [True]), share)
