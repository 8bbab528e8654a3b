"""Tiger: values known by hand, and by beliefs in rational numbers."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from surestep import Policy
from surestep.environments import make

GAMMA = Fraction(95, 100)


HEARD = {0: (Fraction(85, 100), Fraction(15, 100)), 1: (Fraction(15, 100), Fraction(85, 100))}


def best_by_beliefs(depth: int) -> float:
    """The best value of all policies with any memory, of episodes of at most `depth` steps."""

    @cache
    def value(left_side, left):
        """What is to come where the tiger is on the left with that chance."""
        if left == 0:
            return Fraction(0)
        listened = Fraction(-1)
        for sound in (0, 1):
            both = left_side * HEARD[0][sound], (1 - left_side) * HEARD[1][sound]
            listened += GAMMA * sum(both) * value(both[0] / sum(both), left - 1)
        opened = [10 - 110 * chance for chance in (left_side, 1 - left_side)]
        return max(listened, *opened)

    return float(sum(value(HEARD[0][sound], depth) for sound in (0, 1)) / 2)


def test_the_best_memory_of_tiger_is_worth_what_is_known():
    """5.0213 by beliefs (a lead of three); few episodes listen more than 16 times."""
    assert best_by_beliefs(16) == pytest.approx(5.0213, abs=1e-3)


def test_windows_are_worth_no_more_than_beliefs_and_longer_ones_no_less():
    """Policies of windows, made better one state at a time until none can be."""
    worth = [best_of_windows(make("tiger", memory=memory)) for memory in (0, 1)]
    limit = best_by_beliefs(12)
    assert worth[0] <= worth[1] + 1e-9
    assert worth[1] <= limit + 0.02 * abs(limit)
    assert worth[1] > make("tiger").performance_of_behavior()


def best_of_windows(benchmark) -> float:
    states, actions = benchmark.num_states, benchmark.num_actions
    choice = benchmark.behavior.dense().argmax(axis=1)

    def worth(choices):
        tables = [Policy.deterministic(benchmark.mdp, each).probability for each in choices]
        return benchmark.truth.worth(np.array(tables))

    best, before = worth([choice])[0], -np.inf
    while best > before + 1e-9:
        before = best
        for state in range(states - 1):
            others = np.tile(choice, (actions, 1))
            others[:, state] = np.arange(actions)
            values = worth(others)
            choice, best = others[values.argmax()], values.max()
    return float(best)


def test_values_that_are_known_by_hand():
    tiger = make("tiger", memory=0)
    opening = Policy.deterministic(tiger.mdp, [2, 1, 0])  # the door away from the sound
    assert tiger.truth.worth(opening.probability[np.newaxis])[0] == pytest.approx(-6.5)
    listening = Policy.deterministic(tiger.mdp, [0, 0, 0])
    assert tiger.truth.worth(listening.probability[np.newaxis])[0] == pytest.approx(-20)


def test_a_window_of_two_that_agree_opens_the_door():
    """By hand: listen until the last two sounds agree, from a first sound of either side."""
    tiger = make("tiger", memory=1)
    labels = tiger.mdp.pairs.state_labels
    doors = {"left listen left": 2, "right listen right": 1}
    policy = Policy.deterministic(tiger.mdp, [doors.get(label, 0) for label in labels])
    right = Fraction(85, 100)
    # v[x]: what is to come after a sound that is right (x = 0) or wrong (1), which did not agree.
    # v0 = −1 + γ(p·10 + (1 − p)·v1), v1 = −1 + γ((1 − p)·(−100) + p·v0), with p = 0.85.
    a, b = -1 + GAMMA * right * 10, GAMMA * (1 - right)
    c, d = -1 - GAMMA * (1 - right) * 100, GAMMA * right
    v0 = (a + b * c) / (1 - b * d)
    value = right * v0 + (1 - right) * (c + d * v0)
    assert tiger.truth.worth(policy.probability[np.newaxis])[0] == pytest.approx(float(value))


def test_the_log_shows_windows_and_behavior_sees_the_present_only():
    benchmark = make("tiger", memory=2)
    labels = benchmark.mdp.pairs.state_labels
    by_last = dict[str, np.ndarray]()
    for label, row in zip(labels, benchmark.behavior.dense(), strict=True):
        known = by_last.setdefault(label.rpartition(" ")[2], row)
        np.testing.assert_array_equal(known, row)
    log = benchmark.sample(20, np.random.default_rng(0))
    assert {len(labels[s].split()) for s in log.state} == {1, 3, 5}
