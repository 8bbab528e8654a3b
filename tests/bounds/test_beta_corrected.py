"""The mended beta bound: exact failure rates of splits, simulated ones of rows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv
from scipy.stats import norm

from surestep.bounds import (
    BOUNDS,
    BetaCorrected,
    BetaCorrectedPosterior,
    ProblemSize,
    n_wedge,
    zeta,
)
from surestep.bounds.beta_corrected import RowCounts, row_errors, split_error
from surestep.errors import InvalidParameter

BOTH = pytest.mark.parametrize("bound", [BetaCorrected(), BetaCorrectedPosterior()], ids=repr)
SIZE = ProblemSize(25, 4, 0.1, value_bound=1.0, discount=0.95)


def outcomes(n, p):
    """The chances of 0 … n of n draws."""
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


@pytest.mark.parametrize("n", [1, 5, 27, 146])
@pytest.mark.parametrize("p", [0.001, 0.03, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("share", [0.3, 0.01])
def test_the_error_of_a_split_is_exceeded_at_most_as_often_as_it_may_be(n, p, share):
    k, chance = np.arange(n + 1), outcomes(n, p)
    error = 2 * np.abs(k / n - p)
    own = split_error(k, np.full(n + 1, n), share, BetaCorrected.prior)
    assert chance[error > own].sum() <= share
    before = float(BetaCorrected().radius(n, ProblemSize(1, 1, share)))
    assert chance[error > before].sum() <= share


@pytest.mark.parametrize("n", [1, 5, 27, 146])
def test_given_the_data_the_posterior_error_is_exceeded_with_its_share_at_most(n):
    k, share = np.arange(n + 1), 0.05
    half = split_error(k, np.full(n + 1, n), share, BetaCorrectedPosterior.prior) / 2
    low, high = np.maximum(k / n - half, 0), np.minimum(k / n + half, 1)
    inside = betainc(k + 1, n - k + 1, high) - betainc(k + 1, n - k + 1, low)
    assert (1 - inside <= share + 1e-12).all()


@BOTH
@given(n=st.integers(1, 400), delta=st.sampled_from([0.5, 1e-2, 1e-5, 1e-9]))
def test_the_radius_is_above_the_error_of_every_outcome_and_not_by_much(bound, n, delta):
    errors = split_error(np.arange(n + 1), np.full(n + 1, n), delta, bound.prior)
    radius = float(bound.radius(n, ProblemSize(1, 1, delta)))
    assert radius >= errors.max() * (1 - 1e-12)
    if n >= 27 and delta <= 1e-2:
        assert radius <= 1.13 * errors.max()


@pytest.mark.parametrize("visits", [1, 2, 10, 1000])
def test_radii_are_those_of_the_proof(visits):
    # At 25 states and 4 actions, one split has the share 0.1 / 100².
    size, share = ProblemSize(25, 4, 0.1), 0.1 / 100**2
    z = norm.isf(share / 2)
    direct = min(z / math.sqrt(visits) + 2 / visits, math.sqrt(2 * math.log(2 / share) / visits), 2)
    assert float(BetaCorrected().radius(visits, size)) == pytest.approx(direct, rel=1e-12)
    after = min(z / math.sqrt(visits + 1) + 2 / (visits + 1), 2)
    assert float(BetaCorrectedPosterior().radius(visits, size)) == pytest.approx(after, rel=1e-12)
    assert BetaCorrected().loss_factor(0.75) == BetaCorrectedPosterior().loss_factor(0.75) == 16.0


@BOTH
def test_no_row_errs_by_more_than_two(bound):
    # Eight successors seen once each: seven splits of which none says much.
    splits = [(4, 8, 1), (2, 4, 1), (1, 2, 1)]  # k, n, P̂ of all splits on that level
    k, n, reach = (np.array(part) for part in zip(*splits, strict=True))
    assert (reach * split_error(k, n, 0.001 / 7, bound.prior)).sum() > 2
    assert float(bound.row_error([1] * 8, 0.001)) == 2
    assert float(bound.row_error([0, 0], 0.001)) == 2
    assert float(bound.row_error([0], 0.001)) == 0


@BOTH
def test_it_is_larger_than_the_published_one_and_can_be_inverted(bound):
    for visits in (10, 27, 146, 10**4, 10**9):
        assert zeta(bound, visits, SIZE) > zeta("beta", visits, SIZE)
    assert zeta(bound, 146, SIZE) < zeta("2s", 146, SIZE)
    found = n_wedge(bound, 0.1, SIZE)
    assert zeta(bound, found, SIZE) <= 0.1 < zeta(bound, found - 1, SIZE)
    radii = bound.radius(np.arange(1, 3000), ProblemSize(25, 4, 0.1))
    assert (np.diff(radii) <= 0).all()
    assert BOUNDS["beta"].radius(10**12, ProblemSize(25, 4, 0.1)) == pytest.approx(
        bound.radius(10**12, ProblemSize(25, 4, 0.1)), rel=1e-5
    )


def test_where_the_published_width_fails_the_mended_one_holds():
    # N_β = 10 of the paper's Wet Chicken, at its δ_T: a chance near 1, all visits alike.
    size = ProblemSize(25, 5, 0.1)
    share, n = math.exp(size.log_split_share), 10
    published, mended = (
        float(bound.radius(n, size)) for bound in (BOUNDS["beta"], BetaCorrected())
    )
    rates = []
    for radius in (published, mended):
        worst = 0.0
        for p in np.linspace(0.0005, 0.9995, 1999):
            error = 2 * np.abs(np.arange(n + 1) / n - p)
            worst = max(worst, outcomes(n, p)[error > radius].sum())
        rates.append(worst / share)
    assert rates[0] > 2
    assert rates[1] <= 1


def tree_splits(first, last):
    """The splits of the tree over first … last − 1: blocks of powers of 2 are halved."""
    if last - first > 1:
        half = 2 ** ((last - first - 1).bit_length() - 1)
        yield first, first + half, last
        yield from tree_splits(first, first + half)
        yield from tree_splits(first + half, last)


@BOTH
@given(times=st.lists(st.integers(0, 20), min_size=1, max_size=13))
def test_the_error_of_a_row_is_the_sum_over_its_splits(bound, times):
    times = np.array(times)
    total, expected = times.sum(), 0.0
    share = 0.1 / max(times.size - 1, 1)
    for first, middle, last in tree_splits(0, times.size):
        k, n = times[first:middle].sum(), times[first:last].sum()
        if n > 0:
            error = split_error(np.array([k]), np.array([n]), share, bound.prior)[0]
            expected += n / total * error
    if total == 0 and times.size > 1:
        expected = 2.0
    assert float(bound.row_error(times, 0.1)) == pytest.approx(min(expected, 2.0))
    stacked = bound.row_error(np.stack([times, times[::-1]]), 0.1)
    assert stacked[0] == float(bound.row_error(times, 0.1))


@BOTH
@given(
    rows=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=11), min_size=1, max_size=5),
    unlisted=st.booleans(),
)
def test_rows_of_different_supports_have_the_errors_they_have_alone(bound, rows, unlisted):
    listed = [[i for i, n in enumerate(row) if n > 0 or not unlisted] for row in rows]
    found = row_errors(
        bound,
        RowCounts(
            np.cumsum([0, *map(len, listed)]),
            np.array([i for places in listed for i in places], int),
            np.array([row[i] for row, at in zip(rows, listed, strict=True) for i in at], int),
            np.array([len(row) for row in rows]),
        ),
        0.1,
    )
    alone = [float(bound.row_error(row, 0.1)) for row in rows]
    np.testing.assert_allclose(found, alone, rtol=1e-12)


def test_a_row_of_very_many_successors_costs_as_much_as_those_that_were_seen():
    support, left, right = 2**31 - 1, 7 * 10**6, 3 * 10**6
    rows = RowCounts(
        np.array([0, 2]), np.array([3, support - 1]), np.array([left, right]), np.array([support])
    )
    found = float(row_errors(BetaCorrected(), rows, 0.1)[0])
    # After the first split, either path has 30 more that were passed on one side only; the last
    # one of the right path has no other side.
    share = 0.1 / (support - 1)

    def error(k, n):
        return (
            n
            / (left + right)
            * split_error(np.array([k]), np.array([n]), share, BetaCorrected.prior)
        )

    expected = error(left, left + right) + 30 * error(0, left) + 29 * error(0, right)
    assert found == pytest.approx(expected[0], rel=1e-9)


def too_often(failures, trials, delta, alarm=1e-6):
    """Whether so many failures are impossible at a rate of δ, but for a false alarm of 1e-6."""
    return failures > 0 and betaincinv(failures, trials - failures + 1, alarm) > delta


@pytest.mark.parametrize("visits", [10, 146, 2000])
@pytest.mark.parametrize("successors", [2, 3, 10, 100])
@pytest.mark.parametrize("even", [True, False])
def test_rows_err_by_more_at_most_as_often_as_they_may(visits, successors, even):
    rng, delta, trials = np.random.default_rng(visits + successors), 0.2, 1000
    chances = (
        np.full(successors, 1 / successors) if even else rng.dirichlet(np.full(successors, 0.3))
    )
    times = rng.multinomial(visits, chances, trials)
    errors = np.abs(times / visits - chances).sum(axis=1)
    missed = int((errors > BetaCorrected().row_error(times, delta)).sum())
    assert not too_often(missed, trials, delta)
    if successors == 2 and visits == 2000:
        assert missed > 50  # with one split there is little to give away


@pytest.mark.parametrize("successors", [2, 5, 64])
def test_rows_drawn_from_the_prior_err_by_more_at_most_as_often_as_they_may(successors):
    rng, delta, trials, visits = np.random.default_rng(successors), 0.2, 600, 50
    chances = np.ones((trials, successors))
    for first, middle, last in tree_splits(0, successors):
        share = rng.random((trials, 1))
        chances[:, first:middle] *= share
        chances[:, middle:last] *= 1 - share
    times = np.array([rng.multinomial(visits, row) for row in chances])
    errors = np.abs(times / visits - chances).sum(axis=1)
    missed = int((errors > BetaCorrectedPosterior().row_error(times, delta)).sum())
    assert not too_often(missed, trials, delta)


@BOTH
def test_bad_counts_and_terms_are_refused(bound):
    for times in ([], [3, -1], [0.5], "many", 3):
        with pytest.raises(InvalidParameter, match="counts"):
            bound.row_error(times, 0.1)
    for delta in (0.0, 1.0, None, "0.1"):
        with pytest.raises(InvalidParameter, match="delta is"):
            bound.row_error([3, 4], delta)
    with pytest.raises(InvalidParameter, match="branching is 2"):
        bound.radius(10, ProblemSize(25, 4, 0.1, branching=2))
