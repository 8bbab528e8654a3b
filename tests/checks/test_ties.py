"""Only a logger that may learn makes anything of the order of decisions at one time."""

import numpy as np
import pytest

import surestep
from surestep.checks import says


def judged(times, logger=None):
    rng = np.random.default_rng(0)
    table = {
        "episode": np.arange(60),
        "step": np.zeros(60, int),
        "state": np.full(60, "here"),
        "action": rng.choice(["a", "b"], 60),
        "reward": rng.random(60),
        "terminated": np.ones(60, bool),
        "time": [f"2026-01-01 00:00:{second:02}" for second in times],
    }
    result = surestep.improve(
        table, columns={"time": "time"}, discount=0.5, ending=(0, 1), worlds=0, logger=logger
    )
    return [check for check in result.record.checks if check.code == "tied-times"]


@pytest.mark.parametrize(("apart", "tied"), [(1, 0), (2, 20), (60, 60)])
def test_decisions_of_one_time_are_counted(apart, tied):
    """The first 20 of 60 cases come in twos, or all at once, or each has a second of its own."""
    seconds = np.arange(60)
    seconds[:20] //= apart
    seconds[20:] = 0 if apart == 60 else seconds[20:]
    found = judged(seconds)
    assert [check.figures["tied"] for check in found] == [tied] * (tied > 0)
    assert all("may have learnt from one for the next" in says(check) for check in found)
    assert {check.outcome for check in found} <= {"told"}  # a caution: no assumption failed a test


def test_where_nobody_learnt_their_order_is_nothing():
    assert judged(np.zeros(60, int), "fixed") == []


def test_rows_without_episodes_are_cases_of_their_own():
    table = {"state": ["a", "a", "b"], "action": ["x"] * 3, "next_state": ["b"] * 3}
    table |= {"reward": [0, 1, 2], "time": ["2026-01-01", "2026-01-01", "2026-01-02"]}
    assert surestep.read_log(table, columns={"time": "time"}).tied() == 2
    assert surestep.read_log(table).tied() == 0
