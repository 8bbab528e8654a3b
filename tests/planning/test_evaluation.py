"""Policy evaluation against exact rationals, closed forms, and itself by other methods."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oracles import exact_value, largest_gap
from support.strategies import mdps, policies
from surestep import FiniteMDP, Pairs, Policy, evaluate, evaluate_with_bound, occupancy, performance
from surestep.errors import InvalidParameter, NotConverged, ShapeMismatch
from surestep.planning import chain as chains

METHODS = ("dense", "sparse", "iterative", "components")


def random_mdp(states, actions, successors, discount, seed, reward_scale=1.0):
    """A random sparse model without ends."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(
        [rng.choice(states, successors, replace=False) for _ in range(states * actions)], axis=1
    )
    transition = np.zeros((states * actions, states))
    np.put_along_axis(transition, chosen, rng.dirichlet(np.ones(successors), len(chosen)), axis=1)
    rewards = reward_scale * rng.random((states, actions))
    return FiniteMDP.from_dense(transition.reshape(states, actions, states), rewards, discount)


def corridor(length, discount):
    """A long corridor: one step forward a move, one step back with chance 0.1; the far end pays."""
    successor, probability, offsets = [], [], [0]
    for s in range(length):
        if s < length - 1:
            successor += [max(s - 1, 0), s + 1]
            probability += [0.1, 0.9]
        offsets.append(len(successor))
    pairs = Pairs.full(length, 1)
    ending = np.zeros(length)
    ending[-1] = 1.0
    start = np.zeros(length)
    start[0] = 1.0
    reward = np.zeros(len(successor))
    return FiniteMDP(
        pairs,
        np.array(offsets),
        np.array(successor),
        np.array(probability),
        reward,
        np.full(length, discount),
        start,
        ending,
    )


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_the_exact_rational_value_lies_within_the_proven_error(method, data):
    mdp = data.draw(mdps())
    policy = data.draw(policies(mdp.pairs))
    found = evaluate_with_bound(mdp, policy, method=method)
    exact = exact_value(mdp, policy.probability)
    assert largest_gap(found.value, exact) <= Fraction(found.error_bound)
    scale = max(1.0, np.abs(found.value).max(), np.abs(mdp.reward).max(initial=0.0))
    assert found.error_bound <= 1e-8 * scale


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_the_error_is_proven_for_discount_1_without_cycles_too(method, data):
    mdp = data.draw(mdps(undiscounted=True))
    policy = data.draw(policies(mdp.pairs))
    found = evaluate_with_bound(mdp, policy, method=method)
    exact = exact_value(mdp, policy.probability)
    assert largest_gap(found.value, exact) <= Fraction(found.error_bound)
    scale = max(1.0, np.abs(found.value).max(), np.abs(mdp.reward).max(initial=0.0))
    assert found.error_bound <= 1e-8 * scale


@given(stay=st.floats(0.0, 1.0), discount=st.floats(0.0, 0.999), reward=st.floats(-1e6, 1e6))
def test_two_state_chain_has_its_closed_form(stay, discount, reward):
    """From 0, stay with chance p earning r, else end: V(0) = r / (1 − γp)."""
    transition = np.array([[[stay, 1 - stay]], [[0.0, 0.0]]])
    mdp = FiniteMDP.from_dense(transition, [[reward], [0.0]], discount)
    value = evaluate(mdp, Policy.uniform(mdp))
    assert value[0] == pytest.approx(reward / (1 - discount * mdp.dense().P[0, 0, 0]), rel=1e-9)
    assert value[1] == 0.0


@pytest.mark.parametrize("states", [2, 40, 400])
def test_all_methods_agree(states):
    mdp = random_mdp(states, 3, min(4, states), 0.97, seed=states)
    policy = Policy.softmax(mdp, np.random.default_rng(1).normal(size=mdp.num_pairs))
    found = [evaluate_with_bound(mdp, policy, method=method) for method in METHODS]
    assert [each.method for each in found] == list(METHODS)
    for other in found[1:]:
        gap = np.abs(found[0].value - other.value).max()
        assert gap <= found[0].error_bound + other.error_bound


def test_auto_takes_dense_for_small_components_for_long_and_iterative_for_wide_models():
    def method_for(mdp):
        return evaluate_with_bound(mdp, Policy.uniform(mdp)).method

    assert method_for(random_mdp(50, 2, 3, 0.9, seed=0)) == "dense"
    assert method_for(corridor(5000, 0.999)) == "components"
    assert method_for(random_mdp(1000, 2, 4, 0.9, seed=0)) == "iterative"


def test_a_long_corridor_is_evaluated_exactly():
    """Backwards recursion: V(s) = γ(0.1 V(s−1) + 0.9 V(s+1)), V(end) = 1, solved by bands."""
    length, discount = 3000, 0.999
    mdp = corridor(length, discount)
    value = evaluate(mdp, Policy.uniform(mdp))
    inner = discount * (0.1 * value[:-2] + 0.9 * value[2:])
    np.testing.assert_allclose(value[1:-1], inner, rtol=0, atol=1e-9)
    assert value[0] == pytest.approx(discount * (0.1 * value[0] + 0.9 * value[1]), abs=1e-9)
    assert value[-1] == 1.0


def test_predicted_fill_is_small_for_a_corridor_and_large_for_a_random_graph():
    narrow = corridor(2000, 0.9)
    wide = random_mdp(1000, 2, 4, 0.9, seed=0)
    for mdp, expected in ((narrow, True), (wide, False)):
        chain = chains.policy_chain(mdp, Policy.uniform(mdp).probability)
        limit = 50 * mdp.num_states
        assert (chains.predicted_fill(chain) <= limit) is expected


