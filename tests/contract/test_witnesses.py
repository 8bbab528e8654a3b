"""Problems on which promises would be broken that an algorithm does not make."""

import numpy as np
import pytest

from surestep import Counts, Policy, Problem, optimal, performance
from surestep.algorithms import (
    DUIPI,
    VILCB,
    BasicRL,
    PessimisticMBIE,
    Promise,
    RaMDP,
    RMin,
    SoftSPIBB,
)

PLENTY = 10**9


def problem_of(times, rewards, behavior, **terms):
    """A problem with known rewards per pair and the table [S, A] of π_b."""
    counts = Counts.from_dense(times, rewards=rewards)
    terms = {"discount": 0.9, "value_bounds": (-10.0, 10.0)} | terms
    return Problem(counts=counts, behavior=Policy.from_dense(counts, behavior), **terms)


def gain(problem, policy):
    """ρ(π) − ρ(π_b) in the estimated MDP."""
    estimate = problem.estimate()
    return performance(estimate, policy) - performance(estimate, problem.behavior)


@pytest.mark.parametrize(
    "algorithm", [BasicRL(), RaMDP(kappa=1.0), RMin(n_wedge=5), PessimisticMBIE(), DUIPI(xi=1.0)]
)
def test_planners_do_not_keep_the_behavior_policy_without_data(algorithm):
    assert Promise.KEEPS_BEHAVIOR not in algorithm.promises
    problem = problem_of(np.zeros((1, 2, 1), int), np.zeros((1, 2)), [[0.1, 0.9]])
    assert algorithm.improve(problem).policy != problem.behavior


def gamble():
    """One visit of what π_b does, which seemed to be worth 1; plenty of what is worth ¼.

    State 0 chooses; states 1, 2 and 3 are ends, worth 1, ¼ and −1.
    """
    times = np.zeros((4, 2, 4), int)
    times[0, 0, 1], times[0, 1, 2] = 1, PLENTY
    rewards = np.array([[0.0, 0.0], [1.0, 1.0], [0.25, 0.25], [-1.0, -1.0]])
    counts = Counts.from_dense(times, rewards=rewards, terminal=[False, True, True, True])
    behavior = Policy.deterministic(counts, [0, 0, 0, 0])
    return Problem(counts=counts, behavior=behavior, discount=0.9, value_bounds=(-1.0, 1.0))


@pytest.mark.parametrize(
    "algorithm",
    [
        RaMDP(kappa=2.0),
        RMin(n_wedge=5),
        PessimisticMBIE(),
        VILCB(),
        DUIPI(xi=3.0),
        DUIPI(xi=3.0, estimator="frequentist"),
    ],
    ids=repr,
)
def test_pessimists_may_be_worse_in_the_estimated_mdp(algorithm):
    assert Promise.NEVER_WORSE not in algorithm.promises
    problem = gamble()
    assert gain(problem, algorithm.improve(problem).policy) == pytest.approx(0.9 * (0.25 - 1))


@pytest.mark.parametrize(
    "algorithm",
    [
        SoftSPIBB(epsilon=1.0, iterate=False),
        SoftSPIBB(epsilon=1.0, step="approx", iterate=False),
        SoftSPIBB(epsilon=1.0, step="advantage"),
    ],
    ids=repr,
)
def test_who_looks_at_q_of_the_behavior_policy_may_stay_below_the_optimum(algorithm):
    """Action 1 of state 0 leads to state 1, where π_b spoils everything."""
    assert Promise.REACHES_OPTIMUM not in algorithm.promises
    times = np.zeros((3, 2, 3), int)
    times[0, 0, 2], times[0, 1, 1], times[1, :, 2], times[2, :, 2] = [PLENTY] * 4
    rewards = np.array([[0.5, 0.0], [0.0, 1.0], [0.0, 0.0]])
    problem = problem_of(times, rewards, [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    truth = problem.estimate()
    assert optimal(truth).value[0] == pytest.approx(0.9)
    assert performance(truth, algorithm.improve(problem).policy) == pytest.approx(0.5)
