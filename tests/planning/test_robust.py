"""Worst and best cases over balls of MDPs, against linear programs over all states."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import exact_value, largest_gap, worst_row
from strategies import REWARDS, mdps, policies
from surestep import FiniteMDP, Pairs, Policy, optimal
from surestep.errors import InvalidParameter
from surestep.planning.robust import L1Ball, best_value, robust_optimal, worst_value


@st.composite
def balls(draw, **sizes):
    """Balls around small models, of all radii."""
    center = draw(mdps(**sizes))
    size = center.num_pairs

    def per_pair(values):
        return np.array(draw(st.lists(values, min_size=size, max_size=size)))

    end = center.ending_reward
    return L1Ball(
        center,
        per_pair(st.sampled_from([0.0, 0.1, 0.7, 1.5, 2.0])),
        outside_reward=per_pair(REWARDS),
        lowest=end - per_pair(st.integers(0, 3)),
        highest=end + per_pair(st.integers(0, 3)),
    )


def lp_backup(ball, value, sign):
    """min_p Σ p (R + Γ v) for every pair (sign 1), or max_p (sign −1), by linear programs."""
    mdp = ball.center
    q = np.empty(mdp.num_pairs)
    for k in range(mdp.num_pairs):
        run = slice(int(mdp.offsets[k]), int(mdp.offsets[k + 1]))
        if run.start == run.stop:
            q[k] = ball.lowest[k] if sign > 0 else ball.highest[k]
            continue
        center, worth = np.zeros(mdp.num_states), ball.outside_reward[k] + mdp.discount[k] * value
        center[mdp.successor[run]] = mdp.probability[run]
        worth[mdp.successor[run]] = mdp.reward[run] + mdp.discount[k] * value[mdp.successor[run]]
        q[k] = worth @ worst_row(center, sign * worth, ball.radius[k])
    return q


def assert_fixed_point(ball, plan, after):
    """The plan's value is that of the contraction which takes it to `after`."""
    slowest = 1 / (1 - ball.center.discount.max())
    scale = max(1.0, np.abs(plan.value).max(), np.abs(ball.center.reward).max(initial=0))
    # |V − v| ≤ |Tv − v| / (1 − γ), and the linear programs are exact to about 1e-10.
    assert np.abs(after - plan.value).max() <= 2 * plan.error_bound + 1e-9 * scale
    assert plan.error_bound <= 1e-8 * scale * slowest


def expected(pairs, probability, q):
    """Σ_a π q in every state."""
    return np.add.reduceat(probability * q, pairs.offsets[:-1])


@settings(max_examples=30)
@given(data=st.data())
def test_worst_and_best_values_of_a_policy_are_fixed_points_of_linear_programs(data):
    ball = data.draw(balls(max_states=4, max_actions=2))
    policy = data.draw(policies(ball.center.pairs))
    for plan, sign in ((worst_value(ball, policy), 1), (best_value(ball, policy), -1)):
        q = lp_backup(ball, plan.value, sign)
        assert_fixed_point(ball, plan, expected(ball.center.pairs, policy.probability, q))
        assert plan.policy == policy


@settings(max_examples=30)
@given(data=st.data())
def test_the_robust_policy_has_the_best_worst_case(data):
    ball = data.draw(balls(max_states=4, max_actions=3))
    plan = robust_optimal(ball)
    q = lp_backup(ball, plan.value, 1)
    assert_fixed_point(ball, plan, np.maximum.reduceat(q, ball.center.pairs.offsets[:-1]))
    own = worst_value(ball, plan.policy)
    assert np.abs(own.value - plan.value).max() <= 2 * (own.error_bound + plan.error_bound)


@given(data=st.data())
def test_a_ball_of_radius_0_holds_its_center_only(data):
    ball = data.draw(balls(max_states=4))
    center, still = ball.center, np.zeros(ball.center.num_pairs)
    end = center.ending_reward
    ball = replace(ball, radius=still, lowest=end, highest=end)
    policy = data.draw(policies(center.pairs))
    truth = exact_value(center, policy.probability)
    for plan in (worst_value(ball, policy), best_value(ball, policy)):
        assert largest_gap(plan.value, truth) <= plan.error_bound
    best, robust = optimal(center), robust_optimal(ball)
    assert np.abs(best.value - robust.value).max() <= best.error_bound + robust.error_bound


@given(data=st.data())
def test_a_policy_is_worth_something_between_its_worst_and_its_best_case(data):
    ball = data.draw(balls(max_states=4))
    policy = data.draw(policies(ball.center.pairs))
    truth = np.array([float(v) for v in exact_value(ball.center, policy.probability)])
    worst, best = worst_value(ball, policy), best_value(ball, policy)
    assert (worst.value - worst.error_bound <= truth).all()
    assert (truth <= best.value + best.error_bound).all()


def test_mass_goes_to_states_that_were_never_seen():
    # One pair that stays; state 1 is worth −10, and 0.4 of the mass may move there.
    center = FiniteMDP(
        Pairs.full(2, 1), [0, 1, 1], [0], [1.0], [1.0], [0.5, 0.5], [1.0, 0.0], [0.0, -10.0]
    )
    ball = L1Ball(center, [0.8, 0.0], [3.0, 0.0], [0.0, -10.0], [0.0, -10.0])
    worst = worst_value(ball, Policy.uniform(center)).value
    # v = 0.6 (1 + v/2) + 0.4 (3 − 5)
    assert worst == pytest.approx([-0.2 / 0.7, -10.0])


def test_without_discounting_there_is_no_worst_case():
    center = FiniteMDP(Pairs.full(2, 1), [0, 1, 1], [1], [1.0], [1.0], [1.0, 0.5], [1.0, 0.0])
    with pytest.raises(InvalidParameter, match="discount of state 0, action 0 is 1, expected less"):
        L1Ball(center, np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2))
