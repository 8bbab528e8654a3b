"""FiniteMDP: tables in and out, sparse matrices, what is kept bit for bit, and what is frozen."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.frozen import assert_frozen
from support.strategies import DISCOUNTS, REWARDS, WEIGHTS, drawn_array, mdps
from surestep import FiniteMDP, Pairs
from surestep.errors import InvalidModel

FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")


@st.composite
def tables(draw, max_states=4, max_actions=3):
    """Arguments of `from_dense`: ragged actions, rows that end the episode, every kind of shape."""
    states, actions = draw(st.integers(1, max_states)), draw(st.integers(1, max_actions))
    enabled = drawn_array(draw, st.booleans(), (states, actions))
    enabled[np.arange(states), drawn_array(draw, st.integers(0, actions - 1), states)] = True
    weight = drawn_array(draw, st.integers(0, 3), (states, actions, states)).astype(float)
    total = weight.sum(axis=2, keepdims=True)
    P = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    R = drawn_array(draw, REWARDS, draw(st.sampled_from([P.shape[:2], P.shape])))
    discount = draw(DISCOUNTS)
    if draw(st.booleans()):
        discount = drawn_array(draw, DISCOUNTS, (states, actions))
    start = drawn_array(draw, WEIGHTS, states).astype(float)
    initial = draw(st.one_of(st.integers(0, states - 1), st.just(start / start.sum())))
    return P, R, discount, initial, draw(st.sampled_from([None, enabled]))


def meaning(mdp):
    """(state, action) → discount, ending reward and {successor: (probability, reward)}."""
    result = {}
    for k in range(mdp.num_pairs):
        run = range(int(mdp.offsets[k]), int(mdp.offsets[k + 1]))
        row = {int(mdp.successor[t]): (mdp.probability[t], mdp.reward[t]) for t in run}
        key = (int(mdp.pairs.state[k]), int(mdp.pairs.action[k]))
        result[key] = (mdp.discount[k], mdp.ending_reward[k], row)
    return result


# ---- tables -----------------------------------------------------------------------------------


@given(given_tables=tables())
def test_a_model_holds_what_its_tables_say(given_tables):
    P, R, discount, initial, enabled = given_tables
    mdp = FiniteMDP.from_dense(*given_tables)
    mask = np.ones(P.shape[:2], bool) if enabled is None else enabled
    assert np.array_equal(mdp.pairs.enabled(), mask)
    gammas = np.broadcast_to(discount, mask.shape)
    expected = {}
    for s, a in np.argwhere(mask):
        successors = np.flatnonzero(P[s, a])
        reward = R[s, a] if R.ndim == 3 else np.full(P.shape[2], R[s, a])
        ending = R[s, a] if R.ndim == 2 and successors.size == 0 else 0.0
        row = {int(t): (P[s, a, t], reward[t]) for t in successors}
        expected[int(s), int(a)] = (gammas[s, a], ending, row)
    assert meaning(mdp) == expected
    start = np.eye(P.shape[0])[initial] if np.ndim(initial) == 0 else initial
    assert np.array_equal(mdp.initial, start)
    assert FiniteMDP.from_dense(*mdp.dense()) == mdp


@given(mdp=mdps(undiscounted=True))
def test_any_model_is_the_same_through_tables_unless_no_table_can_hold_its_rewards(mdp):
    rows = meaning(mdp).values()
    varied = any(len({reward for _, reward in row.values()}) > 1 for _, _, row in rows)
    if varied and np.any(mdp.ending_reward != 0):
        with pytest.raises(InvalidModel, match="ends the episode with reward"):
            mdp.dense()
        return
    again = FiniteMDP.from_dense(*mdp.dense())
    assert meaning(again) == meaning(mdp)
    assert np.array_equal(again.initial, mdp.initial)
    assert again.pairs == mdp.pairs


@given(given_tables=tables())
def test_the_expected_reward_is_the_mean_over_successors_or_that_of_the_end(given_tables):
    P, R, *_ = given_tables
    mdp = FiniteMDP.from_dense(*given_tables)
    if R.ndim == 3:
        expected = (P * R).sum(axis=2)
    else:
        expected = R * np.where(P.any(axis=2), P.sum(axis=2), 1.0)
    assert_allclose(mdp.expected_reward, expected[mdp.pairs.enabled()], rtol=1e-12, atol=1e-12)


def test_disabled_actions_do_not_matter_whatever_the_tables_hold_there():
    P = np.array([[[1.0], [np.nan]]])
    R, discount = np.array([[2.0, np.inf]]), np.array([[0.5, 7.0]])
    mdp = FiniteMDP.from_dense(P, R, discount, enabled=[[True, False]])
    assert mdp == FiniteMDP(Pairs([0, 1], [0], 2), [0, 1], [0], [1.0], [2.0], [0.5], [1.0])


# ---- sparse matrices --------------------------------------------------------------------------


@given(given_tables=tables(), form=st.sampled_from(FORMATS), data=st.data())
def test_sparse_matrices_give_the_model_of_the_same_tables(given_tables, form, data):
    P, R, *rest = given_tables
    kind = data.draw(st.sampled_from([scipy.sparse.coo_array, scipy.sparse.coo_matrix]))
    matrices = [kind(P[:, a]).asformat(form) for a in range(P.shape[1])]
    rewards = R if R.ndim == 2 else [kind(R[:, a]).asformat(form) for a in range(P.shape[1])]
    assert FiniteMDP.from_sparse(matrices, rewards, *rest) == FiniteMDP.from_dense(P, R, *rest)
    for a, matrix in enumerate(matrices):  # and the caller's matrices are as they were
        assert matrix.format == form
        assert np.array_equal(matrix.toarray(), P[:, a])


def test_repeated_entries_of_sparse_matrices_add_up_whatever_their_type():
    where = ([0, 0, 1], [1, 1, 1])
    P = scipy.sparse.coo_array(([0.25, 0.75, 1.0], where), (2, 2))
    R = scipy.sparse.coo_array((np.array([100, 100, 1], np.int8), where), (2, 2))
    mdp = FiniteMDP.from_sparse([P], [R], 0.9)
    assert mdp == FiniteMDP.from_dense([[[0, 1]], [[0, 1]]], [[200.0], [1.0]], 0.9)


def test_stored_zeros_of_sparse_matrices_are_no_successors():
    P = scipy.sparse.csr_array(([0.0, 1.0, 0.0], ([0, 0, 1], [0, 1, 0])), (2, 2))
    mdp = FiniteMDP.from_sparse([P], [[3.0], [4.0]], 0.9)
    assert mdp == FiniteMDP.from_dense([[[0, 1]], [[0, 0]]], [[3.0], [4.0]], 0.9)
    assert mdp.ending_reward.tolist() == [0.0, 4.0]


# ---- rounding ---------------------------------------------------------------------------------


@given(weights=st.lists(WEIGHTS, min_size=1, max_size=12), nudge=st.floats(-1e-13, 1e-13))
def test_rows_that_sum_to_one_within_rounding_keep_their_bits(weights, nudge):
    row = np.array(weights) / sum(weights) * (1 + nudge)
    P = np.broadcast_to(row, (row.size, 1, row.size))
    mdp = FiniteMDP.from_dense(P, np.zeros((row.size, 1)), 0.9, initial=row)
    assert np.array_equal(mdp.probability, np.tile(row, row.size))
    assert np.array_equal(mdp.initial, row)


@given(weights=st.lists(WEIGHTS, min_size=2, max_size=12))
def test_rows_of_single_precision_are_rescaled_to_double_precision(weights):
    row = (np.array(weights) / sum(weights)).astype(np.float32)
    mdp = FiniteMDP.from_dense(
        np.broadcast_to(row, (row.size, 1, row.size)), np.zeros((row.size, 1)), 0.9, initial=row
    )
    for found in (mdp.probability[: row.size], mdp.initial):
        assert found.dtype == np.float64
        assert abs(found.sum() - 1) <= 1e-12
        assert_allclose(found, row, rtol=1e-6)
        assert_allclose(found / found[0], row.astype(float) / float(row[0]), rtol=1e-12)


def test_a_row_in_need_of_rescaling_leaves_the_others_as_they_are():
    third = 1 / 3
    P = np.array([[[third, third, third]], [[0.1, 0.2, 0.7 + 5e-7]], [[0.0, 0.0, 0.0]]])
    mdp = FiniteMDP.from_dense(P, np.zeros((3, 1)), 0.9)
    assert mdp.probability[:3].tolist() == [third] * 3
    assert abs(mdp.probability[3:].sum() - 1) <= 1e-12


# ---- the same model but for one thing -----------------------------------------------------------


@given(given_tables=tables(), data=st.data())
def test_another_discount_or_other_rewards_make_the_model_of_those_tables(given_tables, data):
    P, R, discount, initial, enabled = given_tables
    mdp = FiniteMDP.from_dense(*given_tables)
    other = data.draw(DISCOUNTS)
    assert mdp.with_discount(other) == FiniteMDP.from_dense(P, R, other, initial, enabled)
    assert mdp.with_discount(np.full(P.shape[:2], other)) == mdp.with_discount(other)
    assert mdp.with_discount(np.full(mdp.num_pairs, other)) == mdp.with_discount(other)
    rewards = drawn_array(data.draw, REWARDS, data.draw(st.sampled_from([P.shape[:2], P.shape])))
    expected = FiniteMDP.from_dense(P, rewards, discount, initial, enabled)
    assert mdp.with_rewards(rewards) == expected
    if rewards.ndim == 2:
        assert mdp.with_rewards(rewards[mdp.pairs.state, mdp.pairs.action]) == expected


# ---- labels of states ---------------------------------------------------------------------------


def test_marks_say_which_states_carry_a_label():
    mdp = FiniteMDP.from_dense(np.ones((2, 1, 2)) / 2, [[1.0], [0.0]], 0.9)
    assert dict(mdp.marks) == {}
    marked = replace(mdp, marks={"goal": [0, 1], "all": np.array([True, True])})
    assert list(marked.marks) == ["all", "goal"]
    assert marked.marks["goal"].tolist() == [False, True]
    assert "far" not in marked.marks
    with pytest.raises(KeyError):
        marked.marks["far"]
    assert marked != mdp
    assert marked == replace(mdp, marks=marked.marks)
    assert marked.with_discount(0.5).with_rewards([[0.0], [2.0]]).marks == marked.marks
    assert_frozen(marked)


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ([True, False], "marks is of type list, expected a dict of labels and masks"),
        ({1: [True, False]}, "a label of marks is 1, expected a string"),
        ({"goal": [True]}, r"mark 'goal' has shape \(1,\), expected \(2,\)"),
        ({"goal": [0, 2]}, r"mark 'goal'\[1\] is 2, expected True or False"),
    ],
)
def test_marks_that_are_none_are_refused(marks, words):
    mdp = FiniteMDP.from_dense(np.ones((2, 1, 2)) / 2, [[1.0], [0.0]], 0.9)
    with pytest.raises(InvalidModel, match=words):
        replace(mdp, marks=marks)


@pytest.mark.parametrize("endless", [1.0, "0", float("nan"), True])
def test_what_is_endless_is_worth_nothing_infinitely_much_or_has_no_value(endless):
    mdp = FiniteMDP.from_dense([[[1.0]]], [[0.0]], 0.9)
    with pytest.raises(InvalidModel, match=r"^endless is .*, expected 0, ∞, −∞ or None$"):
        replace(mdp, endless=endless)
    for good in (0, 0.0, np.inf, -np.inf, None):
        assert replace(mdp, endless=good).endless == good
