"""The numbers that are known of two benchmarks come out."""

import numpy as np
import pytest

from contract.settings import SETTINGS, needs_log
from support.known_worlds import GOAL, gridworld, gridworld_table, wet_chicken, wet_chicken_table
from support.problems import uniform_problem
from surestep import Counts, Policy, optimal, performance
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


def test_the_uniform_policy_of_gridworld_is_worth_what_is_known():
    truth = gridworld(1).estimate()
    assert performance(truth, Policy.uniform(truth)) == pytest.approx(0.05221598337868832, rel=1e-9)


def test_rows_of_wet_chicken_are_the_known_ones():
    table = wet_chicken_table()
    rows = table / table.sum(axis=2, keepdims=True)
    assert rows[0, 0, [0, 5, 10, 15]] == pytest.approx([4 / 7, 1 / 7, 1 / 7, 1 / 7])
    assert rows[12, 2, [2, 7, 12, 17]] == pytest.approx([0.347826] + [0.217391] * 3, abs=1e-6)
    assert rows[24, 0, 0] == 1.0
    expected = wet_chicken(1).estimate().expected_reward
    assert expected[:5] == pytest.approx([6 / 7, 3 / 7, 1 / 7, 6 / 7, 6 / 7])
    assert expected.max() == pytest.approx(3.3636363636363633)


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


def test_basic_rl_takes_action_0_where_it_saw_nothing():
    seen = gridworld_table()
    seen[3:] = 0
    rewards = np.broadcast_to(np.arange(25) == GOAL, seen.shape).astype(float)
    counts = Counts.from_dense(seen, rewards=rewards)
    problem = uniform_problem(counts, 0.95, (0.0, 1.0))
    assert (BasicRL().improve(problem).policy.dense()[3:, 0] == 1.0).all()


def test_basic_rl_takes_the_best_known_reward_where_it_saw_nothing():
    table = np.zeros((25, 5, 25), int)
    rewards = wet_chicken(1).estimate().dense().R
    counts = Counts.from_dense(table, rewards=rewards)
    problem = uniform_problem(counts, 0.95, (0.0, 68.0))
    chosen = BasicRL().improve(problem).policy.dense().argmax(axis=1)
    # Left, right and drift earn the same: the first of them is taken.
    assert np.array_equal(chosen, (rewards >= rewards.max(axis=1, keepdims=True) - 1e-9).argmax(1))
