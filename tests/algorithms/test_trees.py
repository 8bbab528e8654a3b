"""Trees of rules: against exhaustive search, and the policies that they expand to."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surestep.algorithms import SPIBB
from surestep.algorithms.provable import free_pairs
from surestep.algorithms.trees import (
    StateColumn,
    best_split,
    followed,
    gains,
    grow,
    leaf_of,
    number_of_rules,
    trees_of,
)
from surestep.environments import make

MOST = 6


def worth(gain, tree):
    """Sums the gains of a tree: what each state has by the action of its leaf."""
    covered = np.zeros(len(gain), int)
    total = 0.0
    for leaf in tree:
        inside = leaf.states
        covered += inside
        total += gain[inside, leaf.action].sum()
    assert covered.max(initial=0) <= 1
    return total


def best_tree(gain, columns, values, leaves):
    """Returns the largest worth of any tree with so many leaves at most, by trying all."""
    inside = np.ones(len(gain), bool)
    for column, own in zip(columns, values, strict=True):
        inside &= np.isin(column.code, [*own])
    best = gain[inside].sum(axis=0).max()
    if leaves == 1:
        return best
    for c, column in enumerate(columns):
        own = sorted(values[c])
        if column.ordered:
            sides = [own[:i] for i in range(1, len(own))]
        else:
            sides = [x for n in range(1, len(own)) for x in combinations(own, n)]
        for side in sides:
            rest = set(own) - set(side)
            for first in range(1, leaves):
                two = [
                    best_tree(gain, columns, [*values[:c], part, *values[c + 1 :]], size)
                    for part, size in ((side, first), (rest, leaves - first))
                ]
                best = max(best, sum(two))
    return best


@st.composite
def worlds(draw):
    """Draws gains of states that are all combinations of two columns."""
    sizes = draw(st.tuples(st.integers(1, 4), st.integers(1, 3)))
    ordered = draw(st.tuples(st.booleans(), st.booleans()))
    codes = np.array([*product(*map(range, sizes))]).T
    columns = [StateColumn(code, way) for code, way in zip(codes, ordered, strict=True)]
    numbers = st.integers(-5, 5)
    actions = draw(st.integers(1, 3))
    cells = draw(st.lists(numbers, min_size=codes[0].size * actions, max_size=100))
    gain = np.zeros((codes[0].size, 1 + actions))
    gain[:, 1:] = np.reshape(cells[: codes[0].size * actions], (-1, actions))
    return gain, columns


@given(worlds())
@settings(deadline=None)
def test_the_first_split_is_the_best_of_all(world):
    gain, columns = world
    values = [set(column.code.tolist()) for column in columns]
    root = leaf_of(gain, columns, np.ones(len(gain), bool))
    _, _, sides = best_split(gain, columns, root)
    assert worth(gain, sides or [root]) == best_tree(gain, columns, values, 2)


@given(worlds())
@settings(deadline=None)
def test_trees_grow_and_say_one_action_for_each_visited_state(world):
    gain, columns = world
    before = gain.sum(axis=0).max()
    for tree in trees_of(gain, columns, MOST):
        now = worth(gain, tree)
        assert now >= before
        before = now
        assert number_of_rules(tree) <= min(MOST, len(tree))
        matters = gain.any(axis=1)
        assert sum(leaf.states for leaf in tree)[matters].tolist() == [1] * matters.sum()


@given(worlds())
@settings(deadline=None)
def test_one_column_without_an_order_is_told_exactly(world):
    gain, _ = world
    lone = StateColumn(np.arange(len(gain)), ordered=False)
    grown = trees_of(gain, [lone], MOST)
    # With room for every action, splits find the best action of every value.
    best = gain.max(axis=1).sum()
    assert (worth(gain, grown[-1]) if grown else gain.sum(axis=0).max()) == best


@pytest.mark.thorough
def test_greedy_trees_are_near_the_best_ones():
    """In rough worlds greedy trees are mostly the best ones, and have 96 % of them on average."""
    rng = np.random.default_rng(1)
    codes = np.array([*product(range(3), range(3))]).T
    columns = [StateColumn(codes[0], ordered=True), StateColumn(codes[1], ordered=False)]
    shares = []
    for _ in range(40):
        gain = np.concatenate([np.zeros((9, 1)), rng.normal(size=(9, 2))], axis=1)
        grown = [tree for tree in trees_of(gain, columns, 12) if len(tree) <= 4]
        best = best_tree(gain, columns, [{0, 1, 2}, {0, 1, 2}], 4)
        found = worth(gain, grown[-1]) if grown else gain.sum(axis=0).max()
        shares.append(found / best)
    assert np.mean(shares) > 0.93
    assert np.median(shares) > 0.99


def test_a_rule_of_two_columns_is_found():
    codes = np.array([*product(range(4), range(4))]).T
    columns = [StateColumn(codes[0], ordered=True), StateColumn(codes[1], ordered=False)]
    treat = (codes[0] >= 2) & np.isin(codes[1], [0, 3])
    gain = np.stack([np.zeros(16), np.where(treat, 1.0, -1.0)], axis=1)
    tree = trees_of(gain, columns, 12)[-1]
    assert number_of_rules(tree) == 2
    (leaf,) = [leaf for leaf in tree if leaf.action == 1]
    assert leaf.values == [{2, 3}, {0, 3}]


def test_the_policy_of_a_tree_takes_only_free_pairs():
    world = make("gridworld")
    problem = world.problem(world.sample(100, 1))
    table = SPIBB(n_wedge=5).improve(problem)
    place = np.arange(25)
    columns = (StateColumn(place // 5, ordered=True), StateColumn(place % 5, ordered=True))
    for tree, policy, size in grow(problem, table.policy, columns, 8):
        free = free_pairs(problem)
        same, exceptions = followed(problem, tree, free)
        assert policy == same
        assert size == number_of_rules(tree) + exceptions
        moved = policy.probability != problem.behavior.probability
        more = policy.probability > problem.behavior.probability
        assert not (more & ~free).any()
        pairs = policy.pairs
        for leaf in tree:
            inside = leaf.states[pairs.state]
            assert leaf.action or not moved[inside].any()
            named = inside & free & (pairs.action == leaf.action - 1)
            assert (policy.probability[named] == 1).all()


def test_closed_pairs_have_a_small_price():
    world = make("gridworld")
    problem = world.problem(world.sample(100, 1))
    table = SPIBB(n_wedge=5).improve(problem)
    free = free_pairs(problem)
    gain = gains(problem, table.policy, free)
    pairs = problem.counts.pairs
    closed = gain[pairs.state[~free], 1 + pairs.action[~free]]
    assert (closed <= 0).all()
    assert (gain[:, 0] == 0).all()
    assert gain.max() > 10 * -closed.min()
    assert gain.max() == pytest.approx(
        max(
            problem.counts.visits[pairs.state == s].sum() * advantage
            for s, advantage in best_advantages(problem, table, free)
        )
    )


def best_advantages(problem, table, free):
    """Yields each state with its best advantage, from the values of the table."""
    estimate = problem.estimate()
    pairs = problem.counts.pairs
    for s in range(pairs.num_states):
        run = np.flatnonzero(pairs.state == s)
        q = []
        for k in run:
            after = slice(estimate.offsets[k], estimate.offsets[k + 1])
            next_value = table.plan.value[estimate.successor[after]]
            total = estimate.reward[after] + problem.single_discount * next_value
            q.append(estimate.probability[after] @ total + estimate.ending_reward[k])
        usual = problem.behavior.probability[run] @ q
        yield s, max([x - usual for x, k in zip(q, run, strict=True) if free[k]], default=0.0)
