"""Claims held against the truth: the rows, and whether claims that are proved hold."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from surestep import Policy, performance
from surestep._arrays import run_owners
from surestep.certificates import CERTIFIERS, Stitched, training_part
from surestep.certificates.common import Needs
from surestep.environments import make
from surestep.errors import SurestepError
from surestep.experiments import (
    Store,
    cell_summaries,
    make_experiment,
    read_experiments,
    refuted,
    run_experiment,
)
from surestep.experiments.cell import (
    certifier_of,
    counted_problems,
    data_seed,
    known_to_certifiers,
    prizes,
    problem_of,
    told_of_log,
)
from surestep.experiments.experiment import AlgorithmSpec, CertifierSpec, EnvironmentSpec
from surestep.experiments.run import blocks_of
from surestep.model.certificate import Certificate
from surestep.trials import claimed

RANDOM = """
[[environments]]
name = "random-mdp"
seed = {first = 3, last = 4}
"""
PLAN = f"""
seed = 5
repetitions = 4
episodes = [20, 200]

[[environments]]
name = "gridworld"
{RANDOM}
[[algorithms]]
name = "spibb"
n_wedge = 5

[[algorithms]]
name = "basic-rl"

[[certifiers]]
name = "a-priori"
bound = ["spibb", "beta"]

[[certifiers]]
name = "robust"
known_start = true
episodes = [200, 3000]
"""


@pytest.fixture
def plan(tmp_path):
    """The path of a small experiment."""
    path = tmp_path / "claims.toml"
    path.write_text(PLAN)
    return path


def run(plan, directory, **settings):
    """The table of a run, and its bytes."""
    (experiment,) = read_experiments(str(plan))
    written = run_experiment(experiment, directory, **settings)
    return Store(directory).read_table(), written.read_bytes()


def test_a_plan_may_give_certifiers_sizes_and_repetitions_of_their_own(plan):
    (experiment,) = read_experiments(str(plan))
    assert [spec.label for spec in experiment.environments] == [
        "gridworld", "random-mdp, seed=3", "random-mdp, seed=4",
    ]  # fmt: skip
    assert experiment.environments[1].family == "random-mdp"
    assert experiment.algorithms[1] == AlgorithmSpec("basic-rl")
    assert experiment.certifiers[1].label == "bound=beta"
    assert experiment.certifiers[2] == CertifierSpec(
        "robust", (("known_start", True),), episodes=(200, 3000)
    )


def test_rows_are_all_there_and_the_same_each_time(plan, tmp_path):
    plan.write_text(PLAN.replace(RANDOM, ""))
    columns, first = run(plan, tmp_path / "first")
    assert run(plan, tmp_path / "again")[1] == first
    cells = {
        (each.cell.algorithm, each.cell.certifier, each.cell.episodes): each
        for each in cell_summaries(columns)
    }
    assert len(cell_summaries(columns)) == 2 * (2 * 2 + 2)
    assert {each.repetitions for each in cells.values()} == {4}
    assert {size for _, name, size in cells if name == "robust"} == {200, 3000}
    assert cells["basic-rl", "a-priori", 20].refused == 1.0
    # The reason is a code, wherever there is no claim.
    claimed = columns["standing"] != ""
    assert set(columns["refusal"][~claimed]) == {"too-few-visits"}
    assert set(columns["refusal"][claimed]) == {""}
    assert {each.standing for each in cells.values() if each.cell.certifier == "robust"} == {
        ("proved",)
    }
    # Certifiers and algorithms see the same data: gains do not depend on the certifier.
    first = {}
    names = ("environment", "episodes", "algorithm", "repetition")
    keys = zip(*(columns[name] for name in names), strict=True)
    for key, gain in zip(keys, columns["gain"], strict=True):
        assert first.setdefault(key, gain) == gain


def table_of(counts):
    """How often each pair led to each state [K, S]."""
    table = np.zeros((counts.pairs.num_pairs, counts.pairs.num_states), int)
    np.add.at(table, (run_owners(counts.offsets), counts.successor), counts.times)
    return table


@pytest.mark.parametrize("name", ["gridworld", "wet-chicken"])
def test_certifiers_do_not_learn_which_successors_are_possible(name):
    benchmark = make(name)
    problems = counted_problems(benchmark, 4, [np.random.default_rng(1)])
    given, drawn = known_to_certifiers(benchmark, problems, 0).counts, problems.problem(0).counts
    np.testing.assert_array_equal(given.visits, drawn.visits)
    np.testing.assert_array_equal(table_of(given), table_of(drawn))
    lengths = np.diff(given.offsets)
    if benchmark.known_rewards is None:  # all states, so that all their rewards are known
        goes_on = ~given.terminal[given.pairs.state]
        np.testing.assert_array_equal(lengths, np.where(goes_on, benchmark.num_states, 0))
        np.testing.assert_array_equal(given.rewards.values, prizes(benchmark)[given.successor])
    else:
        assert (given.times > 0).all()
        np.testing.assert_array_equal(given.rewards.values, benchmark.known_rewards)


def test_random_numbers_of_a_certifier_change_with_the_repetition(plan):
    (experiment,) = read_experiments(str(plan))
    block = blocks_of(experiment)[0]
    spec = CertifierSpec("posterior", (("draws", 99),))
    seeds = {certifier_of(block, spec, size, r).seed for size in (20, 200) for r in range(5)}
    assert len(seeds) == 10
    assert certifier_of(block, spec, 20, 3) == certifier_of(block, spec, 20, 3)
    fixed = CertifierSpec("posterior", (("seed", 7),))
    assert {certifier_of(block, fixed, 20, r).seed for r in range(3)} == {7}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"a-priori"', '"apriori"', "there is no kind of certificate 'apriori'"),
        ("known_start", "known_starts", "robust has no setting 'known_starts'"),
        ("{first = 3, last = 4}", '"repetition"', "claims are counted for each MDP"),
        ("{first = 3, last = 4}", "{first = 3}", "seed: object missing required field last"),
        (
            "episodes = [200, 3000]",
            "episodes = 200",
            "episodes: expected array . null, got int, found 200",
        ),
    ],
)
def test_mistakes_are_named(plan, old, new, message):
    assert old in PLAN
    plan.write_text(PLAN.replace(old, new))
    with pytest.raises(SurestepError, match=message):
        read_experiments(str(plan))


@dataclass(frozen=True)
class Outside:
    """A source of data of which nobody knows a finite model."""

    truth: None = None

    def rollout(self, *given):
        raise AssertionError("nothing is drawn")


def test_claims_need_an_environment_whose_truth_is_known(tmp_path):
    plan = make_experiment(
        "outside",
        environments=[replace(make("gridworld"), simulator=Outside())],
        algorithms=["basic-rl"],
        certifiers=["robust"],
        episodes=[5],
        repetitions=1,
        seed=1,
    )
    with pytest.raises(SurestepError, match="is simulated, so no true gain is known"):
        run_experiment(plan, tmp_path / "run")


def test_judges_by_episodes_see_policies_that_other_episodes_chose(plan, tmp_path):
    certifier = """
