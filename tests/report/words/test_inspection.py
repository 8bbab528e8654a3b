"""What is said of the discount follows from how long episodes are, and how they end."""

import pytest
from surestep.report.words.inspection import discount_words

from surestep import read_log
from surestep.errors import speaking_of_options
from surestep.pipeline.inspect import inspect


def inspected(lengths, *, ends=True):
    episodes = [(e, t) for e, length in enumerate(lengths) for t in range(length)]
    last = [t == lengths[e] - 1 for e, t in episodes]
    columns = {
        "episode": [e for e, _ in episodes],
        "step": [t for _, t in episodes],
        "state": ["a"] * len(episodes),
        "action": ["x"] * len(episodes),
        "reward": [1.0] * len(episodes),
        "terminated": last if ends else [False] * len(episodes),
        "truncated": [False] * len(episodes) if ends else last,
    }
    return inspect(read_log(columns))


@pytest.mark.parametrize("ends", [True, False])
def test_a_reward_at_the_end_of_a_median_episode(ends):
    said = discount_words(inspected([2, 21, 30], ends=ends))
    assert "Episodes here have 21 rows (median), up to 30" in said[0]
    assert "the reward in row 21" in said[0]
    assert "12 % with 0.9, 36 % with 0.95 and 82 % with 0.99" in said[0].replace("\u202f", " ")
    assert len(said) == 1 + ends
    assert not ends or "discount=1" in said[1]
    with speaking_of_options():
        assert not ends or "--discount 1" in discount_words(inspected([2], ends=ends))[1]


def test_one_row_needs_no_discount():
    (said,) = discount_words(inspected([1, 1]))
    assert "any γ means the same" in said


def test_loose_transitions_have_no_length():
    loose = {"state": ["a", "b"], "action": ["x", "x"], "reward": [0, 1], "next_state": ["b", "a"]}
    (said,) = discount_words(inspect(read_log(loose)))
    assert "One 20 steps ahead counts 12 % with 0.9" in said.replace("\u202f", " ")
