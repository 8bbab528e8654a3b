"""The counterexamples of examples/where_bounds_fail.py, held against exact rationals."""

import math
import runpy
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surestep import Policy, estimate_mdp

SCRIPT = Path(__file__).parents[2] / "examples" / "where_bounds_fail.py"
cases = SimpleNamespace(**runpy.run_path(str(SCRIPT)))

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)  # γ; the shares of the risky and the good action
RADII = st.floats(0.01, 0.99)


def binomial_chances(n, p):
    """P(K = 0), …, P(K = n) for K ~ Binomial(n, p), in rationals."""
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize(("successors", "visits"), [(100, 146), (3, 5)])
def test_the_mean_error_of_a_row_is_the_exact_one(successors, visits):
    share = Fraction(1, successors)
    exact = successors * sum(
        chance * abs(Fraction(k, visits) - share)
        for k, chance in enumerate(binomial_chances(visits, share))
    )
    errors = cases.row_errors(successors, visits, draws=4000)
    assert abs(errors.mean() - float(exact)) < 5 * errors.std() / math.sqrt(errors.size)


def exact_frequentist(n, radius, p):
    """P(2|p − K/N| > radius) in rationals."""
    chances = binomial_chances(n, p)
    return sum(c for k, c in enumerate(chances) if 2 * abs(p - Fraction(k, n)) > radius)


def exact_posterior(n, radius, k):
    """P(2|p − k/N| > radius) for p ~ Beta(k+1, N−k+1): p < x iff k < Binomial(N + 1, x)."""

    def below(x):
        return sum(binomial_chances(n + 1, min(max(x, Fraction(0)), Fraction(1)))[k + 1 :])

    centre = Fraction(k, n)
    return below(centre - radius / 2) + 1 - below(centre + radius / 2)


