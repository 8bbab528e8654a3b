"""Tiger, Voicemail and CheeseMaze: values known by hand, and by beliefs in rational numbers."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from surestep import Policy
from surestep.environments import make
from surestep.environments.hidden import CHEESE_MAZE, TIGER, VOICEMAIL, HiddenProcess

GAMMA = Fraction(95, 100)


def rational(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def best_by_beliefs(process: HiddenProcess, depth: int) -> float:
    """The best value of all policies with any memory, of episodes of at most `depth` steps."""
    hidden = range(process.initial.size - 1)
    over = process.initial.size - 1

    def updates(weight, action):
        """Chances of hidden state and observation together, for each observation."""
        for seen in range(len(process.observations)):
            after = tuple(
                sum(weight[h] * rational(process.move[h, action, g]) for h in hidden)
                * rational(process.observe[g, seen])
                for g in hidden
            )
            total = sum(after)
            if total:
                yield total, tuple(each / total for each in after)

    @cache
    def value(belief, left):
        if left == 0:
            return Fraction(0)
        values = []
        for action in range(len(process.actions)):
            now = sum(
                belief[h] * rational(process.move[h, action, g] * process.reward[h, action, g])
                for h in hidden
                for g in (*hidden, over)
            )
            later = sum(
                chance * value(after, left - 1) for chance, after in updates(belief, action)
            )
            values.append(now + GAMMA * later)
        return max(values)

    start = Fraction(0)
    for seen in range(len(process.observations)):
        weight = [rational(process.initial[h]) * rational(process.observe[h, seen]) for h in hidden]
        total = sum(weight)
        if total:
            start += total * value(tuple(each / total for each in weight), depth)
    return float(start)


def test_the_best_memory_of_tiger_is_worth_what_is_known():
    """5.0213 by beliefs (a lead of three); few episodes listen more than 16 times."""
    assert best_by_beliefs(TIGER, 16) == pytest.approx(5.0213, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "process", "depth"),
    [
        ("tiger", TIGER, 12),
        ("voicemail", VOICEMAIL, 12),
        pytest.param("cheese-maze", CHEESE_MAZE, 7, marks=pytest.mark.slow),
    ],
)
def test_windows_are_worth_no_more_than_beliefs_and_longer_ones_no_less(name, process, depth):
    """Policies of windows, made better one state at a time until none can be."""
    worth = [best_of_windows(make(name, memory=memory)) for memory in (0, 1)]
    limit = best_by_beliefs(process, depth)
    assert worth[0] <= worth[1] + 1e-9
    assert worth[1] <= limit + 0.02 * abs(limit)
    assert worth[1] > make(name).performance_of_behavior()


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
    tiger, voicemail = make("tiger", memory=0), make("voicemail", memory=0)
    opening = Policy.deterministic(tiger.mdp, [2, 1, 0])  # the door away from the sound
    assert tiger.truth.worth(opening.probability[np.newaxis])[0] == pytest.approx(-6.5)
    listening = Policy.deterministic(tiger.mdp, [0, 0, 0])
    assert tiger.truth.worth(listening.probability[np.newaxis])[0] == pytest.approx(-20)
    saving = Policy.deterministic(voicemail.mdp, [1, 1, 0])
    assert voicemail.truth.worth(saving.probability[np.newaxis])[0] == pytest.approx(-0.25)


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
    for name in ("tiger", "voicemail", "cheese-maze"):
        benchmark = make(name, memory=2)
        labels = benchmark.mdp.pairs.state_labels
        by_last = dict[str, np.ndarray]()
        for label, row in zip(labels, benchmark.behavior.dense(), strict=True):
            known = by_last.setdefault(label.rpartition(" ")[2], row)
            np.testing.assert_array_equal(known, row)
        log = benchmark.sample(20, np.random.default_rng(0))
        assert {len(labels[s].split()) for s in log.state} == {1, 3, 5}
