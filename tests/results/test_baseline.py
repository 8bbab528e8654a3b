"""What episodes earned, against a plain loop, and how seldom the model is doubted in vain."""

from dataclasses import replace
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest

from support.problems import logged_problem
from surestep import (
    DecisionLog,
    FiniteMDP,
    Pairs,
    Policy,
    estimate_behavior,
    evaluate,
    occupancy,
    performance,
    sample_log,
)
from surestep.certificates import training_part
from surestep.results.record import Baseline, baseline_of

GAMMA = 0.95


def world(rng, states=6):
    """A random world in which every step may be the last one, and few of them pay."""
    size = states + 1
    P, R = np.zeros((size, 2, size)), np.zeros((size, 2, size))
    P[:states] = 0.9 * rng.dirichlet(np.full(size, 0.5), (states, 2))
    P[:states, :, states] += 0.1
    paid = rng.random((states, 2, size)) < 0.3
    R[:states] = rng.exponential(1.0, (states, 2, size)) * paid
    return FiniteMDP.from_dense(P, R, GAMMA, initial=np.append(rng.dirichlet(np.ones(states)), 0))


def returns_of(log, discount, value):
    """Episode by episode and step by step."""
    returns, cut_off = [], 0
    for first, end in zip(log.episode_offsets, log.episode_offsets[1:], strict=False):
        total, weight = 0.0, 1.0
        for step in range(first, end):
            total += weight * log.reward[step]
            weight *= discount
        if not log.terminated[end - 1]:
            total += weight * value[log.next_state[end - 1]]
            cut_off += 1
        returns.append(float(total))
    return returns, cut_off


def test_what_never_happened_in_60_episodes_is_not_taken_for_impossible():
    size = 60
    ends = np.ones(size, np.bool_)
    step, nothing = np.zeros(size, int), np.zeros(size)
    log = DecisionLog(
        Pairs.full(2, 1), step, step, nothing, step + 1, ends, ~ends, np.arange(size + 1)
    )
    found = baseline_of(log, 0.9, np.zeros(2), 0.0, size)
    assert (found.mean, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / size))


@pytest.mark.parametrize(("horizon", "discount"), [(1000, 0.95), (3, 0.95), (2, 1.0), (1, 0.0)])
def test_it_is_the_mean_of_the_returns(horizon, discount):
    rng = np.random.default_rng(horizon)
    mdp = world(rng)
    log = sample_log(mdp, Policy.uniform(mdp), 40, horizon, rng)
    value = rng.normal(size=mdp.num_states)
    returns, cut_off = returns_of(log, discount, value)
    assert (cut_off > 0) == (horizon < 1000)
    found = baseline_of(log, discount, value, 7.0, 12)
    half = NormalDist().inv_cdf(0.975) * stdev(returns) / 40**0.5
    numbers = [found.mean, found.low, found.high, found.least, found.greatest]
    mean = fmean(returns)
    expected = [mean, mean - half, mean + half, min(returns), max(returns)]
    np.testing.assert_allclose(numbers, expected, rtol=1e-12, atol=1e-12)
    assert (found.episodes, found.cut_off) == (40, cut_off)
    assert (found.model, found.model_episodes) == (7.0, 12)


def test_one_episode_contradicts_nothing():
    log = DecisionLog(
        Pairs.full(1, 1), [0, 0], [0, 0], [1.0, 3.0], [0, 0], [False, False], [False, True], [0, 2]
    )
    found = baseline_of(log, 0.5, np.array([4.0]), 1e6, 1)
    assert found.mean == found.least == found.greatest == 1.0 + 0.5 * 3.0 + 0.25 * 4.0
    assert found.low < found.mean < found.high == 1e6
    assert not found.gap(0.0)


