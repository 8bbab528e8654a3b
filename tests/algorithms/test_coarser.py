"""States without one of their columns: counts, policies, and what they are good for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from surestep import DecisionLog, Pairs, Policy, Problem, estimate_behavior
from surestep.algorithms import SPIBB
from surestep.algorithms.coarser import spread, without_column
from surestep.algorithms.trees import StateColumn
from surestep.candidates import with_one_action

SIZES = (3, 2)  # of the two columns; one more state ends episodes


@st.composite
def problems(draw):
    """Draws a log of up to 40 rows over the states of two columns, and its problem."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows = draw(st.integers(1, 40))
    states = int(np.prod(SIZES))
    terminated = rng.random(rows) < 0.3
    terminated[-1] = True
    lengths = np.diff(np.flatnonzero(np.append(True, terminated)))
    state = rng.integers(0, states, rows)
    following = np.append(state[1:], states)
    log = DecisionLog(
        pairs=Pairs.full(states + 1, 2),
        state=state,
        action=rng.integers(0, 2, rows),
        reward=rng.random(rows),
        next_state=np.where(terminated, states, following),
        terminated=terminated,
        truncated=np.zeros(rows, bool),
        episode_offsets=np.append(0, np.cumsum(lengths)),
    )
    behavior = estimate_behavior(log.counts())
    return log, Problem(
        counts=log.counts(), behavior=behavior, discount=0.9, value_bounds=(0, 10), log=log
    )


def columns():
    """Returns the two columns; the state that ends episodes has a value of its own in both."""
    codes = np.array([*np.ndindex(SIZES), (3, 2)]).T
    return [StateColumn(code, ordered=False) for code in codes]


@given(problems(), st.integers(0, 1))
@settings(deadline=None)
def test_merged_counts_are_those_of_the_log_without_the_column(made, left_out):
    log, problem = made
    merged, _ = without_column(problem, log, columns(), left_out)
    kept = columns()[1 - left_out].code
    expected = np.zeros((kept.max() + 1, 2, kept.max() + 1), int)
    np.add.at(expected, (kept[log.state], log.action, kept[log.next_state]), 1)
    assert merged.counts.dense().tolist() == expected.tolist()
    shares = merged.behavior.dense()
    for group in set(kept[log.state].tolist()):
        rows = kept[log.state] == group
        assert shares[group].tolist() == pytest.approx(
            np.bincount(log.action[rows], minlength=2) / rows.sum(), abs=1e-6
        )


@given(problems(), st.integers(0, 1))
@settings(deadline=None)
def test_a_policy_without_a_column_does_the_same_in_all_merged_states(made, left_out):
    log, problem = made
    merged, pair = without_column(problem, log, columns(), left_out)
    found = SPIBB(n_wedge=2).improve(merged).policy
    alone = with_one_action(found, merged.behavior)
    policy = spread(alone, merged, pair, problem.behavior).dense()
    kept = columns()[1 - left_out].code
    for group in set(kept.tolist()):
        row = alone.dense()[group]
        changed = row.max() == 1 and merged.behavior.dense()[group].max() < 1
        for s in np.flatnonzero(kept == group):
            expected = row if changed else problem.behavior.dense()[s]
            assert policy[s].tolist() == expected.tolist()


def test_what_nobody_may_do_is_not_done_in_merged_states():
    log = DecisionLog(
        pairs=Pairs.full(3, 2),
        state=[0, 1] * 20,
        action=[0, 1, 1, 0] * 10,
        reward=[0.0, 1.0, 1.0, 0.0] * 10,
        next_state=[2] * 40,
        terminated=[True] * 40,
        truncated=[False] * 40,
        episode_offsets=range(41),
    )
    counts = log.counts()
    given = Policy(counts.pairs, np.full(counts.pairs.num_pairs, 0.5))
    code = np.array([0, 0, 1])
    both = [StateColumn(np.array([0, 1, 2]), ordered=False), StateColumn(code, ordered=False)]
    for closed, expected in (([0] * 6, 1.0), ([0, 0, 0, 1, 0, 0], 0.5)):
        problem = Problem(
            counts=counts, behavior=given, discount=0.5, value_bounds=(0, 2),
            closed=np.array(closed, bool),
        )  # fmt: skip
        merged, pair = without_column(problem, log, both, 0)
        found = with_one_action(SPIBB(n_wedge=2).improve(merged).policy, merged.behavior)
        assert spread(found, merged, pair, given).dense()[0, 1] == expected


def too_fine(rows, days, seed=3):
    """One decision an episode, in a state with a weekday that does not matter."""
    rng = np.random.default_rng(seed)
    ill, action = rng.integers(0, 2, (2, rows))
    reward = rng.random(rows) < np.where(action == ill, 0.85, 0.15)
    return {
        "ill": [("mild", "severe")[i] for i in ill],
        "day": [f"day {i}" for i in rng.integers(0, days, rows)],
        "action": [("wait", "treat")[i] for i in action],
        "reward": reward.astype(float).tolist(),
    }


@pytest.mark.thorough
def test_a_column_that_makes_states_too_rare_is_left_out_and_named():
    terms = {"columns": {"state": ["ill", "day"]}, "discount": 0, "ending": (0, 1), "worlds": 0}
    result = surestep.improve(too_fine(400, 25), rules=0, **terms)
    assert result.record.parameters.left_out == "day"
    assert "does not look at “day”" in result.report
    assert result.verdict == "believed better"
    # The same log with situations that are seen often enough needs no such help.
    often = surestep.improve(too_fine(400, 1), rules=0, **terms)
    assert often.verdict == "proved better"
    assert "does not look at “ill”" not in often.report
