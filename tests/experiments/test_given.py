"""Experiments as data, of names and of objects: what a file says, and what is refused."""

import dataclasses
import functools
import json
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.stand_in_ray import stand_in
from support.toy_extension import Halfway, Hopeful, coin
from surestep.algorithms import ALGORITHMS, HCPI, SPIBB, BetaSPIBB, make_algorithm
from surestep.algorithms.contract import Limited, Limits
from surestep.certificates import Posterior, Robust
from surestep.choosing_n_wedge import AutoNWedge
from surestep.environments import make
from surestep.environments.families import bandit
from surestep.errors import InvalidParameter, SurestepError
from surestep.experiments import list_experiments, make_experiment, read_experiments, run_experiment
from surestep.experiments.experiment import (
    AlgorithmSpec,
    CertifierSpec,
    EnvironmentSpec,
    label_of,
    module_of,
    read_label,
)
from surestep.experiments.run import Store, brought_to, code_of_block, plan_blocks

TERMS: dict[str, Any] = {"seed": 5, "repetitions": 3, "episodes": [20]}
PARTS: dict[str, Any] = {"environments": ["gridworld"], "algorithms": [SPIBB(n_wedge=5)]}


def experiment(**changed):
    """A small experiment with these parts."""
    return make_experiment("small", **TERMS | PARTS | changed)


def table_of(directory, workers=1, **changed):
    """The rows of a run, without what made them."""
    run_experiment(experiment(**changed), directory, workers=workers)
    return {k: v for k, v in Store(directory).read_table().items() if k != "code"}


def another(repetition):
    """Another bandit in each repetition."""
    return bandit(seed=repetition + 1, arms=2)


def test_known_kinds_given_as_objects_are_those_of_their_names(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(
        "seed = 5\nrepetitions = 3\nepisodes = [20]\n[[environments]]\nname = 'gridworld'\n"
        "[[algorithms]]\nname = 'spibb'\nn_wedge = [5, 7]\n"
        "[[algorithms]]\nname = 'spibb-beta'\nspibb_n_wedge = 100\n"
        "[[certifiers]]\nname = 'posterior'\ndraws = 19\n[[certifiers]]\nname = 'robust'\n"
    )
    (named,) = read_experiments(str(path))
    algorithms = [SPIBB(n_wedge=np.int64(5)), SPIBB(n_wedge=7), BetaSPIBB(spibb_n_wedge=100)]
    given = experiment(algorithms=algorithms, certifiers=[Posterior(draws=19), Robust()])
    assert dataclasses.replace(given, title=named.title) == named
    assert given.identity() == named.identity()
    assert given.certifiers[0].takes_seed
    assert not CertifierSpec.of(Posterior(seed=3)).takes_seed
    # Tables may stand beside objects, and stand for all combinations.
    mixed = experiment(algorithms=[{"name": "spibb", "n_wedge": [5, 7]}, algorithms[2]])
    assert mixed.algorithms == given.algorithms


def test_a_benchmark_and_a_function_that_makes_it_give_the_rows_of_its_data(tmp_path):
    columns = table_of(tmp_path / "object", environments=[bandit(arms=2), bandit(arms=3)])
    assert len(set(columns["environment"])) == 2
    specs = [
        EnvironmentSpec.of(each) for each in (bandit(arms=2), functools.partial(bandit, arms=2))
    ]
    assert [spec.name for spec in specs] == ["bandit", "bandit"]
    assert specs[0] == specs[1]
    assert specs[0].family == "bandit"
    assert specs[0].label == f"bandit, content={dict(specs[0].settings)['content']}"
    assert EnvironmentSpec.of(bandit(arms=3)) != specs[0]
    again = table_of(tmp_path / "function", environments=[functools.partial(bandit, arms=2)])
    mine = columns["environment"] == specs[0].label
    for name, values in again.items():
        np.testing.assert_array_equal(values, columns[name][mine])


def test_a_function_that_asks_for_the_repetition_makes_a_world_for_each(tmp_path):
    columns = table_of(tmp_path / "run", environments=[another])
    expected = [another(r).performance_of_behavior() for r in columns["repetition"]]
    np.testing.assert_array_equal(columns["behavior_performance"], expected)
    assert len(set(expected)) == 3
    assert not EnvironmentSpec.of(bandit).changes  # all of its arguments have defaults
    with pytest.raises(InvalidParameter, match="claims are counted for each MDP"):
        experiment(environments=[another], certifiers=[Robust()])


FLOORED = Limited(algorithm=SPIBB(n_wedge=2), limits=Limits(least_visits=4))
OWN = {
    "environments": [bandit(arms=2), coin],
    "algorithms": [Halfway(n_wedge=2), FLOORED, HCPI()],
    "certifiers": [Hopeful(margin=0.5), Posterior(draws=9)],
}


def test_objects_of_ones_own_are_run_as_they_are(tmp_path):
    run_experiment(experiment(**OWN), tmp_path / "run")
    columns = Store(tmp_path / "run").read_table()
    assert set(columns["algorithm"]) == {"halfway", "spibb", "hcpi"}
    assert set(columns["standing"]) == {"by extension", "posterior"}
    mine = columns["algorithm"] == "spibb"
    assert set(columns["setting"][mine]) == {
        f"algorithm={FLOORED.algorithm}, limits={FLOORED.limits}"
    }


@pytest.mark.slow
def test_objects_reach_workers_and_give_the_same_table(tmp_path):
    alone = run_experiment(experiment(**OWN), tmp_path / "alone")
    workers = run_experiment(experiment(**OWN), tmp_path / "workers", workers=2)
    assert alone.read_bytes() == workers.read_bytes()


def test_a_run_of_objects_goes_on_and_refuses_others(tmp_path):
    steps = []
    run_experiment(experiment(**OWN), tmp_path / "run")
    again = experiment(**OWN | {"environments": [bandit(arms=2), coin]})
    run_experiment(again, tmp_path / "run", progress=lambda *step: steps.append(step))
    assert steps == [(2, 2)]
    for part, others in (
        ("environments", [bandit(arms=2, seed=2), coin]),
        ("algorithms", [Halfway(n_wedge=3), *OWN["algorithms"][1:]]),
        ("algorithms", [OtherHalfway(n_wedge=2), *OWN["algorithms"][1:]]),
        ("certifiers", [Hopeful(margin=0.4), Posterior(draws=9)]),
    ):
        with pytest.raises(InvalidParameter, match="begun with other settings"):
            run_experiment(experiment(**OWN | {part: others}), tmp_path / "run")
    json.loads(again.identity())
    # A block is the same where it was sent to.
    for block in plan_blocks(again):
        sent = pickle.loads(pickle.dumps(block))  # noqa: S301
        assert code_of_block(sent) == code_of_block(block)
        assert (sent, sent.environment.make(0)) == (block, block.environment.make(0))


class OtherHalfway(Halfway):
    """Has the name and the settings of another."""


def test_the_sources_of_objects_make_the_origin(monkeypatch):
    block = plan_blocks(experiment(**OWN))[1]
    assert {"support.toy_extension", "surestep.algorithms.contract"} <= brought_to(block).keys()
    before = code_of_block(block)
    monkeypatch.setattr(Hopeful, "__module__", "__mp_main__")  # as a worker calls a script's
    assert module_of(Hopeful) == "__main__"
    assert code_of_block(block) != before


def test_an_algorithm_that_chooses_is_judged_by_what_a_user_would_know(tmp_path):
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=Robust(known_start=True))
    columns = table_of(tmp_path / "object", algorithms=[auto], certifiers=[auto.certifier])
    named = table_of(
        tmp_path / "named",
        algorithms=[{"name": "spibb", "n_wedge": "auto"}],
        certifiers=[auto.certifier],
    )
    for name in ("gain", "lower", "n_wedge_used"):
        np.testing.assert_array_equal(columns[name], named[name])
    with pytest.raises(InvalidParameter, match=r"which a certificate chooses; expected \[\[certi"):
        experiment(algorithms=[auto])


