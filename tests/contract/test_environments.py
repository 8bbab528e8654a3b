"""What every benchmark promises, and the facts that the published ones must meet."""

import copy
import inspect
import pickle
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.frozen import assert_frozen
from surestep import FiniteMDP, Policy, Problem, SurestepError, evaluate, optimal
from surestep.environments import ENVIRONMENTS, Benchmark, make, registry
from surestep.errors import InvalidParameter, ShapeMismatch


class Facts(NamedTuple):
    """What is stated of a benchmark; None where nobody did."""

    states: int
    actions: int
    discount: float
    horizon: int | None
    rewards: str
    bounds: tuple[float, float]
    behavior: float | None  # ρ(π_b)
    optimum: float | None  # ρ(π*)


GRID = (25, 4, 0.95, 50, "observed", (0, 1), 0.40225016191804486, 0.5977416086682905)
RIVER = 3.3636363636363633 / 0.05
GOLD = 1 / (1 - 0.995**8)
BEST_GOLD = 21.99378540218195
MAZE = (1 + 0.95 + 2 * (0.95**2 + 0.95**3 + 0.95**4 + 0.95**5)) / 10  # by steps to the cheese
FACTS = {
    "gridworld": Facts(*GRID),
    "gridworld/uniform-data": Facts(*GRID),
    "wet-chicken": Facts(
        25, 5, 0.95, 10, "known", (0, RIVER), 20.659782124191565, 43.08002481320604
    ),
    "wet-chicken/heuristic": Facts(
        25, 5, 0.95, None, "observed", (0, RIVER), 29.75017384741, 43.08002481320604
    ),
    "resource-gathering": Facts(
        376, 4, 0.995, 60, "known", (0, GOLD), 4.491149038261765, BEST_GOLD
    ),
    "resource-gathering/near-optimal": Facts(
        376, 4, 0.995, 60, "known", (0, GOLD), 21.992454671144326, BEST_GOLD
    ),
    "resource-gathering/ragged": Facts(376, 4, 0.995, 60, "known", (0, GOLD), None, BEST_GOLD),
    "random-mdp": Facts(50, 4, 0.95, 50, "observed", (0, 1), 0.3255731602, 0.5385436718),
    "random-mdp/easter-egg": Facts(50, 4, 0.95, 50, "observed", (0, 1), None, None),
    "random-mdp/bad-egg": Facts(50, 4, 0.95, 50, "observed", (-1, 1), None, None),
    "sysadmin": Facts(256, 9, 0.95, 40, "known", (-1, 160), 78.90877931084847, 96.44640109896013),
    "alike": Facts(20, 4, 0.95, 50, "observed", (0, 1), None, None),
    "nearly-alike": Facts(20, 4, 0.95, 50, "observed", (0, 1), None, None),
    "noisy": Facts(20, 4, 0.95, 50, "observed", (0, 3), None, None),
    "bandit": Facts(3, 10, 0.95, 1, "observed", (0, 1), None, None),
    "disaster": Facts(2, 2, 0.95, 50, "observed", (-10_000, 30), 0.8994 / 0.145, 1 / 0.145),
    "jackpot": Facts(2, 2, 0.95, 50, "observed", (0, 40_000), 1.8996 / 0.145, 1.9995 / 0.145),
    "adaptive": Facts(20, 4, 0.95, 50, "observed", (0, 1), None, None),
    "adaptive/bandit": Facts(3, 10, 0.95, 1, "observed", (0, 1), None, None),
    "copied": Facts(20, 4, 0.95, 50, "observed", (0, 1), None, None),
    "outcome-in-state": Facts(4, 2, 0.95, 8, "observed", (-10, 20), -0.6 / 0.2305, 0),
    "stops-that-know": Facts(3, 2, 0.9, 30, "observed", (0, 10), 0.65 / 0.19, 5),
    "coarse": Facts(20, 4, 0.95, 50, "observed", (0, 1), None, None),
    "hidden-cause": Facts(12, 2, 0.99, 200, "observed", (0, 1), None, None),
    "tiger": Facts(7, 3, 0.95, 100, "observed", (-100, 10), None, 10),
    "voicemail": Facts(7, 3, 0.95, 100, "observed", (-20, 5), None, 5),
    "cheese-maze": Facts(35, 4, 0.95, 100, "observed", (0, 1), None, MAZE),
}
STARTS_BY_CHANCE = ("tiger", "voicemail", "cheese-maze", "outcome-in-state")
OTHERWISE = {
    "gridworld": {"size": 9},
    "gridworld/uniform-data": {"size": 4},
    "wet-chicken": {"length": 7, "width": 3},
    "wet-chicken/heuristic": {"length": 8, "width": 4, "epsilon": 0.5},
    "resource-gathering": {"gold": 2, "gem": 0},
    "resource-gathering/near-optimal": {"gold": 0, "gem": 2},
    "resource-gathering/ragged": {"gold": 2, "gem": 1},
    "random-mdp": {"seed": 8, "ratio": 0.9},
    "random-mdp/easter-egg": {"seed": 8, "ratio": 0.1},
    "random-mdp/bad-egg": {"seed": 8, "ratio": 0.9},
    "sysadmin": {"machines": 4},
    "alike": {"seed": 2},
    "nearly-alike": {"effect": 1, "states": 7, "actions": 3, "successors": 2},
    "noisy": {"seed": 2, "law": "skewed", "effect": 1},
    "bandit": {"arms": 2, "effect": 0},
    "disaster": {"chance": 0.5, "situations": 3},
    "jackpot": {"chance": 0, "situations": 2},
    "adaptive": {"seed": 2, "epsilon": 1},
    "adaptive/bandit": {"arms": 100, "epsilon": 0.1},
    "copied": {"seed": 2, "times": 2},
    "outcome-in-state": {"deadly": 0},
    "stops-that-know": {"breaks": 0.5},
    "coarse": {"seed": 2, "group": 2},
    "hidden-cause": {"tilt": 0},
    "tiger": {"memory": 3},
    "voicemail": {"memory": 2},
    "cheese-maze": {"memory": 0},
}
NAMES = [name for name in ENVIRONMENTS if name != "icu-sepsis"]  # which has a test of its own
CASES = [
    *[pytest.param((name, {}), id=name) for name in NAMES],
    *[pytest.param((name, OTHERWISE[name]), id=f"{name}, other") for name in NAMES],
]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    name, parameters = request.param
    return name, parameters, make(name, **parameters)