USUAL = Baseline(
    mean=10.0, low=8.0, high=12.0, episodes=100, cut_off=0, least=0.0, greatest=30.0, model=10.0,
    model_episodes=50,
)  # fmt: skip


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_gap_is_more_than_chance_leaves(sign):
    """Errors of 100 and of 50 episodes, at a chance of one in a thousand."""
    normal = NormalDist()
    error = 2 / normal.inv_cdf(0.975)
    room = normal.inv_cdf(0.9995) * error * (1 + 100 / 50) ** 0.5
    assert not replace(USUAL, model=10 + sign * room * (1 - 1e-6)).gap(0.0)
    assert replace(USUAL, model=10 + sign * room * (1 + 1e-6)).gap(0.0)
    # Where all episodes earned the same, rounding is no gap, and all else is.
    same = replace(USUAL, low=10.0, high=10.0)
    assert not replace(same, model=10 + sign * 1e-10).gap(0.0)
    assert replace(same, model=10 + sign * 1e-6).gap(0.0)


def baseline_by(log, problem, share):
    """The baseline beside the model of a first part of the log, with what it shows of π_b."""
    part = training_part(problem, share, None) if share < 1 else problem
    part = replace(part, behavior=estimate_behavior(part.counts))
    model = part.estimate()
    value = evaluate(model, part.behavior)
    return baseline_of(log, GAMMA, value, performance(model, part.behavior), part.log.num_episodes)


@pytest.mark.one_quick
@pytest.mark.parametrize(("horizon", "share"), [(1000, 0.3), (5, 0.3), (3, 1.0)])
def test_a_model_that_is_right_is_hardly_ever_doubted(horizon, share):
    """At one false alarm in 1000, three or more in 100 logs have a chance of 2 in 10,000."""
    gaps = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        mdp = world(rng)
        log = sample_log(mdp, Policy.uniform(mdp), 60, horizon, rng)
        problem = logged_problem(log, GAMMA, (0.0, 100.0))
        gaps += baseline_by(log, problem, share).gap(0.0) is not None
    assert gaps <= 2


def test_a_model_that_does_not_describe_the_log_is_found():
    """Half of the episodes end at once, half pay 1 for forty steps: that is no Markov chain.

    By hand: of 41 steps one ends an episode of the first kind, and one of the second. The model
    says V = (39/41)(1 + γV) + (1/41)·1, and the episodes earn ½(1 − γ⁴⁰)/(1 − γ).
    """
    lengths = np.tile([1, 40], 500)
    reward = np.repeat(np.tile([0.0, 1.0], 500), lengths)
    ends = np.cumsum(lengths) - 1
    over = np.zeros(reward.size, np.bool_)
    over[ends] = True
    log = DecisionLog(
        Pairs.full(2, 1), np.zeros(reward.size, int), np.zeros(reward.size, int), reward,
        over.astype(int), over, np.zeros(reward.size, np.bool_), np.append(0, ends + 1),
    )  # fmt: skip
    found = baseline_by(log, logged_problem(log, GAMMA, (0.0, 100.0)), 1.0)
    assert found.model == pytest.approx((40 / 41) / (1 - GAMMA * 39 / 41))
    assert found.mean == pytest.approx(0.5 * (1 - GAMMA**40) / (1 - GAMMA))
    assert found.gap(0.0)
    assert not replace(found, model=found.mean).gap(0.0)


def test_actions_that_the_model_never_saw_are_no_gap():
    """π_b is given, and six episodes show few of its actions: the rest is taken for the worst."""
    gaps = guesses = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        mdp = world(rng)
        uniform = Policy.uniform(mdp)
        log = sample_log(mdp, uniform, 20, 1000, rng)
        problem = logged_problem(log, GAMMA, (-100.0, 100.0), unseen="pessimistic")
        part = training_part(problem, 0.3, None)
        model = part.estimate()
        found = baseline_of(
            log, GAMMA, evaluate(model, uniform), performance(model, uniform), part.log.num_episodes
        )
        guessed = 200 * float(occupancy(model, uniform)[part.unseen_pairs()].sum())
        gaps += found.gap(guessed) is not None
        guesses += found.gap(0.0) is not None
    assert gaps <= 2 < guesses
