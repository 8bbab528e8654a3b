"""Where the new policy goes, against where the log was."""

import numpy as np
import pytest

from surestep import FiniteMDP, Policy
from surestep.checks.luck import TimeInStates
from surestep.checks.places import place_check
from surestep.model import Counts, estimate_mdp

NAMES = ["low", "middle", "high"]
TIMES = [0.2, 0.2, 0.6]


def time_in(shares, starts=1000):
    """Who begins in one of three states and stays there spends that share of the time in it."""
    begun = (np.array(shares) * starts).round().astype(int)
    counts = Counts.from_dense(
        np.eye(3)[:, None, :].astype(int) * 100, rewards=np.zeros((3, 1)), starts=begun
    )
    model = estimate_mdp(counts, 0.5)
    return TimeInStates(model, counts, Policy.from_dense(model, np.ones((3, 1))), np.ones(3, bool))


def check(decisions, is_open=(False, False, False), shares=TIMES, **terms):
    is_open = np.array(is_open)
    return place_check(time_in(shares, **terms), np.array(decisions), is_open, NAMES, level=0.05)


def test_time_in_states_that_the_log_hardly_knows_fails():
    found = check([500, 480, 20])
    assert found.outcome == "failed"
    assert found.figures["scarce_share"] == pytest.approx(0.6)
    assert found.figures["scarce_decisions"] == 20.0
    assert found.rows == 300  # of the model, whose spread intervals are of
    assert [mark.name for mark in found.picture] == ["high", "low", "middle"]
    assert [mark.marked for mark in found.picture] == [True, False, False]


def test_open_bins_that_the_log_knows_well_are_no_matter():
    assert check([300, 300, 400], [False, False, True]).outcome == "passed"
    seldom = check([400, 400, 200], [False, False, True])
    assert seldom.outcome == "failed"
    assert seldom.figures["open_share"] == pytest.approx(0.6)


def test_a_bin_that_is_open_below_does_not_vouch_for_one_that_is_open_above():
    found = check([600, 200, 200], [True, False, True])
    assert found.outcome == "failed"
    assert found.figures["open_share"] == pytest.approx(0.6)
    assert found.figures["open_decisions"] == 200
    assert [mark.marked for mark in found.picture] == [True, False, False]


def test_intervals_lie_around_shares_and_shrink_with_the_data():
    few, many = check([500, 480, 20], starts=10), check([500, 480, 20], starts=1000)
    for found in (few, many):
        for mark in found.picture:
            assert 0 <= mark.low < mark.value < mark.high <= 1
    few, many = few.figures, many.figures
    assert many["scarce_high"] - many["scarce_low"] < few["scarce_high"] - few["scarce_low"]


def test_without_decisions_nothing_breaks():
    nobody = FiniteMDP.from_dense(np.zeros((3, 1, 3)), np.zeros((3, 1)), 0.5, np.full(3, 1 / 3))
    counts = Counts.from_dense(np.zeros((3, 1, 3), int), rewards=np.zeros((3, 1)), starts=[1, 1, 1])
    policy = Policy.from_dense(nobody, np.ones((3, 1)))
    time = TimeInStates(nobody, counts, policy, np.zeros(3, bool))
    found = place_check(time, np.zeros(3, np.int64), np.ones(3, np.bool_), NAMES, level=0.05)
    assert (found.outcome, found.picture, found.figures["open_high"]) == ("passed", (), 0.0)
