"""Tables of runs: what is wrong is named; means, tails and comparisons by direct computation."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from support.made_runs import METHODS, made_columns, made_run
from surestep.environments import make
from surestep.environments.registry import PUBLISHED
from surestep.errors import InvalidParameter, SurestepError
from surestep.experiments import (
    Method,
    Selection,
    compare_run,
    cvar_interval,
    mean_interval,
    read_run,
    student_interval,
    summaries,
    valued,
)
from surestep.experiments.comparison import paired_difference
from surestep.experiments.experiment import EnvironmentSpec
from surestep.experiments.intervals import binomial_interval
from surestep.experiments.metrics import metric_of, normalised
from surestep.experiments.runs import environment_is, method_is, method_text, selected
from surestep.experiments.tables import claim_names, environment_name, size_axis, size_words


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
        metric_of(name, None)


def test_bounds_that_differ_bound_nothing():
    rows = table([np.random.default_rng(1).normal(1.2, 0.5, 400)])
    (found,) = summaries(rows, ("cvar10",))
    assert np.isfinite(found.metrics["cvar10"]).all()
    rows["lowest_performance"] = np.linspace(-7.0, -6.0, 400)
    (differing,) = summaries(rows, ("mean", "cvar10"))
    assert np.isnan(differing.metrics["cvar10"].low)
    assert np.isnan(differing.metrics["mean"].low)
    assert differing.metrics["cvar10"][::2] == found.metrics["cvar10"][::2]


def test_rounding_is_no_loss_and_no_gain():
    rows = [[1 - 1e-14, 1.0, 1 + 1e-14], [1 - 1e-6, 1.0, 1.0]]
    found = summaries(table(rows, (1, 2)), ("mean", "better", "worse"))
    assert [one.metrics["worse"].value for one in found] == [0.0, pytest.approx(1 / 3)]
    assert [one.metrics["better"].value for one in found] == [0.0, 0.0]
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
    for nothing in (1.0, 1.0 + 2.0**-52):  # to gain, but for rounding
        rows["optimal_performance"][:] = nothing
        assert normalised(rows)["performance"].tolist() == [0.0] * 4


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
            assert one.difference.student == student_interval(mine - base)


def test_others_are_compared_with_the_first_method_of_the_table(run):
    (first, *_) = compare_run(run, Selection())
    assert first.against == Method("basic-rl", "", None)


def paired(size, low, high):
    """All columns of so many repetitions but their performance."""
    bounds = {"lowest_performance": np.full(size, low), "highest_performance": np.full(size, high)}
    return {"repetition": np.arange(size), "behavior_performance": np.zeros(size), **bounds}


def test_differences_are_bounded_by_the_distance_of_the_bounds():
    values, columns = np.tile([-2.0, 3.0, 4.0, 1.0], 5), paired(20, -3.0, 5.0)
    found = paired_difference(
        columns | {"performance": values}, columns | {"performance": np.ones(20)}
    )
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
    with pytest.raises(SurestepError, match="names 2 methods of this run, expected one of"):
        compare_run(two, Selection(), against="spibb")
    assert compare_run(two, Selection(), against="spibb:n_wedge=9")[0].against.n_wedge == 9


def test_repetitions_that_are_not_the_same_are_not_compared(run):
    rows = {name: column[:5] for name, column in run.columns.items()}
    with pytest.raises(SurestepError, match="have other repetitions"):
        paired_difference(rows, rows | {"repetition": np.arange(5) + 1})


def test_differences_hold_the_truth_as_often_as_they_say():
    """Few repetitions, ties and a rare loss of all; if they hold, some seed in a million fails."""
    rng, tries, wrong = np.random.default_rng(11), 200, 0
    truth = 0.5 * 0.1 - 0.5 * 0.02 * 0.8
    for _ in range(tries):
        base = rng.choice([0.2, 0.8], 12)
        gap = rng.choice([0.0, 0.1], 12)
        lost = rng.random(12) < 0.02
        columns = paired(12, 0.0, 1.0)
        mine = columns | {"performance": base + gap - 0.8 * lost * (base == 0.8)}
        found = paired_difference(mine, columns | {"performance": base}).mean
        wrong += found.low > truth + 1e-12 or found.high < truth - 1e-12
    assert wrong <= binom.isf(1e-6, tries, 0.05)


@pytest.mark.parametrize("column", ["environment", "performance"])
def test_a_table_without_what_is_needed_is_refused(column, tmp_path):
    with pytest.raises(
        SurestepError, match=f"has no column '{column}', expected .*; delete it"
    ) as told:
        read_run(made_run(tmp_path, without=[column], episodes=(10,), repetitions=2))
    assert "\n" not in str(told.value)


def test_a_table_without_rows_is_refused(tmp_path):
    empty = {name: column[:0] for name, column in made_columns(repetitions=2).items()}
    with pytest.raises(SurestepError, match="has no rows"):
        read_run(made_run(tmp_path, changed=empty, episodes=(10,), repetitions=2))


def test_a_selection_keeps_what_it_names(tmp_path):
    labels = ("gridworld", "random-mdp, ratio=0.5")
    run = read_run(made_run(tmp_path, environments=labels, repetitions=3))
    chosen = selected(run, Selection(["spibb:n_wedge=100"], ["random-mdp"], [10]))
    assert set(chosen["algorithm"]) == {"spibb"}
    assert set(chosen["environment"]) == {labels[1]}
    assert chosen["episodes"].tolist() == [10] * 3
    assert len(selected(run, Selection())["episodes"]) == 2 * 2 * 3 * 3
    assert len(selected(run, Selection(environments=["gridworld"]))["episodes"]) == 2 * 3 * 3


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("soft", True), ("soft:epsilon=0.1", True), ("soft:epsilon=0.10,n_wedge=5", True),
        ("soft:epsilon=0.2", False), ("spibb", False), ("soft:kappa=0.1", False),
        ("soft:rewards=known", True), ("soft:rewards=other", False),
    ],
)  # fmt: skip
def test_methods_are_meant_by_name_and_some_settings(name, fits):
    method = Method("soft", "epsilon=0.1, rewards=known", 5)
    assert method_is(method, name) == fits
    assert method_is(method, method_text(method))
    commas = Method("mine", "range=(0.1, 0.2), kind=a", None)
    assert method_is(commas, method_text(commas))
    assert method_is(commas, "mine:range=(0.1, 0.2)")
    assert not method_is(commas, "mine:range=(0.1, 0.3)")


def test_the_name_of_an_environment_may_hold_commas():
    label = "mine, and yours, content=abc, size=3"
    assert environment_name(label) == "mine, and yours, size = 3"
    assert size_words(5, label) == "5 trajectories"
    assert environment_is(label, "mine, and yours")
    assert not environment_is(label, "mine")


@pytest.mark.parametrize(
    ("column", "bound", "words"),
    [
        ("lowest_performance", 0.5, "expected 0.5 to 1 by the value bounds of gridworld"),
        ("highest_performance", 0.6, "to 0.6 by the value bounds of gridworld"),
    ],
)
def test_bounds_that_the_table_refutes_are_refused(tmp_path, column, bound, words):
    """An interval that rests on them would not even hold the mean that it is about."""
    changed = {column: np.full(120, bound)}
    with pytest.raises(InvalidParameter, match=words):
        read_run(made_run(tmp_path / "run", changed=changed))
    barely = {"performance": np.full(120, 1.0 + 1e-9)}
    assert len(read_run(made_run(tmp_path / "near", changed=barely)).columns["performance"]) == 120


@pytest.mark.parametrize(
    ("label", "size", "words", "axis"),
    [
        ("gridworld", 1000, "1,000 trajectories", "trajectories in the data set"),
        ("gridworld", 1, "1 trajectory", "trajectories in the data set"),
        ("wet-chicken/heuristic, epsilon=0.2", 5, "5 steps", "steps in the data set"),
        ("mine, content=abc", 5, "5 trajectories", "trajectories in the data set"),
        ("wet-chicken/heuristic, content=abc", 1, "1 trajectory", "trajectories in the data set"),
        ("mine, content=abc, stream=True", 1, "1 step", "steps in the data set"),
    ],
)
def test_data_sizes_are_called_what_they_count(label, size, words, axis):
    assert size_words(size, label) == words
    assert size_axis([label]) == axis
    others = {"gridworld", "wet-chicken/heuristic"}
    assert size_axis([label, *others]) == "size of the data set"


def test_streams_are_those_without_a_horizon():
    for name in PUBLISHED:
        published = make(name)
        noun = "steps" if published.horizon is None else "trajectories"
        given = dataclasses.replace(published, name="mine")
        spec = EnvironmentSpec.of(given)
        assert environment_name(spec.label) == "mine"
        for label in (name, spec.label, spec.family):
            assert size_axis([label]) == f"{noun} in the data set", label


def claims(*settings):
    """Cells of one kind of certifier with these settings."""
    return [
        SimpleNamespace(cell=SimpleNamespace(certifier="posterior", certifier_setting=setting))
        for setting in settings
    ]


def test_settings_that_are_usually_left_out_tell_two_certifiers_apart():
    few, many, other = "draws=100, prior_weight=5", "draws=1000, prior_weight=5", "prior_weight=9"
    assert claim_names(claims(few, many, few, other)) == [
        "posterior, draws = 100, prior_weight = 5",
        "posterior, draws = 1000, prior_weight = 5",
        "posterior, draws = 100, prior_weight = 5",
        "posterior, c = 9",
    ]
    halves = claim_names(claims("train_share=0.5", "train_share=0.2"))
    assert halves == ["posterior, train_share = 0.5", "posterior, train_share = 0.2"]
