"""Learning states: what is found where the truth is known, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.labels.state_rules import TreeRule
from surestep.states.bins import BinStates, round_edges
from surestep.states.choosing_size import Rows, returns_of, smallest_good
from surestep.states.learning import METHODS, ROWS_A_STATE, learn_states
from surestep.states.regression_trees import grown, grown_to_sizes, short_between

COLUMNS = ("lactate", "age", "noise")


def ward(episodes: int, *, noise: float = 0.3, seed: int = 0) -> Rows:
    """Rewards are 1 for lactate below 2.1 in people below 60, else 0, with noise; γ = 0."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(episodes + 1) * 5
    values = np.column_stack(
        [
            rng.gamma(2, 1.2, offsets[-1]).round(2),
            np.repeat(rng.integers(20, 95, episodes), 5).astype(float),
            rng.normal(size=offsets[-1]),
        ]
    )
    reward = (values[:, 0] < 2.1) & (values[:, 1] < 60)
    return Rows(values, reward + noise * rng.normal(size=reward.size), offsets)


def test_a_tree_finds_the_leaves_that_there_are():
    learnt = learn_states(ward(400), COLUMNS, "tree")
    assert isinstance(learnt.states, TreeRule)
    assert set(learnt.states.labels()) <= {
        "age < 60, lactate < 2.1", "age < 60, lactate ≥ 2.1", "age ≥ 60",
        "lactate < 2.1, age < 60", "lactate < 2.1, age ≥ 60", "lactate ≥ 2.1",
    }  # fmt: skip
    assert learnt.num_episodes == 400


@pytest.mark.parametrize("method", METHODS)
def test_states_tell_more_than_none_and_the_same_again(method):
    rows = ward(120)
    learnt, again = (learn_states(rows, COLUMNS, method) for _ in range(2))
    assert learnt == again
    chosen = [fit for fit in learnt.fits if fit.explained > 0.1]
    assert chosen
    assert learnt.states.num_states <= max(fit.states for fit in learnt.fits)
    assert (learnt.states.indices(rows.values) < learnt.states.num_states).all()


@pytest.mark.parametrize(("method", "states"), [("tree", 3), ("kmeans", 5), ("bins", 2**3)])
def test_a_size_that_is_given_is_taken(method, states):
    sizes = {"tree": 3, "kmeans": 5, "bins": 2}
    learnt = learn_states(ward(60), COLUMNS, method, size=sizes[method])
    assert learnt.states.num_states == states
    assert learnt.fits == ()


def test_pure_noise_needs_no_more_than_the_smallest_size():
    """One standard error: in at least half of 20 logs the smallest of 13 trees is taken.

    A choice by the least error alone takes it in fewer: there each size is as likely as another.
    """
    rng = np.random.default_rng(1)
    smallest = 0
    for _ in range(20):
        offsets = np.arange(41) * 5
        rows = Rows(rng.normal(size=(200, 2)), rng.normal(size=200), offsets)
        smallest += learn_states(rows, ("a", "b"), "tree").states.num_states == 2
    assert smallest >= 10


@given(st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=6), min_size=1, max_size=5),
       st.sampled_from([0.0, 0.5, 1.0]))  # fmt: skip
def test_returns_are_those_of_the_definition(episodes, discount):
    offsets = np.cumsum([0, *map(len, episodes)])
    expected = [
        sum(discount**i * reward for i, reward in enumerate(rewards[t:]))
        for rewards in episodes
        for t in range(len(rewards))
    ]
    found = returns_of(np.concatenate(episodes), offsets, discount)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_a_short_number_lies_between(low, more):
    high = low + more
    short = short_between(low, high)
    assert low < short <= high
    assert len(repr(short).lstrip("-")) <= max(len(repr(high).lstrip("-")), 3)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 10))
def test_round_edges_cut_into_at_most_so_many(low, more, number):
    edges = round_edges(low, low + more, number)
    assert 1 <= len(edges) < number
    assert low < edges[0]
    assert edges[-1] < low + more
    assert list(edges) == sorted(set(edges))


def test_a_tree_that_is_grown_once_has_grown_through_all_smaller_ones():
    """Against scikit-learn's own: a tree of each size, grown for itself."""
    sizes = [2, 3, 5, 8, 12, 20]
    for seed in range(3):
        rows = ward(80, seed=seed)
        alone = [grown(rows, COLUMNS, size, 5) for size in sizes]
        assert grown_to_sizes(rows, COLUMNS, sizes, 5) == alone
    assert [tree.num_states for tree in alone] == sizes


def test_of_many_columns_those_are_cut_that_tell_returns():
    """Two of 20 do. All with two bins each would be a million states of 700 rows."""
    rng = np.random.default_rng(3)
    values = rng.random((1000, 20))
    told = 2.0 * (values[:, 4] > 0.5) + (values[:, 11] > 0.5)
    rows = Rows(values, told + 0.3 * rng.normal(size=1000), np.arange(0, 1001, 5))
    names = tuple(f"m{i}" for i in range(20))
    learnt = learn_states(rows, names, "bins")
    assert {*learnt.states.binnings} == {"m4", "m11"}
    assert max(fit.states for fit in learnt.fits) <= 1000 // ROWS_A_STATE
    given = learn_states(rows, names, "bins", size=2).states
    assert given.num_states == 32  # of the 50 that 1,000 rows fill
    assert {"m4", "m11"} < {*given.binnings}


def test_bins_are_given_on_as_users_give_them():
    learnt = learn_states(ward(60), COLUMNS, "bins", size=2)
    assert isinstance(learnt.states, BinStates)
    assert [option.split("=")[0] for option in learnt.states.options()] == [
        "lactate:edges", "age:edges", "noise:edges",
    ]  # fmt: skip


def test_the_smallest_that_is_not_clearly_worse_is_taken():
    best = np.array([1.0, 1.0, 1.0, 1.0])
    alike = best + np.array([0.2, -0.1, 0.2, -0.2])
    worse = best + np.array([1.0, 0.9, 1.1, 1.0])
    assert smallest_good([worse, alike, best]) == 1
    assert smallest_good([worse, best, alike]) == 1
    assert smallest_good([best]) == 0


def test_what_cannot_be_learnt_from_is_refused():
    with pytest.raises(InvalidLog, match="2 episodes with 10 rows, expected at least 20 episodes"):
        learn_states(ward(2), COLUMNS, "tree")
    flat = ward(60)._replace(values=np.ones((300, 3)))
    with pytest.raises(InvalidLog, match="no column of lactate, age, noise varies"):
        learn_states(flat, COLUMNS, "kmeans")
    huge = ward(60)
    huge.values[0, 1] = 1e35
    with pytest.raises(InvalidLog, match="column 'age' holds 1e\\+35"):
        learn_states(huge, COLUMNS, "tree")
    with pytest.raises(InvalidParameter, match="'forest', expected tree"):
        learn_states(ward(60), COLUMNS, "forest")
    with pytest.raises(InvalidParameter, match="size of states is 1"):
        learn_states(ward(60), COLUMNS, "tree", size=1)
