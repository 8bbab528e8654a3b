"""How often claims are wrong, and how much they say, against direct counting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.experiments import (
    cell_summaries,
    family_summaries,
    first_certified,
    refuted,
    without_size,
)
from surestep.experiments.intervals import binomial_interval, lower_limit, upper_limit


def chance_of_at_least(successes, trials, rate):
    """P(X ≥ k) for a binomial X, term by term."""
    return math.fsum(
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k)
        for k in range(successes, trials + 1)
    )


@given(st.data(), st.integers(1, 40), st.sampled_from([1e-6, 0.01, 0.025, 0.3]))
def test_at_the_limit_the_count_has_the_chance_of_the_level(data, trials, level):
    successes = data.draw(st.integers(1, trials))
    low = lower_limit(successes, trials, level)
    assert chance_of_at_least(successes, trials, low) == pytest.approx(level, rel=1e-6)
    high = upper_limit(trials - successes, trials, level)  # the same with failures
    assert high == pytest.approx(1 - low, abs=1e-12)


def test_nothing_seen_and_nothing_else_seen():
    assert lower_limit(0, 50, 0.01) == 0.0
    assert upper_limit(50, 50, 0.01) == 1.0
    assert upper_limit(0, 50, 0.01) == pytest.approx(1 - 0.01 ** (1 / 50))


@given(st.integers(1, 25), st.floats(0.01, 0.99), st.sampled_from([0.01, 0.2]))
def test_a_limit_is_beyond_the_true_rate_no_more_often_than_its_level(trials, rate, level):
    weights = [
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(trials + 1)
    ]
    beyond = [lower_limit(k, trials, level) > rate for k in range(trials + 1)]
    assert np.dot(weights, beyond) <= level + 1e-9


def table(lower, gain, *, standing="proved", sizes=(10,), environments=("e",), delta=0.1):
    """Claims [environment, size, repetition] of one certifier; NaN is a refusal."""
    lower, gain = np.broadcast_arrays(np.asarray(lower, float), np.asarray(gain, float))
    shape = (len(environments), len(sizes), lower.shape[-1])
    lower, gain = lower.reshape(shape), gain.reshape(shape)
    places = np.indices(shape)
    total = lower.size
    words = np.where(np.isnan(lower), "", standing).astype(object)
    return {
        "family": np.full(total, "f", object),
        "environment": np.array(environments, object)[places[0].ravel()],
        "episodes": np.array(sizes)[places[1].ravel()],
        "algorithm": np.full(total, "spibb", object),
        "setting": np.full(total, "", object),
        "n_wedge": np.full(total, np.nan),
        "certifier": np.full(total, "c", object),
        "certifier_setting": np.full(total, "", object),
        "delta": np.full(total, delta),
        "repetition": places[2].ravel(),
        "behavior_performance": np.full(total, 2.0),
        "gain": gain.ravel(),
        "lower": lower.ravel(),
        "standing": words.ravel(),
    }


def test_a_cell_says_what_its_rows_say():
    lower = [0.5, 0.2, np.nan, -1.0, 0.3, 0.1]
    gain = [0.4, 0.6, -0.2, -0.5, -0.1, 0.1]
    (found,) = cell_summaries(table(lower, gain))
    assert found.repetitions == 6
    assert found.violations == 2  # the first and the fifth
    assert found.violation == binomial_interval(2, 6)
    assert found.refused == pytest.approx(1 / 6)
    assert found.positive.value == 4 / 6
    assert found.positive_but_worse == pytest.approx(1 / 6)
    assert found.violated_if_positive == 2 / 4
    assert found.mean_gain == pytest.approx(0.3 / 6)
    assert found.mean_lower == pytest.approx(0.1 / 5)
    assert found.tightness == pytest.approx(1.1 / 0.3)
    assert (found.standing, found.delta, found.mdps) == (("proved",), 0.1, 1)


def test_what_was_always_refused_is_never_wrong_and_says_nothing():
    (found,) = cell_summaries(table([np.nan] * 3, [-1.0] * 3))
    assert (found.violations, found.refused, found.positive.value) == (0, 1.0, 0.0)
    assert math.isnan(found.violated_if_positive)
    assert math.isnan(found.mean_lower)
    assert math.isnan(found.tightness)  # nothing is gained
    assert found.standing == ()


def test_rounding_is_no_violation_and_no_loss():
    tiny = 1e-12
    (found,) = cell_summaries(table([tiny, tiny, 1e-6], [0.0, -tiny, 0.0]))
    assert found.violations == 1
    assert found.positive_but_worse == 0.0
    (found,) = cell_summaries(table([1.0, -1.0], [tiny, tiny]))
    assert found.mean_gain == 0
    assert math.isnan(found.tightness)  # nothing is gained


def test_mdps_are_counted_for_themselves_and_pooled():
    lower = [[[1.0, -1.0]], [[1.0, 1.0]], [[-1.0, -1.0]]]
    rows = table(lower, np.zeros((3, 1, 2)), environments=("a", "b", "c"))
    alone = cell_summaries(rows)
    assert [each.violations for each in alone] == [1, 2, 0]
    assert [each.cell.environment for each in alone] == ["a", "b", "c"]
    (pooled,) = family_summaries(rows)
    assert (pooled.mdps, pooled.repetitions, pooled.violations) == (3, 6, 3)
    assert pooled.cell.environment == ""
    assert pooled.violation == binomial_interval(3, 6)


def test_cells_are_refuted_beyond_chance_only_and_together():
    def rows(violations, trials, **settings):
        lower = np.where(np.arange(trials) < violations, 1.0, -1.0)
        return cell_summaries(table(lower, np.zeros(trials), **settings))

    assert refuted(rows(25, 100), "proved")  # P(X ≥ 25) = 1e-5 at 0.1
    assert not refuted(rows(25, 100), "posterior")
    assert not refuted(rows(14, 100), "proved")  # 0.12
    assert not refuted(rows(25, 100, delta=0.2), "proved")
    # What is too much for one cell may be chance among ten thousand.
    many = rows(21, 100) + 10_000 * rows(0, 100)
    assert refuted(many[:1], "proved")
    assert not refuted(many, "proved")


def test_the_first_size_at_which_half_of_the_claims_are_gains():
    lower = [[[-1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [1.0, 1.0, 1.0]]]
    cells = cell_summaries(table(lower, np.ones((1, 3, 3)), sizes=(10, 100, 1000)))
    (key,) = {without_size(each.cell) for each in cells}
    assert first_certified(cells) == {key: 100}
    assert first_certified(cells[:1]) == {key: None}
