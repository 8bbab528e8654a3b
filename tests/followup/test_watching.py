"""The e-detector: its formula, its proof in small worlds, and its false alarms and delays."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom

from surestep.errors import InvalidParameter
from surestep.followup.watching import SHARES, detect, lowest_season, paired
from surestep.offpolicy import betting

UNIT = st.floats(0, 1, allow_subnormal=False)
RETURNS = hnp.arrays(np.float64, st.integers(0, 40), elements=UNIT)
TEST_LEVEL = 1e-3  # the chance that a simulation below fails although the promise holds


def by_starts(returns, level, high):
    """M after every episode as a sum over starting points, in rationals."""
    returns, level, high = [Fraction(g) for g in returns], Fraction(level), Fraction(high)
    seen = []
    for t in range(len(returns)):
        total = Fraction(0)
        for share, s in itertools.product(SHARES, range(t + 1)):
            stake = Fraction(share) / (high - level)
            total += math.prod(1 + stake * (level - g) for g in returns[s : t + 1])
        seen.append(total / len(SHARES))
    return seen


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, st.integers(0, 9), elements=UNIT), st.floats(-1, 0.95))
def test_it_is_the_sum_over_all_starting_points(returns, level):
    seen = detect(returns, level, 1.0, within=100, alpha=0.1)
    exact = by_starts(returns, level, 1.0)
    assert np.allclose(np.exp(seen.evidence), [float(m) for m in exact], rtol=1e-11)


@given(RETURNS, st.floats(0.05, 0.95))
def test_it_is_the_recursion(returns, level):
    capital = np.zeros(len(SHARES))
    stakes = np.array(SHARES) / (1 - level)
    for g, log in zip(
        returns, detect(returns, level, 1.0, within=9, alpha=0.1).evidence, strict=True
    ):
        capital = (capital + 1) * (1 + stakes * (level - g))
        assert math.isclose(math.exp(log), capital.mean(), rel_tol=1e-10)


@given(RETURNS, st.integers(0, 40), st.floats(0.05, 0.95))
def test_a_longer_log_goes_on_to_the_same_answer(returns, cut, level):
    whole = detect(returns, level, 1.0, within=20, alpha=0.5)
    part = detect(returns[:cut], level, 1.0, within=20, alpha=0.5)
    assert (whole.evidence[:cut] == part.evidence).all()
    if part.alarm is not None:
        assert (part.alarm, part.since) == (whole.alarm, whole.since)
    elif whole.alarm is not None:
        assert whole.alarm >= cut


@given(RETURNS, st.floats(0.05, 0.9), st.floats(0.1, 100), st.floats(-100, 100))
def test_units_do_not_matter(returns, level, scale, shift):
    ours = detect(returns, level, 1.0, within=20, alpha=0.5)
    high = scale + shift
    moved = np.minimum(returns * scale + shift, high)
    theirs = detect(moved, level * scale + shift, high, within=20, alpha=0.5)
    assert np.allclose(ours.evidence, theirs.evidence, atol=1e-8)


@given(RETURNS, st.floats(0.05, 0.9))
def test_lower_returns_are_never_less_evidence(returns, level):
    ours = detect(returns, level, 1.0, within=20, alpha=0.5).evidence
    lower = detect(returns * 0.9, level, 1.0, within=20, alpha=0.5).evidence
    assert (lower >= ours - 1e-12).all()


@pytest.mark.parametrize("chance", [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("within", [3, 6, 9])
def test_the_promise_holds_exactly_in_small_worlds(chance, within):
    """All sequences of a coin whose mean is the level: alarms have the chance of the theorem."""
    for alpha in (0.9, 0.5, 0.2):
        wrong = Fraction(0)
        for coins in itertools.product((0, 1), repeat=within):
            seen = detect(np.array(coins, float), float(chance), 1.0, within=within, alpha=alpha)
            heads = sum(coins)
            if seen.alarm is not None:
                wrong += chance**heads * (1 - chance) ** (within - heads)
        assert wrong <= Fraction(alpha)


def test_a_logger_of_nothing_and_an_adversary_who_looks_at_the_past():
    """The theorem asks for conditional means only: one that bets on the capital changes nothing.

    The spread of each coin depends on the evidence so far, with a mean of exactly the level; by
    enumeration of all 2⁸ paths.
    """
    within, alpha, level = 8, 0.3, 0.5
    wrong = 0.0
    for signs in itertools.product((-1, 1), repeat=within):
        returns = list[float]()
        for sign in signs:
            so_far = detect(np.array(returns), level, 1.0, within=within, alpha=alpha).evidence
            spread = 0.5 if not returns or so_far[-1] > 0 else 0.05
            returns.append(level + sign * spread)
        seen = detect(np.array(returns), level, 1.0, within=within, alpha=alpha)
        wrong += (seen.alarm is not None) / 2**within
    assert wrong <= alpha


def alarms(draw, level, high, *, runs, within=200, alpha=0.1, seed=0):
    """The number of runs with an alarm among the first episodes."""
    rng = np.random.default_rng(seed)
    return sum(
        detect(draw(rng, within), level, high, within=within, alpha=alpha).alarm is not None
        for _ in range(runs)
    )


DRAWS = {
    "coin": (lambda rng, n: rng.binomial(1, 0.5, n).astype(float), 0.5, 1.0),
    "nearly always": (lambda rng, n: rng.binomial(1, 0.98, n).astype(float), 0.98, 1.0),
    "rare disaster": (lambda rng, n: np.where(rng.random(n) < 0.01, -40.0, 1.0), 0.59, 1.0),
    "uniform": (lambda rng, n: rng.random(n), 0.5, 1.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_false_alarms_are_as_rare_as_promised(name):
    """400 runs each, the mean at the level; the test errs in 1 of 1,000 at exactly α."""
    draw, level, high = DRAWS[name]
    wrong = alarms(draw, level, high, runs=400)
    assert wrong <= binom.ppf(1 - TEST_LEVEL, 400, 0.1)


def test_the_mean_run_to_a_false_alarm_is_as_long_as_promised():
    """A = 50: runs of fair coins last 50 or longer on average (3 standard errors for luck)."""
    rng = np.random.default_rng(1)
    runs = []
    for _ in range(200):
        alarm = detect(
            rng.binomial(1, 0.5, 2_000).astype(float), 0.5, 1.0, within=5, alpha=0.1
        ).alarm
        runs.append(2_000 if alarm is None else alarm + 1)
    assert np.mean(runs) + 3 * np.std(runs) / math.sqrt(200) > 50


def test_a_fall_is_found_soon_and_its_start_is_told():
    """From .5 to .25 after 100 episodes, a level of .45 and A = 10,000."""
    rng = np.random.default_rng(2)
    delays, starts = [], []
    for _ in range(100):
        coins = np.concatenate([rng.binomial(1, 0.5, 100), rng.binomial(1, 0.25, 400)])
        seen = detect(coins.astype(float), 0.45, 1.0, within=1_000, alpha=0.1)
        if seen.alarm is not None and seen.alarm >= 100:
            delays.append(seen.alarm - 99)
            starts.append(seen.since - 100)
    assert len(delays) >= 95
    assert 30 <= np.median(delays) <= 100
    assert abs(np.median(starts)) <= 15


@pytest.mark.thorough
def test_a_level_that_is_a_mean_breaks_it_and_a_lower_bound_does_not():
    """The mean of 100 old episodes: more than α; the lower bound of `lowest_season`: within α."""
    rng = np.random.default_rng(3)
    by_mean = by_bound = 0
    for _ in range(400):
        old = rng.binomial(1, 0.5, 100).astype(float)
        new = rng.binomial(1, 0.5, 1_000).astype(float)
        bound = lowest_season(old, 1, 0.0, 0.05)
        by_mean += detect(new, old.mean(), 1.0, within=1_000, alpha=0.05).alarm is not None
        by_bound += detect(new, bound, 1.0, within=1_000, alpha=0.05).alarm is not None
    assert by_mean > binom.ppf(1 - TEST_LEVEL, 400, 0.1)  # twice what was promised, and more
    assert by_bound <= binom.ppf(1 - TEST_LEVEL, 400, 0.1)  # α and δ of the level


def seasonal(n, swing):
    """The mean of each of n episodes: .5 ± swing, 400 episodes a year."""
    return 0.5 + swing * np.sin(2 * np.pi * np.arange(n) / 400)


@pytest.mark.thorough
def test_seasons_break_a_level_but_not_that_of_the_lowest_nor_a_holdout():
    rng = np.random.default_rng(4)
    naive = lowest = pairs = 0
    for _ in range(100):
        old = rng.binomial(1, seasonal(1_200, 0.2)).astype(float)
        mean = seasonal(1_000, 0.2)
        new = rng.binomial(1, mean).astype(float)
        held = rng.random(1_000) < 0.2
        seasons = lowest_season(old, 3 * 4, 0.0, 0.05)
        every = lowest_season(old, 1, 0.0, 0.05)
        naive += detect(new, every, 1.0, within=1_000, alpha=0.05).alarm is not None
        lowest += detect(new, seasons, 1.0, within=1_000, alpha=0.05).alarm is not None
        gains, _ = paired(new, held)
        pairs += detect(gains, 0.0, 1.0, within=1_000, alpha=0.05).alarm is not None
    assert naive > 30  # of 100, by seasons alone; 10 were promised at most
    assert lowest <= binom.ppf(1 - TEST_LEVEL, 100, 0.1)
    assert pairs <= binom.ppf(1 - TEST_LEVEL, 100, 0.05)


def test_a_holdout_finds_a_gain_that_is_gone_whatever_the_season():
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(50):
        held = rng.random(2_000) < 0.3
        gain = np.where(np.arange(2_000) < 500, 0.25, -0.1)
        mean = seasonal(2_000, 0.1) + np.where(held, 0.0, gain)
        gains, _ = paired(rng.binomial(1, mean).astype(float), held)
        found += detect(gains, 0.2, 1.0, within=1_000, alpha=0.1).alarm is not None
    assert found >= 45


@given(RETURNS, st.data())
def test_pairs_are_blocks_before_an_episode_of_the_holdout(returns, data):
    held = data.draw(hnp.arrays(np.bool_, returns.size))
    block, expected, at = [], [], []
    for place, (g, out) in enumerate(zip(returns, held, strict=True)):
        if not out:
            block.append(g)
        elif block:
            expected.append(sum(block) / len(block) - g)
            at.append(place)
            block = []
    gains, places = paired(returns, held)
    assert places.tolist() == at
    assert np.allclose(gains, expected, atol=1e-12)
    assert (np.abs(gains) <= 1 + 1e-12).all()


@given(hnp.arrays(np.float64, 40, elements=UNIT), st.integers(1, 12))
def test_the_lowest_season_is_below_each(returns, seasons):
    bound = lowest_season(returns, seasons, 0.0, 0.1)
    share = 0.1 / seasons
    assert all(bound <= betting(part, 0.0, share) for part in np.array_split(returns, seasons))
    assert bound <= lowest_season(returns, seasons, 0.0, 0.2)


def test_nothing_is_seen_in_no_episodes():
    seen = detect(np.zeros(0), 0.5, 1.0, within=1_000, alpha=0.1)
    assert seen.goal == pytest.approx(math.log(10_000))
    assert (seen.evidence.size, seen.alarm) == (0, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": 1.0}, "level is 1, expected less than 1, the highest return"),
        ({"within": 0}, "within is 0, expected a whole number of 1 or more"),
        ({"alpha": 1.0}, "alpha is 1.0, expected a number above 0 and below 1"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    given = {"returns": np.zeros(3), "level": 0.5, "within": 10, "alpha": 0.1} | change
    with pytest.raises(InvalidParameter, match=words):
        detect(given["returns"], given["level"], 1.0, within=given["within"], alpha=given["alpha"])


def test_more_seasons_than_episodes_are_refused():
    with pytest.raises(InvalidParameter, match="seasons is 5, expected 1 to 4, the episodes of"):
        lowest_season(np.zeros(4), 5, 0.0, 0.1)
