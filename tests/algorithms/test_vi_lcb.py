"""VI-LCB against the paper's loop over dense tables, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.problems import uniform_problem
from surestep import Counts
from surestep.algorithms import VILCB


def rising_values(times, rewards, discount, low, bonus):
    """Q after many rounds of the paper's loop, from V = v on, in which V never falls."""
    visits = times.sum(axis=2)
    chance = times / np.maximum(visits, 1)[:, :, np.newaxis]
    value = np.full(len(times), low)
    for _ in range(2_000):
        q = rewards - bonus + discount * chance @ value
        q[visits == 0] = low
        value = np.maximum(value, q.max(axis=1))
    return q, value


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.3, 1.0]), st.sampled_from([0.5, 0.9]))
def test_it_is_greedy_for_the_values_of_the_papers_loop(seed, scale, discount):
    rng = np.random.default_rng(seed)
    states, actions = rng.integers(1, 6), rng.integers(1, 4)
    times = rng.integers(0, 30, (states, actions, states)) * rng.integers(
        0, 2, (states, actions, 1)
    )
    rewards = rng.uniform(0, 1, (states, actions)).round(2)
    high = 1 / (1 - discount)
    problem = uniform_problem(
        Counts.from_dense(times, rewards=rewards), discount=discount, value_bounds=(0.0, high)
    )
    algorithm = VILCB(scale=scale, delta=0.2)
    visits = np.maximum(times.sum(axis=2), 1)
    bonus = scale * high * np.sqrt(math.log(2 * states * actions / 0.2) / (2 * visits))
    np.testing.assert_allclose(algorithm.bonus(problem), bonus.ravel(), rtol=1e-12)
    q, value = rising_values(times, rewards, discount, 0.0, bonus)
    policy = algorithm.improve(problem).policy.dense()
    lost = value - (policy * np.maximum(q, 0.0)).sum(axis=1)
    assert np.abs(lost).max() <= 1e-8 * high
    stays = (q <= -1e-9).all(axis=1)
    np.testing.assert_array_equal(policy[stays], problem.behavior.dense()[stays])


@pytest.mark.parametrize(("scale", "arm"), [(1.0, 1), (0.1, 0)])
def test_the_bonus_decides_between_a_high_mean_and_many_visits(scale, arm):
    """Means 0.9 of 10 rows and 0.8 of 10,000: the bonuses are 0.43 and 0.014 times the scale."""
    counts = Counts.from_dense(np.array([[[10], [10_000]]]), rewards=[[0.9, 0.8]])
    problem = uniform_problem(counts, discount=0.0, value_bounds=(0.0, 1.0))
    np.testing.assert_allclose(VILCB().bonus(problem), [0.4295, 0.01358], rtol=1e-3)
    assert VILCB(scale=scale).improve(problem).policy.dense()[0].argmax() == arm
