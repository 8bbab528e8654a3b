"""Gridworld, against its description cell by cell, and what scaling keeps."""

from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surestep import Policy, evaluate, optimal, performance
from surestep.environments import make
from surestep.environments.gridworld import open_ways, shortest_ways

STEPS = [(0, 1), (1, 0), (0, -1), (-1, 0)]  # north, east, south, west
# The published walls: between x = 2 and 3 for y = 0, 1, 2, and between x = 3 and 4 for y = 2, 3.
WALLS = {((2, y), (3, y)) for y in (0, 1, 2)} | {((3, y), (4, y)) for y in (2, 3)}


def passable(here, there, size=5):
    inside = all(0 <= c < size for c in there)
    return inside and (here, there) not in WALLS and (there, here) not in WALLS


def table_by_hand():
    """P [25, 4, 25] from the words, in exact rationals."""
    P = [[[Fraction(0)] * 25 for _ in range(4)] for _ in range(25)]
    for y in range(5):
        for x in range(5):
            if (x, y) == (4, 4):
                continue
            for action in range(4):
                chances = {0: Fraction(75, 100), 1: Fraction(1, 10), 3: Fraction(1, 10)}
                chances[2] = Fraction(5, 100)
                for turn, chance in chances.items():
                    right, up = STEPS[(action + turn) % 4]
                    there = (x + right, y + up)
                    at = there if passable((x, y), there) else (x, y)
                    P[x + 5 * y][action][at[0] + 5 * at[1]] += chance
    return P


def test_the_published_grid_is_what_its_description_says():
    dense = make("gridworld").mdp.dense()
    assert_allclose(dense.P, np.array(table_by_hand(), float), rtol=0, atol=1e-12)
    assert np.array_equal(
        dense.R[:24], dense.P[:24] * 0 + (np.arange(25) == 24) * (dense.P[:24] > 0)
    )
    assert dense.P[24].sum() == 0
    assert (dense.P[:24].sum(axis=2) == 1).all()
    earned = make("gridworld").mdp.expected_reward.reshape(25, 4)
    assert set(np.flatnonzero(earned.any(axis=1))) == {19, 23}
    assert_allclose(earned[19], [0.75, 0.10, 0.05, 0.10], atol=1e-12)
    assert_allclose(earned[23], [0.10, 0.75, 0.10, 0.05], atol=1e-12)


def test_policies_and_values_are_those_published():
    benchmark = make("gridworld")
    mdp = benchmark.mdp
    plan = optimal(mdp)
    assert "".join(map(str, plan.policy.dense().argmax(axis=1)))[:24] == "000000001000000110001111"
    assert performance(mdp, Policy.uniform(mdp)) == pytest.approx(0.05221598337868832, abs=1e-9)
    assert plan.value.max() == pytest.approx(0.979, abs=5e-4)
    assert plan.value.max() > 0.6  # the published V_max bounds nothing
    assert_allclose(benchmark.behavior.dense()[24], 0.25)


def test_episodes_are_as_long_as_published():
    benchmark = make("gridworld")
    chain = np.einsum("sa,sat->st", benchmark.behavior.dense(), benchmark.mdp.dense().P)
    at, length = np.eye(25)[0], 0.0
    for _ in range(benchmark.horizon):
        length += at[:24].sum()
        at = at @ chain
    assert length == pytest.approx(21.10, abs=0.005)


def test_the_data_of_the_variant_is_made_by_the_uniform_policy():
    plain, variant = make("gridworld"), make("gridworld/uniform-data")
    assert variant.mdp == plain.mdp
    assert variant.behavior == plain.behavior == plain.collector
    assert variant.collector == Policy.uniform(plain.mdp)


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_walls_keep_their_place_when_the_grid_grows(factor):
    size = 5 * factor
    ways = open_ways(size).reshape(size, size, 4)
    for y in range(size):
        for x in range(size):
            for direction, (right, up) in enumerate(STEPS):
                there = (x + right, y + up)
                blocks = (x // factor, y // factor), (there[0] // factor, there[1] // factor)
                inside = all(0 <= c < size for c in there)
                expected = inside and (blocks[0] == blocks[1] or passable(*blocks))
                assert ways[y, x, direction] == expected, (x, y, direction)


@pytest.mark.parametrize("size", range(2, 31))
def test_every_size_has_ways_there_and_back_and_a_shortest_one_to_the_goal(size):
    ways, step = open_ways(size), [size, 1, -size, -1]
    distance = {size * size - 1: 0}
    queue = deque(distance)
    while queue:
        state = queue.popleft()
        for direction in np.flatnonzero(ways[state]):
            target = state + step[direction]
            assert ways[target, (direction + 2) % 4]
            if target not in distance:
                distance[target] = distance[state] + 1
                queue.append(target)
    assert len(distance) == size * size
    for state, action in enumerate(shortest_ways(size)[:-1]):
        assert ways[state, action]
        assert distance[state + step[action]] == distance[state] - 1


def test_what_scales_and_what_stays():
    small, large = make("gridworld"), make("gridworld", size=40)
    assert large.num_states == 1600
    assert large.horizon == 400
    assert large.discount**8 == pytest.approx(small.discount, abs=1e-12)
    detour = large.behavior.dense()
    assert_allclose(np.sort(detour, axis=1), np.tile([1 / 12, 1 / 12, 1 / 12, 3 / 4], (1600, 1)))
    assert 0.5 < large.performance_of_behavior() / large.optimal_performance() < 0.75
    assert evaluate(large.mdp, large.behavior).max() < 1


@pytest.mark.slow
def test_a_million_cells_are_built_in_seconds():
    import time

    start = time.perf_counter()
    benchmark = make("gridworld", size=1000)
    assert time.perf_counter() - start < 30
    assert benchmark.num_states == 10**6
    assert benchmark.mdp.num_transitions < 20 * 10**6
