"""A round of DUIPI, against the same formulas over dense tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.kernels.duipi import UncertainModel, lean_towards_best, uncertain_backup

SEEDS = st.integers(0, 10**6)


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