def judged(benchmark):
    """Where policies are judged, with π_b acting there: the model, unless the log shows less."""
    return benchmark.best_model.mdp, benchmark.best_model.acting(benchmark.behavior)


def dense_value(benchmark, mdp, table):
    """ρ(π) by a dense solve, from the tables."""
    dense = mdp.dense()
    rewards = dense.R if dense.R.ndim == 2 else (dense.P * dense.R).sum(axis=2)
    chain = np.einsum("sa,sat->st", table, dense.P)
    earned = (table * rewards).sum(axis=1)
    value = np.linalg.solve(np.eye(len(chain)) - benchmark.discount * chain, earned)
    return mdp.initial @ value


def test_the_facts_cover_the_registry():
    assert list(FACTS) == NAMES == list(OTHERWISE)
    assert registry.PUBLISHED | registry.FAMILIES == ENVIRONMENTS


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_states_the_facts(name):
    facts, benchmark = FACTS[name], make(name)
    assert benchmark.name == name
    assert (benchmark.num_states, benchmark.num_actions) == (facts.states, facts.actions)
    assert (benchmark.discount, benchmark.horizon) == (facts.discount, facts.horizon)
    assert benchmark.rewards == facts.rewards
    assert_allclose(benchmark.value_bounds, facts.bounds, rtol=1e-12)
    if facts.behavior is not None:
        assert benchmark.performance_of_behavior() == pytest.approx(facts.behavior, abs=1e-9)
    if facts.optimum is not None:
        assert benchmark.optimal_performance() == pytest.approx(facts.optimum, abs=1e-9)


def test_model_and_policies_belong_together(case):
    _, _, benchmark = case
    mdp = benchmark.mdp
    assert isinstance(mdp, FiniteMDP)
    if benchmark.name not in (*STARTS_BY_CHANCE, "sysadmin"):  # which starts in its last state
        assert mdp.initial[0] == 1
    assert benchmark.behavior.pairs == benchmark.collector.pairs == mdp.pairs
    assert (benchmark.collector == benchmark.behavior) == ("uniform-data" not in benchmark.name)
    sums = np.add.reduceat(mdp.probability, mdp.offsets[:-1][np.diff(mdp.offsets) > 0])
    assert_allclose(sums, 1, rtol=0, atol=1e-12)
    assert (mdp.probability > 0).all()


def test_performances_are_those_of_a_dense_solve(case):
    _, _, benchmark = case
    mdp, policy = judged(benchmark)
    behavior = dense_value(benchmark, mdp, policy.dense())
    assert benchmark.performance_of_behavior() == pytest.approx(behavior, abs=1e-9)
    best = dense_value(benchmark, mdp, optimal(mdp).policy.dense())
    assert benchmark.optimal_performance() == pytest.approx(best, abs=1e-9)
    assert behavior <= best + 1e-9


def test_value_bounds_hold_for_every_policy(case):
    """The best policy of the rewards and that of their negatives enclose all others."""
    _, _, benchmark = case
    mdp, (low, high) = judged(benchmark)[0], benchmark.value_bounds
    best, worst = optimal(mdp).value, -optimal(replace(mdp, reward=-mdp.reward)).value
    assert low - 1e-9 <= worst.min() <= best.max() <= high + 1e-9
    rng = np.random.default_rng(0)
    for _ in range(5):
        policy = Policy.softmax(mdp, rng.normal(scale=3, size=mdp.num_pairs))
        value = evaluate(mdp, policy)
        assert (worst - 1e-8 <= value).all()
        assert (value <= best + 1e-8).all()


