"""A log in two parts: which episodes each part has, and what is no share."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import decision_logs
from surestep import DecisionLog, Pairs
from surestep.errors import InvalidParameter
from surestep.offpolicy import split_episodes


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
    assert [episodes_of(part) for part in split_episodes(log, share)] == [
        everything[:cut],
        everything[cut:],
    ]
    shuffled = [everything[i] for i in np.random.default_rng(seed).permutation(len(everything))]
    assert [episodes_of(part) for part in split_episodes(log, share, seed)] == [
        shuffled[:cut],
        shuffled[cut:],
    ]


@given(log=decision_logs())
def test_a_part_without_episodes_is_none(log):
    assert split_episodes(log, 0)[0] is None
    assert split_episodes(log, 1)[1] is None


@pytest.mark.parametrize("share", [-0.01, 1.01, math.nan, None, "0.5", True])
def test_a_share_lies_between_zero_and_one(share):
    log = DecisionLog(Pairs.full(1, 1), [0], [0], [0.0], [0], [False], [True], [0, 1])
    with pytest.raises(InvalidParameter, match=r"train_share is .*, expected 0 to 1"):
        split_episodes(log, share)
