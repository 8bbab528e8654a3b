"""Intervals of advantages: against sums over single steps, and how often they hold the truth."""

from statistics import NormalDist, fmean, pvariance

import numpy as np
import pytest

from surestep import Counts, DecisionLog, Pairs, Policy, Problem
from surestep.model.counts import LoggedRewards
from surestep.results.advantage_intervals import advantage_intervals

GAMMA, DELTA = 0.9, 0.1
QUANTILE = NormalDist().inv_cdf(1 - DELTA / 2)


def by_hand(steps, behavior, ends):
    """The intervals of one state, from the worths of the steps of each of its actions."""
    worths = [[*each, *ends] for each in steps]
    means = [fmean(each) for each in worths]
    doubts = [pvariance(each) / len(each) for each in worths]
    found = []
    for a in range(len(steps)):
        weights = [float(a == b) - behavior[b] for b in range(len(steps))]
        middle = sum(w * m for w, m in zip(weights, means, strict=True))
        half = QUANTILE * sum(w * w * d for w, d in zip(weights, doubts, strict=True)) ** 0.5
        found.append((middle - half, middle + half))
    return found


def intervals(problem, value):
    """The intervals [K, 2]."""
    return np.stack(advantage_intervals(problem, value, DELTA), axis=1)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_intervals_are_those_of_single_steps():
    """Rewards of a transition that are at their ends have the variance that is taken for theirs."""
    pairs = Pairs.full(3, 3)
    # Of state 0 only; action 2 is never tried, and state 2 is never seen.
    taken = [(0, 1, 1.0), (0, 1, 3.0), (0, 2, 2.0), (0, 1, 3.0), (1, 2, -1.0), (1, 2, -1.0)]
    size = len(taken)
    log = DecisionLog(
        pairs,
        np.zeros(size, int),
        np.array([action for action, _, _ in taken]),
        np.array([reward for _, _, reward in taken]),
        np.array([successor for _, successor, _ in taken]),
        np.zeros(size, np.bool_),
        np.ones(size, np.bool_),
        np.arange(size + 1),
    )
    usual = [0.5, 0.3, 0.2]
    problem = Problem(
        counts=log.counts(), behavior=Policy(pairs, usual * 3), discount=GAMMA,
        value_bounds=(-9.0, 9.0),
    )  # fmt: skip
    value = np.array([7.0, 1.0, -2.0])
    worth = [[], [], []]
    for action, successor, reward in taken:
        worth[action].append(reward + GAMMA * value[successor])
    everything = [each for row in worth for each in row]
    ends = (min(everything), max(everything))
    found = intervals(problem, value)
    assert_close(found[:3], by_hand(worth, usual, ends))
    # A state that shows nothing has the ends of the log, and so has one that shows only one worth.
    assert_close(found[3:6], by_hand([[], [], []], usual, ends))
    low, high = found[2]
    assert high - low > 0.9 * (ends[1] - ends[0])  # never tried
    assert (high - low > found[:2, 1] - found[:2, 0]).all()


def bandit(steps, behavior):
    """States of one decision each, of which the rewards [S, A, n] are known one by one."""
    states, actions, number = steps.shape
    size = states * actions
    flat = steps.reshape(size, number)
    pairs = Pairs.full(states + 1, actions)
    filler = np.zeros(actions, int)
    counts = Counts(
        pairs,
        np.concatenate([np.arange(size + 1), size + filler]),
        np.full(size, states),
        np.full(size, number),
        LoggedRewards(flat.sum(axis=1), "transition", False, flat.min(axis=1), flat.max(axis=1)),
        np.append(np.full(states, actions * number), 0),
        np.arange(states + 1) == states,
    )
    return Problem(
        counts=counts, behavior=Policy(pairs, np.tile(behavior, states + 1)), discount=GAMMA,
        value_bounds=(-1e3, 1e3),
    )  # fmt: skip


def test_steps_that_are_all_alike_leave_doubt():
    """Where every worth of a state is the same, others of the log are possible all the same."""
    rewards = np.ones((2, 2, 2))
    rewards[1, 1] = [0.0, 3.0]
    found = intervals(bandit(rewards, [0.5, 0.5]), np.zeros(3))
    assert_close(found[:2], by_hand([[1.0] * 2] * 2, [0.5, 0.5], (0.0, 3.0)))
    assert found[0][0] < 0 < found[0][1]


def test_more_steps_make_intervals_narrower_and_a_smaller_delta_wider():
    rewards = np.random.default_rng(0).random((1, 3, 400))
    behavior, value = [0.6, 0.3, 0.1], np.zeros(2)

    def width(steps, delta):
        low, high = advantage_intervals(bandit(rewards[:, :, :steps], behavior), value, delta)
        return (high - low)[:3]

    assert (width(400, 0.1) < width(100, 0.1) / 1.5).all()
    assert (width(100, 0.01) > width(100, 0.1)).all()
    assert np.isfinite(width(100, 5e-324)).all()


def rare(chance):
    return lambda rng, shape: (rng.random(shape) < chance) * 1.0, chance


LAWS = {
    "even": rare(0.5),
    "rare": rare(0.05),
    "usual": rare(0.95),
    "skewed": (lambda rng, shape: rng.exponential(1.0, shape), 1.0),
    "heavy": (lambda rng, shape: rng.lognormal(0.0, 1.0, shape), np.exp(0.5)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("visits", [10, 20, 50])
def test_intervals_hold_the_truth_as_often_as_they_say(name, visits):
    """Nominal 90 %; V is known, and every state is a log of its own.

    Of 800 states with a chance of 85 % each, fewer than 79 % hold with a chance of 4e-6 (the
    normal approximation), so that all 45 rates together fail by chance less than once in 5,000
    times.
    """
    draw, mean = LAWS[name]
    rng, behavior = np.random.default_rng(visits), np.array([0.6, 0.3, 0.1])
    scale = np.array([1.0, 1.0, 1.5])[:, np.newaxis]
    rewards = scale * draw(rng, (800, 3, visits))
    low, high = advantage_intervals(bandit(rewards, behavior), np.zeros(801), DELTA)
    true = scale[:, 0] * mean
    advantage = np.append(np.tile(true - behavior @ true, 800), np.zeros(3))
    held = ((low <= advantage) & (advantage <= high))[:-3].reshape(800, 3).mean(axis=0)
    assert (held >= 0.79).all()
