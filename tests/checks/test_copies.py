"""Copies are found, and honest episodes that are equal are not called so."""

import numpy as np
import pytest

import surestep
from careless_logs import copied_rows
from surestep import environments
from surestep.checks.copies import check


def checked(table, **told):
    source = surestep.read_log(table, **told)
    return check(source.load(), source.contents())


def table_of(log, number=0):
    episode = np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets)) + number
    names = ("state", "action", "reward", "next_state", "terminated", "truncated", "step")
    return {"episode": episode} | {name: np.asarray(getattr(log, name)) for name in names}


def joined(first, second):
    return {name: np.concatenate([first[name], second[name]]) for name in first}


KNOWN = ("bandit", "gridworld", "nearly-alike", "random-mdp", "wet-chicken", "tiger")


@pytest.mark.one_quick
@pytest.mark.parametrize("name", KNOWN)
def test_honest_episodes_may_be_equal(name):
    for seed, size in enumerate((50, 400)):
        log = environments.make(name).sample(1 if name == "wet-chicken" else size, seed)
        assert checked(table_of(log)) is None


def test_copied_episodes_are_found_by_the_model_and_counted():
    log = environments.make("nearly-alike").sample(200, 1)
    long = int((np.diff(log.episode_offsets) >= 15).sum())
    found = checked(joined(table_of(log), table_of(log, 1000)))
    assert long / 2 <= found.figures["copies"] <= 200
    row_ids = joined(table_of(log), table_of(log, 1000))
    row_ids["id"] = np.arange(row_ids["step"].size)
    assert checked(row_ids).figures == found.figures


def test_an_episode_that_differs_in_any_column_is_no_copy():
    log = environments.make("nearly-alike").sample(200, 1)
    first, second = table_of(log), table_of(log, 1000)
    first["ward"], second["ward"] = (np.full(log.num_steps, word) for word in "ab")
    assert checked(joined(first, second)) is None


def test_single_rows_are_copies_where_a_measurement_is_equal():
    table = copied_rows(0, 100).table
    told = {"columns": {"state": "group"}}
    assert checked(table, **told).figures["copies"] == 400
    without = {name: values for name, values in table.items() if name != "age"}
    assert checked(without, **told) is None  # which chance explains


@pytest.mark.one_quick
@pytest.mark.parametrize("seed", range(5))
def test_values_at_the_ends_of_a_scale_are_no_copies(seed):
    rng = np.random.default_rng(seed)
    table = {
        "state": rng.integers(0, 3, 500).astype(str),
        "action": rng.integers(0, 2, 500).astype(str),
        "reward": np.clip(rng.normal(0.5, 0.4, 500), 0, 1),  # a fifth is 0 or 1
    }
    assert checked(table) is None
