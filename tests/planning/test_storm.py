"""Planning against the model checker Storm, on models built in memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.storm_oracle import (
    storm_discounted_optimum,
    storm_discounted_value,
    storm_total_optimum,
    storm_total_value,
)
from support.strategies import mdps, policies
from surestep import FiniteMDP, Pairs, evaluate, optimal


def with_discount(mdp, discount):
    """The same model with one discount for all pairs."""
    return FiniteMDP(
        mdp.pairs,
        mdp.offsets,
        mdp.successor,
        mdp.probability,
        mdp.reward,
        np.full(mdp.num_pairs, discount),
        mdp.initial,
        mdp.ending_reward,
    )


def forward(mdp):
    """The model without its transitions to the same or a lower state, which makes it acyclic."""
    owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
    kept = mdp.successor > mdp.pairs.state[owner]
    owner = owner[kept]
    weight = mdp.probability[kept]
    total = np.bincount(owner, weight, minlength=mdp.num_pairs)
    lengths = np.bincount(owner, minlength=mdp.num_pairs)
    return FiniteMDP(
        mdp.pairs,
        np.concatenate([[0], np.cumsum(lengths)]),
        mdp.successor[kept],
        weight / total[owner],
        mdp.reward[kept],
        np.ones(mdp.num_pairs),
        mdp.initial,
        np.where(lengths == 0, 1.5, 0.0),
    )


@given(data=st.data())
def test_discounted_values_are_storms(data):
    discount = data.draw(st.sampled_from([0.3, 0.9, 0.99]))
    mdp = with_discount(data.draw(mdps()), discount)
    policy = data.draw(policies(mdp.pairs))
    expected = storm_discounted_value(mdp, policy.probability, discount)
    np.testing.assert_allclose(evaluate(mdp, policy), expected, atol=1e-7)


@given(data=st.data())
def test_discounted_optima_are_storms(data):
    discount = data.draw(st.sampled_from([0.3, 0.9, 0.99]))
    mdp = with_discount(data.draw(mdps()), discount)
    expected = storm_discounted_optimum(mdp, discount)
    np.testing.assert_allclose(optimal(mdp).value, expected, atol=1e-7)


@settings(max_examples=15)
@given(data=st.data())
def test_the_least_discounted_values_are_storms(data):
    discount = data.draw(st.sampled_from([0.3, 0.9, 0.99]))
    mdp = with_discount(data.draw(mdps()), discount)
    expected = storm_discounted_optimum(mdp, discount, "min")
    np.testing.assert_allclose(optimal(mdp, minimise=True).value, expected, atol=1e-7)


@given(data=st.data())
def test_total_rewards_of_acyclic_models_are_storms(data):
    mdp = forward(data.draw(mdps()))
    policy = data.draw(policies(mdp.pairs))
    expected = storm_total_value(mdp, policy.probability)
    np.testing.assert_allclose(evaluate(mdp, policy), expected, atol=1e-7)
    np.testing.assert_allclose(optimal(mdp).value, storm_total_optimum(mdp), atol=1e-7)


@pytest.mark.parametrize("states", [200, 1000])
def test_larger_random_models_have_storms_values(states):
    rng = np.random.default_rng(states)
    first = rng.integers(0, states, (states * 3, 1))
    successor = np.sort((first + np.array([0, 1, 17])) % states, axis=1)
    mdp = FiniteMDP(
        Pairs.full(states, 3),
        np.arange(states * 3 + 1) * 3,
        successor.ravel(),
        rng.dirichlet(np.ones(3), states * 3).ravel(),
        rng.normal(size=states * 9),
        np.full(states * 3, 0.95),
        np.full(states, 1 / states),
    )
    np.testing.assert_allclose(optimal(mdp).value, storm_discounted_optimum(mdp, 0.95), atol=1e-7)
