"""The continuous river: its steps, its cells, its logs, and the model of its cells."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from surestep import Policy, performance
from surestep.environments import RiverCells, make
from surestep.errors import InvalidParameter, ShapeMismatch

RIVER = RiverCells(per_unit=2)
MOVES = [(0, 0), (-1, 0), (-2, 0), (0, -1), (0, 1)]


def target(x, y, action, noise, length=5, width=5):
    """One step from the words: noise in [−1, 1] is a share of the turbulence."""
    velocity = 3 * y / width
    there = x + MOVES[action][0] + velocity + (3.5 - velocity) * noise
    lane = min(max(y + MOVES[action][1], 0), width - 1)
    return (0.0, 0) if there >= length else (max(there, 0.0), lane)


@given(
    x=st.floats(0, 5, exclude_max=True),
    y=st.integers(0, 4),
    action=st.integers(0, 4),
    seed=st.integers(0, 2**32),
)
def test_a_step_is_what_its_description_says(x, y, action, seed):
    (found,) = RIVER.step(np.array([[x, y]]), np.array([action]), np.random.default_rng(seed))
    noise = np.random.default_rng(seed).uniform(-1, 1)
    assert_allclose(found, target(x, y, action, noise), rtol=0, atol=1e-12)


def test_cells_have_the_shore_for_themselves_and_are_closed_at_their_far_end():
    cells = RIVER
    assert cells.num_cells == 11
    at = [[0.0, 3], [1e-9, 0], [0.5, 0], [0.5000001, 1], [2.5, 2], [2.6, 2], [4.999, 4]]
    assert cells.state(np.array(at)).tolist() == [3, 5, 5, 11, 27, 32, 54]


@given(x=st.floats(0, 7, exclude_max=True), y=st.integers(0, 2), per_unit=st.integers(1, 9))
def test_a_position_lies_in_its_cell(x, y, per_unit):
    cells = RiverCells(length=7, width=3, per_unit=per_unit)
    cell, lane = divmod(int(cells.state(np.array([[x, y]]))[0]), 3)
    assert lane == y
    assert (cell - 1) / per_unit <= x <= cell / per_unit + 1e-12
    assert (cell == 0) == (x == 0)
    assert cell < cells.num_cells


@given(
    length=st.integers(1, 6), width=st.integers(1, 4), per_unit=st.integers(1, 4), data=st.data()
)
def test_the_model_moves_as_canoes_spread_evenly_over_a_cell(length, width, per_unit, data):
    cells = RiverCells(length=length, width=width, per_unit=per_unit)
    mdp = make("wet-chicken/continuous", length=length, width=width, cells=per_unit).mdp
    cell = data.draw(st.integers(0, cells.num_cells - 1))
    y, action = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, 4))
    grid = (np.arange(60) + 0.5) / 60
    positions = (cell - 1 + grid) / per_unit if cell else [0.0]
    ends = np.array(
        [target(x, y, action, 2 * u - 1, length, width) for x in positions for u in grid]
    )
    states = cells.state(ends)
    frequency = np.bincount(states, minlength=mdp.num_states) / len(ends)
    earned = np.bincount(states, ends[:, 0], mdp.num_states) / len(ends)
    pair = (width * cell + y) * 5 + action
    run = slice(mdp.offsets[pair], mdp.offsets[pair + 1])
    row, reward = np.zeros(mdp.num_states), np.zeros(mdp.num_states)
    row[mdp.successor[run]] = mdp.probability[run]
    reward[mdp.successor[run]] = mdp.reward[run]
    assert_allclose(row, frequency, rtol=0, atol=3 / 60)
    assert_allclose(row * reward, earned, rtol=0, atol=3 * length / 60)
    far = (mdp.successor[run] // width) / per_unit
    assert (mdp.reward[run] <= far + 1e-9).all()
    assert (mdp.reward[run] >= np.maximum(far - 1 / per_unit, 0) - 1e-9).all()


def test_the_model_comes_closer_to_the_river_with_more_cells():
    values = [make("wet-chicken/continuous", cells=c).performance_of_behavior() for c in (2, 4, 8)]
    benchmark = make("wet-chicken/continuous", cells=2)
    episodes, steps = 3000, 200  # what comes later is worth at most 100 · 0.95^200 < 0.004
    log = benchmark.simulator.rollout(benchmark.behavior, episodes, steps, np.random.default_rng(5))
    returns = log.reward.reshape(episodes, steps) @ 0.95 ** np.arange(steps)
    # Five standard errors: the heuristic of two cells a unit is the same with any even number.
    noise = 5 * returns.std() / math.sqrt(episodes)
    assert noise < 0.6
    assert abs(values[2] - returns.mean()) <= noise + 0.004
    assert abs(values[2] - values[1]) < abs(values[1] - values[0]) < 0.1


def test_the_heuristic_of_the_published_river():
    chosen = make("wet-chicken/continuous", epsilon=0).behavior.dense().argmax(axis=1)

    def published(x, y):
        if x > 2.5:
            return 2
        if y < 2:
            return 4
        if y > 3:
            return 3
        return 2 if x > 2 else 1 if x > 1 else 0

    for cell in range(11):
        for y in range(5):
            inside = cell / 2 - (0.25 if cell else 0)
            assert chosen[5 * cell + y] == published(inside, y)


def test_logs_come_from_the_river_itself():
    benchmark = make("wet-chicken/continuous", cells=3)
    log = benchmark.sample(400, np.random.default_rng(3))
    assert (log.num_episodes, log.num_steps, log.state[0]) == (1, 400, 0)
    assert log == benchmark.sample(400, np.random.default_rng(3))
    cell = log.next_state // 5
    assert np.array_equal(cell, np.ceil(log.reward * 3))
    assert np.unique(log.reward).size > 100  # not the means of cells
    many = benchmark.simulator.rollout(benchmark.behavior, 20, 7, np.random.default_rng(3))
    assert np.diff(many.episode_offsets).tolist() == [7] * 20
    assert many.truncated.sum() == 20
    assert not many.terminated.any()
    assert (many.state[many.episode_offsets[:-1]] == 0).all()


def test_a_policy_on_cells_does_what_it_says():
    cells = RiverCells(per_unit=1)
    actions = np.arange(30) % 5
    log = cells.rollout(
        Policy.deterministic(cells.pairs, actions), 10, 20, np.random.default_rng(0)
    )
    assert np.array_equal(log.action, actions[log.state])


def test_the_uniform_policy_of_few_and_many_cells_is_worth_nearly_the_same():
    few, many = (make("wet-chicken/continuous", epsilon=1, cells=c).mdp for c in (1, 16))
    gap = performance(few, Policy.uniform(few)) - performance(many, Policy.uniform(many))
    assert abs(gap) < 0.2


def test_what_is_no_river_is_refused():
    with pytest.raises(InvalidParameter, match="per_unit is 0, expected a whole number from 1 to"):
        RiverCells(per_unit=0)
    with pytest.raises(ShapeMismatch, match="the river in cells has 30 states, the policy has 55"):
        RiverCells(per_unit=1).rollout(make("wet-chicken/continuous").behavior, 1, 1, None)
