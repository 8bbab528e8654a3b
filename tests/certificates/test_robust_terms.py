"""Robust claims: what is refused, their words, and their errors."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from support.problems import uniform_problem
from support.robust_examples import EVERY, set_of, small_counts, small_problem
from surestep import (
    Counts,
    Pairs,
    Policy,
    certify,
    estimate_behavior,
    estimate_mdp,
    performance,
)
from surestep.certificates import Robust, robust
from surestep.certificates.robust import (
    BothPolicies,
    check_value_bounds,
    compare,
    with_lower,
)
from surestep.certificates.uncertainty import earnings, mean_interval
from surestep.errors import CertificateRefused, RefutedBounds
from surestep.model import Statement
from surestep.model.counts import LoggedRewards

# ---- refusals and words -----------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("discount", [1 - 1e-5, 1 - 1e-8])
def test_discounts_near_1_are_certified_without_sweeping_the_whole_horizon(kind, discount):
    # Two rows s0 → s0 that earn 1 and 2: the bounds on values are halfway to the worst case.
    counts = Counts.from_dense([[[2]]], reward_sums=[[3.0]])
    horizon = 1 / (1 - discount)
    problem = uniform_problem(counts, discount, (0.5 * horizon, 3 * horizon))
    claim = certify(problem, problem.behavior, Robust(set=kind, reward_low=0.0, reward_high=2.0))
    assert claim.lower == 0
    assert claim.figures["lowest_performance"] == pytest.approx(0.5 * horizon, rel=1e-3)


@EVERY
def test_claims_without_a_discount_are_those_of_discounts_near_1(kind):
    # An end pays 1 or nothing, and the new policy takes the action that leads to more of the first.
    table = np.zeros((4, 2, 4), int)
    table[0, 0] = 1000, 2000, 1000, 3000
    table[0, 1] = 1000, 2000, 5000, 0
    table[1, 0] = 1000, 1000, 1000, 4000
    table[1, 1] = 1000, 0, 4000, 2000
    rewards = np.zeros((4, 2, 4))
    rewards[:, :, 2] = 1.0
    ends = [False, False, True, True]
    counts = Counts.from_dense(table, rewards=rewards, starts=[500, 0, 0, 0], terminal=ends)
    policy = Policy(counts.pairs, [0, 1, 0, 1, 0.5, 0.5, 0.5, 0.5])
    settings = Robust(set=kind, reward_low=0.0, reward_high=1.0, known_start=True)

    def claim(discount):
        return certify(uniform_problem(counts, discount, (0.0, 1.0)), policy, settings)

    whole, near = claim(1.0), claim(1 - 1e-7)
    assert whole.lower == pytest.approx(near.lower, abs=1e-5)
    for name in ("lowest_performance", "highest_behavior", "difference"):
        assert whole.figures[name] == pytest.approx(near.figures[name], abs=1e-5)
    truth = estimate_mdp(counts, 1.0)
    gain = performance(truth, policy) - performance(truth, Policy.uniform(truth))
    assert 0.1 < whole.lower < gain


def test_rewards_that_are_not_known_need_a_range_that_holds_them():
    sums = [[5.0, 9.0], [1.0, 0.0], [0.0, 0.0]]
    problem = small_problem(counts=small_counts(reward_sums=sums))
    with pytest.raises(CertificateRefused, match=r"rewards are not known.*expected reward_low"):
        certify(problem, problem.behavior, Robust())
    with pytest.raises(CertificateRefused, match=r"reward of state 0, action 1 is 0\.9, expected"):
        certify(problem, problem.behavior, Robust(reward_low=0.0, reward_high=0.8))
    certify(problem, problem.behavior, Robust(reward_low=0.0, reward_high=0.9))


def test_known_rewards_of_some_transitions_only_need_a_range_too():
    pairs = Pairs.full(2, 1)
    counts = Counts(
        pairs, [0, 1, 3], [1, 0, 1], [9, 5, 5], LoggedRewards(np.ones(3), "transition", True),
        [1, 0],
    )  # fmt: skip
    problem = small_problem(counts=counts)
    text = "known rewards of state 0, action 0 are given for 1 of 2 states only"
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, problem.behavior, Robust())
    everywhere = replace(
        counts, offsets=[0, 2, 4], successor=[0, 1, 0, 1], times=[0, 9, 5, 5],
        rewards=LoggedRewards(np.ones(4), "transition", True),
    )  # fmt: skip
    given = set_of(small_problem(counts=everywhere), Robust()).models
    assert given.low.stored.tolist() == given.high.stored.tolist() == [1.0] * 4
    models = set_of(problem, Robust(reward_low=-1.0, reward_high=2.0)).models
    low, high = models.low, models.high
    assert (low.outside.tolist(), high.outside.tolist()) == ([-1.0] * 2, [2.0] * 2)
    assert low.stored.tolist() == high.stored.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("bounds", "text"),
    [((0.0, 0.1), "is at least"), ((5.0, 20.0), r"state 0 is at most 2\.1")],
)
def test_value_bounds_that_the_data_contradicts_are_refused(bounds, text):
    problem = small_problem(10**4, value_bounds=bounds)
    with pytest.raises(CertificateRefused, match=text):
        certify(problem, problem.behavior, Robust())


def test_a_value_may_be_as_large_as_its_bounds():
    problem = small_problem(value_bounds=(1.0, 2.0))
    check_value_bounds(problem, np.full(3, 2.0), np.full(3, 1.0))
    for least, most in ((np.nextafter(2.0, 3.0), 1.0), (2.0, np.nextafter(1.0, 0.0))):
        with pytest.raises(RefutedBounds, match=r"value_bounds is \(1\.0, 2\.0\), but by the data"):
            check_value_bounds(problem, np.full(3, least), np.full(3, most))


def alone(visits=3, starts=1):
    """One state, one action: nothing is unknown, and nothing shares the level."""
    counts = Counts.from_dense([[[visits]]], rewards=[[0.0]], starts=[starts])
    return small_problem(counts=counts)


def test_counts_up_to_a_limit_are_accurate():
    most, certifier = 10**15, Robust(known_start=True)
    assert set_of(alone(most, most), certifier).parts == 0
    for wrong in ((most + 1, 1), (1, most + 1)):
        with pytest.raises(CertificateRefused, match=r"add up to more than 1e\+15"):
            set_of(alone(*wrong), certifier)


def test_levels_down_to_a_limit_are_accurate():
    assert set_of(alone(), Robust(known_start=True, delta=1e-100)).parts == 0
    with pytest.raises(CertificateRefused, match="for the 0 parts that share it"):
        set_of(alone(), Robust(known_start=True, delta=0.9e-100))
    # Five parts, and three states in each of them.
    rows = set_of(small_problem(), Robust(delta=1.6e-99)).models.rows
    assert ((rows.low >= 0) & (rows.low < rows.high) & (rows.high <= 1)).all()
    with pytest.raises(CertificateRefused, match="for the 5 parts that share it"):
        set_of(small_problem(), Robust(delta=1.4e-99))


def test_what_doubles_cannot_hold_is_refused():
    problem = small_problem(value_bounds=(-1e308, 1e308))
    with pytest.raises(CertificateRefused, match="value_bounds is"):
        certify(problem, problem.behavior, Robust())


def test_the_assumptions_say_what_is_known_and_what_is_not():
    problem = small_problem()

    def assumed(problem=problem, **settings):
        return certify(problem, problem.behavior, Robust(**settings)).assumptions

    for code in ("behavior-known", "rewards-known", "starts-afresh", "ends-as-marked"):
        assert Statement(code) in assumed()
    assert Statement("starts-as-logged") in assumed(known_start=True)
    assert Statement("visits-fixed") in assumed(strict=False)
    assert Statement("visits-fixed") not in assumed()
    assert Statement("values-bounded", {"low": 0.0, "high": 20.0}) in assumed()
    guessed = replace(problem, behavior=estimate_behavior(problem.counts))
    assert Statement("behavior-estimated") in assumed(guessed)
    sums = small_counts(reward_sums=[[5.0, 9.0], [1.0, 0.0], [0.0, 0.0]])
    told = assumed(small_problem(counts=sums), reward_low=0.0, reward_high=2.0)
    assert Statement("rewards-bounded", {"low": 0.0, "high": 2.0}) in told
    assert certify(problem, problem.behavior, Robust()).standing == "proved"
    fixed = certify(problem, problem.behavior, Robust(strict=False))
    assert fixed.standing == "asymptotic"  # see test_support for who makes it wrong


WITHIN = {"reward_low": -1.0, "reward_high": 2.0}


@pytest.mark.parametrize("per", ["pair", "transition"])
@pytest.mark.parametrize(
    ("known", "bounds"), [(True, {}), (True, WITHIN), (False, WITHIN)], ids=str
)
def test_rewards_that_are_not_given_are_assumed_to_lie_in_the_range(per, known, bounds):
    table = np.ones((1, 1, 1) if per == "transition" else (1, 1))
    rewards = {"rewards" if known else "reward_sums": table}
    problem = small_problem(counts=Counts.from_dense([[[1]]], **rewards))
    within = Statement("rewards-not-given-bounded", {"low": -1.0, "high": 2.0})
    expected = known and per == "transition" and bool(bounds)
    assumed = Robust(**bounds).assumptions(problem)
    assert (within in assumed) == (within.code in [each.code for each in assumed]) == expected


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 0.0), (1.0, 3.0), (-5.0, -1.0), (-1.0, 3.0)])
def test_mean_rewards_move_with_their_range(bounds):
    """A pair with 8 visits, one with 2, and one without; rewards ¼ and ½ of the way up."""
    low, high = bounds
    times = np.array([[[8, 0], [0, 2]], [[0, 0], [0, 0]]])
    means = low + (high - low) * np.array([[0.25, 0.5], [0.0, 0.0]])
    counts = Counts.from_dense(times, reward_sums=means * times.sum(axis=2))
    terms = Robust(strict=False, reward_low=low, reward_high=high).terms()
    least, most = mean_interval(np.array([2.0, 1.0]), np.array([8, 2]), 0.05, strict=False)
    below, above = earnings(counts, np.zeros(4, bool), 0.05, terms)
    width, slack = high - low, 1e-9 * (abs(low) + abs(high))  # on the safe side by so much
    lowest = np.maximum(low + width * least - slack, low)
    highest = np.minimum(low + width * most + slack, high)
    assert below.outside == pytest.approx([*lowest, low, low], abs=1e-12)
    assert above.outside == pytest.approx([*highest, high, high], abs=1e-12)
    assert below.outside.min() == low
    assert above.outside.max() == high


def test_a_range_of_one_reward_is_that_reward():
    counts = Counts.from_dense([[[4]]], reward_sums=[[8.0]])
    terms = Robust(reward_low=2.0, reward_high=2.0).terms()
    below, above = earnings(counts, np.zeros(1, bool), 0.05, terms)
    assert (below.outside.tolist(), above.outside.tolist()) == ([2.0], [2.0])


# ---- errors, by hand --------------------------------------------------------------------------


def plan_with(value, error_bound):
    return SimpleNamespace(value=np.array(value), error_bound=error_bound)


def test_a_comparison_is_less_all_that_its_values_may_be_off():
    first = SimpleNamespace(least_start=lambda value: float(value[0]))  # is known to be the start
    floor = np.array([0.6, 3.0])
    plain = SimpleNamespace(alone=False, reach=None)
    case = SimpleNamespace(models=first, problem=plain)
    both = BothPolicies(case, None, None, floor, None, 0.125)
    found = with_lower(both, plan_with([1.0, 4.0], 0.5))
    assert found.lower == pytest.approx(0.6)  # more than 1 − ½
    assert found.error == pytest.approx(0.625)
    found = with_lower(both, plan_with([2.0, 4.0], 0.5))
    assert found.lower == pytest.approx(1.5)
    # Ten terms of up to 2⁵², each of which is rounded.
    found = with_lower(both, plan_with([1.0, 2.0**52], 0.0))
    assert found.lower == 1.0 - 10.0
    assert found.error == 10.125


def test_a_floor_is_rounded_down(monkeypatch):
    monkeypatch.setattr(robust, "advantage", lambda models, change, low, high: (low, high))
    monkeypatch.setattr(robust, "difference_models", lambda models, gain: gain)
    policy = SimpleNamespace(probability=np.array([0.5, 0.5]))
    problem = SimpleNamespace(value_bounds=(-(2.0**52), 2.0**53), behavior=policy)
    case = SimpleNamespace(problem=problem, models=SimpleNamespace(models=None), policy=policy)
    ours, theirs = plan_with([2.0**52, 7.0], 1.0), plan_with([-9.0, 2.0], 2.0)
    best = plan_with([-(2.0**52) + 4, 16.0], 3.0)
    found = compare(case, ours, theirs, best)
    assert found.our_low.tolist() == [2.0**52 - 1, 6.0]
    assert found.their_high.tolist() == [-(2.0**52) + 7, 19.0]
    # 2⁵³ − 8, less a last bit of both: 2.
    assert found.floor[0] == 2.0**53 - 10
    assert found.floor[1] == pytest.approx(-13.0)
    assert found.difference[0].tolist() == [-11.0, 0.0]
    assert found.error == 6.0


def test_an_advantage_is_rounded_down(monkeypatch):
    rule = SimpleNamespace(reward_scale=2.0**51, terms=2)
    monkeypatch.setattr(robust, "rule_of", lambda models, *others: rule)
    low, high = np.array([-(2.0**50)]), np.array([2.0**51])

    def worst(value):
        assert (value == low).all()
        return SimpleNamespace(q=np.array([10.0, 20.0]))

    def worst_mirrored(value):
        assert (value == -high).all()
        return SimpleNamespace(q=np.array([-30.0, -40.0]))

    mirrored = SimpleNamespace(worst=worst_mirrored)
    models = SimpleNamespace(pairs=Pairs.full(1, 2), worst=worst, mirrored=lambda: mirrored)
    # Two roundings of 2⁵¹ + 2⁵¹ are 2: what is done more often earns 10 − 2 at least, and what is
    # done less often 40 + 2 at most.
    found = robust.advantage(models, np.array([0.5, -0.5]), low, high)
    assert found.tolist() == [0.5 * 8 - 0.5 * 42]
