"""The current policy found in a log: the tree, its laws, and what it must not make up."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.environments import make
from surestep.environments.sysadmin import SysAdmin
from surestep.model import FactoredLog, Policy, Structure
from surestep.model.behavior_tree import (
    estimated_behavior,
    evidence,
    leaves_of,
    logged_behavior,
)
from surestep.planning import performance

COLUMNS = {"x": ["a", "b", "c"], "y": ["no", "yes"], "same": ["one"]}
ACTIONS = ["wait", "go", "stop"]
STATES = np.array([*itertools.product(range(3), range(2), [0])])


def log_of(state, action, propensity=None):
    structure = Structure.read(COLUMNS, ACTIONS, {name: {"parents": []} for name in COLUMNS})
    return FactoredLog(
        structure=structure,
        state=state,
        action=action,
        next_state=state,
        ended=np.zeros(len(action), np.bool_),
        offsets=[0, len(action)],
        propensity=propensity,
    )


def drawn(law, rows, seed):
    """Rows of random states, whose actions have the law [6, A] of their state."""
    rng = np.random.default_rng(seed)
    place = rng.integers(6, size=rows)
    action = (rng.random((rows, 1)) >= np.cumsum(law, axis=1)[place, :-1]).sum(axis=1)
    return place, log_of(STATES[place], action, np.asarray(law)[place, action])


@given(st.lists(st.integers(0, 2), max_size=12))
def test_the_evidence_is_that_of_an_urn(labels):
    """Row by row: the chance of a label is (n(x) + p(x)) / (n + 1)."""
    share = np.array([0.5, 0.3, 0.2])
    counts, expected = np.zeros(3, np.int64), 0.0
    for n, x in enumerate(labels):
        expected += math.log((counts[x] + share[x]) / (n + 1))
        counts[x] += 1
    assert evidence(counts, share) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 200))
def test_every_state_is_in_one_leaf_with_the_mean_of_its_rows(seed, rows):
    law = np.random.default_rng(seed).dirichlet([0.3] * 3, 6)
    _, log = drawn(law, rows, seed)
    leaves = leaves_of(log, log.action)
    names = [*COLUMNS]

    def holds(when, state):
        return all(
            COLUMNS[name].index(low) <= state[names.index(name)] <= COLUMNS[name].index(high)
            for name, (low, high) in when.items()
        )

    share = np.bincount(log.action, minlength=3) / rows
    chances = estimated_behavior(log).chances(STATES)
    for state, found in zip(STATES, chances, strict=True):
        (leaf,) = (when for when, _ in leaves if holds(when, state))
        mine = [a for s, a in zip(log.state, log.action, strict=True) if holds(leaf, s)]
        expected = [(mine.count(a) + share[a]) / (len(mine) + 1) for a in range(3)]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_where_actions_owe_nothing_to_the_state_the_tree_is_seldom_split():
    law = np.tile([0.6, 0.3, 0.1], (6, 1))
    splits = [estimated_behavior(drawn(law, 200, seed)[1]).num_rules > 0 for seed in range(100)]
    assert sum(splits) <= 5


def test_an_interaction_of_two_columns_is_found():
    law = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]] + 4 * [[0.1, 0.1, 0.8]])
    rules = estimated_behavior(drawn(law, 4000, 1)[1])
    assert rules.num_rules == 2  # and the last leaf, where none of them holds
    np.testing.assert_allclose(rules.chances(STATES), law, atol=0.06)


def test_the_estimate_is_worth_what_the_current_policy_is():
    """By exact values: the current policy has 49.9 of at most 59.3."""
    world, ring = SysAdmin(4), make("sysadmin", machines=4)
    states = (np.arange(16)[:, np.newaxis] >> np.arange(4)[::-1]) & 1
    current = world.first_failed(0.3)
    exact = performance(ring.mdp, Policy.from_dense(ring.mdp, current.chances(states)))
    for seed in range(3):
        found = estimated_behavior(world.sample(current, 300, rng=seed))
        value = performance(ring.mdp, Policy.from_dense(ring.mdp, found.chances(states)))
        assert value == pytest.approx(exact, abs=0.7)


def test_logged_probabilities_are_taken_as_they_are():
    law = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0]] + 4 * [[0.7, 0.0, 0.3]])
    _, log = drawn(law, 500, 1)
    rules = logged_behavior(log, log)
    np.testing.assert_allclose(rules.chances(STATES), law, atol=1e-12)
    assert rules.is_whole


def test_actions_that_nobody_logged_keep_what_is_left():
    _, log = drawn(np.tile([0.7, 0.1, 0.2], (6, 1)), 500, 1)
    kept = np.flatnonzero(log.action != 2)
    known = log_of(log.state[kept], log.action[kept], log.propensity[kept])
    rules = logged_behavior(known, known)
    np.testing.assert_allclose(rules.chances(STATES), np.tile([0.7, 0.1, 0.0], (6, 1)), atol=1e-12)
    assert not rules.is_whole


def test_probabilities_that_no_columns_tell_are_no_policy():
    state = np.tile([0, 0, 0], (40, 1))
    for action, chances, told in (
        ([0, 1] * 20, [0.5, 0.25] * 20, True),
        ([0] * 40, [0.5, 0.25] * 20, False),
        ([0, 1] * 20, [0.5, 0.75] * 20, False),
    ):
        log = log_of(state, action, chances)
        assert (logged_behavior(log, log) is not None) == told