@given(data=st.data())
def test_performance_is_the_value_of_the_start(data):
    mdp = data.draw(mdps())
    policy = data.draw(policies(mdp.pairs))
    expected = float(mdp.initial @ evaluate(mdp, policy))
    assert performance(mdp, policy) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_occupancy_weighs_rewards_to_the_performance(method, data):
    mdp = data.draw(mdps(undiscounted=data.draw(st.booleans())))
    policy = data.draw(policies(mdp.pairs))
    visits = occupancy(mdp, policy, method=method)
    scale = max(1.0, np.abs(mdp.expected_reward).max()) * max(1.0, visits.sum())
    assert visits.shape == (mdp.num_pairs,)
    assert visits.min() >= -1e-9
    assert visits @ mdp.expected_reward == pytest.approx(performance(mdp, policy), abs=1e-8 * scale)


def test_occupancy_near_discount_1_is_what_doubles_can_prove():
    mdp = random_mdp(20, 2, 3, 1 - 1e-8, seed=3)
    assert occupancy(mdp, Policy.uniform(mdp)).sum() == pytest.approx(1e8, rel=1e-5)


def test_a_tolerance_below_what_doubles_can_prove_is_refused_with_the_bound_that_holds():
    mdp = random_mdp(20, 2, 3, 0.99, seed=0, reward_scale=1e6)
    with pytest.raises(NotConverged, match=r"proven to be at most .*error\.evaluation") as told:
        evaluate(mdp, Policy.uniform(mdp), tolerance=1e-12)
    reached = told.value.evaluation
    exact = exact_value(mdp, Policy.uniform(mdp).probability)
    assert largest_gap(reached.value, exact) <= Fraction(reached.error_bound)
    assert 1e-12 < reached.error_bound < 1e-2


@pytest.mark.thorough
def test_a_loose_tolerance_is_kept_and_proven():
    mdp = random_mdp(2000, 2, 4, 0.99, seed=5)
    policy = Policy.uniform(mdp)
    loose = evaluate_with_bound(mdp, policy, method="iterative", tolerance=1e-3)
    tight = evaluate_with_bound(mdp, policy, method="sparse")
    assert loose.error_bound <= 1e-3
    assert np.abs(loose.value - tight.value).max() <= loose.error_bound + tight.error_bound


def test_an_unknown_method_a_bad_tolerance_and_another_models_policy_are_refused():
    mdp, other = random_mdp(4, 2, 2, 0.9, seed=0), random_mdp(5, 2, 2, 0.9, seed=0)
    with pytest.raises(InvalidParameter, match="'magic'; expected one of auto, dense"):
        evaluate(mdp, Policy.uniform(mdp), method="magic")
    for tolerance in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidParameter, match="tolerance"):
            evaluate(mdp, Policy.uniform(mdp), tolerance=tolerance)
    with pytest.raises(ShapeMismatch, match="the model has 4 states, the policy has 5"):
        evaluate(mdp, Policy.uniform(other))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("verb", [evaluate, performance, occupancy])
def test_a_discount_too_near_1_for_a_proof_is_refused(verb, method):
    for mdp in (
        random_mdp(4, 1, 2, 1 - 1e-13, seed=0),
        FiniteMDP.from_dense([[[1 + 2**-52]]], [[1.0]], 1 - 2**-53),  # a singular system
    ):
        with pytest.raises(NotConverged, match="discounts further below 1"):
            verb(mdp, Policy.uniform(mdp), method=method)


@pytest.mark.parametrize("method", METHODS)
def test_values_too_large_for_doubles_are_refused(method):
    mdp = FiniteMDP.from_dense(np.full((2, 1, 2), 0.5), [[1e308], [1e308]], 0.9)
    with pytest.raises(NotConverged, match="too large for doubles"):
        evaluate(mdp, Policy.uniform(mdp), method=method)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_occupancy_is_exact_within_its_claim(method, data):
    """The visits of state s are the values of a model that pays 1 there, from the start."""
    mdp = data.draw(mdps())
    policy = data.draw(policies(mdp.pairs))
    visits = occupancy(mdp, policy, method=method)
    by_state = np.add.reduceat(visits, mdp.pairs.offsets[:-1])
    for state in range(mdp.num_states):
        here = mdp.pairs.state == state
        owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets))
        ends = np.diff(mdp.offsets) == 0
        paying = FiniteMDP(
            mdp.pairs,
            mdp.offsets,
            mdp.successor,
            mdp.probability,
            here[owner].astype(float),
            mdp.discount,
            mdp.initial,
            (here & ends).astype(float),
        )
        exact = exact_value(paying, policy.probability)
        expected = sum(Fraction(float(p)) * v for p, v in zip(mdp.initial, exact, strict=True))
        assert float(abs(Fraction(float(by_state[state])) - expected)) <= 1e-9 * 100


@given(excess=st.floats(-9e-13, 9e-13), discount=st.floats(0.9, 0.99999), reward=st.floats(-10, 10))
def test_rows_that_sum_to_1_only_within_rounding_are_inside_the_proof(excess, discount, reward):
    mdp = FiniteMDP.from_dense([[[1 + excess]]], [[reward]], discount)
    found = evaluate_with_bound(mdp, Policy.uniform(mdp))
    assert largest_gap(found.value, exact_value(mdp, np.ones(1))) <= Fraction(found.error_bound)
