"""Bets against a mean: capitals by going through their series, and where enough of them are won."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from surestep.certificates import bets
from surestep.certificates.bets import log_goal, lower_limit, usual_stake

DELTA, LEAST = 0.2, -1.0


def is_refuted(series, complete, stake, mean):
    """Whether for some t a third of the first t series reach 3/δ when they bet on more."""
    capped, won = min(stake, 0.99 / (mean - LEAST)), 0
    for t, (values, number) in enumerate(zip(series, complete, strict=True), 1):
        capitals = np.cumprod(1 + capped * (values[:number] - mean))
        won += bool((capitals >= 3 / DELTA * (1 + 1e-9)).any())
        if won >= t / 3:
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


def test_a_limit_is_sought_by_60_halvings_below_the_greatest_value_there_is(monkeypatch):
    asked = []

    def never(series, complete, stake, mean, goal, one_of):
        asked.append((mean, goal))
        return 0

    monkeypatch.setattr(bets, "enough_series_reach", never)
    series = np.array([[1.0, 64.0], [0.5, 0.5]])
    assert lower_limit(series, np.array([0, 0]), 0.5, 0.0, DELTA) == 0.0
    assert not asked
    assert lower_limit(series, np.array([1, 2]), 0.5, 0.0, DELTA) == 0.0
    means, goals = zip(*asked, strict=True)
    assert list(means) == (0.5 ** np.arange(1, 61)).tolist()
    assert goals == pytest.approx([3 / DELTA * (1 + 1e-9)] * 60, rel=1e-12)


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
    assert usual_stake(50.0, 4.0, 0.1) == pytest.approx(math.sqrt(2 * math.log(30.0) / 200.0))
