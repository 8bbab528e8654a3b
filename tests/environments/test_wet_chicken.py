"""Wet Chicken, against a simulation of the river and the published numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from surestep import Policy, optimal
from surestep.environments import make

MOVES = [(0, 0), (-1, 0), (-2, 0), (0, -1), (0, 1)]
DRAWS = 4000


def simulated_row(length, width, x, y, action):
    """Frequencies of the next state [S] over evenly spaced noise, by moving and rounding."""
    along, across = MOVES[action]
    velocity = 3 * y / width
    turbulence = 3.5 - velocity
    noise = turbulence * (2 * (np.arange(DRAWS) + 0.5) / DRAWS - 1)
    square = np.floor(x + along + velocity + noise + 0.5).astype(int)
    lane = min(max(y + across, 0), width - 1)
    state = np.where(square >= length, 0, width * np.maximum(square, 0) + lane)
    return np.bincount(state, minlength=length * width) / DRAWS


@given(length=st.integers(1, 12), width=st.integers(1, 6), data=st.data())
def test_any_river_moves_as_simulated(length, width, data):
    x, y = data.draw(st.integers(0, length - 1)), data.draw(st.integers(0, width - 1))
    action = data.draw(st.integers(0, 4))
    mdp = make("wet-chicken", length=length, width=width).mdp
    pair = (width * x + y) * 5 + action
    run = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
    row = np.zeros(length * width)
    row[mdp.successor[run]] = mdp.probability[run]
    # Evenly spaced draws miss each end of an interval by less than one draw.
    simulated = simulated_row(length, width, x, y, action)
    assert_allclose(row, simulated, rtol=0, atol=3 / DRAWS)
    squares = np.arange(length * width) // width
    assert mdp.expected_reward[pair] == pytest.approx(row @ squares, abs=1e-12)


def test_rows_and_rewards_are_those_published():
    mdp = make("wet-chicken").mdp
    dense = mdp.dense()
    assert_allclose(dense.P[0, 0, [0, 5, 10, 15]], np.array([4, 1, 1, 1]) / 7, atol=1e-12)
    assert_allclose(
        dense.P[12, 2, [2, 7, 12, 17]], [0.347826, 0.217391, 0.217391, 0.217391], atol=5e-7
    )
    assert dense.P[24, 0, 0] == 1
    assert_allclose(dense.R[0], np.array([6, 3, 1, 6, 6]) / 7, atol=1e-12)
    assert dense.R.max() == pytest.approx(3.3636363636363633, abs=1e-12)
    best = np.argwhere(dense.R.max() - 1e-12 < dense.R).tolist()
    assert best == [[9, 0], [9, 3], [9, 4], [14, 1], [19, 2]]
    assert set(np.diff(mdp.offsets)) == {1, 2, 3, 4, 5, 6}
    assert_allclose(dense.P.sum(axis=2), 1, atol=1e-12)


def test_the_optimal_policy_is_the_published_one():
    chosen = optimal(make("wet-chicken").mdp).policy.dense().argmax(axis=1)
    assert "".join(map(str, chosen)) == "4440344403444124422242222"


def test_the_figures_use_the_uniform_policy():
    benchmark = make("wet-chicken")
    assert benchmark.behavior == benchmark.collector == Policy.uniform(benchmark.mdp)


def test_variants_share_the_river_but_not_the_rewards():
    known, observed = make("wet-chicken"), make("wet-chicken/heuristic")
    assert np.array_equal(known.mdp.probability, observed.mdp.probability)
    assert np.array_equal(observed.mdp.reward, observed.mdp.successor // 5)
    pair = np.repeat(np.arange(125), np.diff(known.mdp.offsets))
    assert np.array_equal(known.mdp.reward, observed.mdp.expected_reward[pair])
    assert_allclose(known.known_rewards, observed.mdp.expected_reward, atol=1e-12)
    assert observed.known_rewards is None


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        (0, 29.71637252253),
        (0.1, 29.75017384741),
        (0.2, 29.50356899777),
        (0.5, 27.36637427890),
        (1, 20.65978212419),
    ],
)
def test_heuristic_policies_perform_as_published(epsilon, expected):
    benchmark = make("wet-chicken/heuristic", epsilon=epsilon)
    assert benchmark.performance_of_behavior() == pytest.approx(expected, abs=1e-10)
    assert benchmark.collector == benchmark.behavior


def test_the_stream_is_one_episode_of_as_many_steps_as_asked_for():
    log = make("wet-chicken/heuristic").sample(500, np.random.default_rng(1))
    assert (log.num_episodes, log.num_steps) == (1, 500)
    assert np.array_equal(log.reward, log.next_state // 5)
