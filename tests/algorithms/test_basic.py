"""BasicRL, RaMDP and R-MIN on models small enough for a sheet of paper."""

import numpy as np
import pytest
from hypothesis import given, settings

from support.oracles import brute_force_optimum, largest_gap
from support.strategies import problems
from surestep import Counts, Policy, Problem
from surestep.algorithms import BasicRL, RaMDP, RMin


def bandit(visits, rewards, **terms):
    """One state, one action an arm; every step leads back."""
    counts = Counts.from_dense([[[n] for n in visits]], rewards=[rewards])
    terms = {"discount": 0.5, "value_bounds": (-2.0, 10.0)} | terms
    return Problem(counts=counts, behavior=Policy.uniform(counts), **terms)


def chosen(algorithm, problem):
    """The action that the algorithm takes in state 0."""
    return int(algorithm.improve(problem).policy.dense()[0].argmax())


@settings(max_examples=25)
@given(problem=problems(max_states=3))
def test_basic_rl_is_brute_force_on_the_estimated_mdp(problem):
    plan = BasicRL().improve(problem).plan
    assert largest_gap(plan.value, brute_force_optimum(problem.estimate())) <= plan.error_bound


@pytest.mark.parametrize(
    ("kappa", "arm"),
    [(0.0, 1), (0.9, 1), (1.3, 0), (100.0, 0)],
)
def test_ramdp_takes_the_price_of_few_visits_off_the_reward(kappa, arm):
    # 1 − κ/√100 against 1.5 − κ/√4: the second arm is dearer from κ = 0.5/0.4 on.
    problem = bandit([100, 4], [1.0, 1.5], value_bounds=(-1e6, 10.0))
    assert chosen(RaMDP(kappa=kappa), problem) == arm


def test_the_price_of_one_visit_is_kappa():
    problem = bandit([100, 1], [1.0, 1.5], value_bounds=(-1e6, 10.0))  # 1 − κ/10 against 1.5 − κ
    assert [chosen(RaMDP(kappa=kappa), problem) for kappa in (0.55, 0.56)] == [1, 0]


def test_ramdp_values_what_was_never_tried_at_the_lower_bound():
    # Arm 0: (1 − κ/√4)/(1 − ½) = 2 − κ against −2, whatever `unseen` says.
    for unseen in ("terminal", "pessimistic"):
        problem = bandit([4, 0], [1.0, 5.0], unseen=unseen)
        assert chosen(RaMDP(kappa=3.9), problem) == 0
        assert chosen(RaMDP(kappa=4.1), problem) == 1


def test_the_plan_of_ramdp_is_about_the_estimated_mdp():
    plan = RaMDP(kappa=1.0).improve(bandit([4, 0], [1.0, 5.0])).plan
    assert plan.value == pytest.approx([2.0])


@pytest.mark.parametrize(("n_wedge", "arm"), [(3, 1), (4, 0), (99, 0), (100, 0)])
def test_rmin_values_what_was_hardly_tried_at_the_lower_bound(n_wedge, arm):
    # At N∧ = 100 both arms are worth −2, and the first one wins.
    problem = bandit([100, 4], [1.0, 1.5])
    found = RMin(n_wedge=n_wedge).improve(problem)
    assert chosen(RMin(n_wedge=n_wedge), problem) == arm
    assert found.n_wedge == n_wedge
    assert found.plan.value == pytest.approx([[2.0, 3.0][arm]])


def test_rmin_looks_ahead_to_scarce_pairs():
    """State 1 is left by one pair only, seen too rarely: worth −2, so going there costs 1."""
    table = np.zeros((2, 2, 2), int)
    table[0, 0, 0], table[0, 1, 1], table[1, :, 1] = 50, 50, 1
    counts = Counts.from_dense(table, rewards=[[0.0, 0.9], [3.0, 3.0]])
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.5, value_bounds=(-2.0, 10.0)
    )
    assert chosen(RMin(n_wedge=0), problem) == 1
    assert chosen(RMin(n_wedge=1), problem) == 0  # 0.9 + ½ · (−2) < 0


@pytest.mark.parametrize("algorithm", [RaMDP(kappa=5.0), RMin(n_wedge=5)])
def test_known_ends_are_not_scarce(algorithm):
    """An end is worth its known reward: nobody will ever visit it."""
    table = np.zeros((2, 2, 2), int)
    table[0, 0, 0], table[0, 1, 1] = 10**6, 10**6
    counts = Counts.from_dense(table, rewards=[[0.0, 0.0], [7.0, 8.0]], terminal=[False, True])
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.5, value_bounds=(-99.0, 10.0)
    )
    found = algorithm.improve(problem)
    assert found.policy.dense().argmax(axis=1).tolist() == [1, 1]
    assert found.plan.value == pytest.approx([4.0, 8.0])


def test_ties_go_to_the_lowest_action_whatever_the_rounding():
    problem = bandit([3, 7, 9], [0.3, 0.1 + 0.2, 0.3])  # 0.1 + 0.2 > 0.3 by one rounding error
    for algorithm in (BasicRL(), RaMDP(kappa=0.0), RMin(n_wedge=0)):
        assert chosen(algorithm, problem) == 0
