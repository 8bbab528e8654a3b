"""Simulated pilots are wrong within δ, and the tables of the page are made."""

import numpy as np
import pytest

import pilots

RUNS = 40
# With a rate of at most 10 %, more than 13 of 40 come once in 10,000 tests.
MOST_WRONG = 13


@pytest.mark.parametrize("case", [name for name in pilots.CASES if name not in pilots.BROKEN])
def test_claims_are_wrong_within_delta(case):
    runs = 3 if case.startswith("past") else RUNS
    assert pilots.rate(pilots.CASES[case], runs, seed=7).happened <= MOST_WRONG * runs / RUNS


def test_by_the_order_of_completion_a_pilot_is_wrong():
    (broken,) = pilots.BROKEN.values()
    assert pilots.rate(broken, 20, seed=7).happened >= 12


def test_a_gain_takes_about_as_long_as_a_test_of_fixed_size():
    rng = np.random.default_rng(1)
    found = [pilots.needed(0.5, rng) for _ in range(60)]
    assert 40 <= np.median([when for when, _ in found]) <= 130
    assert found[0][1] == pytest.approx(72, abs=1)
