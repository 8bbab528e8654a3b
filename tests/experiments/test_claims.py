"""Claims held against the truth: the rows, how often they are wrong, and whether proofs hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.toy_extension import Hopeful
from surestep import performance
from surestep._arrays import run_owners
from surestep.certificates import CERTIFIERS, Stitched, training_part
from surestep.environments import make
from surestep.errors import SurestepError
from surestep.experiments import (
    cell,
    cell_summaries,
    family_summaries,
    read_experiments,
    refuted,
    run_experiment,
)
from surestep.experiments.cell import seeded_certifier, told_of_log
from surestep.experiments.experiment import AlgorithmSpec, CertifierSpec, EnvironmentSpec
from surestep.experiments.intervals import binomial_interval
from surestep.experiments.metrics import first_certified, without_size
from surestep.experiments.run import Store, plan_blocks
from surestep.offpolicy.intervals import lower_limit, upper_limit
from surestep.trials import claimed

RANDOM = ', {name = "random-mdp", seed = {first = 3, last = 4}}'
PLAN = f"""
seed = 5
repetitions = 4
episodes = [20, 200]
environments = [{{name = "gridworld"}}{RANDOM}]
algorithms = [{{name = "spibb", n_wedge = 5}}, {{name = "basic-rl"}}]
certifiers = [
    {{name = "a-priori", bound = ["spibb", "beta"]}},
    {{name = "robust", known_start = true, episodes = [200, 3000]}},
]
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
    problems = cell.counted_problems(benchmark, 4, [np.random.default_rng(1)])
    given, drawn = (
        cell.known_to_certifiers(benchmark, problems.problem(0)).counts,
        problems.problem(0).counts,
    )
    np.testing.assert_array_equal(given.visits, drawn.visits)
    np.testing.assert_array_equal(table_of(given), table_of(drawn))
    lengths = np.diff(given.offsets)
    if benchmark.known_rewards is None:  # all states, so that all their rewards are known
        goes_on = ~given.terminal[given.pairs.state]
        np.testing.assert_array_equal(lengths, np.where(goes_on, benchmark.num_states, 0))
        np.testing.assert_array_equal(given.rewards.values, cell.prizes(benchmark)[given.successor])
    else:
        assert (given.times > 0).all()
        np.testing.assert_array_equal(given.rewards.values, benchmark.known_rewards)


def test_random_numbers_of_a_certifier_change_with_the_repetition(plan):
    (experiment,) = read_experiments(str(plan))
    block = plan_blocks(experiment)[0]
    spec = CertifierSpec("posterior", (("draws", 99),))
    seeds = {seeded_certifier(block, spec, size, r).seed for size in (20, 200) for r in range(5)}
    assert len(seeds) == 10
    assert seeded_certifier(block, spec, 20, 3) == seeded_certifier(block, spec, 20, 3)
    fixed = CertifierSpec("posterior", (("seed", 7),))
    assert {seeded_certifier(block, fixed, 20, r).seed for r in range(3)} == {7}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"a-priori"', '"apriori"', "there is no kind of certificate 'apriori'"),
        ("known_start", "known_starts", "robust has no setting 'known_starts'"),
        ("{first = 3, last = 4}", '"repetition"', "claims are counted for each MDP"),
        ("{first = 3, last = 4}", "{first = 3}", "seed: object missing required field last"),
        ("episodes = [200, 3000]", "episodes = 200", "episodes: expected array . null, got int,"),
    ],
)
def test_mistakes_are_named(plan, old, new, message):
    assert old in PLAN
    plan.write_text(PLAN.replace(old, new))
    with pytest.raises(SurestepError, match=message):
        read_experiments(str(plan))


