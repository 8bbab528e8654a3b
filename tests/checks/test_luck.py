"""Intervals of estimates: how often they miss, first of all where rows are few or skewed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from surestep import DecisionLog, FiniteMDP, Pairs, Policy, optimal, performance, sample_log
from surestep.checks.cuts import cut_check, gain_among
from surestep.checks.luck import TimeInStates, interval
from surestep.model import estimate_mdp

LEVEL = 0.05
RARE = 1e-4  # the chance that a test of rates fails although all is right
NOISES = {
    "none": lambda rng, size: np.zeros(size),
    "normal": lambda rng, size: rng.normal(size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) ** 2 - 2,
}


def world(seed, states, ends=False):
    """Returns a process, a policy that makes logs, and another one; its last state may end it."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(states, 0.5), size=(states, 2))
    rewards = rng.normal(size=(states, 2, states))
    deciding = np.arange(states) < states - ends
    rows[~deciding] = 0
    mdp = FiniteMDP.from_dense(rows, rewards, 0.9, deciding / deciding.sum())
    new, current = (Policy.from_dense(mdp, rng.dirichlet([1, 1], size=states)) for _ in "nc")
    return mdp, new, current


def misses(logs, episodes, steps, noise, states=5):
    """Counts the worlds in which the interval of a gain, or of time in two states, misses it.

    Every other world comes to an end by itself.
    """
    gains = times = 0
    there = np.arange(states) < 2
    for seed in range(logs):
        ends = bool(seed % 2)
        decided = np.arange(states) < states - ends
        mdp, new, current = world(seed, states, ends)
        rng = np.random.default_rng(10**6 + seed)
        log = sample_log(mdp, current, episodes, steps, rng)
        log = replace(log, reward=log.reward + NOISES[noise](rng, log.num_steps))
        gain = gain_among(log, log, (new, current), 0.9)
        low, high = interval(gain.value, gain.error, LEVEL)
        gains += not low <= performance(mdp, new) - performance(mdp, current) <= high
        counts = log.counts()
        truth = TimeInStates(mdp, counts, new, decided).shares[there].sum()
        time = TimeInStates(estimate_mdp(counts, 0.9), counts, new, decided)
        error = time.standard_error(there)
        low, high = interval(time.shares[there].sum(), error, LEVEL, (0.0, 1.0))
        times += not low <= truth <= high
    return gains, times


SMALL = [
    (30, 8, "normal", 5),
    (10, 8, "normal", 5),  # few visits
    (30, 8, "none", 5),
    (30, 8, "skewed", 5),
    (1, 200, "normal", 5),  # one start
    (100, 1, "normal", 5),
    (30, 8, "normal", 20),  # most pairs seen once or never
]


@pytest.mark.parametrize(("episodes", "steps", "noise", "states"), SMALL)
def test_intervals_miss_no_more_often_than_they_say(episodes, steps, noise, states):
    assert max(misses(25, episodes, steps, noise, states)) <= binom.ppf(1 - RARE, 25, LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize(("episodes", "steps", "noise", "states"), SMALL)
def test_intervals_of_many_logs(episodes, steps, noise, states):
    assert max(misses(200, episodes, steps, noise, states)) <= binom.ppf(1 - RARE, 200, LEVEL)


def test_cuts_that_mean_nothing_give_false_alarms_no_more_often_than_intervals_miss():
    """Policies are chosen by the same rows, and whatever luck has made of them is claimed."""
    claimed = failed = 0
    for seed in range(40):
        mdp, _, current = world(seed, 5)
        rng = np.random.default_rng(10**6 + seed)
        log = sample_log(mdp, current, 30, 8, rng)
        coin = rng.integers(2, size=log.num_steps + 1)
        fine = DecisionLog(
            Pairs.full(10, 2), 2 * log.state + coin[:-1], log.action, log.reward,
            2 * log.next_state + coin[1:], log.terminated, log.truncated, log.episode_offsets,
        )  # fmt: skip
        new = optimal(estimate_mdp(log.counts(), 0.9)).policy
        gain = gain_among(log, log, (new, current), 0.9)
        claim, _ = interval(gain.value, gain.error, 2 * 0.1)
        found = cut_check(log, (log, fine), (new, current), discount=0.9, claim=claim, level=LEVEL)
        claimed += found.outcome != "told"
        failed += found.outcome == "failed"
    assert claimed >= 10
    assert failed <= binom.ppf(1 - RARE, claimed, LEVEL)


@pytest.mark.parametrize("ends", [False, True])
def test_errors_are_what_estimates_are_off_by(ends):
    """Not only large enough: about the spread of the estimates of many logs."""
    mdp, new, current = world(3, 5, ends)
    decided, there = np.arange(5) < 5 - ends, np.arange(5) < 2
    gains, times = [], []
    for seed in range(60):
        log = sample_log(mdp, current, 100, 20, np.random.default_rng(seed))
        gains.append(gain_among(log, log, (new, current), 0.9))
        time = TimeInStates(estimate_mdp(log.counts(), 0.9), log.counts(), new, decided)
        times.append((time.shares[there].sum(), time.standard_error(there)))
    for found in (np.array(gains), np.array(times)):
        assert 0.7 < np.median(found[:, 1]) / found[:, 0].std() < 1.5


def test_the_error_of_a_mean_is_that_of_statistics():
    """One state, one step: a gain is a difference of two means."""
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=4000)
    reward, none = rng.normal(3.0 * action, 1 + action), np.zeros(4000, int)
    log = DecisionLog(
        Pairs.full(2, 2), none, action, reward, none + 1, none == 0, none == 1, np.arange(4001)
    )
    first, second = (Policy.from_dense(log.pairs, np.array([row] * 2)) for row in ([0, 1], [1, 0]))
    gain = gain_among(log, log, (first, second), 0.9)
    ones, zeros = (log.reward[log.action == a] for a in (1, 0))
    assert gain.value == pytest.approx(ones.mean() - zeros.mean())
    expected = np.sqrt(ones.var() / ones.size + zeros.var() / zeros.size)
    assert gain.error == pytest.approx(expected, rel=0.05)


def test_a_pair_seen_once_is_not_certain():
    mdp, new, current = world(0, 5)
    log = sample_log(mdp, current, 2, 3, np.random.default_rng(0))
    gain = gain_among(log, log, (new, current), 0.9)
    assert gain.error > 0
    assert gain_among(log, log, (new, new), 0.9) == (0.0, 0.0)