def test_the_same_call_gives_an_equal_benchmark(case):
    name, parameters, benchmark = case
    again = make(name, **parameters)
    assert again == benchmark
    assert again is not benchmark
    assert again != make("gridworld", size=3)


def test_a_benchmark_is_frozen_and_travels(case):
    _, _, benchmark = case
    assert_frozen(benchmark)
    assert copy.deepcopy(benchmark) == benchmark
    assert pickle.loads(pickle.dumps(benchmark)) == benchmark  # noqa: S301
    with pytest.raises(TypeError):
        hash(benchmark)


def test_data_poses_a_problem_on_the_terms_of_the_benchmark(case):
    _, _, benchmark = case
    log = benchmark.sample(7, np.random.default_rng(1))
    assert log == benchmark.sample(7, np.random.default_rng(1))
    stream = benchmark.horizon is None
    assert log.num_episodes == (1 if stream else 7)
    assert np.diff(log.episode_offsets).max() <= (7 if stream else benchmark.horizon)
    assert (benchmark.collector.dense()[log.state, log.action] > 0).all()
    problem = benchmark.problem(log)
    assert isinstance(problem, Problem)
    assert problem.behavior == benchmark.behavior
    assert problem.value_bounds == benchmark.value_bounds
    assert problem.single_discount == benchmark.discount
    assert problem.log == log
    unseen = problem.counts.visits == 0
    assert unseen.any()
    earned = problem.estimate().expected_reward
    if benchmark.rewards == "known":
        assert_allclose(earned, benchmark.mdp.expected_reward, rtol=0, atol=1e-12)
        assert benchmark.known_rewards is not None
    else:
        assert (earned[unseen] == 0).all()
        assert benchmark.known_rewards is None


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_benchmark_says_what_it_is_and_every_parameter_has_a_default(name):
    function = ENVIRONMENTS[name]
    assert inspect.getdoc(function)
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.default is not inspect.Parameter.empty


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("gridwrld", {}, "there is no environment 'gridwrld'; did you mean gridworld or gridworld"),
        ("gridworld", {"sise": 5}, "gridworld has no parameter 'sise'; did you mean size? expecte"),
        ("gridworld", {"size": 1}, "size is 1, expected a whole number from 2 to 1,414"),
        ("wet-chicken", {"length": 0}, "length is 0, expected a whole number from 1 to 2,000,000"),
        ("wet-chicken", {"length": 5000, "width": 5000}, "5000 make 25000000 states, expected at"),
        ("resource-gathering", {"gold": -1}, "gold is -1, expected a whole number from 0 to"),
        ("random-mdp/bad-egg", {"seed": 2**32}, "seed is 4294967296, expected a whole number"),
        ("nearly-alike", {"states": 2}, "states is 2, expected a whole number from 3 to 1,000"),
        ("nearly-alike", {"successors": 21}, "successors is 21, expected a whole number from 1"),
        ("noisy", {"law": "normal"}, "law is 'normal'; expected one of two-point, skewed, heavy-"),
        ("bandit", {"arms": 0}, "arms is 0, expected a whole number from 1 to 10,000"),
        ("disaster", {"chance": -1}, "chance is -1, expected a number from 0 to 1"),
        ("jackpot", {"situations": 0}, "situations is 0, expected a whole number from 1 to 100"),
        ("coarse", {"group": 51}, "group is 51, expected a whole number from 1 to 50"),
        ("tiger", {"memory": 4}, "memory is 4, expected a whole number from 0 to 3"),
        ("icu-sepsis", {"discount": 0}, "discount is 0, expected a number above 0 and of at most"),
    ],
)
def test_names_and_parameters_that_do_not_exist_are_refused_by_name(name, parameters, words):
    with pytest.raises(InvalidParameter) as refusal:
        make(name, **parameters)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"mdp": None}, InvalidParameter, "mdp is None, expected FiniteMDP"),
        ({"behavior": None}, InvalidParameter, "behavior is None, expected Policy"),
        ({"collector": 3}, InvalidParameter, "collector is 3, expected Policy"),
        (
            {"collector": Policy.uniform(make("gridworld", size=2).mdp)},
            ShapeMismatch,
            "the model has 9 states, the collector policy has 4",
        ),
        ({"horizon": 0}, InvalidParameter, "horizon is 0, expected a whole number of at least 1"),
        ({"rewards": "mean"}, InvalidParameter, "rewards is 'mean'; expected one of known, obs"),
    ],
)
def test_a_benchmark_of_ones_own_is_checked(changes, error, words):
    plain = make("gridworld", size=3)
    parts = {
        "name": "mine",
        "mdp": plain.mdp,
        "behavior": plain.behavior,
        "horizon": 5,
        "rewards": "observed",
        "value_bounds": (0.0, 1.0),
    }
    assert Benchmark(**parts).collector == plain.behavior
    with pytest.raises(SurestepError) as refusal:
        Benchmark(**{**parts, **changes})
    assert type(refusal.value) is error
    assert words in str(refusal.value)
