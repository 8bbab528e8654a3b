"""Intervals of means and of CVaR, against all outcomes, brute force, and known distributions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, bdtrc
from scipy.stats import binom, sem, t

from surestep.errors import SurestepError
from surestep.experiments import cvar_interval, mean_interval, student_interval
from surestep.experiments.intervals import CONFIDENCE, cvar, tail_weights

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60)
TAILS = (0.01, 0.1)
# (value, chance) of distributions on [0, 1]: whatever makes a tail hard to see, or all of it
DISTRIBUTIONS = {
    "rare and bad": [(0.0, 0.003), (0.9, 0.997)],
    "as rare as the tail": [(0.0, 0.01), (1.0, 0.99)],
    "coin": [(0.0, 0.5), (1.0, 0.5)],
    "one value": [(0.4, 1.0)],
    "atoms at the ends": [(0.0, 0.05), (0.2, 0.2), (0.5, 0.3), (1.0, 0.45)],
    "skewed": [((i / 200) ** 4, 0.005) for i in range(1, 201)],
    "skewed the other way": [(1 - (i / 200) ** 4, 0.005) for i in range(200, 0, -1)],
}


def true_cvar(atoms, tail):
    """1/c ∫₀ᶜ F⁻¹(u) du of a distribution of finitely many values, lowest first."""
    total, left = 0.0, tail
    for value, chance in sorted(atoms):
        total += value * min(chance, left)
        left -= min(chance, left)
    return total / tail


@given(VALUES, st.sampled_from([0.01, 0.1, 0.25, 1.0]))
def test_cvar_is_the_mean_of_the_worst(values, tail):
    worst = sorted(values)[: max(1, math.floor(tail * len(values) + 1e-9))]
    assert cvar(np.array(values), tail) == pytest.approx(math.fsum(worst) / len(worst), abs=1e-6)


def test_a_tenth_of_a_thousand_is_a_hundred():
    values = np.arange(1000.0)
    assert cvar(values, 0.1) == np.arange(100).mean()
    assert cvar(values, 0.01) == np.arange(10).mean()
    for tail in (0, 1.5, math.nan, "0.1"):
        with pytest.raises(SurestepError, match="tail is"):
            cvar(values, tail)


@pytest.mark.parametrize("size", [1, 2, 10, 100, 1000])
@pytest.mark.parametrize("tail", [0.01, 0.1, 0.5, 1.0])
def test_weights_are_those_of_order_statistics_that_hold_together(size, tail):
    """P(U₍ᵢ₎ > h): fewer than i of n uniform numbers are up to h. The sum bounds the union."""
    low, high = (np.cumsum(weights) * tail for weights in tail_weights(size, tail))
    assert low[-1] == pytest.approx(tail)
    assert high[-1] == pytest.approx(tail)
    used = np.flatnonzero(low < tail * (1 - 1e-12))  # hᵢ₊₁ at place i
    assert sum(bdtr(i, size, low[i]) for i in used) <= (1 - CONFIDENCE) / 2 * (1 + 1e-9)
    reached = high[:-1]
    steps = np.flatnonzero(np.diff(reached, prepend=0.0) > 0)
    steps = steps[reached[steps] < tail * (1 - 1e-12)]
    assert sum(bdtrc(i, size, reached[i]) for i in steps) <= (1 - CONFIDENCE) / 2 * (1 + 1e-9)
    # Nothing is given away: the chance is used up, but for the rank that ends the tail.
    if low[0] < tail:
        assert sum(bdtr(i, size, low[i]) for i in used) >= (1 - CONFIDENCE) / 2 * 0.99


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.sampled_from([0.01, 0.1, 1.0]))
def test_an_interval_holds_its_estimate_and_keeps_to_the_bounds(values, tail):
    found = cvar_interval(np.array(values), tail, (0.0, 1.0))
    low, high = (x if math.isfinite(x) else y for x, y in ((found.low, 0.0), (found.high, 1.0)))
    assert 0 <= low <= found.value + 1e-12
    assert found.value - 1e-12 <= high <= 1 + 1e-12


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=120),
    st.sampled_from([0.05, 0.1, 0.5, 1.0]),
    st.data(),
)
def test_the_ends_are_the_cvar_of_the_distributions_that_the_band_allows(values, tail, data):
    """Integrates the quantile function of each, instead of weighing values."""
    found = cvar_interval(np.array(values), tail, (0.0, 1.0))
    order = np.sort(values)
    lower, upper = tail_weights(order.size, tail)
    u = (np.arange(20_000) + 0.5) / 20_000 * tail
    for end, atoms, steps in (
        (found.low, np.concatenate([[0.0], order]), lower),
        (found.high, np.concatenate([order, [1.0]]), upper),
    ):
        if not math.isnan(end):
            place = np.searchsorted(np.cumsum(steps) * tail, u, side="right")
            assert end == pytest.approx(
                atoms[np.minimum(place, order.size)].mean(), abs=order.size / 20_000
            )


def test_where_the_data_say_nothing_there_is_no_lower_end():
    values = np.full(10, 0.5)
    for tail in TAILS:
        assert math.isnan(cvar_interval(values, tail, (0.0, 1.0)).low)
    assert math.isnan(cvar_interval(np.full(300, 0.5), 0.01, (0.0, 1.0)).low)
    assert 0 < cvar_interval(np.full(1000, 0.5), 0.01, (0.0, 1.0)).low < 0.5
    assert math.isnan(cvar_interval(np.full(1000, 0.5), 0.1, (-math.inf, 1.0)).low)
    one = cvar_interval(np.array([0.5]), 1.0, (0.0, math.inf))
    assert math.isnan(one.high)
    # A value that rounding puts outside is taken for the bound.
    assert cvar_interval(np.full(1000, -1e-12), 0.1, (0.0, 1.0)).low == 0.0


@pytest.mark.parametrize("chance", [0.001, 0.02, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("tail", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_tiny_cases_hold_by_counting_all_outcomes(chance, tail, size):
    """Of two values, all that matters is how many are the lower one."""
    truth = true_cvar([(0.0, chance), (1.0, 1 - chance)], tail)
    missed = 0.0
    for lower in range(size + 1):
        values = np.repeat([0.0, 1.0], [lower, size - lower])
        found = cvar_interval(values, tail, (0.0, 1.0))
        if found.low > truth + 1e-12 or found.high < truth - 1e-12:  # NaN is neither
            missed += binom.pmf(lower, size, chance)
    assert missed <= 1 - CONFIDENCE


def test_three_values_hold_by_counting_all_outcomes():
    atoms = [(0.0, 0.1), (0.3, 0.3), (1.0, 0.6)]
    truth, missed = true_cvar(atoms, 0.5), 0.0
    for drawn in itertools.product(atoms, repeat=6):
        found = cvar_interval(np.array([value for value, _ in drawn]), 0.5, (0.0, 1.0))
        if found.low > truth + 1e-12 or found.high < truth - 1e-12:
            missed += math.prod(chance for _, chance in drawn)
    assert missed <= 1 - CONFIDENCE


@pytest.mark.one_quick
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("size", [10, 100, 1000])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_intervals_hold_the_truth_as_often_as_they_say(name, size, tail):
    """If they do, each of the 42 cases fails for some seed in a million: the seed is fixed."""
    atoms = DISTRIBUTIONS[name]
    values, chances = map(np.array, zip(*atoms, strict=True))
    rng = np.random.default_rng([size, int(1000 * tail), *name.encode()])
    truth, tries, missed = true_cvar(atoms, tail), 300, 0
    for _ in range(tries):
        found = cvar_interval(rng.choice(values, size, p=chances), tail, (0.0, 1.0))
        missed += found.low > truth + 1e-12 or found.high < truth - 1e-12
    assert missed <= binom.isf(1e-6, tries, 1 - CONFIDENCE)


# (value, chance) of distributions on [0, 1]: skewed, tied, and with tails that hide
OF_MEANS = {
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
def test_tiny_cases_of_means_hold_by_counting_all_outcomes(chance):
    """The order matters, so that every sequence counts."""
    for size in (1, 2, 6):
        wrong = 0.0
        for drawn in itertools.product((0.2, 0.9), repeat=size):
            low = drawn.count(0.2)
            if missed(drawn, 0.2 * chance + 0.9 * (1 - chance)):
                wrong += chance**low * (1 - chance) ** (size - low)
        assert wrong <= 1 - CONFIDENCE


@pytest.mark.one_quick
@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize("name", OF_MEANS)
def test_intervals_of_means_hold_the_truth_as_often_as_they_say(name, size):
    """If they do, each of the 12 cases fails for some seed in a million: the seed is fixed."""
    values, chances = map(np.array, zip(*OF_MEANS[name], strict=True))
    rng = np.random.default_rng([size, *name.encode()])
    tries = 60
    wrong = sum(missed(rng.choice(values, size, p=chances), values @ chances) for _ in range(tries))
    assert wrong <= binom.isf(1e-6, tries, 1 - CONFIDENCE)


@pytest.mark.parametrize("size", [2, 5, 300])
def test_student_intervals_are_scipys(size):
    values = np.random.default_rng(size).gumbel(-3.0, 2.0, size)
    expected = t.interval(CONFIDENCE, size - 1, values.mean(), sem(values))
    assert student_interval(values) == pytest.approx((values.mean(), *expected), rel=1e-12)


def test_of_one_value_student_says_nothing():
    value, low, high = student_interval(np.array([0.3]))
    assert value == 0.3
    assert math.isnan(low)
    assert math.isnan(high)


def test_student_intervals_hold_for_normal_values():
    rng = np.random.default_rng(4)
    ends = np.array([student_interval(rng.normal(7.0, 3.0, 5))[1:] for _ in range(2000)])
    wrong = int(((ends[:, 0] > 7) | (ends[:, 1] < 7)).sum())
    low, high = binom.interval(1 - 1e-6, 2000, 1 - CONFIDENCE)
    assert low <= wrong <= high


def test_intervals_that_assume_more_do_not_hold_there():
    """Student's intervals miss the truth of the first distribution in most data sets of 40."""
    values, chances = map(np.array, zip(*OF_MEANS["rare and bad"], strict=True))
    rng = np.random.default_rng(1)
    drawn = rng.choice(values, (100, 40), p=chances)
    ends = np.array([student_interval(one)[1:] for one in drawn])
    assert ((ends[:, 0] > values @ chances) | (ends[:, 1] < values @ chances)).mean() > 0.5
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
