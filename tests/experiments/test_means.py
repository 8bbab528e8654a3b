"""Intervals of means: against all outcomes of small cases, and as often as they say on large."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surestep.experiments import mean_interval
from surestep.experiments.intervals import CONFIDENCE

# (value, chance) of distributions on [0, 1]: skewed, tied, and with tails that hide
DISTRIBUTIONS = {
    "rare and bad": [(0.0, 0.01), (0.9, 0.99)],
    "rare and good": [(0.1, 0.98), (1.0, 0.02)],
    "nearly all tied": [(0.4, 0.9), (0.45, 0.1)],
    "one value": [(0.4, 1.0)],
    "coin": [(0.0, 0.5), (1.0, 0.5)],
    "skewed": [((i / 50) ** 4, 0.02) for i in range(1, 51)],
}


def missed(values, truth):
    """Whether the interval of the values does not hold the truth; a NaN misses nothing."""
    found = mean_interval(np.array(values), (0.0, 1.0))
    return found.low > truth + 1e-12 or found.high < truth - 1e-12


@pytest.mark.parametrize("chance", [0.02, 0.3, 0.5, 0.97])
def test_tiny_cases_hold_by_counting_all_outcomes(chance):
    """The order matters, so that every sequence counts."""
    for size in (1, 2, 6):
        wrong = 0.0
        for drawn in itertools.product((0.2, 0.9), repeat=size):
            low = drawn.count(0.2)
            if missed(drawn, 0.2 * chance + 0.9 * (1 - chance)):
                wrong += chance**low * (1 - chance) ** (size - low)
        assert wrong <= 1 - CONFIDENCE


@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_intervals_hold_the_truth_as_often_as_they_say(name, size):
    """If they do, each of the 12 cases fails for some seed in a million: the seed is fixed."""
    values, chances = map(np.array, zip(*DISTRIBUTIONS[name], strict=True))
    rng = np.random.default_rng([size, *name.encode()])
    tries = 60
    wrong = sum(missed(rng.choice(values, size, p=chances), values @ chances) for _ in range(tries))
    assert wrong <= binom.isf(1e-6, tries, 1 - CONFIDENCE)


def test_intervals_that_assume_more_do_not_hold_there():
    """Student's intervals miss the truth of the first distribution in most data sets of 40."""
    values, chances = map(np.array, zip(*DISTRIBUTIONS["rare and bad"], strict=True))
    rng = np.random.default_rng(1)
    drawn = rng.choice(values, (100, 40), p=chances)
    error = 2.02 * drawn.std(axis=1, ddof=1) / math.sqrt(40)
    assert (np.abs(drawn.mean(axis=1) - values @ chances) > error).mean() > 0.5
    assert sum(missed(one, values @ chances) for one in drawn) <= binom.isf(1e-6, 100, 0.05)


@given(
    st.lists(st.integers(0, 64).map(lambda part: part / 64), min_size=1, max_size=20),
    st.integers(-5, 5),
    st.sampled_from([0.25, 1.0, 64.0]),
)
def test_an_interval_holds_its_estimate_and_moves_with_the_values(values, shift, scale):
    found = mean_interval(np.array(values), (0.0, 1.0))
    low, high = (x if math.isfinite(x) else y for x, y in ((found.low, 0.0), (found.high, 1.0)))
    assert 0 <= low <= found.value + 1e-9
    assert found.value - 1e-9 <= high <= 1
    moved = mean_interval(shift + scale * np.array(values), (shift, shift + scale))
    expected = [shift + scale * x for x in found]
    assert list(moved) == pytest.approx(expected, abs=1e-9 * (scale + 5), nan_ok=True)


def test_without_bounds_there_are_no_ends():
    values = np.linspace(0.2, 0.8, 50)
    assert all(map(math.isnan, mean_interval(values, (-math.inf, math.inf))[1:]))
    one_sided = mean_interval(values, (0.0, math.inf))
    assert one_sided.low == mean_interval(values, (0.0, 1.0)).low
    assert math.isnan(one_sided.high)
    assert math.isnan(mean_interval(np.zeros(50), (0.0, 1.0)).low)  # no more than was known
