"""From residuals to proven errors: all numbers by hand."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import FiniteMDP, Pairs, Policy
from surestep._arrays import ROUNDING_SLACK
from surestep.errors import InvalidParameter, NotConverged
from surestep.planning import horizons, proof, robust, value_iteration
from surestep.planning.horizons import certified_steps, horizon_of, longest_horizon, rule_for_all
from surestep.planning.proof import Bracket, Horizon, StoppingRule, most_terms, refuse
from surestep.planning.rectangular import Earnings, RectangularSet, rows_in_balls
from surestep.planning.robust import enough_for, rule_of, ties_of, worst_values

EXCESS = 3 * ROUNDING_SLACK  # how far a row may sum above or below 1
EPSILON = 2.0**-52


def rule(tolerance=None, leeway=0.0):
    """Rewards up to 3, and 10 rounded terms; with values up to 5, all numbers are up to 8."""
    return StoppingRule(Horizon(2.0, 4.0, uniform=False), 3.0, 10, tolerance, leeway)


@pytest.mark.parametrize(
    ("residuals", "expected"),
    [
        ((-0.5, 0.25), (-0.5 * 4, 0.25 * 4)),
        ((0.25, 0.5), (0.25 * 2, 0.5 * 4)),  # at least so much, for 2 steps at least
        ((-0.5, -0.25), (-0.5 * 4, -0.25 * 2)),
    ],
)
def test_a_residual_counts_once_a_step(residuals, expected):
    bracket = rule().bracket(residuals, 5.0)
    assert (bracket.low, bracket.high) == pytest.approx(expected)
    assert bracket.error == pytest.approx(max(map(abs, expected)))
    assert bracket.middle == pytest.approx(sum(expected) / 2)


def test_rounding_and_ties_are_added_to_the_residual():
    slack = 10 * EPSILON * 8
    bracket = rule().bracket((0.0, 0.0), 5.0)
    assert (-bracket.low, bracket.high) == pytest.approx((4 * slack, 4 * slack), rel=1e-9)
    assert bracket.floor == pytest.approx(slack, rel=1e-9)
    bracket = rule(leeway=0.25).bracket((0.0, 0.0), 5.0, 0.125)
    assert (-bracket.low, bracket.high) == pytest.approx((4.0, 4.0))
    assert bracket.floor == pytest.approx(3.0)


def test_without_a_tolerance_the_goal_is_what_doubles_can_prove():
    assert rule().bracket((0.0, 0.0), 5.0).goal == pytest.approx(1e-10 * 8, rel=1e-9)
    ties = rule().bracket((0.0, 0.0), 5.0, 1e-6)  # 4 times what ties alone cost in 4 steps
    assert ties.goal == pytest.approx(4 * 1e-6 * 8 * 4, rel=1e-6)
    assert rule().bracket((0.0, 0.0), 5.0, 1e-3).goal == pytest.approx(1e-3 * 8)
    assert rule(0.5).bracket((0.0, 0.0), 5.0, 1e-3).goal == 0.5


def test_an_error_up_to_the_goal_is_good():
    assert Bracket(-1.0, 2.0, goal=2.0, floor=0.0).good
    assert not Bracket(-2.5, 2.0, goal=2.0, floor=0.0).good
    with pytest.raises(NotConverged, match=r"at most 3, expected 2 \(the tolerance asked for\)"):
        refuse(Bracket(-3.0, 0.0, goal=2.0, floor=0.0), 2.0)
    with pytest.raises(NotConverged, match=r"expected 2 \(the default\)"):
        refuse(Bracket(-3.0, 0.0, goal=2.0, floor=0.0), None)


@pytest.mark.parametrize("wrong", [((np.nan, 0.0), 1.0), ((0.0, np.inf), 1.0), ((0, 0), np.inf)])
def test_what_is_no_double_is_refused(wrong):
    with pytest.raises(NotConverged, match="too large for doubles"):
        rule().bracket(*wrong)


@pytest.mark.parametrize("tolerance", [0, -1.0, "1", True])
def test_a_tolerance_is_above_0(tolerance):
    with pytest.raises(InvalidParameter, match=r"tolerance is .*, expected a number above 0"):
        rule_for_all(corridor([0.5, 0.5]), tolerance)


def corridor(discounts, ends=True):
    """From state to state; the last one ends the episode, or leads back to itself."""
    size = len(discounts)
    P = np.zeros((size, 1, size))
    P[np.arange(size - 1), 0, np.arange(1, size)] = 1.0
    if not ends:
        P[-1, 0, -1] = 1.0
    return FiniteMDP.from_dense(P, np.full((size, 1), -7.0), np.array(discounts)[:, np.newaxis])


def test_the_number_of_steps_has_bounds():
    endless = horizon_of(corridor([0.75, 0.75], ends=False))
    assert endless.low == pytest.approx(1 / (1 - 0.75 * (1 - EXCESS)), rel=1e-15)
    assert endless.high == 1 / (1 - 0.75 * (1 + EXCESS))
    assert endless.uniform
    ending = horizon_of(corridor([0.75, 0.75]))
    assert (ending.low, ending.high, ending.uniform) == (1.0, endless.high, False)
    mixed = horizon_of(corridor([0.5, 0.75], ends=False))
    assert mixed.low == pytest.approx(1 / (1 - 0.5 * (1 - EXCESS)), rel=1e-15)
    assert (mixed.high, mixed.uniform) == (endless.high, False)
    whole = horizon_of(corridor([1.0, 1.0, 1.0, 0.5]))
    assert (whole.low, whole.uniform) == (1.0, False)
    assert whole.high == certified_steps(corridor([1.0, 1.0, 1.0, 0.5]))


def test_a_discount_needs_room_for_rows_that_sum_to_a_little_more():
    assert longest_horizon(0.0) == 1.0
    assert longest_horizon(0.5) == pytest.approx(2.0)
    near = 1 / (1 + 2 * EXCESS)
    assert longest_horizon(near) == pytest.approx(1 / EXCESS, rel=1e-3)
    with pytest.raises(NotConverged, match="is too near 1"):
        longest_horizon(1 / (1 + EXCESS))


@pytest.mark.parametrize(
    ("discounts", "ends", "steps", "most"),
    [
        ([1.0] * 6, True, 6, 6),
        ([1.0, 1.0, 0.5], False, 4, 6),  # two steps, then 1/(1 − ½); (1 + ½ · 2)/½ + 2
        ([1.0, 0.75, 1.0, 1.0], True, 3.5, 8),  # 1 + 1 + 0.75 · 2
    ],
)
def test_steps_without_discounting_are_counted(discounts, ends, steps, most):
    assert steps <= certified_steps(corridor(discounts, ends)) <= most * (1 + 1e-9)


def test_rounding_makes_the_number_of_steps_a_little_larger():
    # One step to any of 20,000 states: two steps in all, and 20,009 terms in a sum.
    size = 20_000
    mdp = FiniteMDP(
        Pairs.full(size + 1, 1),
        np.concatenate([[0], np.full(size + 1, size)]),
        np.arange(1, size + 1),
        np.full(size, 1 / size),
        np.zeros(size),
        np.ones(size + 1),
        np.eye(1, size + 1)[0],
    )
    slack = (size + 1 + 8) * EPSILON + EXCESS
    assert certified_steps(mdp) == pytest.approx(2 / (1 - 2 * slack), rel=1e-13, abs=0)


@pytest.mark.parametrize(("share", "sweeps"), [(0.998, 50), (0.999, 1), (0.9995, 1)])
def test_a_smaller_number_of_steps_is_sought_for_a_while(share, sweeps, monkeypatch):
    calls = []

    def shrink(*given):
        calls.append(given)
        given[-1][:] = share * given[-2]

    monkeypatch.setattr(horizons, "best_values", shrink)
    certified_steps(corridor([1.0] * 6))
    assert len(calls) == sweeps + 1  # and one for the certificate


def test_terms_are_those_of_the_widest_row_and_state():
    assert most_terms(np.array([0, 3, 4, 4]), np.array([0, 2, 3])) == 3 + 2 + 8
    assert rule_for_all(corridor([0.5, 0.5]), None).terms == 1 + 1 + 8
    assert rule_for_all(corridor([0.5, 0.5]), None).reward_scale == 7.0


def ball(discount, ends=(False, False), radius=0.5):
    """Two states of one pair each, that lead to both, within a distance."""
    lengths = np.where(ends, 0, 2)
    size = int(lengths.sum())
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    successor = np.tile([0, 1], 2)[:size].astype(np.int32)
    rows = rows_in_balls(offsets, successor, np.full(size, 0.5), np.full(2, radius), np.array(ends))
    low = Earnings(np.full(size, -4.0), np.full(2, -5.0), np.zeros(2))
    high = Earnings(np.full(size, 1.0), np.full(2, 2.0), np.zeros(2))
    return RectangularSet(Pairs.full(2, 1), np.array(discount), rows, low, high)


def test_worst_cases_are_judged_by_their_room():
    found = rule_of(ball([0.75, 0.75]), None, None)
    assert found.horizon.low == pytest.approx(1 / (1 - 0.75 * (1 - EXCESS)), rel=1e-15)
    assert found.horizon.high == 1 / (1 - 0.75 * (1 + EXCESS))
    assert found.horizon.uniform
    # Two stored successors and one elsewhere, thrice; one pair a state; and 8 to spare.
    assert (found.reward_scale, found.terms, found.leeway) == (5.0, 3 * 3 + 1 + 8, 0.0)
    assert (ties_of(found), found.tolerance) == (1e-12, None)
    given = rule_of(ball([0.5, 0.75]), Policy.uniform(Pairs.full(2, 1)), np.array([-6.0, 1.0]))
    assert (given.horizon.low, given.horizon.uniform, given.reward_scale) == (1.0, False, 6.0)
    assert (given.leeway, ties_of(given)) == (1e-12, 0.0)
    ending = rule_of(ball([0.75, 0.75], ends=(False, True)), None, None)
    assert (ending.horizon.low, ending.horizon.uniform) == (1.0, False)
    assert not rule_of(ball([0.5, 0.75]), None, None).horizon.uniform
    there, nothing = np.array([1, 0], np.int32), np.zeros(2)
    swap = rows_in_balls(np.arange(3), there, np.ones(2), nothing, np.zeros(2, bool), closed=True)
    earnings = Earnings(nothing, nothing, nothing)
    alone = RectangularSet(Pairs.full(2, 1), np.full(2, 0.75), swap, earnings, earnings)
    assert rule_of(alone, None, None).horizon.uniform  # one successor is enough to go on


def test_a_batch_asks_for_the_residual_that_proves_the_goal():
    # 1e-10 in at most 4 steps, less what rounding and ties may be.
    found = enough_for(rule())
    slack = 10 * EPSILON + 1e-12
    assert found == pytest.approx(1e-10 / 4 - slack, rel=1e-6)
    assert enough_for(rule(leeway=1e-12)) == pytest.approx(1e-10 / 4 - 10 * EPSILON, rel=1e-6)
    long = replace(rule(), horizon=Horizon(1.0, 1e6, uniform=False))
    assert enough_for(long) == pytest.approx(4 * slack - slack, rel=1e-6)
    longest = replace(rule(), horizon=Horizon(1.0, 1e9, uniform=False))
    assert enough_for(longest) == pytest.approx(1e-3 / 1e9 - slack, rel=1e-6)


@pytest.mark.parametrize("leeway", [0.0, 1e-12])
@pytest.mark.parametrize("steps", [1.0, 4.0, 1e4])
def test_the_residual_that_a_batch_asks_for_is_good_and_hardly_more_is(steps, leeway):
    asked = replace(rule(leeway=leeway), horizon=Horizon(1.0, steps, uniform=False))
    largest = enough_for(asked) * (3.0 + 5.0)
    for share, good in ((1.0, True), (1 + 1e-8, False)):
        bracket = asked.bracket((-share * largest, share * largest), 5.0, ties_of(asked))
        assert bracket.good is good


def test_a_plan_of_a_batch_has_the_residual_of_its_set(monkeypatch):
    case = [ball([0.75, 0.75])], [Policy.uniform(Pairs.full(2, 1))], [np.zeros(2)]
    monkeypatch.setattr(robust, "worst_value", lambda *_: "done alone")
    for residuals, largest in (((-0.5, 0.25), 0.5), ((-0.25, 0.5), 0.5)):
        found = (np.array([[1.0, 2.0]]), np.array([residuals]), np.array([3]))
        monkeypatch.setattr(robust, "settle_together", lambda *_, found=found: found)
        monkeypatch.setattr(robust, "rule_of", lambda *_: rule(tolerance=10.0))
        (plan,) = worst_values(*case)
        assert (plan.residual, plan.iterations) == (largest, 3)
        assert plan.value.tolist() == [1.0, 2.0]
        assert plan.error_bound == pytest.approx(4 * 0.5)
        monkeypatch.setattr(robust, "rule_of", lambda *_: rule(tolerance=1.0))
        assert worst_values(*case) == ["done alone"]


def test_values_that_are_right_from_the_start_take_one_sweep():
    model = replace(corridor([0.5, 0.5]), reward=np.zeros(1), ending_reward=np.zeros(2))
    assert value_iteration(model).iterations == 1


def test_a_way_of_five_steps_takes_five_sweeps_and_one_for_the_proof():
    assert value_iteration(corridor([0.5] * 5)).iterations == 6


def test_what_is_the_same_for_all_states_takes_one_sweep_and_one_for_the_proof():
    plan = value_iteration(corridor([0.99], ends=False))
    assert plan.iterations == 2
    assert plan.value.tolist() == pytest.approx([-700.0])


def test_no_number_of_full_precision_is_smaller():
    assert np.finfo(float).tiny == proof.SMALLEST_NORMAL