def test_judges_by_episodes_see_policies_that_other_episodes_chose(plan, tmp_path):
    terms = 'interval = "betting", horizon = 50, reward_low = 0, reward_high = 1'
    others = PLAN.replace(RANDOM, "").partition("certifiers")[0]
    plan.write_text(f'{others}certifiers = [{{name = "trajectory", {terms}}}]')
    columns, _ = run(plan, tmp_path / "run")
    assert set(columns["standing"]) == {"proved"}
    (experiment,) = read_experiments(str(plan))
    seed = seeded_certifier(plan_blocks(experiment)[0], experiment.certifiers[0], 200, 2).seed
    benchmark = make("gridworld")
    rng = np.random.default_rng(cell.data_seed(5, EnvironmentSpec("gridworld"), 200, 2))
    problem = benchmark.problem(benchmark.sample(200, rng))
    policy = AlgorithmSpec("basic-rl").make().improve(training_part(problem, 0.2, seed)).policy
    expected = performance(benchmark.mdp, policy) - benchmark.performance_of_behavior()
    mine = (columns["episodes"] == 200) & (columns["algorithm"] == "basic-rl")
    assert columns["gain"][mine][2] == pytest.approx(expected, abs=1e-9)


HARD = """
seed = 7
repetitions = 3
episodes = [40]
environments = [{name = "noisy", law = "skewed"}, {name = "coarse"}]
algorithms = [{name = "spibb", n_wedge = 3}]
certifiers = [{name = "stitched", known_start = true}, {name = "robust", strict = true}]
"""


@pytest.mark.thorough
def test_what_only_a_log_shows_is_given_as_a_log_and_judged_in_the_truth(plan, tmp_path):
    plan.write_text(HARD)
    columns, first = run(plan, tmp_path / "run")
    assert run(plan, tmp_path / "again")[1] == first
    assert set(columns["refusal"]) == {""}
    assert set(columns["standing"]) == {"proved"}
    for name, parameters in (("noisy", {"law": "skewed"}), ("coarse", {})):
        benchmark = make(name, **parameters)
        spec = EnvironmentSpec(name, tuple(parameters.items()))
        rng = np.random.default_rng(cell.data_seed(7, spec, 40, 1))
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
    problem = cell.problem_for_certifiers(world, log)
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


PROVED = """
seed = 11
episodes = [30, 30000]
environments = [
    {name = "gridworld"},
    {name = "wet-chicken"},
    {name = "random-mdp", seed = {first = 1, last = 2}},
]
algorithms = [{name = "spibb", n_wedge = 5}, {name = "basic-rl"}]
"""


def claims_of(tmp_path, repetitions, certifier, plan=PROVED):
    """The cells of the plan above with these certifiers."""
    path = tmp_path / "proved.toml"
    more = f"repetitions = {repetitions}\ncertifiers = [{{{certifier}}}]"
    path.write_text(plan + more)
    return cell_summaries(run(path, tmp_path / "run")[0])


SETS = ("interval", "l1", "two-successor")
FEW = PROVED.replace(", 30000", "")  # episodes


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("plan", "sets", "repetitions"),  # so many that claims that are all wrong would be found out
    [(FEW, SETS[:1], 4), pytest.param(PROVED, SETS, 5, marks=pytest.mark.slow)],
    ids=["few", "all"],
)
def test_proved_claims_are_not_refuted(plan, sets, repetitions, tmp_path):
    robust = f'name = "robust", known_start = true, set = {[*sets]}, strict = [false, true]'
    cells = claims_of(tmp_path, repetitions, robust, plan)
    sizes = 1 if plan is FEW else 2
    assert len(cells) == 4 * 2 * sizes * 2 * len(sets)
    wrong = [each._replace(violations=repetitions) for each in cells]
    assert len(refuted(wrong, "proved")) == len(cells) // 2
    strict = ["strict=True" in each.cell.certifier_setting for each in cells]
    assert [each.standing == ("proved",) for each in cells] == strict
    assert refuted(cells, "proved") == []


@pytest.mark.slow
def test_claims_without_a_margin_are_found_out(tmp_path, monkeypatch):
    monkeypatch.setitem(CERTIFIERS, "hopeful", Hopeful)
    cells = claims_of(tmp_path, 40, 'name = "hopeful", margin = 0.0')
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
    assert (lower_limit(0, trials, level), upper_limit(trials, trials, level)) == (0.0, 1.0)


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
