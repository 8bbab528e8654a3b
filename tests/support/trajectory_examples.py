"""What tests of trajectory claims share: a chain, a policy for it, and certifiers."""

import numpy as np
import pytest

from support.oracles import value_of_steps
from surestep import FiniteMDP, Policy, Problem, sample_log
from surestep.certificates import Trajectory

BOUNDS = {"reward_low": -1.0, "reward_high": 2.0}
PROVED = [
    Trajectory(estimator=estimator, interval=interval, horizon=3, claim="horizon", **BOUNDS)
    for estimator in ("is", "pdis")
    for interval in ("bernstein", "betting")
]
ASYMPTOTIC = [
    Trajectory(estimator=estimator, interval=interval, horizon=3)
    for estimator in ("is", "pdis", "wis", "wpdis", "dr")
    for interval in ("student-t", "bca")
]
CASES = [
    *PROVED,
    *ASYMPTOTIC,
    Trajectory(horizon=np.int64(2), train_share=np.float64(0.5), seed=7, **BOUNDS),
    Trajectory(horizon=3, train_share=0.0, reward_low=-1, reward_high=2),
]


def every(certifiers):
    """A test for each of the certifiers."""
    return pytest.mark.parametrize("certifier", certifiers, ids=repr)


def chain():
    """Two states and an end; action 1 earns more, and ends more often."""
    P = np.zeros((3, 2, 3))
    P[0] = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]
    P[1] = [[0.5, 0.5, 0.0], [0.3, 0.3, 0.4]]
    R = np.zeros((3, 2, 3))
    R[:2, 0] = [0.0, 1.0, -1.0]
    R[:2, 1] = [0.5, 2.0, 1.0]
    return FiniteMDP.from_dense(P, R, 0.7, [0.8, 0.2, 0.0])


MDP = chain()
BEHAVIOR = Policy.from_dense(MDP, [[0.6, 0.4], [0.5, 0.5], [0.5, 0.5]])
POLICY = Policy.from_dense(MDP, [[0.4, 0.6], [0.3, 0.7], [0.0, 1.0]])
VALUES = (-1.0 / 0.3, 2.0 / 0.3)


def problem_of(log, **changes):
    """The problem that a log of the chain poses."""
    terms = {"behavior": BEHAVIOR, "discount": 0.7, "value_bounds": VALUES} | changes
    return Problem(counts=log.counts(), log=log, **terms)


def example(episodes=60, horizon=3, seed=0, **changes):
    """A problem with a log of the chain."""
    log = sample_log(MDP, BEHAVIOR, episodes, horizon, np.random.default_rng(seed))
    return problem_of(log, **changes)


def true_difference(steps):
    """Δ over so many steps, in rationals."""
    ours, theirs = (value_of_steps(MDP, each, 0.7, steps) for each in (POLICY, BEHAVIOR))
    return float(ours - theirs)
