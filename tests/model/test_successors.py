"""Successors: what is asked of them, and of the counts that they come with."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.frozen import assert_frozen
from support.problems import problem_of
from support.strategies import count_tables
from surestep import Counts, Pairs
from surestep.errors import InvalidModel, InvalidParameter, ShapeMismatch
from surestep.model import Statement, Successors

PAIRS = Pairs.full(3, 1)


def support_of(allowed):
    """The successors where the table [S, A, S] is true."""
    pairs = Pairs.full(*allowed.shape[:2])
    rows = allowed.reshape(-1, allowed.shape[2])
    return Successors(pairs, np.cumsum([0, *rows.sum(axis=1)]), np.nonzero(rows)[1])


@given(table=count_tables(), seed=st.integers(0, 10**6))
def test_counts_are_found_at_their_places(table, seed):
    rng = np.random.default_rng(seed)
    extra = rng.random(table.shape) < 0.4
    extra[:, :, 0] |= ~((table > 0) | extra).any(axis=2)
    allowed = (table > 0) | extra
    support = support_of(allowed)
    counts = Counts.from_dense(table, rewards=np.zeros(table.shape))  # stores them all
    order = rng.permutation(counts.pairs.num_states)
    shuffled = Counts(
        counts.pairs,
        counts.offsets,
        np.tile(order, counts.pairs.num_pairs),
        table[..., order].ravel(),
        counts.rewards,
        counts.starts,
    )
    for each in (counts, shuffled):
        np.testing.assert_array_equal(support.times(each), table[allowed])
        place = support.places(each)
        inside = allowed[..., each.successor[: order.size]].ravel()
        assert ((place >= 0) == inside).all()
        np.testing.assert_array_equal(support.successor[place[inside]], each.successor[inside])
        assert problem_of(each, support=support).support_sizes().tolist() == (
            allowed.sum(axis=2).ravel().tolist()
        )
    np.testing.assert_array_equal(support.ends(), ~allowed.any(axis=(1, 2)))
    assert (problem_of(counts).support_sizes() == order.size).all()


def test_it_is_a_value():
    support = Successors(PAIRS, [0, 2, 3, 3], [0, 2, 1], [0.5, 1.0, 2.0])
    assert support == copy.deepcopy(support) == pickle.loads(pickle.dumps(support))  # noqa: S301
    assert support != Successors(PAIRS, [0, 2, 3, 3], [0, 2, 1])
    assert support.sizes.tolist() == [2, 1, 0]
    assert support.ends().tolist() == [False, False, True]
    assert support.statement() == Statement("successors-given", {"successors": 3})
    assert_frozen(support)


@pytest.mark.parametrize(
    ("offsets", "successor", "weight", "message"),
    [
        ([0, 1, 2, 3], [0, 3, 0], None, "successor of state 1, action 0 is 3, expected 0 to 2"),
        ([0, 2, 2, 2], [1, 1], None, "successor 1 of state 0, action 0 is listed twice"),
        ([0, 0, 2, 2], [2, 0], None, "action 0 → state 0 is listed after state 1, action 0 → st"),
        ([0, 1], [0], None, "transition offsets has shape"),
        ([0, 1, 2, 3], [0, 0, 0], [1, 0, 2], "weight of state 1, action 0 → state 0 is 0.0"),
        ([0, 1, 2, 3], [0, 0, 0], [1, 1, np.nan], "weight of state 2, action 0 → state 0 is nan"),
        ([0, 1, 2, 3], [0, 0, 0], [1, 1e10, 1], "expected 1e-09 to 1"),
        ([0, 1, 2, 3], [0, 0, 0], [1, 1], "weight has shape"),
    ],
)
def test_bad_successors_are_refused(offsets, successor, weight, message):
    with pytest.raises(InvalidModel, match=message.replace("+", r"\+")):
        Successors(PAIRS, offsets, successor, weight)
    with pytest.raises(InvalidModel, match="pairs is of type"):
        Successors(None, offsets, successor, weight)


def test_a_problem_names_what_its_support_lacks():
    table = np.zeros((3, 1, 3), int)
    table[0, 0] = [0, 4, 7]
    table[1, 0] = [2, 0, 0]
    counts = Counts.from_dense(table, rewards=np.zeros((3, 1)), terminal=[False, False, True])
    fine = Successors(PAIRS, [0, 2, 4, 4], [1, 2, 0, 1])
    assert problem_of(counts, support=fine).support == fine
    text = "state 0, action 0 → state 2 was observed 7 times, but is not in the support"
    with pytest.raises(ShapeMismatch, match=text):
        problem_of(counts, support=Successors(PAIRS, [0, 2, 3, 3], [0, 1, 0]))
    open_end = Counts.from_dense(table, rewards=np.zeros((3, 1)))
    text = "the support of state 2, action 0 is empty, but its state is not marked as terminal"
    with pytest.raises(ShapeMismatch, match=text):
        problem_of(open_end, support=fine)
    with pytest.raises(ShapeMismatch, match="the counts has 3 states, the support has 2"):
        problem_of(counts, support=Successors(Pairs.full(2, 1), [0, 1, 2], [0, 0]))
    with pytest.raises(InvalidParameter, match="expected Successors or None"):
        problem_of(counts, support=[[1, 2], [0], []])
