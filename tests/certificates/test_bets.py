"""Bets against a mean: capitals by going through their series, and where enough of them are won."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from support.bets import lower_limit, lower_limit_in_turn
from surestep.certificates.bets import (
    Bet,
    limits_of,
    log_goal,
    stake_for,
    usual_stakes,
)
from surestep.kernels.stitched import Turns

DELTA, LEAST = 0.2, -1.0


def is_refuted(series, complete, stake, mean):
    """Whether, betting on more, a third of the first t series reach 3/δ, t from half of all on."""
    capped, won = min(stake, 0.99 / (mean - LEAST)), 0
    for t, (values, number) in enumerate(zip(series, complete, strict=True), 1):
        capitals = np.cumprod(1 + capped * (values[:number] - mean))
        won += bool((capitals >= 3 / DELTA * (1 + 1e-9)).any())
        if 2 * t >= len(series) and won >= t / 3:
            return True
    return False


@pytest.mark.parametrize("runs", [1, 4, 5, 8])
@pytest.mark.parametrize("stake", [0.2, 5.0])
def test_the_limit_is_where_a_third_of_the_first_series_reaches_its_goal(runs, stake):
    rng = np.random.default_rng(runs)
    series = rng.normal(1.0, 0.5, (runs, 80)).clip(LEAST)
    complete = rng.integers(40, 81, runs)
    series[:, 60:] += 50.0 * (np.arange(60, 80) >= complete[:, np.newaxis])  # of no account
    found = lower_limit(series, complete, stake, LEAST, DELTA)
    assert LEAST < found < 1.5
    assert is_refuted(series, complete, stake, found - 1e-9)
    assert not is_refuted(series, complete, stake, found + 1e-9)


def test_nothing_is_shown_by_nothing():
    series = np.full((3, 5), 7.0)
    assert lower_limit(series, np.zeros(3, int), 0.5, LEAST, DELTA) == LEAST
    assert lower_limit(series, np.array([5, 0, 0]), 0.5, LEAST, DELTA) > LEAST


def test_a_limit_is_sought_by_60_halvings_below_the_greatest_value_there_is():
    # A stake of nothing refutes nothing; one of nearly all that may be lost, what is far below.
    series = np.array([[1.0, 64.0], [0.5, 0.5]])
    assert lower_limit(series, np.array([1, 2]), 0.0, 0.0, DELTA) == 0.0
    found = lower_limit(series, np.array([1, 0]), 1e9, 0.0, DELTA)
    # One value of 1: 1 + 0.99 (1 − μ)/μ reaches 15 (1 + 1e-9) up to μ = 0.99 / (14.01 + …).
    goal = 3 / DELTA * (1 + 1e-9)
    assert found == pytest.approx(0.99 / (goal - 0.01), rel=1e-14)
    assert (found * 2.0**60).is_integer()  # halves of 1, the greatest that is there


def test_limits_that_are_sought_together_are_those_of_each():
    rng = np.random.default_rng(0)
    bets = []
    for place in range(9):
        series = rng.normal(0.7, 0.4, (4, 30 + place)).clip(LEAST, 2.0)
        complete = rng.integers(0, 31, 4) * (place != 4)
        turns = TURNS._replace(cycle=2 + place) if place % 3 == 0 else None
        bets.append(Bet(series, complete, DELTA / (1 + place), LEAST, 0.3, turns))
    together = limits_of(bets)
    assert together == [limits_of([bet])[0] for bet in bets]
    assert together[4] == LEAST
    assert len(set(together)) > 5
    assert limits_of([]) == []


def test_bets_of_two_halves_on_each_other_are_fair_but_not_their_product():
    # Two fair arms, tossed once in either half; each half bets on the arm that won in it.
    means = [Fraction(0)] * 3
    for outcome in itertools.product((0, 1), repeat=4):
        halves = (outcome[:2], outcome[2:])
        arms = [int(half[1] > half[0]) for half in halves]
        capital = [1 + Fraction(2 * halves[1 - i][arms[i]] - 1, 2) for i in (0, 1)]
        for i, value in enumerate((*capital, capital[0] * capital[1])):
            means[i] += value / 16
    assert means == [1, 1, Fraction(17, 16)]


def test_a_goal_is_for_a_third_and_a_stake_for_a_length_and_a_variance():
    assert log_goal(0.1) == pytest.approx(math.log(30.0))
    assert stake_for(log_goal(0.1), 200.0) == pytest.approx(math.sqrt(2 * math.log(30.0) / 200.0))


# ---- two means in turn --------------------------------------------------------------------------

LIMITS = (-1.0, 2.0)
TURNS = Turns(3, 0.8, 0.5, 0.2, 0.9, 0.4, 0.99, LIMITS)


def capital_of(values, turns, ours, theirs, number=float):
    """The largest capital that ever was against the two means, from its definition."""
    least, most = turns.limits
    caps = [number(turns.largest_share) / each for each in (ours - least, most - theirs)]
    stakes = [min(number(turns.ours), caps[0]), min(number(turns.theirs), caps[1])]
    alone = [min(number(turns.ours_alone), caps[0]), min(number(turns.theirs_alone), caps[1])]
    rest = (1 - number(turns.together)) / 2
    capitals, course = [number(turns.together), rest, rest], []
    for i, value in enumerate(values):
        side = int(i % turns.cycle > 0)
        won = value + theirs if side else value - ours
        capitals[0] *= 1 + stakes[side] * won
        capitals[1 + side] *= 1 + alone[side] * won
        course.append(sum(capitals))
    return course


def all_splits_refuted(series, complete, gain):
    """Whether for every mean of π_b of a grid a third of some first series reach 3/δ."""
    for theirs in np.linspace(*LIMITS, 400)[:-1]:
        won = 0
        if theirs + gain <= LIMITS[0]:
            continue
        for t, (values, number) in enumerate(zip(series, complete, strict=True), 1):
            course = capital_of(values[:number], TURNS, theirs + gain, theirs)
            won += max(course, default=0.0) >= 3 / DELTA * (1 + 1e-9)
            if 2 * t >= len(series) and won >= t / 3:
                break
        else:
            return False
    return True


def values_in_turn(rng, runs, rounds):
    """Values of π_I around 1.2, and of π_b, counted with a minus, around 0.2."""
    ours, theirs = rng.uniform(0.9, 1.5, (runs, rounds)), -rng.uniform(-0.1, 0.5, (runs, rounds))
    return np.where(np.arange(rounds) % 3 == 0, ours, theirs)


def test_the_limit_in_turn_is_where_every_split_is_refuted():
    series, complete = values_in_turn(np.random.default_rng(1), 3, 60), np.array([60, 45, 50])
    found = lower_limit_in_turn(series, complete, TURNS, DELTA)
    assert 0.4 < found < 1.0
    assert all_splits_refuted(series, complete, found - 1e-6)
    # Cells are no smaller than 2⁻¹² of the range, and the grid of the oracle has gaps.
    assert not all_splits_refuted(series, complete, found + 2 * 3.0 / 2**12)


def test_nothing_is_shown_in_turn_by_nothing_or_by_one_policy_alone():
    series = values_in_turn(np.random.default_rng(1), 3, 60)
    assert lower_limit_in_turn(series, np.zeros(3, int), TURNS, DELTA) == pytest.approx(-3.0)
    of_theirs = np.where(np.arange(60) % 3 == 0, LIMITS[0], series)
    assert lower_limit_in_turn(of_theirs, np.full(3, 60), TURNS, DELTA) < -1.0


def test_the_capital_in_turn_has_the_mean_1_against_the_truth_and_falls_with_the_gain():
    # G is 2 with chance 1/3 and −1 else; G′ is 1 or 0: means 0 and 1/2, in rationals.
    outcomes = [(Fraction(2), Fraction(1, 3)), (Fraction(-1), Fraction(2, 3))]
    theirs = [(Fraction(-1), Fraction(1, 2)), (Fraction(0), Fraction(1, 2))]
    ours_mean, their_mean = Fraction(0), Fraction(1, 2)
    mean = [Fraction(0)] * 4
    for path in itertools.product(outcomes, theirs, theirs, outcomes):
        values, chance = [value for value, _ in path], math.prod(p for _, p in path)
        course = capital_of(values, TURNS, ours_mean, their_mean, Fraction)
        mean = [total + chance * each for total, each in zip(mean, course, strict=True)]
        worse = capital_of(values, TURNS, ours_mean + Fraction(1, 5), their_mean, Fraction)
        lower = capital_of(values, TURNS, ours_mean, their_mean - Fraction(1, 5), Fraction)
        assert all(a >= max(b, c) for a, b, c in zip(course, worse, lower, strict=True))
        assert course[-1] > max(worse[-1], lower[-1])
    assert mean == [1, 1, 1, 1]


def test_claims_in_turn_are_seldom_above_the_truth_and_not_never():
    # Two-point values in one series, which has to reach 3/δ = 6: one claim in 6 may be wrong.
    rng, number, wrong = np.random.default_rng(0), 100, 0
    turns = Turns(2, 0.8, 0.4, 0.4, 0.8, 0.8, 0.99, (0.0, 1.0))
    for _ in range(number):
        ours, theirs = rng.random((2, 50)) < np.array([[0.6], [0.4]])
        values = np.stack([ours, -1.0 * theirs], axis=1).reshape(1, 100)
        wrong += lower_limit_in_turn(values, np.array([100]), turns, 0.5) > 0.2
    # More than 36 of 100 at 1/6 have a chance of 10⁻⁶.
    assert 3 < wrong <= 36


def test_stakes_in_turn_weigh_both_means_alike():
    ours, theirs = usual_stakes((10.0, 40.0), (4.0, 1.0), log_goal(0.1))
    assert ours * 10 == pytest.approx(theirs * 40)
    assert ours * 10 == pytest.approx(math.sqrt(2 * math.log(30.0) / (0.4 + 0.025)))
