"""New rows are read by the description of the result: returns, arms, starts, pending ones."""

import numpy as np
import pytest

import surestep
from surestep.errors import InvalidLog
from surestep.pipeline.new_rows import new_rows

TABLE = {
    "patient": np.repeat(np.arange(120), 2),
    "week": np.tile([0, 1], 120),
    "ward": ["mild", "severe"] * 120,
    "drug": ["yes", "no", "no", "yes"] * 60,
    "gain": [0.0, 1.0, 0.0, 0.0] * 60,
    "harm": [0.0, 1.0, 0.0, 0.5] * 60,
    "over": [0, 1] * 120,
}
ROLES = {"episode": "patient", "step": "week", "state": "ward", "action": "drug", "reward": "gain"}


@pytest.fixture(scope="module")
def result():
    signals = {
        "gain": {"column": "gain", "ending": (0, 1)},
        "harm": {"column": "harm", "ending": (0, 1), "cost": True, "not_worse_by": 0.2},
    }
    roles = {name: column for name, column in ROLES.items() if name != "reward"}
    return surestep.improve(
        TABLE,
        columns={**roles, "terminated": "over"},
        signals=signals,
        unsafe={"states": "ward = 'severe'", "within": 1, "not_worse_by": 0.5},
        discount=0.5,
        worlds=0,
        certificates=["posterior"],
    )


def rows(**changes):
    """Four episodes: two that end, one without an end, one that a clock cut."""
    table = {
        "patient": ["d", "d", "a", "b", "b", "c"],
        "week": [0, 1, 0, 0, 1, 0],
        "ward": ["mild", "severe", "mild", "mild", "new ward", "mild"],
        "drug": ["yes", "no", "no", "yes", "surgery", "no"],
        "gain": [0.0, 1.0, 0.25, 0.5, 0.5, 0.5],
        "harm": [0.0, 1.0, 0.5, 0.0, 0.25, 0.0],
        "over": [0, 1, 1, 0, 0, 0],
        "truncated": [0, 0, 0, 0, 0, 1],
        "arm": ["new", "new", "old", "new", "new", "old"],
        "begun": ["2026-01-04"] * 2 + ["2026-01-01"] + ["2026-01-02"] * 2 + ["2026-01-03"],
    }
    return table | changes


@pytest.mark.thorough
def test_returns_ends_and_starts(result):
    log = {name: values for name, values in rows().items() if name != "truncated"}
    found = new_rows(result, log, arm="arm", time="begun").episodes
    assert found.ids == ("a", "b", "c", "d")
    np.testing.assert_array_equal(np.diff(found.starts), 86400)
    np.testing.assert_array_equal(found.arm, ["old", "new", "old", "new"])
    np.testing.assert_array_equal(found.pending, [False, True, True, False])
    np.testing.assert_allclose(found.returns[0], [0.25, 0.75, 0.5, 0.5])
    np.testing.assert_allclose(found.returns[1], [-0.5, -0.125, 0, -0.5])
    np.testing.assert_allclose(found.returns[2], [0, 0, 0, -1])
    assert [one.name for one in found.measures] == ["gain", "harm", "ward = 'severe'"]
    assert [(one.low, one.high, one.margin) for one in found.measures] == [
        (0, 1, 0),
        (-1, 0, 0.2),
        (-1, 0, 0.5),
    ]


@pytest.mark.thorough
def test_what_a_clock_cut_lies_between_two_numbers(result):
    log = rows(truncated=[0, 0, 0, 0, 1, 0], over=[0, 1, 1, 0, 0, 1])
    surestep_result = surestep.improve(
        {**TABLE, "cut": [0] * 240},
        columns={**ROLES, "terminated": "over", "truncated": "cut"},
        discount=0.5,
        ending=(-2, 1),
        worlds=0,
        certificates=["posterior"],
    )
    log["cut"] = log.pop("truncated")
    found = new_rows(surestep_result, log, arm="arm").episodes
    assert found.ids == ("d", "a", "b", "c")
    assert found.starts is None
    assert not found.pending.any()
    np.testing.assert_allclose(found.lowest[0], [0.5, 0.25, 0.75 - 2 / 4, 0.5])
    np.testing.assert_allclose(found.highest[0], [0.5, 0.25, 0.75 + 1 / 4, 0.5])


def test_a_column_may_say_that_an_outcome_is_pending(result):
    log = rows(over=[0, 1, 1, 0, 1, 1], late=["no", "no", "no", "no", "yes", "no"])
    del log["truncated"]
    found = new_rows(result, log, arm="arm", pending="late").episodes
    np.testing.assert_array_equal(found.pending, [False, False, True, False])


def test_how_far_the_advice_is_followed(result):
    log = rows(over=[0, 1, 1, 0, 1, 1])
    del log["truncated"]
    read = new_rows(result, log, arm="arm")
    table = result.table
    states, actions = table.vocabulary.state_places, table.vocabulary.action_places
    for step in range(read.log.num_steps):
        state, action = log["ward"][step], log["drug"][step]
        if (state,) in states and (action,) in actions:
            pair = table.pairs.find(np.array([states[(state,)]]), np.array([actions[(action,)]]))
            assert read.pair[step] == pair[0]
            assert read.advised[step] == (table.probability[pair[0]] > 0)
        else:
            assert read.pair[step] == -1
            assert not read.advised[step]


def test_an_episode_in_both_arms_is_named(result):
    log = rows(arm=["new", "new", "old", "new", "old", "old"])
    del log["truncated"]
    with pytest.raises(InvalidLog, match="episode 'b' is in both arms: column 'arm' changes"):
        new_rows(result, log, arm="arm")


def test_a_column_that_is_not_there(result):
    log = rows()
    with pytest.raises(InvalidLog, match=r"there is no column 'armm'.*'arm'"):
        new_rows(result, log, arm="armm")
