"""Greedy steps under a budget: against linear programs, and against the published rule."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.oracles import best_row
from surestep.kernels.soft import spend_budget, spend_budget_greedily

NO_TIE = 0.0
Q = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50, allow_subnormal=False))
ERRORS = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf]), st.floats(0.01, 20, allow_subnormal=False)
)
BUDGETS = st.one_of(st.sampled_from([0.0, 0.1, 1.0, 1e6]), st.floats(0.001, 30))


@st.composite
def states(draw, values=Q, errors=ERRORS, max_actions=5):
    """q, π_b and the errors of one state."""
    size = draw(st.integers(1, max_actions))
    weight = np.array(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)))
    q, error = (
        np.array(draw(st.lists(each, min_size=size, max_size=size))) for each in (values, errors)
    )
    return q, weight / weight.sum(), error


def spent(behavior, leave, enter, row):
    """Σ leave (π_b − π)⁺ + enter (π − π_b)⁺, where nothing times ∞ is nothing."""
    down, up = np.maximum(behavior - row, 0), np.maximum(row - behavior, 0)
    return leave[down > 0] @ down[down > 0] + enter[up > 0] @ up[up > 0]


def exact_row(q, behavior, leave, enter, budget, tie=NO_TIE):
    """What `spend_budget` makes of one state."""
    row, run = np.empty(q.size), np.array([0, q.size])
    spend_budget(run, q, behavior, leave, enter, budget, tie, row)
    return row


def greedy_row(q, behavior, error, reference, budget, tie=NO_TIE):
    """What `spend_budget_greedily` makes of one state."""
    row, run = np.empty(q.size), np.array([0, q.size])
    spend_budget_greedily(run, q, behavior, error, reference, budget, tie, row)
    return row


# ---- the exact step ---------------------------------------------------------------------------


@pytest.mark.parametrize("leaving", ["costs the error", "is free"])
@given(state=states(), budget=BUDGETS)
def test_the_exact_step_solves_the_linear_program(leaving, state, budget):
    q, behavior, error = state
    leave = np.zeros(q.size) if leaving == "is free" else error
    row = exact_row(q, behavior, leave, error, budget)
    best = q @ best_row(q, behavior, leave, error, budget)
    assert q @ row == pytest.approx(best, rel=1e-9, abs=1e-9 * max(1.0, np.abs(q).max()))
    assert row.min() >= 0
    assert row.sum() == pytest.approx(1, abs=1e-12)
    assert spent(behavior, leave, error, row) <= budget + 1e-12 * max(1.0, budget)


@given(state=states())
def test_no_budget_and_no_error_still_let_mass_move_for_nothing(state):
    q, behavior, _ = state
    free = np.zeros(q.size)
    assert q @ exact_row(q, behavior, free, free, 0.0) == pytest.approx(q.max(), abs=1e-12)


@given(state=states(errors=st.floats(0.01, 20)))
def test_no_budget_keeps_the_behavior_policy_where_moving_costs(state):
    q, behavior, error = state
    assert np.array_equal(exact_row(q, behavior, error, error, 0.0), behavior)


@given(state=states(), budget=BUDGETS)
def test_pairs_of_infinite_error_keep_their_probability_bit_for_bit(state, budget):
    q, behavior, error = state
    unknown = np.isinf(error)
    assert np.array_equal(exact_row(q, behavior, error, error, budget)[unknown], behavior[unknown])
    lower = exact_row(q, behavior, np.zeros(q.size), error, budget)
    assert (lower[unknown] <= behavior[unknown]).all()
    greedy = greedy_row(q, behavior, error, np.zeros(q.size), budget)
    assert np.array_equal(greedy[unknown], behavior[unknown])


TIED = st.integers(-2, 2).map(float), st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf])


@settings(max_examples=150)
@given(state=states(*TIED), budget=BUDGETS, data=st.data())
def test_rounding_in_q_does_not_decide_between_ties(state, budget, data):
    q, behavior, error = state
    noise = data.draw(st.lists(st.integers(-2, 2), min_size=q.size, max_size=q.size))
    shaken, tie, free = q + 1e-14 * np.array(noise), 1e-12, np.zeros(q.size)
    for leave in (error, free):
        calm = exact_row(q, behavior, leave, error, budget, tie)
        assert exact_row(shaken, behavior, leave, error, budget, tie) == pytest.approx(calm)
    calm = greedy_row(q, behavior, error, free, budget, tie)
    assert greedy_row(shaken, behavior, error, free, budget, tie) == pytest.approx(calm)


def test_states_do_not_mix():
    offsets = np.array([0, 2, 3, 5])
    q = np.array([0.0, 1.0, 5.0, 2.0, 0.0])
    behavior = np.array([0.5, 0.5, 1.0, 0.5, 0.5])
    error = np.array([1.0, 1.0, 1.0, 1.0, 4.0])
    row = np.empty(5)
    spend_budget(offsets, q, behavior, error, error, 0.5, NO_TIE, row)
    assert row == pytest.approx([0.25, 0.75, 1.0, 0.6, 0.4])


# ---- the greedy step --------------------------------------------------------------------------


def published_row(q, behavior, error, reference, budget):
    """The published update of one state, in plain Python, with the reference of its last form."""
    row, left, surplus = behavior.tolist(), budget, 0.0
    for worst in np.argsort(q, kind="stable"):
        offer = min(row[worst], left / (2 * error[worst]))
        rate = (q - q[worst]) / error
        for better in np.argsort(-rate, kind="stable"):
            if better == worst:
                break
            moved = min(offer, left / (2 * error[better]))
            gain = reference[better] - reference[worst]
            if gain < 0:
                moved = min(moved, surplus / -gain)
            if moved > 0:
                offer -= moved
                row[worst] -= moved
                row[better] += moved
                left -= moved * (error[worst] + error[better])
                surplus += moved * gain
            if offer == 0:
                break
    return np.array(row), left


@st.composite
def states_without_ties(draw):
    """q, π_b, errors and a second q of one state, in which no two values or rates are equal.

    The second q is 0 everywhere where it is to have no say.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    size = draw(st.sampled_from([1, 3, 4, 5, 6]))
    q, reference = rng.normal(size=(2, size)) * [[1.0], [draw(st.sampled_from([0.0, 1.0]))]]
    behavior = rng.dirichlet(np.full(size, draw(st.sampled_from([0.3, 3.0]))))
    return q, behavior, np.exp(rng.uniform(-2, 1, size)), reference