class Bare:
    """Can improve, but is no record of settings."""

    def improve(self, problem):
        return SPIBB(n_wedge=1).improve(problem)


@dataclass(frozen=True)
class Weighted(Bare):
    weights: Any = None
    rules: Any = field(default=None)


@dataclass(frozen=True, eq=False)
class Odd:
    """A simulator that nobody can look into."""

    inside: Any
    truth: Any = None

    def rollout(self, policy, episodes, horizon, rng):
        """Nobody asks for it."""


@pytest.mark.parametrize(
    ("part", "entry", "words"),
    [
        ("environments", 3, "an entry of environments is 3, expected a name, a Benchmark, or"),
        ("environments", lambda: 7, r"<lambda> returns a int, expected a Benchmark"),
        (
            "environments",
            dataclasses.replace(make("bandit"), simulator=Odd(set())),
            "the environment 'bandit' holds what a record cannot tell from others: set has no",
        ),
        ("environments", {"arms": 2}, "an entry of environments has no name"),
        ("algorithms", Robust(), r"an entry of algorithms is Robust\(.*expected a name, or an"),
        ("algorithms", Bare(), "Bare, which is no frozen dataclass; expected one"),
        ("algorithms", Weighted(np.ones(2)), "weights of Weighted is of type ndarray, which is no"),
        ("algorithms", Weighted(rules=Bare()), "rules of Weighted is of type Bare, which is no"),
        ("certifiers", SPIBB(n_wedge=1), "certifier is of type SPIBB, expected"),
    ],
)
def test_what_cannot_be_part_of_an_experiment_is_refused(part, entry, words):
    with pytest.raises(InvalidParameter, match=words):
        experiment(**{part: [entry]})


