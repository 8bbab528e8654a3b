"""Simulated pilots are wrong within δ, and the tables of the page are made."""

import numpy as np
import pytest
from scipy.stats import binom

import pilots


def cases():
    """The cases with numbers of runs; a past control takes a second a run."""
    for name in pilots.CASES:
        if name not in {**pilots.BROKEN, **pilots.WITHOUT_LOTS}:
            if not name.startswith("past"):
                yield name, 15
            yield pytest.param(name, 40, marks=pytest.mark.slow)


@pytest.mark.one_quick
@pytest.mark.parametrize(("case", "runs"), [*cases()])
def test_claims_are_wrong_within_delta(case, runs):
    """With a rate of at most 10 %, more wrong ones come once in 10,000 tests."""
    assert pilots.rate(pilots.CASES[case], runs, seed=7).happened <= binom.ppf(1 - 1e-4, runs, 0.1)


def test_by_the_order_of_completion_a_pilot_is_wrong():
    (broken,) = pilots.BROKEN.values()
    assert pilots.rate(broken, 12, seed=7).happened >= 8


@pytest.mark.slow
def test_without_lots_careless_rows_claim_too_often():
    """Above δ in one of the cases at least, which the caution has to say."""
    rates = [pilots.rate(make, 60, seed=3) for make in pilots.WITHOUT_LOTS.values()]
    assert max(rate.share for rate in rates) > 0.1


def test_a_gain_takes_about_as_long_as_a_test_of_fixed_size():
    rng = np.random.default_rng(1)
    found = [pilots.needed(0.5, rng) for _ in range(25)]
    assert 40 <= np.median([when for when, _ in found]) <= 130
    assert found[0][1] == pytest.approx(72, abs=1)
