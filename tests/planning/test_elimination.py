"""Which entries fill in when states are eliminated, against an elimination of a dense table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep import Pairs
from surestep.planning import batch
from surestep.planning.batch import plan_elimination, plan_for_edges


@pytest.fixture(autouse=True)
def no_plan_is_remembered():
    plan_for_edges.cache_clear()
    yield
    plan_for_edges.cache_clear()


def plan_of(table):
    """The plan for one action a state, which leads where the table [S, S] says."""
    size = len(table)
    offsets = np.concatenate([[0], np.cumsum(table.sum(axis=1))])
    return plan_elimination(Pairs.full(size, 1), offsets, np.nonzero(table)[1].astype(np.int32))


@given(size=st.integers(1, 9), seed=st.integers(0, 10**6), density=st.sampled_from([0.1, 0.3]))
def test_all_that_fills_in_is_planned_and_nothing_else(size, seed, density):
    table = np.random.default_rng(seed).random((size, size)) < density
    plan = plan_of(table)
    assert sorted(plan.order.tolist()) == list(range(size))
    assert plan.order[plan.place].tolist() == list(range(size))
    filled = table[np.ix_(plan.order, plan.order)]
    for c in range(size):
        below = np.flatnonzero(filled[c + 1 :, c]) + c + 1
        filled[below] |= filled[c] & (np.arange(size) > c)
    for i in range(size):
        lower = plan.lower[plan.lower_offsets[i] : plan.lower_offsets[i + 1]]
        upper = plan.upper[plan.upper_offsets[i] : plan.upper_offsets[i + 1]]
        assert lower.tolist() == np.flatnonzero(filled[i, :i]).tolist()
        assert upper.tolist() == (np.flatnonzero(filled[i, i + 1 :]) + i + 1).tolist()


def test_nothing_fills_in_where_that_can_be_avoided():
    star = np.zeros((7, 7), bool)
    star[0, 1:] = star[1:, 0] = True
    plan = plan_of(star)  # eliminated first, the middle would leave its row to all others
    assert plan.lower.size == plan.upper.size == 6


def test_work_and_states_have_a_limit(monkeypatch):
    # Four states that lead everywhere: 3 rows take 3 entries each, then 2 take 2, and one takes 1.
    everywhere = np.ones((4, 4), bool)
    monkeypatch.setattr(batch, "MOST_WORK", 14)
    assert plan_of(everywhere) is not None
    plan_for_edges.cache_clear()
    monkeypatch.setattr(batch, "MOST_WORK", 13)
    assert plan_of(everywhere) is None
    alone = np.eye(4, dtype=bool)
    monkeypatch.setattr(batch, "MOST_STATES", 4)
    assert plan_of(alone).upper.size == 0
    monkeypatch.setattr(batch, "MOST_STATES", 3)
    assert plan_of(alone) is None


@pytest.mark.parametrize(("more", "planned"), [((), True), ((1,), False)])
def test_up_to_two_million_multiplications_are_planned(more, planned):
    # What leads to r states of a clique and back is eliminated first: r rows take r entries each.
    # The clique itself takes 181² + … + 1² of them.
    clique, links = 182, (83, 10, 4, 2, *more)
    table = np.zeros((clique + len(links),) * 2, bool)
    table[:clique, :clique] = True
    for state, number in enumerate(links, clique):
        table[state, :number] = table[:number, state] = True
    assert sum(r**2 for r in (*range(clique), *links)) == 2_000_000 + len(more)
    assert (plan_of(table) is not None) is planned


def test_up_to_2000_states_are_planned():
    nothing = np.zeros(0, np.int32)
    for size, planned in ((2000, True), (2001, False)):
        found = plan_elimination(Pairs.full(size, 1), np.zeros(size + 1, np.int64), nothing)
        assert (found is not None) is planned


def test_the_plans_of_32_shapes_are_remembered():
    for size in (*range(1, 33), *range(1, 33)):
        plan_of(np.zeros((size, size), bool))
    assert plan_for_edges.cache_info().hits == 32
    for size in (33, 1):
        plan_of(np.zeros((size, size), bool))
    assert plan_for_edges.cache_info().hits == 32