[[certifiers]]
name = "trajectory"
interval = "betting"
horizon = 50
reward_low = 0
reward_high = 1
"""
    plan.write_text(PLAN.replace(RANDOM, "").partition("[[certifiers]]")[0] + certifier)
    columns, _ = run(plan, tmp_path / "run")
    assert set(columns["standing"]) == {"proved"}
    (experiment,) = read_experiments(str(plan))
    seed = certifier_of(blocks_of(experiment)[0], experiment.certifiers[0], 200, 2).seed
    benchmark = make("gridworld")
    rng = np.random.default_rng(data_seed(5, EnvironmentSpec("gridworld"), 200, 2))
    problem = benchmark.problem(benchmark.sample(200, rng))
    policy = AlgorithmSpec("basic-rl").make().improve(training_part(problem, 0.2, seed)).policy
    expected = performance(benchmark.mdp, policy) - benchmark.performance_of_behavior()
    mine = (columns["episodes"] == 200) & (columns["algorithm"] == "basic-rl")
    assert columns["gain"][mine][2] == pytest.approx(expected, abs=1e-9)


HARD = """
seed = 7
repetitions = 3
episodes = [40]

[[environments]]
name = "noisy"
law = "skewed"

[[environments]]
name = "coarse"

[[algorithms]]
name = "spibb"
n_wedge = 3

[[certifiers]]
name = "stitched"
known_start = true

