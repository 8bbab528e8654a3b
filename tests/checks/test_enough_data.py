"""Where the new policy goes, against where the log was."""

import numpy as np
import pytest

from surestep import Pairs
from surestep.checks import enough_data
from surestep.checks.check import GivenPolicy, GivenResult

NAMES = ["low", "middle", "high"]
VISITS = np.array([2.0, 2.0, 6.0])


def check(decisions, is_open=(False, False, False), shown=None):
    decisions = np.array(decisions)
    shown = decisions if shown is None else np.array(shown)
    return found_in(VISITS, decisions, shown, np.array(is_open))


def found_in(time, decisions, shown, is_open):
    """The check of a policy with one pair a state."""
    chances = (np.ones(3), np.ones(3))
    judging = shown - decisions
    pairs = Pairs(np.arange(4), np.zeros(3, int), 1)
    seen = (decisions, judging, np.ones(3, bool), time, is_open, NAMES)
    nothing = dict.fromkeys(GivenResult.__dataclass_fields__)
    policy = GivenPolicy(pairs, *chances, *seen)
    return enough_data.check(GivenResult(**nothing | {"policy": policy}))


def test_time_in_states_that_the_log_hardly_knows_fails():
    found = check([500, 480, 20])
    assert found.outcome == "failed"
    assert found.figures["scarce_share"] == pytest.approx(0.6)
    assert found.figures["scarce_decisions"] == 20.0
    assert [mark.name for mark in found.picture] == ["high", "low", "middle"]
    assert [mark.value for mark in found.picture] == pytest.approx([0.6, 0.2, 0.2])
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


def test_held_out_rows_show_decisions_and_do_not_say_which_states_are_scarce():
    alone = check([500, 480, 20])
    both = check([500, 480, 20], shown=[500, 480, 2020])
    assert both.figures["scarce_share"] == alone.figures["scarce_share"]
    assert both.figures["scarce_decisions"] == 2020
    assert both.picture[0].beside == pytest.approx(2020 / 3000)


def test_without_decisions_nothing_breaks():
    nothing = np.zeros(3, np.int64)
    found = found_in(np.zeros(3), nothing, nothing, nothing == 0)
    assert (found.outcome, found.picture, found.figures["open_share"]) == ("passed", (), 0.0)
