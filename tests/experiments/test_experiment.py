"""Experiments as data: what a file says, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surestep.algorithms import ALGORITHMS
from surestep.environments import make
from surestep.errors import SurestepError
from surestep.experiments import catalog, read_experiments
from surestep.experiments.experiment import AlgorithmSpec, EnvironmentSpec, label_of, read_label

SMALL = """
title = "A small one"
seed = 7
repetitions = 4
episodes = [5, 2]

[[environments]]
name = "gridworld"

[[algorithms]]
name = "basic-rl"

[[algorithms]]
name = "exact-soft-spibb"
epsilon = [0.1, 1]
delta = [0.5, 1.0]
"""


def read(tmp_path, text):
    """The experiment that a file with this text describes."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return read_experiments(str(path))[0]


def test_lists_stand_for_all_combinations(tmp_path):
    experiment = read(tmp_path, SMALL)
    assert experiment.name == "mine"
    assert experiment.title == "A small one"
    assert experiment.episodes == (5, 2)
    assert experiment.environments == (EnvironmentSpec("gridworld"),)
    soft = [dict(spec.settings) for spec in experiment.algorithms[1:]]
    assert soft == [{"epsilon": e, "delta": d} for e in (0.1, 1) for d in (0.5, 1.0)]
    assert experiment.algorithms[4].label == "epsilon=1, delta=1.0"
    assert experiment == read(tmp_path, SMALL)


values = st.booleans() | st.integers() | st.floats() | st.text("abc =,_-/", max_size=9)


@given(st.dictionaries(st.from_regex("[a-z][a-z_0-9]*", fullmatch=True), values))
def test_a_label_tells_its_settings_again(settings):
    written = {name: str(value) for name, value in settings.items()}
    if not any(", " in text for text in written.values()):  # which stands between settings
        assert read_label(label_of(settings.items())) == written


def test_the_labels_of_the_catalog_tell_their_settings_again():
    for name in catalog():
        (experiment,) = read_experiments(name)
        for spec in experiment.certifiers:
            worlds = {} if spec.worlds is None else {"worlds": spec.worlds}
            told = {key: str(value) for key, value in (dict(spec.settings) | worlds).items()}
            assert read_label(spec.label) == told
        for spec in experiment.algorithms:
            assert read_label(spec.label).items() <= {
                (key, str(value)) for key, value in spec.settings
            }


def test_the_given_n_wedge_is_that_of_spibb():
    assert AlgorithmSpec("spibb", (("n_wedge", 5),)).n_wedge == 5
    assert AlgorithmSpec("spibb-2s", (("spibb_n_wedge", 7), ("delta", 0.1))).n_wedge == 7
    assert AlgorithmSpec("basic-rl").n_wedge is None


def test_an_environment_may_change_with_the_repetition():
    spec = EnvironmentSpec("bandit", (("seed", "repetition"), ("arms", 2)))
    assert spec.changes
    assert spec.make(3) == make("bandit", seed=3, arms=2)
    fixed = EnvironmentSpec("bandit", (("seed", 1),))
    assert not fixed.changes
    assert fixed.make(3) == make("bandit", seed=1)


def test_the_catalog_holds_the_papers_evaluation():
    assert {"paper/gridworld", "paper/wet-chicken", "paper/resource-gathering"} <= set(catalog())
    for name in catalog():
        (experiment,) = read_experiments(name)
        assert experiment.name == name
    grids = {
        experiment.environments[0].name: sorted(
            {spec.n_wedge for spec in experiment.algorithms if spec.n_wedge is not None}
        )
        for experiment in read_experiments("paper")
    }
    assert grids["gridworld"] == [100, 200, 400]
    assert grids["wet-chicken"] == [60, 120, 180]
    assert grids["resource-gathering"] == [600, 800, 1000]


def test_the_comparison_leaves_no_algorithm_out():
    for name in ("comparison/random-mdps", "comparison/wet-chicken"):
        (experiment,) = read_experiments(name)
        # One stream of Wet Chicken is one episode, and a test needs episodes of its own.
        left_out = {"hcpi"} if name == "comparison/wet-chicken" else set()
        left_out.add("constrained")  # without further signals it is provable
        assert {spec.name for spec in experiment.algorithms} == set(ALGORITHMS) - left_out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", "seed = 0", "experiment.seed: expected int >= 1, found 0"),
        ("episodes = [5, 2]", "episodes = []", r"episodes: expected array of length >= 1"),
        ("seed = 7", "seed = 7\nsede = 1", "experiment: object contains unknown field sede"),
        ('"basic-rl"', '"basicrl"', "there is no algorithm 'basicrl'; did you mean basic-rl"),
        ("epsilon = [0.1, 1]", "epsilom = [0.1, 1]", "did you mean epsilon"),
        ('[[environments]]\nname = "gridworld"', "", r"object missing required field environments"),
        ('name = "gridworld"', 'called = "gridworld"', "an entry of environments has no name"),
        ("seed = 7", "seed = ", "cannot read the experiment"),
    ],
)
def test_mistakes_name_the_file_and_the_key(tmp_path, old, new, message):
    assert old in SMALL
    with pytest.raises(SurestepError, match=message) as refusal:
        read(tmp_path, SMALL.replace(old, new))
    assert "mine.toml" in str(refusal.value)


def test_what_is_not_there_is_refused_with_what_is(tmp_path):
    with pytest.raises(SurestepError, match=r"expected one of .*paper/gridworld"):
        read_experiments("papers")
    with pytest.raises(SurestepError, match="cannot read the experiment"):
        read_experiments(str(tmp_path / "missing.toml"))
