"""The example log: drawn again it is the same, it is small, and reading it finds what was drawn."""

import csv
import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from surestep import Problem, performance
from surestep.algorithms import SPIBB
from surestep.io import read_log

EXAMPLES = Path(__file__).parents[2] / "examples"
COLUMNS = {"state": ("condition", "demand"), "action": "decision"}
VALUE_BOUNDS = (-400.0, 160 / 0.05)  # a wreck at once, or the best week for ever


@pytest.fixture(scope="module")
def pumps():
    spec = importlib.util.spec_from_file_location("pumps", EXAMPLES / "simulate_pump_log.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def counts():
    return read_log(EXAMPLES / "pumps.csv", columns=COLUMNS).counts()


def test_the_script_draws_the_files_that_ship(pumps, tmp_path):
    pumps.write_files(tmp_path)
    for name in ("pumps.csv", "pumps_policy.csv"):
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()
        assert (EXAMPLES / name).stat().st_size < 3_000_000


def test_reading_gives_the_transitions_that_were_drawn(pumps, counts):
    log = pumps.pump_log()
    drawn = Counter(
        (
            pumps.STATES[log.state[i]],
            (pumps.ACTIONS[log.action[i]],),
            None if log.terminated[i] else pumps.STATES[log.next_state[i]],
        )
        for i in np.flatnonzero(~log.truncated)  # the file does not say where these led
    )
    rows = counts.transitions
    read = {
        (
            counts.states[rows.state[t]],
            counts.actions[rows.action[t]],
            None if rows.terminated[t] else counts.states[rows.next_state[t]],
        ): rows.times[t]
        for t in range(rows.times.size)
    }
    assert read == drawn
    assert counts.rows_read == log.num_steps
    assert sum(rows.reward_sum) == log.reward[~log.truncated].sum()
    assert sum(counts.dropped.values()) == log.truncated.sum() > 100
    assert log.terminated.sum() > 100


def test_the_written_habit_is_the_policy_that_drew_the_log(pumps):
    mdp = pumps.pump_model()
    table = pumps.habit(mdp.pairs).dense()
    with (EXAMPLES / "pumps_policy.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            state = pumps.STATES.index((row["condition"], row["demand"]))
            action = pumps.ACTIONS.index(row["decision"])
            assert float(row["probability"]) == table[state, action]


def test_spibb_improves_on_the_habit_keeps_some_states_and_changes_others(pumps, counts):
    mdp = pumps.pump_model()
    habit = pumps.habit(mdp.pairs)
    problem = Problem(
        counts=counts.to_counts(mdp.pairs),
        behavior=habit,
        discount=pumps.WEEKLY_DISCOUNT,
        value_bounds=VALUE_BOUNDS,
    )
    policy = SPIBB(n_wedge=200).improve(problem).policy
    assert performance(mdp, policy) > 1.3 * performance(mdp, habit)
    changed = np.abs(policy.dense() - habit.dense()).max(axis=1)[: len(pumps.STATES)] > 1e-9
    assert 5 <= changed.sum() <= 10
