"""The numbers that are known of two benchmarks come out."""

import pytest

from contract.settings import SETTINGS, needs_log
from support.known_worlds import gridworld, wet_chicken
from surestep import optimal, performance
from surestep.algorithms import ALGORITHMS, BasicRL, Promise

GRIDWORLD_ACTIONS = "0000000010000001100011110"
WET_CHICKEN_ACTIONS = "4440344403444124422242222"
WORLDS = {
    "Gridworld": (gridworld, 0.40225016191804486, 0.5977416086682905),
    "Wet Chicken": (wet_chicken, 20.659782124191565, 43.08002481320604),
}
LEARNERS = [
    algorithm
    for name in ALGORITHMS
    for algorithm in SETTINGS.get(name, ())
    if Promise.REACHES_OPTIMUM in algorithm.promises and not needs_log(algorithm)
]


@pytest.mark.parametrize("world", WORLDS)
def test_the_behavior_policy_and_the_best_one_are_worth_what_is_known(world):
    make, of_behavior, of_best = WORLDS[world]
    problem = make(1)
    truth = problem.estimate()
    assert performance(truth, problem.behavior) == pytest.approx(of_behavior, rel=1e-9)
    assert truth.initial @ optimal(truth).value == pytest.approx(of_best, rel=1e-9)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("algorithm", LEARNERS, ids=repr)
def test_with_all_the_data_in_the_world_the_optimum_is_reached(algorithm, world):
    make, _, of_best = WORLDS[world]
    problem = make(10**14)
    found = algorithm.improve(problem).policy
    assert performance(problem.estimate(), found) == pytest.approx(of_best, rel=1e-6)


@pytest.mark.parametrize(
    ("world", "actions"), [("Gridworld", GRIDWORLD_ACTIONS), ("Wet Chicken", WET_CHICKEN_ACTIONS)]
)
def test_basic_rl_finds_the_known_actions(world, actions):
    problem = WORLDS[world][0](1)
    chosen = BasicRL().improve(problem).policy.dense().argmax(axis=1)
    assert "".join(map(str, chosen)) == actions
