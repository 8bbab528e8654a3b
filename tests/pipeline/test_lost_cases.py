"""Cases that stop for unknown reasons: believed to be like others, never proved, and never hidden.

The clinic has 600 patients, and the truth is known. A belief that may fail with δ = 10 % is held
of several logs: one that fails exactly so often would fail more often than is allowed once in 100
such tests. Seeds are fixed.
"""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.stats

import surestep
from support.clinic import DISCOUNT, RANGES, TODAY, clinic, patients, true_gain
from support.problems import logged_problem
from surestep import Policy, performance
from surestep.checks import failed
from surestep.model.log import UNKNOWN
from surestep.results.advantage_intervals import gain_interval, gains_of_lost
from surestep.results.findings import belief_in, is_proved
from surestep.sampling import sample_log

TERMS = {"discount": DISCOUNT, "worlds": 0, **RANGES}


def shown(result):
    """The words of the page."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", result.files()["report.html"].decode()))


@cache
def improved(seed):
    return surestep.improve(patients(clinic(), 600, seed), **TERMS)


@pytest.mark.thorough
@pytest.mark.parametrize("logs", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_a_gain_is_believed_where_cases_were_lost_at_random(logs):
    world, wrong, asked = clinic(), 0, 0
    for seed in range(logs):
        result = improved(seed)
        truth, found = true_gain(world, result), result.record.estimates
        belief = belief_in(result.certificates)
        wrong += belief.lower > truth
        false_alarm = "stops-that-know" in [check.code for check in failed(result.record.checks)]
        asked += false_alarm
        assert (result.verdict == "believed better", truth > 2) == (not false_alarm, True)
        assert found["lost_opposed"] < min(found["lost_worst"], truth)
    assert wrong <= scipy.stats.binom.ppf(0.99, logs, 0.1)
    assert asked <= scipy.stats.binom.ppf(0.99, logs, 0.005)  # the level of a check


def test_the_page_says_how_many_were_lost_and_what_they_may_change():
    result = improved(0)
    words, found = shown(result), result.record.estimates
    assert "69 of 600 cases stopped for unknown reasons." in words
    numbers = [f"{found[name]:+.3g}" for name in ("lost_worst", "lost_opposed")]
    assert f"as badly as can be, the best guess is {numbers[0]};" in words
    assert f"as well as can be, {numbers[1]}." in words
    assert "Find out why they stopped." in words
    # Neither the word that would make it green, nor a number of cases that recedes.
    assert "(`ends`)" not in words
    assert "settle it" not in words


@pytest.mark.thorough
def test_where_those_who_die_are_lost_the_numbers_show_the_danger():
    world, losing = clinic(cures=False), 0
    for seed in range(2):
        result = surestep.improve(patients(world, 600, seed, lost_at_random=False), **TERMS)
        truth, found = true_gain(world, result), result.record.estimates
        # The action tells who is lost, and a check notices: that is asked before anything.
        assert result.verdict == "not shown to be better"
        assert "stops-that-know" in [check.code for check in failed(result.record.checks)]
        losing += truth < -1 and found["lost_worst"] < -1
        assert not any(map(is_proved, result.certificates))
        # All that were lost went as badly as can be, and so this number is the truth's estimate.
        assert found["lost_opposed"] < found["lost_worst"] < found["held_out_gain"]
        assert abs(found["lost_worst"] - truth) < found["held_out_gain"] - found["held_out_low"]
    assert losing > 0


def test_a_supposed_end_is_one_that_the_log_had_shown():
    world = clinic()
    today = Policy(world.pairs, TODAY.ravel())
    log = sample_log(world, today, 300, 400, np.random.default_rng(1))
    stops = log.terminated & (np.arange(log.num_steps) % 3 == 0)
    lost = replace(
        log,
        next_state=np.where(stops, UNKNOWN, log.next_state),
        terminated=log.terminated & ~stops,
        reward=np.where(stops, 0.0, log.reward),
    )
    policy = Policy.deterministic(world.pairs, [0, 1, 1, 0, 0])

    def earned(each, reward):
        filled = replace(log, reward=np.where(stops, reward, log.reward))
        return performance(logged_problem(filled, DISCOUNT, (-20.0, 10.0)).estimate(), each)

    problem = logged_problem(lost, DISCOUNT, (-20.0, 10.0), today)
    found = gains_of_lost(problem, lost, policy, RANGES["ending"])
    expected = [earned(policy, -20.0) - earned(today, end) for end in (-20.0, 10.0)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    # Where nothing was lost, nothing is supposed.
    whole = logged_problem(log, DISCOUNT, (-20.0, 10.0), today)
    gain, _, _ = gain_interval(whole, policy, 0.1)
    np.testing.assert_allclose(gains_of_lost(whole, log, policy, (-20.0, 10.0)), gain, rtol=1e-9)
    # Where all ends are the best there is, the worst is to go on to where things are worst.
    _, opposed = gains_of_lost(problem, lost, policy, (10.0, 10.0))
    assert opposed < earned(policy, 10.0) - earned(today, 10.0) - 1
