"""Confidence sets: their ends in exact arithmetic, and how often they fail, computed exactly."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.certificates.uncertainty import (
    chance_interval,
    deviance_low,
    mean_interval,
    mixture_regret,
    row_radius,
    row_regret,
)

ULP = Fraction(1, 2**53)  # the largest error of rounding near 1
LEVELS = st.sampled_from([0.5, 0.1, 1e-3, 1e-9, 1e-40])


def upper_tail(k, n, p):
    """P(X ≥ k) for n draws of chance p, in rationals."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))


def interval(k, n, delta, strict):
    low, high = chance_interval(np.array([k]), np.array([n]), delta, strict=strict)
    return float(low[0]), float(high[0])


@st.composite
def outcomes(draw, most=40):
    n = draw(st.integers(0, most))
    return draw(st.integers(0, n)), n


@given(outcome=outcomes(), delta=LEVELS)
def test_an_end_is_where_so_extreme_a_count_is_half_as_likely_as_the_level(outcome, delta):
    k, n = outcome
    low, high = interval(k, n, delta, strict=False)
    assert 0 <= low <= high <= 1
    half = Fraction(delta) / 2
    if k == 0:
        assert low == 0
    else:
        assert half * Fraction(999, 1000) < upper_tail(k, n, Fraction(low)) <= half
    if k == n:
        assert high == 1
    else:  # up to the rounding of one subtraction
        assert upper_tail(n - k, n, max(1 - Fraction(high) - ULP, 0)) <= half


@given(outcome=outcomes(300), delta=LEVELS)
def test_strict_ends_are_where_the_mixture_is_one_over_delta_times_the_likelihood(outcome, delta):
    k, n = outcome
    ends = interval(k, n, delta, strict=True)
    with mpmath.workdps(40):
        mixture = mpmath.beta(k + mpmath.mpf(1) / 2, n - k + mpmath.mpf(1) / 2) / mpmath.pi

        def excess(p):
            p = mpmath.mpf(p.numerator) / p.denominator
            return mpmath.log(mixture) + mpmath.log(delta) - mpmath.log(p**k * (1 - p) ** (n - k))

        for end, whole, certain in zip(ends, (0.0, 1.0), (k == 0, k == n), strict=True):
            if certain:
                assert end == whole
            elif 1e-12 < end < 1 - 1e-12:
                away = ULP if whole else 0  # the upper end is 1 less something, rounded
                assert excess(Fraction(end) + away) >= -1e-9
                assert excess(Fraction(end) - away) <= 1e-6
    assert ends[0] <= (k / n if n else 0) <= ends[1]


@given(
    n=st.integers(1, 300) | st.just(10**6),
    share=st.floats(0, 1),
    delta=LEVELS,
    strict=st.booleans(),
)
def test_ends_of_means_are_where_the_deviance_is_what_the_level_allows(n, share, delta, strict):
    k = share * n
    ends = mean_interval(np.array([k]), np.array([n]), delta, strict=strict)
    with mpmath.workdps(40):
        k, half = mpmath.mpf(k), mpmath.mpf(1) / 2
        rest = n - k
        most = (k * mpmath.log(k / n) if k else 0) + (rest * mpmath.log(rest / n) if rest else 0)
        allowed = mpmath.log(2 / mpmath.mpf(delta))
        if strict:
            mixture = mpmath.beta(k + half, rest + half) / mpmath.pi
            allowed = most - mpmath.log(mixture) - mpmath.log(delta)
        for end, whole, certain in zip(ends, (0.0, 1.0), (k < 1e-200, rest == 0), strict=True):
            p = mpmath.mpf(float(end[0]))
            if certain:
                assert p == whole
            elif 1e-200 < p < 1 - 1e-6:
                deviance = most - k * mpmath.log(p) - rest * mpmath.log(1 - p)
                assert -1e-9 <= deviance - allowed <= 1e-5
            elif p < 0.5:  # so small only where even this is possible
                tiny = mpmath.mpf(10) ** -199
                assert most - k * mpmath.log(tiny) - rest * mpmath.log(1 - tiny) <= allowed


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("chance", [0.003, 0.2, 0.5])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_intervals_at_a_fixed_n_fail_at_most_as_often_as_they_may(strict, chance, n):
    k = np.arange(n + 1)
    low, high = chance_interval(k, np.full(n + 1, n), 0.1, strict=strict)
    weights = np.array([math.comb(n, i) * chance**i * (1 - chance) ** (n - i) for i in k])
    assert weights[(chance < low) | (chance > high)].sum() <= 0.1