def test_rows_that_could_not_be_told_apart_are_refused():
    for part, entries, words in (
        ("environments", [bandit(), bandit()], "bandit, bandit, content=.* is there twice"),
        ("algorithms", [SPIBB(n_wedge=1), {"name": "spibb", "n_wedge": 1}], "spibb is there twice"),
        ("algorithms", [Halfway(n_wedge=2), OtherHalfway(n_wedge=2)], "halfway is there twice"),
        ("certifiers", [Robust(), "robust"], "robust is there twice"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            experiment(**{part: entries})
    assert len(experiment(algorithms=[SPIBB(n_wedge=1), SPIBB(n_wedge=2)]).algorithms) == 2


def test_objects_of_a_script_are_not_given_to_a_cluster(tmp_path, monkeypatch):
    stand_in(monkeypatch)
    monkeypatch.setattr(OtherHalfway, "__module__", "__main__")
    algorithms = [Halfway(n_wedge=2), OtherHalfway(n_wedge=3)]
    given = {"environments": ["bandit"], "algorithms": algorithms, "episodes": [5]}
    experiment = make_experiment("mine", **given, repetitions=1, seed=1)
    with pytest.raises(InvalidParameter, match="'halfway' is known here, but worker processes"):
        run_experiment(experiment, tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()


def test_what_workers_cannot_import_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(InvalidParameter, match=r"environment '<lambda>' .* cannot import it"):
        run_experiment(experiment(environments=[lambda: bandit()]), tmp_path / "run", workers=2)
    assert not (tmp_path / "run").exists()
    spec = AlgorithmSpec.of(Weighted(rules=Halfway(n_wedge=1)))
    assert [*spec.code] == [Weighted, Halfway]


def test_claims_need_an_environment_whose_truth_is_known(tmp_path):
    outside = dataclasses.replace(make("gridworld"), simulator=Odd(1))
    given = experiment(environments=[outside], certifiers=[Robust()])
    with pytest.raises(SurestepError, match="is simulated, so no true gain is known"):
        run_experiment(given, tmp_path / "run")


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
values = st.booleans() | st.integers() | st.floats() | st.text("abc =,_-/", max_size=9)


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


@given(st.dictionaries(st.from_regex("[a-z][a-z_0-9]*", fullmatch=True), values))
def test_a_label_tells_its_settings_again(settings):
    written = {name: str(value) for name, value in settings.items()}
    if not any(", " in text for text in written.values()):  # which stands between settings
        assert read_label(label_of(settings.items())) == written


def test_the_labels_of_the_catalog_tell_their_settings_again():
    for name in list_experiments():
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


@pytest.mark.parametrize("entry", ["spibb:n_wedge=5", {"name": "spibb:n_wedge=5"}])
def test_settings_may_stand_behind_a_name(entry):
    """As they do in `surestep improve` and `compare`; tables call it as if they stood below."""
    made = make_experiment("mine", environments=["gridworld"], algorithms=[entry],
                           certifiers=["robust:set=l1"], episodes=[5], repetitions=1,
                           seed=1)  # fmt: skip
    assert made.algorithms == (AlgorithmSpec("spibb", (("n_wedge", 5),)),)
    assert (made.certifiers[0].name, made.certifiers[0].settings) == ("robust", (("set", "l1"),))
    assert make_algorithm("spibb:n_wedge=5") == make_algorithm("spibb", n_wedge=5)
    assert make_algorithm("spibb:n_wedge=5", n_wedge=7) == make_algorithm("spibb", n_wedge=7)


def test_an_environment_may_change_with_the_repetition():
    spec = EnvironmentSpec("bandit", (("seed", "repetition"), ("arms", 2)))
    assert spec.changes
    assert spec.make(3) == make("bandit", seed=3, arms=2)
    fixed = EnvironmentSpec("bandit", (("seed", 1),))
    assert not fixed.changes
    assert fixed.make(3) == make("bandit", seed=1)


def test_the_catalog_holds_the_papers_evaluation():
    assert {"paper/gridworld", "paper/wet-chicken", "paper/resource-gathering"} <= set(
        list_experiments()
    )
    for name in list_experiments():
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
        ('name = "gridworld"', 'name = "gridwrld"', "no environment 'gridwrld'; did you mean grid"),
        ('name = "gridworld"', 'name = "gridworld"\nsise = 3', "gridworld has no parameter 'sise'"),
        ('"basic-rl"', '"spibb:n_wedge=five"', "n_wedge is 'five'"),
        ('[[environments]]\nname = "gridworld"', "", r"object missing required field environments"),
        ('name = "gridworld"', 'called = "gridworld"', "an entry of environments has no name"),
        ("seed = 7", "seed = ", "mine.toml is not written as TOML"),
        ("seed = 7", f"seed = {'[' * 100_000}", "mine.toml is not written as TOML"),
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
    with pytest.raises(SurestepError, match=r"missing\.toml cannot be read: No such file"):
        read_experiments(str(tmp_path / "missing.toml"))
