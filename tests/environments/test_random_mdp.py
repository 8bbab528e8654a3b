"""Random MDPs: the published example, ratios, goals and eggs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surestep import Policy, performance
from surestep.environments import make
from surestep.environments.random_mdp import draw_garnet

EGGS = ["random-mdp/easter-egg", "random-mdp/bad-egg"]


def ends(mdp):
    return np.flatnonzero(mdp.dense().P.sum(axis=(1, 2)) == 0).tolist()


def test_the_published_example_comes_out():
    benchmark = make("random-mdp", seed=1, ratio=0.5)
    mdp = benchmark.mdp
    assert ends(mdp) == [45]
    assert benchmark.optimal_performance() == pytest.approx(0.5385436718, abs=1e-10)
    assert performance(mdp, Policy.uniform(mdp)) == pytest.approx(0.1129664438, abs=1e-10)
    assert benchmark.performance_of_behavior() == pytest.approx(0.3255731602, abs=1e-10)


@pytest.mark.one_quick
@pytest.mark.parametrize("seed", [2, 7])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_the_ratio_is_approached_from_below_and_closely(seed, ratio):
    benchmark = make("random-mdp", seed=seed, ratio=ratio)
    chance = performance(benchmark.mdp, Policy.uniform(benchmark.mdp))
    span = benchmark.optimal_performance() - chance
    found = (benchmark.performance_of_behavior() - chance) / span
    assert ratio - 0.03 < found <= ratio


@pytest.mark.parametrize("ratio", [0, 1])
def test_the_extreme_ratios_are_chance_and_the_optimum(ratio):
    benchmark = make("random-mdp", seed=4, ratio=ratio)
    chance = performance(benchmark.mdp, Policy.uniform(benchmark.mdp))
    goal = [chance, benchmark.optimal_performance()][ratio]
    assert benchmark.performance_of_behavior() == pytest.approx(goal, abs=0.01)


def test_dynamics_are_random_gaps_on_distinct_successors():
    mdp = make("random-mdp", seed=3).mdp
    (goal,) = ends(mdp)
    assert goal != 0
    lengths = np.diff(mdp.offsets).reshape(50, 4)
    assert (lengths[np.arange(50) != goal] == 4).all()
    assert np.array_equal(mdp.reward, mdp.successor == goal)
    # By seed: the first pair's chances and successors, drawn one after the other.
    draws = np.random.RandomState(3)
    cuts = np.sort(draws.random_sample(3))
    assert_allclose(mdp.probability[:4], np.diff([0, *cuts, 1]), rtol=0, atol=1e-12)
    assert mdp.successor[:4].tolist() == draws.permutation(50)[:4].tolist()


@pytest.mark.one_quick
@pytest.mark.parametrize("seed", [5, 11])
def test_the_goal_is_the_hardest_state_within_reach(seed):
    garnet = draw_garnet(200, 50, 4, np.random.RandomState(seed))
    P = np.zeros((50, 4, 50))
    for pair, (row, chances) in enumerate(zip(*garnet, strict=True)):
        P[pair // 4, pair % 4, row] = chances
    optima = {}
    for goal in range(1, 50):
        going_on = P.copy()
        going_on[goal] = 0
        value = np.zeros(50)
        for _ in range(400):
            value = (going_on[:, :, goal] + 0.95 * going_on @ value).max(axis=1)
        optima[goal] = value[0]
    hardest = min((g for g in optima if optima[g] > 0.95**50), key=optima.get)
    assert ends(make("random-mdp", seed=seed, ratio=1).mdp) == [hardest]


@pytest.mark.one_quick
@pytest.mark.parametrize("name", EGGS)
def test_an_egg_is_hidden_after_the_policy_is_made(name):
    plain, hidden = make("random-mdp", seed=6), make(name, seed=6)
    assert hidden.behavior == plain.behavior
    (goal,) = ends(plain.mdp)
    (egg,) = set(ends(hidden.mdp)) - {goal}
    assert egg not in (0, goal)
    prize = {"random-mdp/easter-egg": 1.0, "random-mdp/bad-egg": -1.0}[name]
    paid = {goal: 1.0, egg: prize}
    assert hidden.mdp.reward.tolist() == [paid.get(s, 0.0) for s in hidden.mdp.successor.tolist()]
    before, after = plain.mdp.dense().P, hidden.mdp.dense().P
    others = np.arange(50) != egg
    assert np.array_equal(before[others], after[others])


@pytest.mark.thorough
def test_eggs_of_one_seed_lie_in_one_place_and_of_many_in_many():
    places = {}
    for seed in range(6):
        good, bad = (ends(make(name, seed=seed, ratio=1).mdp) for name in EGGS)
        assert good == bad
        places[seed] = tuple(good)
    assert len(set(places.values())) > 3
