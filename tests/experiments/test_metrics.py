"""Means, tails and their intervals, against direct computation."""

import numpy as np
import pytest

from surestep.experiments import cvar_interval, first_better, normalised, summaries


def table(performance, episodes=(10,), behavior=1.0):
    """A table of one method whose repetitions are the rows of `performance`."""
    rows = np.asarray(performance, float)
    sizes = np.repeat(episodes, rows.shape[1])
    total = rows.size
    return {
        "environment": np.full(total, "e", object),
        "episodes": sizes,
        "algorithm": np.full(total, "spibb", object),
        "setting": np.full(total, "", object),
        "n_wedge": np.full(total, 5.0),
        "n_wedge_used": np.full(total, 5.0),
        "repetition": np.tile(np.arange(rows.shape[1]), len(rows)),
        "performance": rows.ravel(),
        "behavior_performance": np.full(total, behavior),
        "optimal_performance": np.full(total, 9.0),
        "lowest_performance": np.full(total, -7.0),
        "highest_performance": np.full(total, 9.0),
    }


def test_a_summary_says_what_the_rows_say():
    values = np.random.default_rng(1).normal(1.2, 0.5, 400)
    (found,) = summaries(table([values]), np.random.default_rng(0))
    assert found.repetitions == 400
    assert found.mean.value == pytest.approx(values.mean())
    assert found.cvar10.value == pytest.approx(np.sort(values)[:40].mean())
    assert found.cvar1.value == pytest.approx(np.sort(values)[:4].mean())
    assert found.below_behavior == (values < 1).mean()
    # The percentile interval of a mean is the normal one within a few per cent, at this size.
    half = 1.96 * values.std() / 20
    assert found.mean.high - found.mean.low == pytest.approx(2 * half, rel=0.15)
    assert found.mean.low < found.mean.value < found.mean.high
    assert found.cvar10 == cvar_interval(values, 0.1, (-7.0, 9.0))
    assert found.cvar10.low < found.cvar10.value < found.cvar10.high


def test_bounds_that_are_not_known_or_differ_bound_nothing():
    rows = table([np.random.default_rng(1).normal(1.2, 0.5, 400)])
    (found,) = summaries({**rows}, np.random.default_rng(0))
    assert np.isfinite(found.cvar10).all()
    for name in ("lowest_performance", "highest_performance"):
        del rows[name]
    (unknown,) = summaries(rows, np.random.default_rng(0))
    assert np.isnan(unknown.cvar10.low)
    assert unknown.cvar10[::2] == found.cvar10[::2]
    rows["lowest_performance"] = np.linspace(-7.0, -6.0, 400)
    (differing,) = summaries(rows, np.random.default_rng(0))
    assert np.isnan(differing.cvar10.low)


def test_the_first_size_that_beats_the_behavior_policy_for_good():
    rows = [[0.5, 0.6], [1.5, 1.6], [0.9, 0.9], [2.0, 2.0], [3.0, 3.0]]
    found = summaries(table(rows, (1, 2, 5, 10, 20)), np.random.default_rng(0))
    assert first_better(found) == {("e", "spibb", "", "5"): 10}
    never = summaries(table(rows[:1]), np.random.default_rng(0))
    assert first_better(never) == {("e", "spibb", "", "5"): None}


def test_rounding_is_no_loss_and_no_gain():
    rows = [[1 - 1e-14, 1.0, 1 + 1e-14], [1 - 1e-6, 1.0, 1.0]]
    found = summaries(table(rows, (1, 2)), np.random.default_rng(0))
    assert [each.below_behavior for each in found] == [0.0, pytest.approx(1 / 3)]
    assert first_better(found) == {("e", "spibb", "", "5"): None}


def test_normalised_performance_is_0_for_the_behavior_policy_and_1_for_the_optimum():
    rows = table([[1.0, 9.0, 5.0, -7.0]])
    assert normalised(rows)["performance"].tolist() == [0.0, 1.0, 0.5, -1.0]
    assert normalised(rows)["lowest_performance"].tolist() == [-1.0] * 4
    assert normalised(rows)["highest_performance"].tolist() == [1.0] * 4
    rows["optimal_performance"][:] = 1.0  # nothing to gain
    assert normalised(rows)["performance"].tolist() == [0.0] * 4
