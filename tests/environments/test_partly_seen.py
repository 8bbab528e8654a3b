"""Voicemail and CheeseMaze: beliefs in rational numbers, walks by hand, and all policies."""

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from surestep import Policy, optimal, performance
from surestep.environments import make

GAMMA = 0.95
STARTS = (Fraction(65, 100), Fraction(35, 100))
HEARD = ((Fraction(8, 10), Fraction(2, 10)), (Fraction(3, 10), Fraction(7, 10)))
ENDS = ((5, -20), (-10, 5))  # to save and to delete, by the wish of the caller


def worth_of(benchmark, choices):
    tables = [Policy.deterministic(benchmark.mdp, each).probability for each in choices]
    return benchmark.truth.worth(np.array(tables))


def best_by_beliefs(depth):
    """The best value of Voicemail over all policies with any memory, for `depth` steps at most."""

    @cache
    def value(save, left):
        if left == 0:
            return Fraction(0)
        asked = Fraction(-1)
        for answer in (0, 1):
            both = save * HEARD[0][answer], (1 - save) * HEARD[1][answer]
            asked += Fraction(95, 100) * sum(both) * value(both[0] / sum(both), left - 1)
        ended = [save * a + (1 - save) * b for a, b in zip(*ENDS, strict=True)]
        return max(asked, *ended)

    total = Fraction(0)
    for answer in (0, 1):
        both = [start * heard[answer] for start, heard in zip(STARTS, HEARD, strict=True)]
        total += sum(both) * value(both[0] / sum(both), depth)
    return float(total)


def test_ends_of_voicemail_are_worth_what_they_say():
    """Save at once: 0.65 · 5 − 0.35 · 10 = −0.25; ask for ever: −1 / 0.05."""
    world = make("voicemail", memory=0)
    found = worth_of(world, [[1, 1, 0], [2, 2, 0], [0, 0, 0], [1, 2, 0]])
    by_answer = 0.65 * (0.8 * 5 - 0.2 * 20) + 0.35 * (-0.3 * 10 + 0.7 * 5)
    np.testing.assert_allclose(found, [-0.25, -13 + 1.75, -20, by_answer])


def test_memories_of_voicemail_are_worth_more_and_no_more_than_beliefs():
    """All deterministic policies: 3² of the answer alone, 3⁶ with the answer before it."""
    best = [
        max(worth_of(world, [(*choice, 0) for choice in itertools.product(range(3), repeat=size)]))
        for size, world in ((2, make("voicemail", memory=0)), (6, make("voicemail", memory=1)))
    ]
    limit = best_by_beliefs(14)
    assert best == pytest.approx([0.175, 1.515155], abs=1e-6)
    assert limit == pytest.approx(1.51642, abs=1e-4)
    assert best[0] + 0.1 < best[1] < limit + 1e-3


def test_the_maze_is_left_by_the_shortest_way_by_who_sees_it():
    """Steps to the cheese, by hand: 1 from below the middle, 6 from the lower corners."""
    steps = np.array([4, 3, 2, 3, 4, 5, 1, 5, 6, 6])
    mdp = make("cheese-maze", memory=0).truth.mdp
    best = (GAMMA ** (steps - 1)).mean()
    assert performance(mdp, optimal(mdp).policy) == pytest.approx(best)


def test_in_the_maze_the_step_before_tells_more():
    """e east e: south is right below the middle only, and who came from f must go north."""
    world = make("cheese-maze", memory=1)
    labels = world.mdp.pairs.state_labels
    assert {"f north e", "c south e", "a south e", "over"} < set(labels)
    ways = {"a": 2, "b": 2, "c": 1, "d": 3, "e": 1, "f": 0}  # north, south, east, west
    memoryless = [ways.get(label.rpartition(" ")[2], 0) for label in labels]
    remembered = [
        0 if label == "f north e" else w for label, w in zip(labels, memoryless, strict=True)
    ]
    plain, better = worth_of(world, [memoryless, remembered])
    assert better > plain + 0.1


@pytest.mark.parametrize(("name", "memory"), [("voicemail", 2), ("cheese-maze", 1)])
def test_values_are_those_of_walks_followed_one_by_one(name, memory):
    """A policy at random, by the law of (hidden state, history) after each step."""
    world = make(name, memory=memory)
    table = np.random.default_rng(3).dirichlet(np.ones(world.num_actions), world.num_states)
    labels = {label: row for row, label in enumerate(world.mdp.pairs.state_labels)}
    policy = Policy.from_dense(world.mdp, table)
    plain = make(name, memory=0)  # whose hidden states are (cell, what it looks like)
    hidden, sights = plain.truth.mdp, plain.mdp.pairs.state_labels
    shown = plain.simulator.shown
    law = {(x, (sights[shown[x]],)): p for x, p in enumerate(hidden.initial) if p > 0}
    total, discount = 0.0, 1.0
    for _ in range(400):
        after = defaultdict(float)
        for (x, history), p in law.items():
            if sights[shown[x]] == "over":
                continue
            row = table[labels[" ".join(history)]]
            for k in range(hidden.pairs.offsets[x], hidden.pairs.offsets[x + 1]):
                a = hidden.pairs.action[k]
                for t in range(hidden.offsets[k], hidden.offsets[k + 1]):
                    y, mass = hidden.successor[t], p * row[a] * hidden.probability[t]
                    total += discount * mass * hidden.reward[t]
                    said = hidden.pairs.action_labels[a]
                    longer = (*history, said, sights[shown[y]])[-2 * memory - 1 :]
                    after[int(y), longer] += mass
        law = after
        discount *= GAMMA
    assert world.truth.worth(policy.probability[np.newaxis])[0] == pytest.approx(total, abs=1e-6)


def test_who_decides_sees_the_present_only():
    for name in ("voicemail", "cheese-maze"):
        world = make(name, memory=2)
        by_last = dict[str, np.ndarray]()
        for label, row in zip(world.mdp.pairs.state_labels, world.behavior.dense(), strict=True):
            np.testing.assert_array_equal(by_last.setdefault(label.rpartition(" ")[2], row), row)
        assert world.performance_of_behavior() == pytest.approx(
            make(name, memory=0).performance_of_behavior()
        )
