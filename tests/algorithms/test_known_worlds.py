"""The numbers that are known of two benchmarks come out."""

import pytest

from support.known_worlds import gridworld, wet_chicken
from surestep import optimal, performance
from surestep.algorithms import BasicRL

GRIDWORLD_ACTIONS = "0000000010000001100011110"
WET_CHICKEN_ACTIONS = "4440344403444124422242222"
WORLDS = {
    "Gridworld": (gridworld, 0.40225016191804486, 0.5977416086682905),
    "Wet Chicken": (wet_chicken, 20.659782124191565, 43.08002481320604),
}


@pytest.mark.parametrize("world", WORLDS)
def test_the_behavior_policy_and_the_best_one_are_worth_what_is_known(world):
    make, of_behavior, of_best = WORLDS[world]
    problem = make(1)
    truth = problem.estimate()
    assert performance(truth, problem.behavior) == pytest.approx(of_behavior, rel=1e-9)
    assert truth.initial @ optimal(truth).value == pytest.approx(of_best, rel=1e-9)


@pytest.mark.parametrize(
    ("world", "actions"), [("Gridworld", GRIDWORLD_ACTIONS), ("Wet Chicken", WET_CHICKEN_ACTIONS)]
)
def test_basic_rl_finds_the_known_actions(world, actions):
    problem = WORLDS[world][0](1)
    chosen = BasicRL().improve(problem).policy.dense().argmax(axis=1)
    assert "".join(map(str, chosen)) == actions