[[certifiers]]
name = "robust"
strict = true
"""


def test_what_only_a_log_shows_is_given_as_a_log_and_judged_in_the_truth(plan, tmp_path):
    plan.write_text(HARD)
    columns, first = run(plan, tmp_path / "run")
    assert run(plan, tmp_path / "again")[1] == first
    assert set(columns["refusal"]) == {""}
    assert set(columns["standing"]) == {"proved"}
    for name, parameters in (("noisy", {"law": "skewed"}), ("coarse", {})):
        benchmark = make(name, **parameters)
        spec = EnvironmentSpec(name, tuple(parameters.items()))
        rng = np.random.default_rng(data_seed(7, spec, 40, 1))
        problem = benchmark.problem(benchmark.sample(40, rng))
        algorithm = AlgorithmSpec("spibb", (("n_wedge", 3),)).make()
        training = training_part(problem, CERTIFIERS["stitched"]().train_share, None)
        for kind, part in (("stitched", training), ("robust", problem)):
            acting = benchmark.truth.acting(algorithm.improve(part).policy)
            gain = performance(benchmark.truth.mdp, acting) - benchmark.performance_of_behavior()
            mine = (columns["environment"] == spec.label) & (columns["certifier"] == kind)
            assert columns["gain"][mine][1] == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize("declared", [True, False])
def test_ranges_of_rewards_are_told_as_declared_or_read_off_the_log(declared):
    world = make("disaster", declared=declared)
    log = next(
        log
        for log in (world.sample(9, np.random.default_rng(seed)) for seed in range(99))
        if log.reward.min() == 1.0
    )
    problem = problem_of(world, log)
    assert problem.value_bounds == pytest.approx((-10_000 if declared else 0.0, 30.0))
    assert [said.code for said in problem.premises] == ["rewards-within-seen"] * (not declared)
    told = told_of_log(CERTIFIERS["posterior"], world, problem, {})
    assert told.get("extreme_weight") == (1.0 if declared else None)
    assert told.get("ending_low") == (-500.0 if declared else None)
    returns = told_of_log(CERTIFIERS["stitched"], world, problem, {})
    assert returns["return_low"] == pytest.approx(-10_000.0 if declared else 0.0)
    claims = claimed([Stitched(**returns)], [problem], world.behavior.probability[np.newaxis])
    assert [*claims.standing] == ["proved" if declared else "rewards-within-seen"]


def test_certifiers_of_logs_are_told_what_a_user_would_say():
    noisy, plain = make("noisy", law="skewed"), make("alike")
    logs = [each.problem(each.sample(60, np.random.default_rng(0))) for each in (noisy, plain)]
    told = told_of_log(CERTIFIERS["stitched"], noisy, logs[0], {})
    assert told == pytest.approx({"return_low": 0.0, "return_high": 60.0})
    assert told_of_log(CERTIFIERS["stitched"], plain, logs[1], {}) == {
        "return_low": 0.0,
        "return_high": 1.0,
    }
    bounds = {"reward_low": 0.0, "reward_high": 20.0}
    assert told_of_log(CERTIFIERS["robust"], noisy, logs[0], {}) == pytest.approx(bounds)
    assert told_of_log(CERTIFIERS["posterior"], noisy, logs[0], {})["rewards"] == "bounded"
    assert told_of_log(CERTIFIERS["posterior"], plain, logs[1], {}) == {}
    river = make("wet-chicken")
    known = river.problem(river.sample(3, np.random.default_rng(0)))
    assert told_of_log(CERTIFIERS["robust"], river, known, {}) == {}


# ---- do the claims hold? ----------------------------------------------------------------------

PROVED = """
seed = 11
repetitions = REPETITIONS
episodes = [30, 30000]

[[environments]]
name = "gridworld"

[[environments]]
name = "wet-chicken"

[[environments]]
name = "random-mdp"
seed = {first = 1, last = 2}

[[algorithms]]
name = "spibb"
n_wedge = 5

[[algorithms]]
name = "basic-rl"

[[certifiers]]
"""


@dataclass(frozen=True)
class Hopeful:
    """Claims the gain in the estimate, with no margin at all, as if that were proved."""

    delta: float = 0.1
    name: ClassVar = "hopeful"
    value_figures: ClassVar = frozenset()
    needs: ClassVar = Needs()

    def certify(self, problem, policy: Policy):
        model = problem.estimate()
        gain = performance(model, policy) - performance(model, problem.behavior)
        return Certificate(
            kind="hopeful", standing="proved", lower=gain, delta=self.delta, span=1.0,
            assumptions=("Hope.",), parameters={}, figures={},
        )  # fmt: skip


def claims_of(tmp_path, repetitions, certifiers):
    """The cells of the plan above with these certifiers."""
    path = tmp_path / "proved.toml"
    path.write_text(PROVED.replace("REPETITIONS", str(repetitions)) + certifiers)
    return cell_summaries(run(path, tmp_path / "run")[0])


def test_proved_claims_are_not_refuted(tmp_path):
    cells = claims_of(
        tmp_path,
        1,
        'name = "robust"\nset = ["interval", "l1", "two-successor"]\nknown_start = true\n'
        "strict = [false, true]",
    )
    assert len(cells) == 4 * 2 * 2 * 6
    strict = ["strict=True" in each.cell.certifier_setting for each in cells]
    assert [each.standing == ("proved",) for each in cells] == strict
    assert refuted(cells, "proved") == []


@pytest.mark.slow
def test_claims_without_a_margin_are_found_out(tmp_path, monkeypatch):
    monkeypatch.setitem(CERTIFIERS, "hopeful", Hopeful)
    cells = claims_of(tmp_path, 40, 'name = "hopeful"')
    wrong = refuted(cells, "by extension")  # what it calls proved is not
    assert {each.cell.family for each in wrong} == {"gridworld", "wet-chicken", "random-mdp"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coverage/gridworld", "coverage/wet-chicken"])
def test_proved_claims_of_the_catalog_are_not_refuted(tmp_path, name):
    (experiment,) = read_experiments(name)
    robust = tuple(spec for spec in experiment.certifiers if spec.name == "robust")
    only = replace(experiment, certifiers=robust, repetitions=200)
    run_experiment(only, tmp_path / "run")
    cells = cell_summaries(Store(tmp_path / "run").read_table())
    assert len(cells) == 10
    assert {(each.standing, each.repetitions) for each in cells} == {(("proved",), 200)}
    assert refuted(cells, "proved") == []
