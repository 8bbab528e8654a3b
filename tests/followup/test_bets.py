"""Bets of a pilot: against exact rationals, by their laws, and in simulated pilots without gain."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.followup import bets
from surestep.followup.bets import Wager

HALF = Wager(low=0.0, high=1.0, middle=0.5, variance=0.25, planned=40, delta=0.1)


def exact_capital(wager, new, chance, returns, claim, Fraction=Fraction):
    """K after each episode, in rationals but for the square roots of stakes."""
    stakes = [Fraction(float(stake)) for stake in wager.stakes]
    capital = [Fraction(1)] * len(stakes)
    over_time = []
    for a, p, g in zip(new, chance, returns, strict=True):
        p, g, m = Fraction(float(p)), Fraction(float(g)), Fraction(wager.middle)
        low, high, claim_ = Fraction(wager.low), Fraction(wager.high), Fraction(claim)
        z = (g - m) / p if a else -(g - m) / (1 - p)
        least = -max((m - low) / p, (high - m) / (1 - p))
        root = Fraction(math.sqrt(float(p * (1 - p))))
        for j, stake in enumerate(stakes):
            mine = min(stake * root, Fraction(99) / 100 / (claim_ - least))
            capital[j] *= 1 + mine * (z - claim_)
        over_time.append(float(sum(capital) / len(capital)))
    return np.array(over_time)


pilots = st.lists(
    st.tuples(st.booleans(), st.floats(0.1, 0.9), st.floats(0, 1)), min_size=1, max_size=12
)


def arrays_of(rows):
    new, chance, returns = zip(*rows, strict=True)
    return np.array(new), np.array(chance), np.array(returns)


@given(pilots, st.floats(-0.9, 0.9))
def test_the_capital_is_that_of_exact_numbers(rows, claim):
    new, chance, returns = arrays_of(rows)
    exact = exact_capital(HALF, new, chance, returns, claim)
    for target in (exact.max() * 0.999, exact.max() * 1.001):
        wager = HALF._replace(delta=1 / target)
        # The stakes are those of HALF: δ stands in them, too.
        series = bets.gains(HALF, new, chance, returns)
        when = np.empty(1, np.int64)
        bets.first_reached(
            series.value,
            series.least,
            series.weight,
            HALF.stakes,
            np.array([claim]),
            1 / wager.delta,
            when,
        )
        there = np.flatnonzero(exact >= target * (1 - 1e-9))
        assert when[0] == (there[0] + 1 if there.size else len(rows) + 1)


@given(pilots, st.floats(-0.9, 0.9), st.floats(0, 0.5))
def test_capital_falls_in_the_claim(rows, claim, more):
    new, chance, returns = arrays_of(rows)
    one = exact_capital(HALF, new, chance, returns, claim)
    other = exact_capital(HALF, new, chance, returns, claim + more)
    assert (other <= one * (1 + 1e-12)).all()
    assert (one > 0).all()


@given(pilots)
def test_bounds_rise_and_hold_for_the_mirror_image(rows):
    new, chance, returns = arrays_of(rows)
    wager = HALF._replace(delta=0.7, planned=4)
    series = bets.gains(wager, new, chance, returns)
    over_time = bets.bounds_over_time(series, wager)
    assert (np.diff(over_time) >= 0).all()
    assert over_time[-1] <= bets.lower_bound(series, wager) + 1e-12
    turned = wager._replace(low=-1.0, high=0.0, middle=-0.5)
    mirrored = bets.gains(turned, new, chance, -returns)
    swapped = bets.gains(wager, ~new, 1 - chance, returns)
    assert bets.lower_bound(mirrored, turned) == pytest.approx(
        bets.lower_bound(swapped, wager), abs=1e-9
    )


def test_the_bound_over_time_is_that_of_brute_force():
    rng = np.random.default_rng(1)
    new = rng.random(60) < 0.5
    returns = np.where(new, 0.9, 0.1)
    chance = np.full(60, 0.5)
    series = bets.gains(HALF, new, chance, returns)
    over_time = bets.bounds_over_time(series, HALF)
    grid = np.linspace(-1 + 1e-9, 1, 2001)
    refuted = np.array([exact_capital(HALF, new, chance, returns, x, float) for x in grid]) >= 10
    for t in range(60):
        known = refuted[:, : t + 1].any(axis=1)
        best = grid[known].max(initial=-1)
        assert best - 2 / bets.POINTS - 1e-3 <= over_time[t] <= best + 1e-3


def test_closed_form_of_equal_episodes():
    """n episodes with Z = z: K(Δ) is the mean of four powers, and L solves K(L) = 1/δ."""
    wager = HALF._replace(planned=400)
    new = np.ones(50, np.bool_)
    series = bets.gains(wager, new, np.full(50, 0.5), np.full(50, 1.0))
    bound = bets.lower_bound(series, wager)
    stakes = wager.stakes / 2
    assert np.mean((1 + stakes * (1 - bound)) ** 50) == pytest.approx(10, rel=1e-9)


def test_a_hundred_thousand_episodes_have_a_bound_each():
    rng = np.random.default_rng(2)
    new = rng.random(100_000) < 0.5
    series = bets.gains(HALF, new, np.full(new.size, 0.5), rng.random(new.size))
    over_time = bets.bounds_over_time(series, HALF)
    assert over_time.size == new.size
    assert (np.diff(over_time) >= 0).all()


# ---- wrong claims, looking after every episode --------------------------------------------------

RUNS = 100
# With a true rate of at most δ, more than this many wrong claims of RUNS come once in 10,000 tests.
MOST_WRONG = 23  # P(Binomial(100, .1) > 23) < 1e-4


WORLDS = {
    "coin": lambda rng, n, new: (rng.random(n) < 0.5).astype(float),
    "nearly always 1": lambda rng, n, new: (rng.random(n) < 0.98).astype(float),
    "rare disasters": lambda rng, n, new: np.where(rng.random(n) < 0.01, 0, rng.uniform(0.9, 1, n)),
    "harm": lambda rng, n, new: (rng.random(n) < np.where(new, 0.45, 0.5)).astype(float),
    "rising level": lambda rng, n, new: (rng.random(n) < np.linspace(0.3, 0.7, n)).astype(float),
}  # fmt: skip


@pytest.mark.one_quick
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("share", ["1:1", "1:4", "ramp-up", "adaptive"])
def test_a_pilot_without_gain_is_wrong_within_delta(world, share):
    rng = np.random.default_rng([len(world), len(share)])
    wrong = 0
    for _ in range(RUNS):
        n = 150
        chance = {
            "1:1": np.full(n, 0.5),
            "1:4": np.full(n, 0.2),
            "ramp-up": np.linspace(0.1, 0.9, n),
            "adaptive": np.full(n, 0.5),
        }[share]
        new = rng.random(n) < chance
        returns = WORLDS[world](rng, n, new)
        if share == "adaptive":  # more of what went well so far, as a bandit does
            for t in range(1, n):
                lead = returns[:t][new[:t]].sum() - returns[:t][~new[:t]].sum()
                chance[t] = 0.5 + 0.3 * np.tanh(lead / 5)
                new[t] = rng.random() < chance[t]
            if world == "harm":
                returns = (rng.random(n) < np.where(new, 0.45, 0.5)).astype(float)
        wager = HALF._replace(
            middle={"nearly always 1": 0.98, "rare disasters": 0.98}.get(world, 0.5),
            variance={"nearly always 1": 0.02, "rare disasters": 0.01}.get(world, 0.25),
            planned=100,
        )
        series = bets.gains(wager, new, chance, returns)
        wrong += int(bets.reached(series, wager, np.zeros(1))[0] < np.inf)
    assert wrong <= MOST_WRONG


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_mean_of_the_new_arm_alone(level):
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(RUNS):
        new = rng.random(200) < 0.5
        returns = (rng.random(200) < level).astype(float)
        wager = HALF._replace(middle=level, variance=level * (1 - level), planned=200)
        series = bets.levels(wager, new, np.full(200, 0.5), returns)
        wrong += int(bets.lower_bound(series, wager) > level)
    assert wrong <= MOST_WRONG


def test_past_control_by_cells_is_what_every_point_says():
    rng = np.random.default_rng(3)
    control = (rng.random(80) < 0.3).astype(float)
    new = (rng.random(60) < 0.9).astype(float)
    wager = HALF._replace(planned=60)
    looks = np.arange(1, 61)
    bounds = bets.past_bounds(wager, control, new, looks)
    assert (np.diff(bounds) >= 0).all()
    assert 0 < bounds[-1] < 0.6

    def capital(mu, their):
        stakes = [
            [math.sqrt(2 * math.log(x / 0.1) / (n * 0.25)) for x in (1, 10)] for n in (60, 80)
        ]
        ours = [np.prod(1 + min(s, 0.99 / mu) * (new - mu)) for s in stakes[0]]
        theirs = [np.prod(1 + min(s, 0.99 / (1 - their)) * (their - control)) for s in stakes[1]]
        return 0.8 * ours[0] * theirs[0] + 0.1 * ours[1] + 0.1 * theirs[1]

    # No point with a smaller gain than the bound of one look stands against the capital then.
    (bound,) = bets.past_bounds(wager, control, new, np.array([60]))
    below = above = 0
    for mu, their in rng.random((4000, 2)):
        standing = capital(mu, their) < 10
        below += int(standing and mu - their < bound)
        above += int(standing)
    assert below == 0 < above


@pytest.mark.thorough
def test_past_control_without_gain():
    rng = np.random.default_rng(4)
    wager = HALF._replace(planned=50)
    wrong = 0
    for _ in range(40):
        control = (rng.random(100) < 0.5).astype(float)
        new = (rng.random(50) < 0.5).astype(float)
        wrong += int(bets.past_bounds(wager, control, new, np.arange(1, 51))[-1] > 0)
    assert wrong <= 12  # P(Binomial(40, .1) > 12) < 1e-4


def test_the_share_of_arms():
    rng = np.random.default_rng(5)
    alarms = caught = 0
    for _ in range(300):
        chance = np.where(np.arange(400) < 200, 0.2, 0.5)
        as_planned = rng.random(400) < chance
        other = rng.random(400) < np.clip(chance + 0.2, 0, 1)
        alarms += int(bets.share_evidence(as_planned, chance).max() >= 1000)
        caught += int(bets.share_evidence(other, chance).max() >= 1000)
    assert alarms <= 3  # P(Binomial(300, .001) > 3) < 1e-3
    assert caught >= 290


def test_share_evidence_is_a_mean_of_likelihood_ratios():
    new = np.array([True, False, True])
    chance = np.array([0.2, 0.5, 0.9])
    ratios = []
    for tilt in (*-bets.TILTS, *bets.TILTS):
        odds = chance / (1 - chance) * np.exp(tilt)
        other = odds / (1 + odds)
        ratios.append(np.cumprod(np.where(new, other / chance, (1 - other) / (1 - chance))))
    np.testing.assert_allclose(bets.share_evidence(new, chance), np.mean(ratios, axis=0))