@settings(max_examples=settings.default.max_examples // 2)
@given(n=st.integers(1, 40), radius=RADII)
def test_the_posterior_rate_is_the_exact_one(n, radius):
    exact = max(exact_posterior(n, Fraction(radius), k) for k in range(n + 1))
    assert cases.posterior_failure(n, radius) == pytest.approx(float(exact), rel=1e-9)


@settings(max_examples=settings.default.max_examples // 2)
@given(n=st.integers(1, 40), radius=RADII, p=st.fractions(0, 1, max_denominator=1000))
def test_the_frequentist_rate_is_attained_and_never_exceeded(n, radius, p):
    assume(abs(n * radius - round(n * radius)) > 1e-9)  # else rounding decides which outcomes fail
    found, exact_radius = cases.frequentist_failure(n, radius), Fraction(radius)
    assert exact_frequentist(n, exact_radius, p) <= found * (1 + 1e-9)
    beside = [Fraction(k, n) + exact_radius / 2 + Fraction(1, 10**40) for k in range(n + 1)]
    attained = max(exact_frequentist(n, exact_radius, p) for p in beside if p < 1)
    assert found == pytest.approx(float(attained), rel=1e-9)


PUBLISHED = [  # N∧^β of the captions; rates as multiples of δ_T
    (27, 11.6, 22.3),
    (67, 2.14, 4.23),
    (146, 1.05, 2.08),
    (10, 312, 682),
    (36, 7.25, 14.1),
    (61, 2.74, 5.10),
    (12, 10_960, 25_900),
    (25, 357, 747),
    (37, 69.8, 138),
]


def test_the_rates_at_the_papers_settings_come_out():
    rows = cases.split_failures()
    for row, (n, posterior, frequentist) in zip(rows, PUBLISHED, strict=True):
        assert row.n_wedge == n
        assert row.posterior == pytest.approx(posterior, rel=5e-3)
        assert row.frequentist == pytest.approx(frequentist, rel=5e-3)
    pairs = [100] * 3 + [125] * 3 + [1504] * 3
    for row, size in zip(rows, pairs, strict=True):
        assert row.all_pairs == pytest.approx(row.frequentist / size, rel=1e-12)


def exact_loss_term(n_wedge, log_argument):
    """4 V_max/(1 − γ) · √((2/N∧) ln x) with γ = ½ and V_max = 1, in 30 digits."""
    with mpmath.workdps(30):
        return float(8 * mpmath.sqrt(mpmath.mpf(2) / n_wedge * mpmath.log(log_argument)))


@given(tried=st.lists(st.integers(0, 3), min_size=1, max_size=7))
def test_the_maze_is_judged_as_by_hand(tried):
    doors, right = len(tried), sum(tried)
    seen = Fraction(sum(t > 0 for t in tried), doors)
    assume(right > 3)  # N∧: right is trusted, no door is
    seems, left = -(HALF**2) * seen, -TENTH
    assume(seems != left)
    log = cases.maze_counts(9 * right, np.array(tried))
    truth = estimate_mdp(cases.maze_counts(1, np.ones(doors, int)), 0.5)
    shares = np.concatenate([[0.9, 0.1], np.full(doors, 1 / doors), [1.0, 1.0]])
    verdict = cases.judge("spibb", 3, log, truth, Policy(log.pairs, shares))
    moved = 1 - TENTH if seems > left else -TENTH  # how much more often than π_b it goes right
    assert verdict.gain == pytest.approx(float(moved * (seems - left)), abs=1e-9)
    assert verdict.difference == pytest.approx(float(moved * (-(HALF**2) - left)), abs=1e-9)
    term = exact_loss_term(3, 2 * 4 * doors * 2**4 * 10)
    assert verdict.zeta == pytest.approx(term - verdict.gain, abs=1e-9)


@given(arrivals=st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_the_gamble_is_judged_as_by_hand(arrivals):
    reached, stations = np.array(arrivals), len(arrivals)
    assume(reached.sum() > 3)  # N∧: the gamble is trusted
    habit = 2 * TENTH - 1
    value = [Fraction(1) if times >= 2 else habit for times in arrivals]  # 2 visits an arrival
    seems = HALF * sum(
        Fraction(times, sum(arrivals)) * v for times, v in zip(arrivals, value, strict=True)
    )
    assume(seems != 0)
    log = cases.station_counts(10, reached, 18 * reached, 2 * reached)
    once = np.ones(stations, int)
    truth = estimate_mdp(cases.station_counts(1, once, once, once), 0.5)
    shares = np.concatenate([[0.9, 0.1], np.tile([0.9, 0.1], stations), [1.0]])
    verdict = cases.judge("2s", 3, log, truth, Policy(log.pairs, shares))
    gambles = int(seems > 0)
    before = TENTH * HALF * habit
    true_gamble = HALF * sum(value) / stations
    assert verdict.gain == pytest.approx(float(gambles * seems - before), abs=1e-9)
    assert verdict.difference == pytest.approx(float(gambles * true_gamble - before), abs=1e-9)
    term = exact_loss_term(3, 8 * (stations + 2) ** 2 * 2**2 * 10)
    assert verdict.zeta == pytest.approx(term - verdict.gain, abs=1e-9)


def test_the_closed_form_of_unseen_pairs_gives_the_known_numbers():
    verdict = cases.unseen_pairs_on_average(10**6)
    with mpmath.workdps(40):
        seen = 1 - (1 - mpmath.mpf(1) / 10**7) ** 1_050_000
        gain = float(mpmath.mpf(9) / 10 * (mpmath.mpf(1) / 10 - seen / 4))
    assert verdict.gain == pytest.approx(gain, abs=1e-9)
    term = exact_loss_term(10**6, 2 * 4 * 10**7 * 2**4 * 10)
    assert verdict.zeta == pytest.approx(term - gain, abs=1e-9)
    assert verdict.zeta == pytest.approx(-0.013, abs=5e-4)
    assert verdict.difference == pytest.approx(-0.135, abs=1e-12)
    assert verdict.broken


def test_the_closed_form_of_lucky_successors_is_the_mean():
    chances = binomial_chances(21, Fraction(1, 20))  # arrivals at one of 20 stations in 21 gambles
    habit = 2 * TENTH - 1
    before = TENTH * HALF * habit
    trusted_mass = 20 * sum(Fraction(k, 21) * c for k, c in enumerate(chances) if k >= 2)
    trusted_share = sum(chances[2:])
    expected = [
        float(HALF * (share + (1 - share) * habit) - before)
        for share in (trusted_mass, trusted_share)
    ]
    verdict = cases.lucky_successors_on_average("2s", 20)
    assert [verdict.gain, verdict.difference] == pytest.approx(expected, abs=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_unseen_pairs_break_the_bound_of_spibb(seed):
    verdict, average = cases.unseen_pairs(seed=seed), cases.unseen_pairs_on_average(10**5)
    assert verdict == pytest.approx(tuple(average), abs=5e-4)  # some 8 standard deviations
    assert verdict.gain > 0
    assert verdict.broken


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_lucky_successors_break_2s_and_beta(seed):
    verdict = cases.lucky_successors("2s", seed=seed)
    average = cases.lucky_successors_on_average("2s", 10**5)
    assert verdict == pytest.approx(tuple(average), abs=0.01)  # some 6 standard deviations
    assert verdict.zeta < 0  # a gain is claimed
    assert verdict.broken
    # The policy and its gain do not depend on the bound, and β claims even more.
    assert cases.claimed("beta", 10**5, (10**5 + 2, 2), verdict.gain) < verdict.zeta


def test_small_versions_mislead_as_much_but_claim_nothing():
    verdict = cases.unseen_pairs(n_wedge=10**4)
    assert verdict.gain > 0 > verdict.difference
    assert not verdict.broken
    verdict = cases.lucky_successors("spibb", n_wedge=10**4)
    assert verdict.gain > 0 > verdict.difference
    assert verdict.zeta > 2  # more than any policy can lose


@pytest.mark.slow
def test_the_full_sizes_come_out_when_they_are_drawn():
    verdict = cases.unseen_pairs(n_wedge=10**6)
    assert verdict == pytest.approx(tuple(cases.unseen_pairs_on_average()), abs=2e-4)
    assert verdict.zeta < 0
    assert verdict.broken
    verdict = cases.lucky_successors("2s", n_wedge=10**6)
    assert verdict == pytest.approx(tuple(cases.lucky_successors_on_average("2s")), abs=3e-3)
    assert verdict.zeta < 0
    assert verdict.broken
