"""Tables of runs: what is missing or wrong is named, and parts are found by their names."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from support.made_runs import made_columns, made_run
from surestep.environments import make
from surestep.environments.registry import PUBLISHED
from surestep.errors import InvalidParameter, SurestepError
from surestep.experiments import Method, Selection, read_run, selected
from surestep.experiments.experiment import EnvironmentSpec
from surestep.experiments.runs import environment_is, method_is, written
from surestep.experiments.tables import claim_names, environment_name, size_axis, size_words


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
    assert method_is(method, written(method))


def test_a_value_may_hold_commas():
    method = Method("mine", "range=(0.1, 0.2), kind=a", None)
    assert method_is(method, written(method))
    assert method_is(method, "mine:range=(0.1, 0.2)")
    assert not method_is(method, "mine:range=(0.1, 0.3)")


def test_the_name_of_an_environment_may_hold_commas():
    label = "mine, and yours, content=abc, size=3"
    assert environment_name(label) == "mine, and yours, size = 3"
    assert size_words(5, [label]) == "5 trajectories"
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
    ("labels", "size", "words", "axis"),
    [
        (["gridworld"], 1000, "1,000 trajectories", "trajectories in the data set"),
        (["gridworld"], 1, "1 trajectory", "trajectories in the data set"),
        (["wet-chicken/heuristic, epsilon=0.2"], 5, "5 steps", "steps in the data set"),
        (["mine, content=abc"], 5, "5 trajectories", "trajectories in the data set"),
        (["wet-chicken/heuristic, content=abc"], 1, "1 trajectory", "trajectories in the data set"),
        (["mine, content=abc, stream=True"], 1, "1 step", "steps in the data set"),
        (["gridworld", "wet-chicken/heuristic"], 5, "size 5", "size of the data set"),
    ],
)
def test_data_sizes_are_called_what_they_count(labels, size, words, axis):
    assert size_words(size, labels) == words
    assert size_axis(labels) == axis


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