def ever_missed(outcomes, weights, mean, horizon, delta):
    """The chance that the strict interval of the mean misses it after any of `horizon` draws.

    Outcomes are whole numbers of halves, so that the sum is a state, and the answer exact.
    """
    alive = np.zeros(2 * horizon + 1)
    alive[0] = 1.0
    missed = 0.0
    for n in range(1, horizon + 1):
        after = np.zeros_like(alive)
        for outcome, weight in zip(outcomes, weights, strict=True):
            after[outcome:] += weight * alive[: alive.size - outcome]
        sums = np.arange(alive.size) / 2
        low, high = mean_interval(sums, np.full(sums.size, n), delta, strict=True)
        wrong = (mean < low) | (mean > high)
        missed += after[wrong].sum()
        alive = np.where(wrong, 0.0, after)
    return missed


@pytest.mark.one_quick
@pytest.mark.parametrize("chance", [0.02, 0.3, 0.5, 0.9])
def test_strict_intervals_fail_at_most_as_often_over_all_times_together(chance):
    missed = ever_missed((0, 2), (1 - chance, chance), chance, 150, 0.2)
    assert 0.001 < missed <= 0.2
    spread = ever_missed((0, 1, 2), (0.5 * (1 - chance), 0.5, 0.5 * chance), 0.25 + 0.5 * chance,
                         100, 0.2)  # fmt: skip
    assert spread <= 0.2


def test_intervals_for_a_fixed_n_do_fail_more_often_than_that_over_all_times():
    # Why there are strict ones at all: someone who stops when it suits misses far more often.
    alive, missed, chance = np.array([1.0]), 0.0, 0.5
    for n in range(1, 400):
        after = np.append(alive * (1 - chance), 0.0) + np.append(0.0, alive * chance)
        low, high = chance_interval(np.arange(n + 1), np.full(n + 1, n), 0.2, strict=False)
        wrong = (chance < low) | (chance > high)
        missed += after[wrong].sum()
        alive = np.where(wrong, 0.0, after)
    assert missed > 0.5


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("n", [1, 4, 25])
def test_means_of_bounded_draws_are_missed_at_most_as_often_as_they_may(strict, n):
    outcomes = {0.0: 0.3, 0.25: 0.5, 1.0: 0.2}
    mean = sum(x * w for x, w in outcomes.items())
    law = {0.0: 1.0}
    for _ in range(n):
        after = {}
        for (total, chance), (x, w) in product(law.items(), outcomes.items()):
            after[total + x] = after.get(total + x, 0.0) + chance * w
        law = after
    sums, weights = (np.array(list(part)) for part in (law.keys(), law.values()))
    low, high = mean_interval(sums, np.full(sums.size, n), 0.1, strict=strict)
    assert weights[(mean < low) | (mean > high)].sum() <= 0.1


@pytest.mark.parametrize("strict", [False, True])
def test_more_draws_of_the_same_kind_make_every_set_smaller(strict):
    scale = 10 ** np.arange(8)
    low, high = chance_interval(3 * scale, 10 * scale, 1e-6, strict=strict)
    assert (np.diff(low) > 0).all()
    assert (np.diff(high) < 0).all()
    below, above = mean_interval(3.0 * scale, 10 * scale, 1e-6, strict=strict)
    assert (np.diff(below) > 0).all()
    assert (np.diff(above) < 0).all()
    times = np.stack([3 * scale, 7 * scale], axis=1).ravel()
    radius = row_radius(times, 2 * np.arange(9), 5, 1e-6, strict=strict)
    assert (np.diff(radius) <= 0).all()
    assert radius[-1] < 1e-2 < radius[0]


@pytest.mark.parametrize("strict", [False, True])
def test_without_data_everything_is_possible(strict):
    assert interval(0, 0, 0.1, strict) == (0.0, 1.0)
    nothing = np.zeros(1, int)
    low, high = mean_interval(np.zeros(1), nothing, 0.1, strict=strict)
    assert (low[0], high[0]) == (0.0, 1.0)
    assert row_radius(np.zeros(0, int), np.array([0, 0]), 5, 0.1, strict=strict)[0] == 2


def test_the_radius_of_a_row_is_weissmans_or_that_of_the_mixture():
    times, offsets = np.array([30, 50, 20]), np.array([0, 3])
    found = row_radius(times, offsets, 6, 0.01, strict=False)[0]
    assert found == pytest.approx(math.sqrt(2 / 100 * math.log((2**6 - 2) / 0.01)))
    with mpmath.workdps(30):
        half = mpmath.mpf(1) / 2
        mixture = mpmath.gamma(3) / mpmath.gamma(103)
        for k in (30, 50, 20):
            mixture *= mpmath.gamma(k + half) / mpmath.gamma(half)
        best = mpmath.mpf("0.3") ** 30 * mpmath.mpf("0.5") ** 50 * mpmath.mpf("0.2") ** 20
        allowed = mpmath.log(best / mixture / mpmath.mpf("0.01"))
        expected = float(mpmath.sqrt(2 * allowed / 100))
    assert row_radius(times, offsets, 6, 0.01, strict=True)[0] == pytest.approx(expected)
    assert row_radius(times[:1], np.array([0, 1]), 1, 0.01, strict=False)[0] == 0