@settings(max_examples=200)
@given(state=states_without_ties(), budget=st.sampled_from([0.1, 0.3, 1.0, 3.0]))
def test_the_greedy_step_is_the_published_one_while_that_keeps_to_its_budget(state, budget):
    q, behavior, error, reference = state
    expected, left = published_row(q, behavior, error, reference, budget)
    assume(left >= 0)
    assert greedy_row(q, behavior, error, reference, budget) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=200)
@given(state=states_without_ties(), budget=st.sampled_from([0.1, 0.3, 1.0, 3.0]))
def test_the_greedy_step_keeps_to_its_budget_and_loses_under_neither_q(state, budget):
    q, behavior, error, reference = state
    row = greedy_row(q, behavior, error, reference, budget)
    assert spent(behavior, error, error, row) <= budget + 1e-12
    assert q @ row >= q @ behavior - 1e-12
    assert reference @ row >= reference @ behavior - 1e-12
    assert row.min() >= 0
    assert row.sum() == pytest.approx(1, abs=1e-12)


def test_where_the_published_step_spends_too_much_the_last_move_is_cut():
    q, behavior = np.array([0.0, 10.0, 2.0]), np.array([1.0, 0.0, 0.0])
    error, nothing = np.array([1.0, 2.0, 0.5]), np.zeros(3)
    published, left = published_row(q, behavior, error, nothing, 1.0)
    assert published.tolist() == [0.5, 0.25, 0.25]
    assert left == spent(behavior, error, error, published) * -1 + 1 == -0.125
    row = greedy_row(q, behavior, error, nothing, 1.0)
    assert row == pytest.approx([1 - 0.25 - 1 / 6, 0.25, 1 / 6])
    assert spent(behavior, error, error, row) == pytest.approx(1.0)
