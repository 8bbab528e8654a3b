"""Optimisation against brute force in exact rationals, and planners against each other."""

import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.oracles import brute_force_optimum, exact_pairs, exact_value, largest_gap
from support.strategies import mdps, policies
from surestep import FiniteMDP, Pairs, Policy, evaluate, optimal, policy_iteration, value_iteration
from surestep.errors import (
    InvalidParameter,
    InvalidPolicy,
    NotConverged,
    SurestepError,
    speaking_of_options,
)
from surestep.planning import q_values
from surestep.planning.horizons import better_rows
from surestep.planning.iteration import best_actions

PLANNERS = {
    "optimal": optimal,
    "policy iteration": lambda mdp, **settings: policy_iteration(
        mdp, best_actions(mdp), Policy.uniform(mdp), **settings
    ),
    "policy iteration, iterative": lambda mdp, **settings: policy_iteration(
        mdp, best_actions(mdp), Policy.uniform(mdp), method="iterative", **settings
    ),
    "value iteration": value_iteration,
}


@pytest.mark.parametrize("planner", PLANNERS)
@given(data=st.data())
def test_the_brute_force_optimum_lies_within_the_proven_error(planner, data):
    mdp = data.draw(mdps(max_states=4, max_actions=3, undiscounted=data.draw(st.booleans())))
    plan = PLANNERS[planner](mdp)
    best = brute_force_optimum(mdp)
    assert largest_gap(plan.value, best) <= Fraction(plan.error_bound)
    achieved = exact_value(mdp, plan.policy.probability)
    assert largest_gap(plan.value, achieved) <= Fraction(plan.error_bound)
    scale = max(1.0, np.abs(plan.value).max(), np.abs(mdp.reward).max(initial=0.0))
    assert plan.error_bound <= 1e-7 * scale
    exact = [
        reward + sum(weight * achieved[s] for s, weight in weights.items())
        for reward, weights in exact_pairs(mdp)
    ]
    assert largest_gap(plan.q, exact) <= Fraction(plan.error_bound) + Fraction(1e-12 * scale)


@pytest.mark.parametrize("planner", PLANNERS)
@settings(max_examples=20)
@given(data=st.data())
def test_an_asked_tolerance_is_reached(planner, data):
    mdp = data.draw(mdps(max_states=4))
    plan = PLANNERS[planner](mdp, tolerance=1e-3)
    assert plan.error_bound <= 1e-3
    assert largest_gap(plan.value, brute_force_optimum(mdp)) <= Fraction(1e-3)


def wide_model(states=3000, seed=0):
    """A random model of a size at which no method is exact."""
    rng = np.random.default_rng(seed)
    pairs = Pairs.full(states, 3)
    successor = (rng.integers(0, states, (states * 3, 1)) + np.array([0, 7, 411, 977])) % states
    probability = rng.dirichlet(np.ones(4), states * 3)
    start = np.full(states, 1 / states)
    return FiniteMDP(
        pairs,
        np.arange(states * 3 + 1) * 4,
        successor.ravel(),
        probability.ravel(),
        np.repeat(rng.random(states * 3), 4),
        np.full(states * 3, 0.97),
        start,
    )


def test_all_planners_agree_on_a_model_too_wide_for_exact_methods():
    mdp = wide_model()
    plans = {name: planner(mdp, tolerance=1e-7) for name, planner in PLANNERS.items()}
    reference = plans["value iteration"]
    for name, plan in plans.items():
        gap = np.abs(plan.value - reference.value).max()
        assert gap <= plan.error_bound + reference.error_bound, name
        achieved = evaluate(mdp, plan.policy)
        assert np.abs(achieved - plan.value).max() <= plan.error_bound + 1e-8, name


@pytest.mark.gpu
def test_a_gpu_plans_as_the_processor_does(both):
    mdp = wide_model(states=9, seed=3)
    expected, found = both(lambda: value_iteration(mdp, tolerance=1e-6))
    np.testing.assert_allclose(found.value, expected.value, atol=2e-6)
    assert isinstance(found.value, np.ndarray)
    assert (found.policy.probability == expected.policy.probability).all()


@given(data=st.data())
def test_any_greedy_step_can_be_iterated(data):
    """Keeping the start policy everywhere but in state 0 gives the best policy of that class."""
    mdp = data.draw(mdps(max_states=4))
    start = data.draw(policies(mdp.pairs))
    free = slice(int(mdp.pairs.offsets[0]), int(mdp.pairs.offsets[1]))

    def only_state_0(q):
        probability = start.probability.copy()
        probability[free] = np.eye(q[free].size)[int(np.argmax(q[free]))]
        return probability

    plan = policy_iteration(mdp, only_state_0, start)
    candidates = []
    for choice in range(free.stop - free.start):
        probability = start.probability.copy()
        probability[free] = np.eye(free.stop - free.start)[choice]
        candidates.append(exact_value(mdp, probability))
    best = [max(column) for column in zip(*candidates, strict=True)]
    assert largest_gap(plan.value, best) <= Fraction(plan.error_bound)


