"""Means, tails and their intervals, against direct computation."""

import numpy as np
import pytest

from surestep.errors import InvalidParameter
from surestep.experiments import (
    Method,
    cvar_interval,
    first_better,
    mean_interval,
    summaries,
    valued,
)
from surestep.experiments.intervals import binomial_interval
from surestep.experiments.metrics import metric_of, normalised


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
    (found,) = summaries(table([values]), ("mean", "cvar10", "cvar1", "cvar5", "better", "worse"))
    assert found.repetitions == 400
    assert found.method == Method("spibb", "", 5)
    assert found.metrics["mean"] == mean_interval(values, (-7.0, 9.0))
    assert found.metrics["cvar10"] == cvar_interval(values, 0.1, (-7.0, 9.0))
    assert found.metrics["cvar1"].value == pytest.approx(np.sort(values)[:4].mean())
    assert found.metrics["cvar5"].value == pytest.approx(np.sort(values)[:20].mean())
    assert found.metrics["better"] == binomial_interval(int((values > 1).sum()), 400)
    assert found.metrics["worse"].value == pytest.approx((values < 1).mean())


@pytest.mark.parametrize("name", ["maen", "cvar", "cvar0", "cvar101", "cvar-1", "cvarx", ""])
def test_a_metric_that_is_none_is_refused_with_those_that_are(name):
    with pytest.raises(InvalidParameter, match=r"there is no metric .*one of mean, cvar10"):
        metric_of(name)


def test_bounds_that_differ_bound_nothing():
    rows = table([np.random.default_rng(1).normal(1.2, 0.5, 400)])
    (found,) = summaries(rows, ("cvar10",))
    assert np.isfinite(found.metrics["cvar10"]).all()
    rows["lowest_performance"] = np.linspace(-7.0, -6.0, 400)
    (differing,) = summaries(rows, ("mean", "cvar10"))
    assert np.isnan(differing.metrics["cvar10"].low)
    assert np.isnan(differing.metrics["mean"].low)
    assert differing.metrics["cvar10"][::2] == found.metrics["cvar10"][::2]


def test_the_first_size_that_beats_the_behavior_policy_for_good():
    rows = [[0.5, 0.6], [1.5, 1.6], [0.9, 0.9], [2.0, 2.0], [3.0, 3.0]]
    found = summaries(table(rows, (1, 2, 5, 10, 20)))
    assert first_better(found) == {("e", Method("spibb", "", 5)): 10}
    never = summaries(table(rows[:1]))
    assert first_better(never) == {("e", Method("spibb", "", 5)): None}


def test_rounding_is_no_loss_and_no_gain():
    rows = [[1 - 1e-14, 1.0, 1 + 1e-14], [1 - 1e-6, 1.0, 1.0]]
    found = summaries(table(rows, (1, 2)), ("mean", "better", "worse"))
    assert [one.metrics["worse"].value for one in found] == [0.0, pytest.approx(1 / 3)]
    assert [one.metrics["better"].value for one in found] == [0.0, 0.0]
    assert first_better(found) == {("e", Method("spibb", "", 5)): None}
    gains = valued(table(rows, (1, 2)), "gain")["performance"]
    assert gains.tolist() == [0.0, 0.0, 0.0, pytest.approx(-1e-6), 0.0, 0.0]


def test_gains_keep_to_bounds_that_hold_also_where_each_repetition_has_its_own_world():
    rows = table([[1.0, 9.0, 5.0, -7.0]])
    gains = valued(rows, "gain")
    assert gains["performance"].tolist() == [0.0, 8.0, 4.0, -8.0]
    assert set(gains["lowest_performance"]) == {-8.0}
    assert set(gains["highest_performance"]) == {8.0}
    assert set(gains["optimal_performance"]) == {8.0}
    rows["behavior_performance"] = np.array([1.0, 2.0, 3.0, -7.0])
    gains = valued(rows, "gain")
    assert set(gains["lowest_performance"]) == {-16.0}
    assert set(gains["highest_performance"]) == {16.0}
    assert gains["performance"].tolist() == [0.0, 7.0, 2.0, 0.0]
    with pytest.raises(InvalidParameter, match="the value is 'rho', expected performance, gain"):
        valued(rows, "rho")


def test_normalised_performance_is_0_for_the_behavior_policy_and_1_for_the_optimum():
    rows = table([[1.0, 9.0, 5.0, -7.0]])
    assert normalised(rows)["performance"].tolist() == [0.0, 1.0, 0.5, -1.0]
    assert normalised(rows)["lowest_performance"].tolist() == [-1.0] * 4
    assert normalised(rows)["highest_performance"].tolist() == [1.0] * 4
    rows["optimal_performance"][:] = 1.0  # nothing to gain
    assert normalised(rows)["performance"].tolist() == [0.0] * 4


def test_what_rounding_leaves_to_gain_is_nothing():
    """1 + 2⁻⁵² is π_b's own performance: a loss is no 10¹⁵ times the possible gain."""
    rows = table([[1.0, -7.0]])
    rows["optimal_performance"] = np.full(2, 1.0 + 2.0**-52)
    assert normalised(rows)["performance"].tolist() == [0.0, 0.0]
