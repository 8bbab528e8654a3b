"""What a plan expects of a bet, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from surestep.certificates import Stitched
from surestep.certificates.stacks import Rounds
from surestep.certificates.stitched import Bet, least_of, span_of
from surestep.kernels.stitched import BOTH, OURS, THEIRS

COURSE = SimpleNamespace(limits=(0.0, 2.0), discount=0.5, start_chances=np.empty(0))
STACKS = SimpleNamespace(sizes=np.array([3, 0]), starts=np.zeros(7, int))
UNPLANNED = Bet(BOTH, 0.1, None, 0.0, 0.0)


def planned(monkeypatch, values, ratio):
    """The bet that is planned where the rounds of fold 1 give these values [runs, rounds]."""
    values = np.array(values)
    complete = np.full(values.shape[0], values.shape[1])
    asked = []

    def roll_out(stacks, course, readable, horizon, draw):
        asked.append((readable.tolist(), horizon, draw.who, draw.runs, draw.seed))
        return Rounds(values, complete, np.zeros_like(complete))

    monkeypatch.setattr("surestep.certificates.stitched.roll_out", roll_out)
    bet = Stitched(seed=5).bet_with(STACKS, COURSE, ratio, UNPLANNED)
    assert asked == [([True, False], None, BOTH, 4, 5)]
    return bet


def test_the_limit_to_be_expected_is_that_of_the_stake(monkeypatch):
    bet = planned(monkeypatch, [[0.0, 1.0] * 500, [1.0, 0.0] * 500], 1.5)
    number, variance, goal = 1500.0, 0.25, math.log(30.0)
    stake = math.sqrt(2 * goal / (number * variance))
    assert bet.stake == pytest.approx(stake)
    assert bet.score == pytest.approx(0.5 - goal / (stake * number) - stake * variance / 2)


def test_a_stake_is_no_larger_than_what_may_be_lost_and_a_spread_no_smaller(monkeypatch):
    # Equal values count as spread by 1e-3 of the range.
    bet = planned(monkeypatch, [[1.0] * 20], 1.0)
    goal, capped = math.log(30.0), 0.99 / 3.0
    assert bet.stake > 1.0
    assert bet.score == pytest.approx(1.0 - goal / (capped * 20), abs=1e-4)


def test_without_rounds_the_least_is_expected(monkeypatch):
    bet = planned(monkeypatch, np.zeros((2, 0)), 1.0)
    assert (bet.stake, bet.score) == (0.0, pytest.approx(-2.0 - 2e-9, abs=1e-12))


@pytest.mark.parametrize(("who", "least"), [(BOTH, -5.0), (OURS, -3.0), (THEIRS, -2.0)])
def test_the_least_of_a_round_is_a_little_less_for_rounding(who, least):
    course = SimpleNamespace(limits=(-3.0, 2.0))
    assert least_of(who, course) == pytest.approx(least - 3e-9, abs=1e-12)
    assert span_of(course) == pytest.approx(5.0 + 3e-9, abs=1e-12)
