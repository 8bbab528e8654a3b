"""Where the new policy goes, against where the log was."""

import numpy as np

from surestep.checks.places import place_check

NAMES = ["low", "middle", "high"]


def test_time_in_states_that_the_log_hardly_knows_fails():
    found = place_check(
        np.array([0.2, 0.2, 0.6]), np.array([500, 480, 20]), np.zeros(3, np.bool_), NAMES
    )
    assert found.outcome == "failed"
    assert (found.figures["scarce_share"], found.figures["scarce_decisions"]) == (0.6, 20.0)
    assert [mark.name for mark in found.picture] == ["high", "low", "middle"]
    assert [mark.marked for mark in found.picture] == [True, False, False]


def test_open_bins_that_the_log_knows_well_are_no_matter():
    occupancy, is_open = np.array([0.2, 0.2, 0.6]), np.array([False, False, True])
    assert place_check(occupancy, np.array([300, 300, 400]), is_open, NAMES).outcome == "passed"
    seldom = place_check(occupancy, np.array([400, 400, 200]), is_open, NAMES)
    assert (seldom.outcome, seldom.figures["open_share"]) == ("failed", 0.6)


def test_without_decisions_nothing_breaks():
    found = place_check(np.zeros(3), np.zeros(3, np.int64), np.ones(3, np.bool_), NAMES)
    assert (found.outcome, found.picture) == ("passed", ())
