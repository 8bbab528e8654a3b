"""Where the new policy goes, against where the log was."""

import numpy as np
import pytest

from surestep import DecisionLog, FiniteMDP, Pairs, Policy
from surestep.certificates.stitched import Folds
from surestep.checks.places import place_check
from surestep.checks.time_in_states import TimeInStates
from surestep.model import Counts, estimate_mdp

NAMES = ["low", "middle", "high"]
TIMES = [0.2, 0.2, 0.6]


def time_in(shares, decisions, discount=0.5):
    """Who begins in one of three states and stays there spends that share of the time in it."""
    begun = (np.array(shares) * 1000).round().astype(int)
    counts = Counts.from_dense(
        np.diag(decisions)[:, None, :], rewards=np.zeros((3, 1)), starts=begun
    )
    model = estimate_mdp(counts, discount)
    return TimeInStates(model, counts, Policy.from_dense(model, np.ones((3, 1))), np.ones(3, bool))


def check(decisions, is_open=(False, False, False), folds="nothing-held-out", **terms):
    decisions, is_open = np.array(decisions), np.array(is_open)
    time = time_in(TIMES, decisions)
    return place_check(time, folds, terms.pop("shown", decisions), is_open, NAMES, level=0.05)


def test_time_in_states_that_the_log_hardly_knows_fails():
    found = check([500, 480, 20])
    assert found.outcome == "failed"
    assert found.figures["scarce_share"] == pytest.approx(0.6)
    assert found.figures["scarce_decisions"] == 20.0
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


def test_rows_that_chose_the_policy_tell_nothing_for_certain():
    found = check([500, 480, 20])
    assert (found.unjudged, found.rows) == ("nothing-held-out", 0)
    assert {(mark.low, mark.high) for mark in found.picture} == {(0.0, 1.0)}
    assert (found.figures["scarce_low"], found.figures["scarce_high"]) == (0.0, 1.0)
    # There are no open bins, so that nobody spends any time in them: that is certain.
    assert (found.figures["open_low"], found.figures["open_high"]) == (0.0, 0.0)


def test_held_out_rows_show_decisions_and_do_not_say_which_states_are_scarce():
    alone = check([500, 480, 20])
    both = check([500, 480, 20], shown=np.array([500, 480, 2020]))
    assert both.figures["scarce_share"] == alone.figures["scarce_share"]
    assert both.figures["scarce_decisions"] == 2020
    assert both.picture[0].beside == pytest.approx(2020 / 3000)


def stays(starts, steps=4):
    """A log of episodes that stay where they begin."""
    state = np.repeat(starts, steps)
    last = np.arange(state.size) % steps == steps - 1
    none = np.zeros(state.size, np.int64)
    return DecisionLog(
        Pairs.full(3, 1),
        state,
        none,
        none,
        state,
        none > 0,
        last,
        steps * np.arange(len(starts) + 1),
    )


def test_intervals_are_of_held_out_rows_and_shrink_with_them():
    rng = np.random.default_rng(0)
    starts = rng.choice(3, p=TIMES, size=2000)
    widths = []
    for number in (60, 600, 2000):
        first, second = stays(starts[: number // 3]), stays(starts[number // 3 : number])
        found = check([500, 480, 20], folds=Folds(first, second, 2.0))
        assert (found.unjudged, found.rows) == (None, second.num_steps)
        for mark in found.picture:
            assert 0 <= mark.low < mark.value < mark.high <= 1
        widths.append(found.figures["scarce_high"] - found.figures["scarce_low"])
    assert widths[0] > 2 * widths[1] > 2 * widths[2]


def test_without_decisions_nothing_breaks():
    nobody = FiniteMDP.from_dense(np.zeros((3, 1, 3)), np.zeros((3, 1)), 0.5, np.full(3, 1 / 3))
    counts = Counts.from_dense(np.zeros((3, 1, 3), int), rewards=np.zeros((3, 1)), starts=[1, 1, 1])
    policy = Policy.from_dense(nobody, np.ones((3, 1)))
    time = TimeInStates(nobody, counts, policy, np.zeros(3, bool))
    nothing = np.zeros(3, np.int64)
    found = place_check(time, "too-few-episodes", nothing, nothing == 0, NAMES, level=0.05)
    assert (found.outcome, found.picture, found.figures["open_high"]) == ("passed", (), 0.0)