def test_ties_go_to_the_lowest_action_whatever_the_rounding():
    transition = np.full((3, 4, 3), 1 / 3)
    rewards = np.array([[0.3, 0.1 + 0.2, 0.3, 0.3]] * 3)  # 0.1 + 0.2 > 0.3 by one rounding error
    plan = optimal(FiniteMDP.from_dense(transition, rewards, 0.9))
    assert (plan.policy.dense().argmax(axis=1) == 0).all()


@pytest.mark.thorough
def test_the_answer_is_the_same_bit_for_bit_on_every_run():
    mdp = wide_model(9_000, seed=4)  # 108,000 transitions: large enough for all threads
    first, second = optimal(mdp), optimal(mdp)
    assert np.array_equal(first.value, second.value)
    assert first.policy == second.policy


def test_the_limit_raises():
    mdp = wide_model(500)
    with pytest.raises(NotConverged, match="stopped after 3 sweeps, the limit"):
        value_iteration(mdp, limit=3)
    with pytest.raises(NotConverged, match="stopped after 1 rounds, the limit"):
        policy_iteration(mdp, best_actions(mdp), Policy.uniform(mdp), limit=1)


def test_a_limit_of_rounds_leaves_the_plan_of_the_last_one():
    mdp = wide_model(500)
    with pytest.raises(NotConverged) as told:
        policy_iteration(mdp, best_actions(mdp), Policy.uniform(mdp), limit=2)
    best = optimal(mdp)
    assert np.abs(told.value.plan.value - best.value).max() <= told.value.plan.error_bound + 1e-8


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_tolerance_below_what_doubles_can_prove_is_refused(planner):
    with pytest.raises(NotConverged, match=r"the tolerance asked for.*error\.plan"):
        PLANNERS[planner](wide_model(400), tolerance=1e-14)


@pytest.mark.parametrize("planner", [*PLANNERS, "minimise"])
def test_what_cannot_be_proved_comes_with_the_plan_that_was_reached(planner):
    """Values of 10⁸ are not proven to 10⁻⁶; the bound that is proven holds in rationals."""
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    mdp = FiniteMDP.from_dense(P, 1e6 * rng.random((3, 2)), 0.99)
    plan_for, truth = PLANNERS.get(planner), mdp
    if plan_for is None:
        plan_for, truth = partial(optimal, minimise=True), mdp.with_rewards(-mdp.expected_reward)
    with pytest.raises(NotConverged) as told:
        plan_for(mdp, tolerance=1e-6)
    plan = told.value.plan
    assert 1e-6 < plan.error_bound < 1
    assert f"at most {plan.error_bound:.3g}, expected 1e-06" in str(told.value)
    best = brute_force_optimum(truth)
    sign = 1 if truth is mdp else -1
    assert largest_gap(sign * plan.value, best) <= Fraction(plan.error_bound)
    achieved = exact_value(mdp, plan.policy.probability)
    assert largest_gap(plan.value, achieved) <= Fraction(plan.error_bound)
    np.testing.assert_allclose(plan.q, q_values(mdp, plan.value), rtol=1e-12)
    again = pickle.loads(pickle.dumps(told.value))  # noqa: S301
    assert str(again) == str(told.value)
    assert (again.plan.value == plan.value).all()
    assert plan_for(mdp, tolerance=2 * plan.error_bound).error_bound <= 2 * plan.error_bound


def test_nobody_who_types_a_command_is_told_of_exceptions():
    with speaking_of_options(), pytest.raises(NotConverged) as told:
        optimal(wide_model(400), tolerance=1e-14)
    assert str(told.value).endswith("discounts further below 1")


def test_the_limit_of_value_iteration_names_itself():
    with pytest.raises(NotConverged, match="stopped after 5 sweeps, the limit"):
        value_iteration(wide_model(500), limit=5)


def test_a_model_that_mixes_slowly_is_handed_over_to_policy_iteration():
    """A ring of 1000 states on which only a full round trip pays: sweeps gain almost nothing."""
    size = 1000
    ring = Pairs.full(size, 2)
    state = np.arange(size)
    successor = np.stack([(state + 1) % size, (state - 1) % size], axis=1).ravel()
    reward = np.zeros(2 * size)
    reward[2 * (size - 1)] = 1.0  # stepping forward from the last state to the first
    mdp = FiniteMDP(
        ring,
        np.arange(2 * size + 1),
        successor,
        np.ones(2 * size),
        reward,
        np.full(2 * size, 0.999),
        np.full(size, 1 / size),
    )
    plan = optimal(mdp)
    # Stepping back and forth across the paying edge pays every second step.
    assert plan.value[size - 1] == pytest.approx(1 / (1 - 0.999**2), rel=1e-9)
    assert plan.value[0] == pytest.approx(0.999 / (1 - 0.999**2), rel=1e-9)
    assert plan.iterations < 600