@pytest.mark.parametrize("strict", [False, True])
def test_rows_leave_their_ball_at_most_as_often_as_they_may(strict):
    # All outcomes of 12 draws from three of four states, with their chances.
    chances, n = (0.5, 0.3, 0.2), 12
    missed = 0.0
    for first, second in product(range(n + 1), repeat=2):
        times = np.array([first, second, n - first - second])
        if times[2] < 0:
            continue
        ways = math.comb(n, first) * math.comb(n - first, second)
        weight = ways * math.prod(p ** int(k) for p, k in zip(chances, times, strict=True))
        radius = row_radius(times, np.array([0, 3]), 4, 0.3, strict=strict)[0]
        missed += weight * (np.abs(times / n - chances).sum() > radius)
    assert missed <= 0.3


def test_extreme_sums_and_counts_neither_warn_nor_mislead():
    """Warnings are errors here."""
    n = np.full(5, 10**12)
    sums = np.array([1e-250, 1e-3, 1.0, 10.0**12 - 1e-3, 10.0**12])
    for strict in (False, True):
        low, high = mean_interval(sums, n, 1e-12, strict=strict)
        assert ((low <= sums / n) & (high >= sums / n)).all()
        assert (high - low < 1e-4).all()
        assert (low[0], high[4]) == (0.0, 1.0)
        below, above = chance_interval(np.array([0, 10**12]), n[:2], 1e-12, strict=strict)
        assert (below[0], above[1]) == (0.0, 1.0)
        assert below[1] > 1 - 1e-9
        assert above[0] < 1e-9


@pytest.mark.parametrize("times", [(1, 0), (7, 3), (500, 20), (10**6, 3 * 10**5, 7)])
def test_regrets_are_rounded_up(times):
    """Above the exact logarithm, by no more than twice the stated error of its terms."""
    n, half = sum(times), mpmath.mpf(1) / 2
    with mpmath.workdps(50):
        best = sum(k * mpmath.log(mpmath.mpf(k) / n) for k in times if k)

        def regret(support):
            log_gammas = sum(mpmath.loggamma(k + half) - mpmath.loggamma(half) for k in times)
            whole = mpmath.loggamma(n + support * half) - mpmath.loggamma(support * half)
            return best - log_gammas + whole

        for support in (len(times), 40):
            (found,) = row_regret(np.array(times), np.array([0, len(times)]), np.array([support]))
            above = float(found - regret(support))
            assert 0 < above < 2 * 2.0**-47 * (n + support) * np.log(n + support + 2.0)
        if len(times) == 2:
            found = mixture_regret(np.array([float(times[0])]), np.array([float(n)]))[0]
            assert 0 < float(found - regret(2)) < 2 * 2.0**-47 * n * np.log(n + 2.0)


@pytest.mark.parametrize(("k", "n"), [(1.0, 1.0), (3.0, 10.0), (29.5, 30.0), (0.25, 4.0)])
@pytest.mark.parametrize("allowed", [0.1, 2.0, 30.0])
def test_a_lowest_chance_is_rounded_down(k, n, allowed):
    """Below the exact one, by about 1e-12 of itself."""
    low = deviance_low(np.array([k]), np.array([n]), np.array([allowed]))[0]
    with mpmath.workdps(40):

        def deviance(p):
            rest = n - mpmath.mpf(k)
            first = k * mpmath.log(k / (n * p))
            return first + (rest * mpmath.log(rest / (n * (1 - p))) if rest else 0)

        assert deviance(mpmath.mpf(float(low))) > allowed
        assert deviance(mpmath.mpf(float(low)) * (1 + mpmath.mpf(2e-12))) < allowed


@pytest.mark.parametrize(("n", "delta"), [(1, 0.5), (1000, 1e-6)])
def test_a_radius_is_rounded_up(n, delta):
    """Two states, so that (2² − 2)/δ is 2/δ; also after a single visit."""
    found = row_radius(np.array([n]), np.array([0, 1]), 2, delta, strict=False)[0]
    with mpmath.workdps(40):
        exact = mpmath.sqrt(2 * mpmath.log(2 / mpmath.mpf(delta)) / n)
        assert exact < found < exact * (1 + mpmath.mpf(2e-12))
        assert exact < 2
