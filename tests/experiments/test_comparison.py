"""Comparisons: against direct computation, and intervals of differences that hold."""

import numpy as np
import pytest
from scipy.stats import binom

from support.made_runs import METHODS, made_run
from surestep.errors import SurestepError
from surestep.experiments import Method, Selection, compare_run, mean_interval, read_run, summaries
from surestep.experiments.comparison import difference
from surestep.experiments.intervals import binomial_interval


@pytest.fixture
def run(tmp_path):
    return read_run(made_run(tmp_path, repetitions=25))


def test_a_comparison_says_what_the_rows_say(run):
    comparisons = compare_run(run, Selection(), against="spibb")
    assert [(one.environment, one.episodes) for one in comparisons] == [
        ("gridworld", 10), ("gridworld", 100),
    ]  # fmt: skip
    columns = {name: np.asarray(column) for name, column in run.columns.items()}
    expected = iter(summaries(run.columns, ("mean", "cvar10", "cvar1", "better", "worse")))
    for comparison in comparisons:
        here = columns["episodes"] == comparison.episodes
        assert comparison.against == Method("spibb", "", 100)
        values = {
            name: columns["performance"][here & (columns["algorithm"] == name)]
            for name, *_ in METHODS
        }
        for one in comparison.methods:
            mine, base = values[one.summary.method.algorithm], values["spibb"]
            assert repr(one.summary) == repr(next(expected))  # NaN is not equal to itself
            if one.summary.method == comparison.against:
                assert one.difference is None
                continue
            assert one.difference.mean == mean_interval(mine - base, (-1.0, 1.0))
            assert one.difference.ahead == binomial_interval(int((mine > base).sum()), 25)
            assert one.difference.behind == binomial_interval(int((mine < base).sum()), 25)


def test_others_are_compared_with_the_first_method_of_the_table(run):
    (first, *_) = compare_run(run, Selection())
    assert first.against == Method("basic-rl", "", None)


def test_differences_are_bounded_by_the_distance_of_the_bounds():
    values = np.tile([-2.0, 3.0, 4.0, 1.0], 5)
    columns = {
        "repetition": np.arange(20),
        "behavior_performance": np.zeros(20),
        "lowest_performance": np.full(20, -3.0),
        "highest_performance": np.full(20, 5.0),
    }
    found = difference(columns | {"performance": values}, columns | {"performance": np.ones(20)})
    expected = mean_interval(values - 1, (-8.0, 8.0))
    assert list(found.mean) == pytest.approx(list(expected), nan_ok=True)
    assert (found.ahead.value, found.behind.value) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("against", "words"),
    [
        ("ramdp", "is 'ramdp', which names no method of this run, expected one of basic-rl, spibb"),
        ("spibb:n_wedge=7", "names no method"),
    ],
)
def test_what_is_compared_with_must_be_there(run, against, words):
    with pytest.raises(SurestepError, match=words):
        compare_run(run, Selection(), against=against)


def test_what_is_compared_with_must_be_one(tmp_path):
    two = read_run(made_run(tmp_path, [("spibb", "", 5), ("spibb", "", 9)]))
    with pytest.raises(
        SurestepError, match="names 2 methods of this run, expected one of spibb:n_"
    ):
        compare_run(two, Selection(), against="spibb")
    assert compare_run(two, Selection(), against="spibb:n_wedge=9")[0].against.n_wedge == 9


def test_repetitions_that_are_not_the_same_are_not_compared(run):
    rows = {name: column[:5] for name, column in run.columns.items()}
    with pytest.raises(SurestepError, match="have other repetitions"):
        difference(rows, rows | {"repetition": np.arange(5) + 1})


def test_differences_hold_the_truth_as_often_as_they_say():
    """Few repetitions, ties and a rare loss of all; if they hold, some seed in a million fails."""
    rng, tries, wrong = np.random.default_rng(11), 200, 0
    truth = 0.5 * 0.1 - 0.5 * 0.02 * 0.8
    for _ in range(tries):
        base = rng.choice([0.2, 0.8], 12)
        gap = rng.choice([0.0, 0.1], 12)
        lost = rng.random(12) < 0.02
        columns = {
            "repetition": np.arange(12),
            "behavior_performance": np.zeros(12),
            "lowest_performance": np.zeros(12),
            "highest_performance": np.ones(12),
        }
        mine = columns | {"performance": base + gap - 0.8 * lost * (base == 0.8)}
        found = difference(mine, columns | {"performance": base}).mean
        wrong += found.low > truth + 1e-12 or found.high < truth - 1e-12
    assert wrong <= binom.isf(1e-6, tries, 0.05)
