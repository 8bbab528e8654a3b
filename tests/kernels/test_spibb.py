"""Greedy steps of SPIBB: against the published rules, and against linear programs.

A round of DUIPI, against the same formulas over dense tables.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oracles import best_bounded_row
from surestep.kernels.spibb import (
    UncertainModel,
    fill_by_value,
    lean_towards_best,
    move_free_mass,
    uncertain_backup,
)

Q = st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50, allow_subnormal=False))
SEEDS = st.integers(0, 10**6)


@st.composite
def states(draw, values=Q, max_actions=5):
    """q, π_b and the trusted pairs of one state."""
    size = draw(st.integers(1, max_actions))
    weight = np.array(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)))
    q = np.array(draw(st.lists(values, min_size=size, max_size=size)))
    trusted = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    return q, weight / weight.sum(), trusted


def step(kernel, q, behavior, trusted, tie=0.0):
    """What a kernel makes of one state."""
    row = np.empty(q.size)
    kernel(np.array([0, q.size]), q, behavior, trusted, tie, row)
    return row


@given(state=states())
def test_the_free_mass_goes_to_the_first_of_the_best_trusted_pairs(state):
    q, behavior, trusted = state
    row = step(move_free_mass, q, behavior, trusted)
    assert np.array_equal(row[~trusted], behavior[~trusted])  # bit for bit
    if trusted.any():
        best = int(np.argmax(np.where(trusted, q, -np.inf)))
        assert row[best] == pytest.approx(behavior[trusted].sum(), abs=1e-12)
        assert row[trusted].sum() == row[best]


@given(state=states())
def test_both_steps_solve_their_linear_programs(state):
    q, behavior, trusted = state
    for kernel, least in (
        (move_free_mass, np.where(trusted, 0.0, behavior)),
        (fill_by_value, np.zeros(q.size)),
    ):
        row = step(kernel, q, behavior, trusted)
        most = np.where(trusted, 1.0, behavior)
        assert ((least <= row) & (row <= most)).all()
        assert row.sum() == pytest.approx(1, abs=1e-12)
        best = q @ best_bounded_row(q, least, most)
        assert q @ row == pytest.approx(best, rel=1e-9, abs=1e-9 * max(1.0, np.abs(q).max()))


def published_fill(q, behavior, trusted):
    """Pairs by falling q, up to π_b each, until one may take all that is left."""
    row, given_out = np.zeros(q.size), 0.0
    for k in np.argsort(-q, kind="stable"):
        if trusted[k] or behavior[k] > 1 - given_out:
            row[k] = 1 - given_out
            break
        row[k] = behavior[k]
        given_out += behavior[k]
    return row


@given(state=states())
def test_filling_by_value_is_the_published_rule_up_to_ties(state):
    q, behavior, trusted = state
    row, published = step(fill_by_value, q, behavior, trusted), published_fill(*state)
    assert q @ row == pytest.approx(q @ published, abs=1e-12)
    if np.unique(q).size == q.size:
        assert row == pytest.approx(published, abs=1e-12)


@pytest.mark.parametrize("kernel", [move_free_mass, fill_by_value])
@given(state=states(values=st.integers(-2, 2).map(float)), data=st.data())
def test_rounding_in_q_does_not_decide_between_ties(kernel, state, data):
    q, behavior, trusted = state
    noise = data.draw(st.lists(st.integers(-2, 2), min_size=q.size, max_size=q.size))
    calm = step(kernel, q, behavior, trusted, tie=1e-12)
    shaken = step(kernel, q + 1e-14 * np.array(noise), behavior, trusted, tie=1e-12)
    assert np.array_equal(calm, shaken)


@pytest.mark.parametrize("kernel", [move_free_mass, fill_by_value])
def test_a_state_of_trusted_pairs_only_gets_exactly_one(kernel):
    behavior = np.full(3, 1 / 3) * (1 - 1e-13)  # a sum that is 1 within rounding, not exactly
    row = step(kernel, np.array([0.0, 2.0, 2.0]), behavior, np.ones(3, bool))
    assert row.tolist() == [0.0, 1.0, 0.0]


@given(
    seed=SEEDS,
    states=st.integers(1, 6),
    pairs=st.integers(1, 8),
    stored=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_values_and_variances_are_sums_over_all_states(seed, states, pairs, stored):
    rng = np.random.default_rng(seed)
    is_stored = rng.random((pairs, states)) < stored
    pair, successor = np.nonzero(is_stored)

    def spread(per_transition, per_pair):
        dense = np.repeat(per_pair[:, np.newaxis], states, axis=1)
        dense[pair, successor] = per_transition
        return dense

    drawn = [(rng.random(pair.size), rng.random(pairs)) for _ in range(2)]
    drawn.append((rng.normal(size=pair.size), rng.normal(size=pairs)))
    chance, chance_variance, reward = drawn
    discount, value, variance = rng.random(pairs), rng.normal(size=states), rng.random(states)
    q, q_variance = np.empty(pairs), np.empty(pairs)
    model = UncertainModel(
        np.concatenate([[0], np.cumsum(is_stored.sum(axis=1))]),
        successor.astype(np.int32),
        *(of_transitions for of_transitions, _ in drawn),
        *(of_pairs for _, of_pairs in drawn),
        discount,
    )
    uncertain_backup(model, value, variance, q, q_variance)
    P, P_variance = spread(*chance), spread(*chance_variance)
    outcome = spread(*reward) + discount[:, np.newaxis] * value
    assert q == pytest.approx((P * outcome).sum(axis=1), rel=1e-12, abs=1e-12)
    expected = discount**2 * (P**2 @ variance) + (P_variance * outcome**2).sum(axis=1)
    assert q_variance == pytest.approx(expected, rel=1e-11, abs=1e-11)


@given(
    seed=SEEDS, size=st.integers(1, 4), xi=st.sampled_from([0.0, 0.5, 3.0]), t=st.integers(1, 50)
)
def test_the_policy_leans_as_published(seed, size, xi, t):
    rng = np.random.default_rng(seed)
    q, q_variance = rng.normal(size=size), rng.random(size)
    visited = rng.random(size) < 0.7
    before = rng.dirichlet(np.ones(size))
    after = before.copy()
    lean_towards_best(np.array([0, size]), q, q_variance, visited, xi, 1 / t, 0.0, after)
    if not visited.any():
        assert np.array_equal(after, before)
        return
    expected = before.copy()
    best = int(np.argmax(np.where(visited, q - xi * np.sqrt(q_variance), -np.inf)))
    step = min(1 / t, 1 - before[best])
    expected[best] += step
    others = np.arange(size) != best
    rest = 1 - expected[best]
    expected[others] *= 0 if rest == 0 else rest / (rest + step)
    assert after == pytest.approx(expected, abs=1e-12)
    assert after.sum() == pytest.approx(1, abs=1e-12)


def test_ties_go_to_the_lowest_action_that_was_tried():
    offsets, q, nothing = np.array([0, 4]), np.array([1.0, 1.0 - 1e-14, 1.0, 0.0]), np.zeros(4)
    policy, visited = np.full(4, 0.25), np.array([False, True, True, True])
    lean_towards_best(offsets, q, nothing, visited, 1.0, 0.5, 1e-12, policy)
    assert policy == pytest.approx([0.25 / 3, 0.75, 0.25 / 3, 0.25 / 3])
