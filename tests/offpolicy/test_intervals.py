"""Lower bounds: their formulas against independent ones, and how often the mean is below them.

A proved bound may fail with probability δ. Tests of that draw with fixed seeds and allow as many
failures as a bound that fails exactly that often would exceed once in 10⁶ tests.

Our betting bound against what others publish for the same bets.

The paper of Waudby-Smith and Ramdas (2023) prints no numbers for concrete data. So for *their*
stakes our capital is compared with what the authors' package says, and with a closed form of
another one; for our stakes, which know no upper bound, `betting` is compared with 50 digits.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from support.failures import allowed_failures
from support.junk import JUNK
from support.logs import one_step_log
from support.oracles import value_of_steps
from surestep import FiniteMDP, Pairs, Policy, SurestepError, sample_log
from surestep.errors import InvalidParameter
from surestep.offpolicy import (
    ESTIMATORS,
    MeanEstimate,
    RatioEstimate,
    bca_bootstrap,
    betting,
    choose_threshold,
    empirical_bernstein,
    hoeffding,
    importance_weights,
    paired_returns,
    paired_rewards,
    student_t,
    truncated_bernstein,
)
from surestep.offpolicy.intervals import (
    LARGEST_SHARE,
    accelerated,
    bias_correction,
    largest_refuted,
    predictable_stakes,
    share_interval,
)

DELTAS = st.sampled_from([0.5, 0.1, 0.05, 1e-3, 1e-9, 0.9])
UNIT = st.lists(st.just(0.0) | st.floats(1e-9, 1), min_size=2, max_size=12)
TWO = [0.5, 0.6]
TINY = st.lists(st.floats(0, 1), min_size=2, max_size=5)
# Computed with confseq 0.0.11 (the authors' package; gostevehoward/confseq on GitHub) from VALUES:
# lambda_predmix_eb(x, alpha=0.05, fixed_n=20), then betting_mart(x, m, theta=1, trunc_scale=0.75,
# m_trunc=True), one-sided as ours is, of which the maximum is given for each m; and the last lower
# end of betting_cs(..., theta=1, breaks=1000), one step of its grid below the first m kept.
VALUES = [
    0.62, 0.31, 0.88, 0.45, 0.93, 0.07, 0.71, 0.56, 0.84, 0.39,
    0.67, 0.98, 0.22, 0.75, 0.51, 0.90, 0.48, 0.63, 0.81, 0.34,
]  # fmt: skip
CONFSEQ_STAKES = [
    1.0946656610223948, 1.5370637216804974, 1.7871756093739155, 1.7926462799522442,
    1.9768507155573705, 1.9300679649474302, 1.7299098294239077, 1.8198835550947485,
    1.9302763575266493, 1.9502599593457093, 2.0050327902498823, 2.083343371325938,
    2.007561135949992, 1.9558226806512071, 2.0018075939699744, 2.062031554223276,
    2.0480606984982774, 2.095388497900135, 2.15201865844162, 2.173020092028089,
]  # fmt: skip
CONFSEQ_CAPITAL = {0.2: 37610.91902341657, 0.4: 137.18639028138665, 0.5: 5.886054554463567}
CONFSEQ_LOWER, CONFSEQ_GRID = 0.458, 0.001


@given(values=UNIT, delta=DELTAS, low=st.integers(-3, 0), high=st.integers(1, 4))
def test_hoeffding_is_the_bound_that_its_inequality_gives(values, delta, low, high):
    # P(mean − μ ≥ ε) ≤ exp(−2nε²/(high − low)²): at the ε of the bound this is δ.
    epsilon = mpmath.mpf(np.mean(values)) - mpmath.mpf(hoeffding(values, low, high, delta))
    chance = mpmath.exp(-2 * len(values) * epsilon**2 / (high - low) ** 2)
    assert float(chance) == pytest.approx(delta, rel=1e-9)


@given(values=UNIT, delta=DELTAS, threshold=st.floats(0.1, 2), low=st.integers(-2, 0))
def test_truncated_bernstein_is_the_published_double_sum(values, delta, threshold, low):
    # Thomas, Theocharous and Ghavamzadeh (2015), Theorem 1, for X = value − low ≥ 0, with all
    # c_i = threshold − low and the sum over all pairs of values.
    n, c = len(values), mpmath.mpf(threshold) - low
    y = [min(mpmath.mpf(x) - low, c) for x in values]
    double_sum = mpmath.fsum((a / c - b / c) ** 2 for a in y for b in y)
    log_term = mpmath.log(mpmath.mpf(2) / mpmath.mpf(delta))
    bound = (c / n) * (
        mpmath.fsum(y) / c
        - 7 * n * log_term / (3 * (n - 1))
        - mpmath.sqrt(log_term / (n - 1) * double_sum)
    )
    found = truncated_bernstein(values, low, threshold, delta)
    assert found == pytest.approx(float(low + bound), rel=1e-10, abs=1e-10)
    if threshold >= 1:
        assert empirical_bernstein(values, low, threshold, delta) == pytest.approx(found, rel=1e-12)


@given(values=UNIT, delta=DELTAS, low=st.sampled_from([0.0, -0.5]))
def test_the_chosen_threshold_is_the_best_of_the_training_values(values, delta, low):
    chosen = choose_threshold(values, low, len(values), delta)
    best = max(truncated_bernstein(values, low, x, delta) for x in [*values, low])
    assert truncated_bernstein(values, low, chosen, delta) == pytest.approx(best, abs=1e-9)
    assert chosen in [*values, low]


def test_more_values_to_come_allow_a_higher_threshold():
    values = np.random.default_rng(0).lognormal(size=500)
    chosen = [choose_threshold(values, 0.0, size, 0.05) for size in (10, 100, 1000, 10**6)]
    assert chosen == sorted(chosen)
    assert chosen[0] < 0.1
    assert chosen[-1] > 10
    assert choose_threshold(values, 0.0, 1, 0.05) == 0.0  # one value tells nothing but the floor


@given(values=UNIT.filter(lambda x: np.std(x) > 1e-3), delta=DELTAS)
def test_student_t_is_that_of_a_statistics_package(values, delta):
    test = scipy.stats.ttest_1samp(values, 0.0, alternative="greater")
    expected = test.confidence_interval(1 - delta).low
    assert student_t(values, delta) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.025, 0.005])
@pytest.mark.parametrize("kind", ["normal", "skewed", "ties"])
def test_bca_is_that_of_a_statistics_package(kind, delta):
    rng = np.random.default_rng(5)
    values = {
        "normal": rng.normal(size=40),
        "skewed": rng.lognormal(sigma=1.5, size=40),
        "ties": rng.integers(0, 3, 25).astype(float),
    }[kind]
    expected = scipy.stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=3000,
        confidence_level=1 - delta,
        alternative="greater",
        method="BCa",
        rng=np.random.default_rng(7),
    ).confidence_interval.low
    found = bca_bootstrap(MeanEstimate(values), delta, np.random.default_rng(7), 3000)
    # Adding up in another order moves ties, and with them the bias correction, a little.
    assert found == pytest.approx(expected, rel=1e-9 if kind != "ties" else 0.03)


def test_bca_of_a_ratio_resamples_numerator_and_denominator_together():
    rng = np.random.default_rng(3)
    weight = rng.lognormal(size=60)
    earned = weight * rng.normal(2.0, 1.0, 60)

    def ratio(x, w, axis):
        return x.sum(axis=axis) / w.sum(axis=axis)

    package = scipy.stats.bootstrap(
        (earned, weight),
        ratio,
        paired=True,
        n_resamples=2000,
        confidence_level=0.95,
        alternative="greater",
        method="BCa",
        rng=np.random.default_rng(1),
    )
    estimate = RatioEstimate(np.arange(61), earned, weight)
    theta = earned.sum() / weight.sum()
    assert estimate.value == pytest.approx(theta, rel=1e-12)
    found = bca_bootstrap(estimate, 0.05, np.random.default_rng(1))
    # The package takes the acceleration from leaving episodes out; here is Efron's derivative.
    influence = earned - theta * weight
    a = scipy.stats.skew(influence) / (6 * math.sqrt(influence.size))
    normal = scipy.stats.norm
    bias = normal.ppf((package.bootstrap_distribution < theta).mean())
    shift = bias + normal.ppf(0.05)
    level = normal.cdf(bias + shift / (1 - a * shift))
    expected = np.quantile(package.bootstrap_distribution, level)
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_bootstrap_of_equal_values_is_their_value():
    found = bca_bootstrap(MeanEstimate(np.full(9, 0.1)), 0.05, np.random.default_rng(0))
    assert found == pytest.approx(0.1, rel=1e-12)


def test_where_all_draws_lie_on_one_side_the_bias_is_that_of_half_a_draw():
    draws = np.arange(1.0, 11.0)
    assert bias_correction(draws, 0.0) == pytest.approx(scipy.stats.norm.ppf(0.05))
    assert bias_correction(draws, 11.0) == pytest.approx(scipy.stats.norm.ppf(0.95))
    assert bias_correction(draws, 5.5) == 0.0
    assert bias_correction(draws, 2.0) == pytest.approx(scipy.stats.norm.ppf(0.15))  # half a tie


def test_beyond_the_pole_of_the_acceleration_all_draws_lie_on_one_side():
    assert accelerated(0.3, -2.0, -0.5) == accelerated(0.3, -4.0, -0.5) == 0.0
    assert accelerated(0.3, 2.0, 0.5) == accelerated(0.3, 4.0, 0.5) == 1.0
    assert accelerated(0.3, -1.0, 0.5) == pytest.approx(scipy.stats.norm.cdf(0.3 - 1 / 1.5))


def test_the_fewest_resamples_are_one_over_delta():
    values = MeanEstimate([0.0, 1.0, 5.0])
    rng = np.random.default_rng(0)
    for delta, resamples in ((0.1, 10), (0.001, 1000), (1 / 3, 3)):
        assert 0.0 <= bca_bootstrap(values, delta, rng, resamples) <= 5.0
        words = f"is {resamples - 1}, expected at least 1/delta = {resamples}: fewer do not"
        with pytest.raises(InvalidParameter, match=words):
            bca_bootstrap(values, delta, rng, resamples - 1)


def test_many_episodes_are_resampled_in_parts(monkeypatch):
    values = np.random.default_rng(0).normal(size=50)
    whole = bca_bootstrap(MeanEstimate(values), 0.1, np.random.default_rng(2), 410)
    monkeypatch.setattr("surestep.offpolicy.intervals.CELLS", 1000)  # 20 a part, and a rest
    parts = bca_bootstrap(MeanEstimate(values), 0.1, np.random.default_rng(2), 410)
    assert parts == pytest.approx(whole, rel=1e-12)


def largest_capital(values, low, delta, mean):
    """max_t K_t(m), by going through the values one by one, knowing only those before."""
    level = mpmath.log(1 / mpmath.mpf(delta))
    capital = largest = mpmath.mpf(1)
    for i, x in enumerate(values):
        past = [mpmath.mpf(0), *(mpmath.mpf(y) - low for y in values[:i])]
        average = mpmath.fsum(past) / len(past)
        variance = mpmath.fsum((y - average) ** 2 for y in past) / len(past)
        stake = mpmath.sqrt(2 * level / (len(values) * variance)) if variance > 0 else 0
        stake = min(stake, LARGEST_SHARE / (mean - low)) if mean > low else stake
        capital *= 1 + stake * (mpmath.mpf(x) - mean)
        largest = max(largest, capital)
    return largest


@given(values=UNIT, delta=DELTAS, low=st.sampled_from([0.0, -1.0]))
def test_the_bound_is_where_the_capital_of_a_gambler_reaches_its_goal(values, delta, low):
    found = betting(values, low, delta)
    with mpmath.workdps(50):
        goal = 1 / mpmath.mpf(delta)
        if found > low:
            assert largest_capital(values, low, delta, mpmath.mpf(found)) >= goal
        above = mpmath.mpf(found) + mpmath.mpf(10) ** -6 * (1 + abs(found))
        assert largest_capital(values, low, delta, above) < goal


@given(values=UNIT, later=UNIT, place=st.integers(0, 11))
def test_a_stake_depends_on_earlier_values_only(values, later, place):
    size = min(len(values), len(later))
    place = min(place, size)
    changed = [*values[:place], *later[place:size]]
    first, second = (predictable_stakes(np.array(x), 3.0) for x in (values[:size], changed))
    assert first[: place + 1].tolist() == second[: place + 1].tolist()


@given(
    values=st.lists(st.integers(0, 16).map(lambda x: x / 16), min_size=2, max_size=12),
    delta=DELTAS,
    factor=st.sampled_from([1e-100, 0.25, 3.0, 1e100]),
    shift=st.sampled_from([0.0, 0.5, -4.0]),
)
def test_bounds_move_with_the_values(values, delta, factor, shift):
    scale = factor * (1 + abs(shift))
    moved = factor * (np.array(values) + shift)
    low, high = factor * shift, factor * (1 + shift)
    for bound in (
        lambda x, low, high: betting(x, low, delta),
        lambda x, low, high: hoeffding(x, low, high, delta),
        lambda x, low, high: empirical_bernstein(x, low, high, delta),
        lambda x, low, high: student_t(x, delta),
    ):
        expected = factor * (bound(values, 0.0, 1.0) + shift)
        assert bound(moved, low, high) == pytest.approx(expected, rel=1e-6, abs=1e-6 * scale)


def test_values_outside_their_bounds_by_rounding_are_moved_onto_them():
    just_below, just_above = np.nextafter(-3.0, -4.0), np.nextafter(1.0, 2.0)
    for bound in (hoeffding, empirical_bernstein):
        found = bound([just_below, 0.5, just_above], -3.0, 1.0, 0.1)
        assert found == bound([-3.0, 0.5, 1.0], -3.0, 1.0, 0.1)
    assert betting([1.0, just_below, 2.0], -3.0, 0.9) == betting([1.0, -3.0, 2.0], -3.0, 0.9)


def test_betting_refutes_nothing_when_nothing_is_above_the_floor():
    assert betting([0.0] * 50, 0.0, 0.05) == 0.0
    assert betting([7.0], 0.0, 0.05) == 0.0
    assert betting([-2.0, -2.0], -2.0, 0.05) == -2.0


def test_betting_needs_no_upper_bound_and_is_close_to_the_mean_of_many_values():
    values = np.random.default_rng(1).lognormal(-0.5, 1.0, 20_000)  # mean 1, deviation 1.3
    found = betting(values, 0.0, 0.05)
    assert 1 - 4 * 1.3 * math.sqrt(2 * math.log(20) / values.size) < found < 1.0


DISTRIBUTIONS = {
    "rare": (lambda rng, shape: (rng.random(shape) < 0.05) * 1.0, 0.05),
    "coin": (lambda rng, shape: rng.integers(0, 2, shape) * 1.0, 0.5),
    "often": (lambda rng, shape: (rng.random(shape) < 0.95) * 1.0, 0.95),
    "uniform": (lambda rng, shape: rng.random(shape), 0.5),
}
PROVED = {
    "hoeffding": lambda x, delta: hoeffding(x, 0.0, 1.0, delta),
    "empirical_bernstein": lambda x, delta: empirical_bernstein(x, 0.0, 1.0, delta),
    "truncated_bernstein": lambda x, delta: truncated_bernstein(x, 0.0, 0.7, delta),
    "betting": lambda x, delta: betting(x, 0.0, delta),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("size", [2, pytest.param(8, marks=pytest.mark.slow), 60])
@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@pytest.mark.parametrize("name", PROVED)
def test_a_proved_bound_is_wrong_at_most_as_often_as_it_says(name, kind, size):
    draw, mean = DISTRIBUTIONS[kind]
    delta, number = 0.2, 400
    samples = draw(np.random.default_rng(size), (number, size))
    failures = sum(PROVED[name](values, delta) > mean for values in samples)
    assert failures <= allowed_failures(number, delta)


@pytest.mark.parametrize(
    "spread", [1.0, 3.0, *(pytest.param(s, marks=pytest.mark.slow) for s in (0.5, 2.0))]
)
def test_betting_holds_for_heavy_tails(spread):
    delta, number = 0.2, 400
    rng = np.random.default_rng(int(10 * spread))
    samples = rng.lognormal(-(spread**2) / 2, spread, (number, 40))  # mean 1
    failures = sum(betting(values, 0.0, delta) > 1.0 for values in samples)
    assert failures <= allowed_failures(number, delta)


def test_a_threshold_from_other_values_keeps_the_promise():
    delta, number = 0.2, 300
    rng = np.random.default_rng(11)
    failures = 0
    for _ in range(number):
        training, values = rng.lognormal(-0.5, 1.0, 30), rng.lognormal(-0.5, 1.0, 120)
        threshold = choose_threshold(training, 0.0, values.size, delta)
        failures += truncated_bernstein(values, 0.0, threshold, delta) > 1.0
    assert failures <= allowed_failures(number, delta)


def test_student_t_fails_exactly_as_often_as_it_says_for_normal_values():
    delta, number = 0.2, 3000
    samples = np.random.default_rng(2).normal(1.0, 3.0, (number, 6))
    failures = sum(student_t(values, delta) > 1.0 for values in samples)
    assert failures <= allowed_failures(number, delta)
    assert number - failures <= allowed_failures(number, 1 - delta)


@pytest.mark.thorough
def test_bounds_on_the_difference_of_two_policies_hold_from_end_to_end():
    P = np.zeros((3, 2, 3))
    P[0] = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]]
    P[1] = [[0.0, 0.0, 1.0], [0.125, 0.0, 0.875]]
    mdp = FiniteMDP.from_dense(P, [[0.0, 1.0], [-1.0, 2.0], [0.0, 0.0]], 0.5)
    behavior = Policy.from_dense(mdp, [[0.5, 0.5], [0.5, 0.5], [1, 0]])
    policy = Policy.from_dense(mdp, [[0.25, 0.75], [0.25, 0.75], [1, 0]])
    discount, horizon, delta, number = 0.5, 4, 0.2, 300
    ours, theirs = (
        value_of_steps(mdp, each, Fraction(discount), horizon) for each in (policy, behavior)
    )
    truth, steps = float(ours - theirs), sum(discount**t for t in range(horizon))
    rng, bounds = np.random.default_rng(4), np.zeros((number, 3))
    for i in range(number):
        log = sample_log(mdp, behavior, 60, horizon, rng)
        weights = importance_weights(log, policy, behavior)
        by_return = paired_returns(weights, discount, -steps).values
        by_reward = paired_rewards(weights, discount, -1.0, horizon).values
        bounds[i] = [
            betting(by_return, -3 * steps, delta),
            betting(by_reward, -3 * steps, delta),
            hoeffding(by_return, -3 * steps, 1.5**horizon * 3 * steps, delta),
        ]
    assert ((bounds > truth).sum(axis=0) <= allowed_failures(number, delta)).all()
    assert (bounds[:, :2].mean(axis=0) > truth - 0.6).all()  # and they say something
    assert truth > 0.3


@pytest.mark.slow
def test_asymptotic_bounds_of_all_estimators_are_about_right_with_many_episodes():
    # No promise: but with 300 easy episodes each should fail about as often as it says.
    pairs, rng = Pairs.full(2, 2), np.random.default_rng(8)
    policy, behavior = Policy.from_dense(pairs, [[0.3, 0.7], [1, 0]]), Policy.uniform(pairs)
    truth, delta, number = 0.3 * 1 + 0.7 * 3, 0.2, 200
    kinds = [kind for name, kind in ESTIMATORS.items() if name != "dr"]  # which needs a model
    failures = np.zeros((2, len(kinds)), int)
    for _ in range(number):
        action = rng.integers(0, 2, 300)
        log = one_step_log(pairs, action, np.where(action, 3.0, 1.0))
        weights = importance_weights(log, policy, behavior)
        for i, kind in enumerate(kinds):
            estimate = kind(weights, 0.9)
            failures[0, i] += student_t(estimate.values, delta) > truth
            failures[1, i] += bca_bootstrap(estimate, delta, rng, 200) > truth
    assert (failures <= allowed_failures(number, 0.25)).all()
    assert (number - failures <= allowed_failures(number, 0.85)).all()


@pytest.mark.parametrize(
    ("bound", "given", "words"),
    [
        (hoeffding, ([0, 1.5, 2], 0, 1, 0.1), "values[1] is 1.5, expected 0 to 1; 2 of 3 values"),
        (hoeffding, ([0.5], 0.0, 1.0, 0.0), "delta is 0.0, expected a number above 0"),
        (student_t, ([0.5], 0.1), "values have shape (1,), expected a flat array of at least"),
        (betting, ([[0.5]], 0.0, 0.1), "values have shape (1, 1), expected a flat array"),
        (betting, ([1e151], 0.0, 0.1), "values[0] is 1e+151, expected 0 to 1e+150"),
        (betting, ([0.5], -math.inf, 0.1), "low is -inf, expected a number within ±1e+150"),
        (betting, ([0.5], 0.0, 1.0), "delta is 1.0, expected a number above 0"),
        (truncated_bernstein, (TWO, 0.0, -1.0, 0.1), "threshold is -1.0, expected a number from"),
        (choose_threshold, (TWO, 0.0, 0, 0.1), "size is 0, expected a whole number of 1 or more"),
        (bca_bootstrap, (MeanEstimate(TWO), 0.1, None), "rng is None, expected a numpy.random"),
    ],
)
def test_what_gives_no_bound_is_refused_by_name(bound, given, words):
    with pytest.raises(InvalidParameter) as refusal:
        bound(*given)
    assert words in str(refusal.value)


@pytest.mark.one_quick
@pytest.mark.parametrize("delta", [0.05, 0.1])
@pytest.mark.parametrize("trials", [5, 60, 200])
@pytest.mark.parametrize("share", [1e-3, 0.01, 0.02, 0.3, 0.98, 0.999])
def test_a_share_is_covered_as_often_as_it_says_in_exact_binomial_sums(share, trials, delta):
    happened = np.arange(trials + 1)
    ends = [share_interval(k / trials, trials, delta) for k in happened]
    missed = [not low <= share <= high for low, high in ends]
    assert scipy.stats.binom(trials, share).pmf(happened) @ missed <= delta
    for k, span in zip(happened, ends, strict=True):
        known = scipy.stats.binomtest(int(k), trials).proportion_ci(1 - delta, "exact")
        assert span == pytest.approx((known.low, known.high), abs=1e-9)


@given(values=st.one_of(JUNK, UNIT, TINY), low=st.one_of(JUNK, st.just(0.0)), delta=JUNK | DELTAS)
def test_anything_gives_a_bound_or_is_refused(values, low, delta):
    for bound in (
        lambda: betting(values, low, delta),
        lambda: hoeffding(values, low, 1.0, delta),
        lambda: empirical_bernstein(values, low, 1.0, delta),
        lambda: truncated_bernstein(values, low, 1.0, delta),
        lambda: choose_threshold(values, low, 9, delta),
        lambda: student_t(values, delta),
    ):
        try:
            found = bound()
        except SurestepError:
            continue
        assert type(found) is float
        assert math.isfinite(found)


@pytest.mark.parametrize(("mean", "capital"), CONFSEQ_CAPITAL.items())
def test_the_capital_is_that_of_confseq_for_the_same_stakes(mean, capital):
    # m is refuted at exactly the levels that the largest capital reaches, and so is all below it.
    data, stakes = np.array(VALUES), np.array(CONFSEQ_STAKES)
    level = math.log(capital)
    assert largest_refuted(data, stakes, level - 1e-9) == pytest.approx(mean, abs=1e-8)
    assert largest_refuted(data, stakes, level - 1e-9) >= mean
    assert largest_refuted(data, stakes, level + 1e-9) < mean


def test_the_lower_end_is_that_of_confseq_for_the_same_stakes():
    lower = largest_refuted(np.array(VALUES), np.array(CONFSEQ_STAKES), math.log(20))
    assert CONFSEQ_LOWER <= lower <= CONFSEQ_LOWER + 2 * CONFSEQ_GRID


@pytest.mark.parametrize("value", [0.75, 0.9])
@pytest.mark.parametrize("stake", [0.25, 0.5])
def test_equal_values_and_a_fixed_stake_have_the_closed_form_of_shangrla(value, stake):
    # test_betting_mart of pbstark/SHANGRLA: the p-value of the mean 1/2 is 1 / (1 + λ(x − 1/2))^n.
    number, mean = 20, 0.5
    level = number * math.log1p(stake * (value - mean))
    found = largest_refuted(np.full(number, value), np.full(number, stake), level)
    assert found == pytest.approx(mean, abs=1e-12)