def test_bad_settings_and_a_greedy_step_that_is_no_policy_are_refused():
    mdp = wide_model(20)
    for count in (0, -1, 2.5, "5", True):
        for planner in ("policy iteration", "value iteration"):
            with pytest.raises(InvalidParameter, match="limit is"):
                PLANNERS[planner](mdp, limit=count)
    with pytest.raises(InvalidPolicy, match="the greedy step gave no policy: probability has sh"):
        policy_iteration(mdp, lambda q: q[:-1], Policy.uniform(mdp))
    with pytest.raises(InvalidPolicy, match=r"the greedy step gave no policy: .* sum to 3"):
        policy_iteration(mdp, lambda q: np.ones(q.size), Policy.uniform(mdp))


@pytest.mark.parametrize("planner", PLANNERS)
def test_what_is_no_model_policy_or_tolerance_is_refused(planner):
    with pytest.raises(SurestepError, match=r"expected FiniteMDP|expected a model"):
        PLANNERS[planner](None)
    for tolerance in ("1e-6", True, np.ones(2), 0.0):
        with pytest.raises(InvalidParameter, match="tolerance is"):
            PLANNERS[planner](wide_model(20), tolerance=tolerance)


@pytest.mark.parametrize("states", [20, 1000])
@pytest.mark.parametrize("planner", PLANNERS)
def test_values_too_large_and_discounts_too_near_1_are_refused_at_once(planner, states):
    mdp = wide_model(states)
    for discount, scale, message in (
        (1 - 1e-13, 1.0, "discounts further below 1"),
        (0.9, 1e308, "too large for doubles"),
    ):
        extreme = FiniteMDP(
            mdp.pairs,
            mdp.offsets,
            mdp.successor,
            mdp.probability,
            scale * (0.9 + 0 * mdp.reward),
            np.full(mdp.num_pairs, discount),
            mdp.initial,
        )
        with pytest.raises(NotConverged, match=message):
            PLANNERS[planner](extreme)


def test_a_greedy_step_in_single_precision_is_rescaled_before_it_is_judged():
    mdp = FiniteMDP.from_dense(np.full((1, 3, 1), 1.0), [[1.0, 2.0, 3.0]], 0.95)
    thirds = np.full(3, 1 / 3, np.float32)
    plan = policy_iteration(mdp, lambda q: thirds, Policy.uniform(mdp))
    exact = exact_value(mdp, plan.policy.probability)
    assert largest_gap(plan.value, exact) <= Fraction(plan.error_bound)


@pytest.mark.parametrize("goal", ["first", "last"])
def test_long_ways_take_few_rounds_whichever_way_states_are_numbered(goal):
    """A corridor of 2000 rooms: V*(s) = γ^(steps to the goal − 1) for a prize of 1 at its end."""
    size, discount = 2000, 0.9995
    rooms = np.arange(size)
    left, right = np.maximum(rooms - 1, 0), np.minimum(rooms + 1, size - 1)
    successor = np.stack([left, right], axis=1).ravel()
    end = 0 if goal == "first" else size - 1
    lengths = np.where(np.repeat(rooms, 2) == end, 0, 1)
    kept = lengths > 0
    mdp = FiniteMDP(
        Pairs.full(size, 2),
        np.concatenate([[0], np.cumsum(lengths)]),
        successor[kept],
        np.ones(kept.sum()),
        (successor[kept] == end).astype(float),
        np.full(2 * size, discount),
        np.eye(1, size)[0],
    )
    plan = optimal(mdp)
    steps = np.abs(rooms - end)
    expected = np.where(steps > 0, discount ** (steps - 1.0), 0.0)
    np.testing.assert_allclose(plan.value, expected, atol=plan.error_bound + 1e-12)
    assert plan.iterations < 50


def test_only_rows_that_are_better_by_more_than_a_tie_are_replaced():
    q = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1e-3])
    old = np.array([0.5, 0.5, 0.0, 1.0, 1.0, 0.0])
    proposed = np.array([0.4, 0.6, 1.0, 0.0, 0.0, 1.0])
    found, better = better_rows(Pairs.full(3, 2), q, old, proposed, 1e-2)
    assert better
    assert found.tolist() == [*proposed[:2], *old[2:]]
    assert not better_rows(Pairs.full(3, 2), q, old, old, 0.0)[1]
