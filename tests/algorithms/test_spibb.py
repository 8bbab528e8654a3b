"""SPIBB: N∧ from bounds, π_b that was estimated, and rows that ties would decide.

BasicRL, RaMDP and R-MIN on models small enough for a sheet of paper.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.settings import SETTINGS, needs_log
from support.known_worlds import CAPTIONS
from support.oracles import brute_force_optimum, largest_gap
from support.problems import uniform_problem
from support.strategies import logged_problems, problems
from surestep import Counts, estimate_behavior
from surestep.algorithms import (
    ALGORITHMS,
    SPIBB,
    BasicRL,
    BetaSPIBB,
    LowerSPIBB,
    RaMDP,
    RMin,
    TwoSuccessorSPIBB,
)
from surestep.bounds import ProblemSize, n_wedge, zeta
from surestep.errors import InvalidParameter


def ring(states, actions, visits):
    """Every action leads to the next state, seen `visits` [A] times; action a earns a."""
    table = np.zeros((states, actions, states), np.int32)
    table[np.arange(states), :, (np.arange(states) + 1) % states] = visits
    rewards = np.tile(np.arange(actions, dtype=float), (states, 1))
    counts = Counts.from_dense(table, rewards=rewards)
    return uniform_problem(counts, 0.9, (0.0, 10.0 * actions))


@pytest.mark.parametrize(("states", "actions", "spibb", "two_successor", "beta"), CAPTIONS)
def test_the_n_wedge_of_the_captions_is_recorded_and_used(
    states, actions, spibb, two_successor, beta
):
    for kind, used in ((TwoSuccessorSPIBB, two_successor), (BetaSPIBB, beta)):
        # The last action earns most; it is trusted in the second problem only.
        for visits, best in ((used, actions - 2), (used + 1, actions - 1)):
            problem = ring(states, actions, [used + 1] * (actions - 1) + [visits])
            found = kind(spibb_n_wedge=spibb).improve(problem)
            assert found.n_wedge == used
            assert found.policy.dense()[0].argmax() == best
    assert SPIBB(n_wedge=spibb).improve(problem).n_wedge == spibb


@pytest.mark.parametrize("bound", ["spibb", "2s", "beta"])
def test_the_n_wedge_for_a_zeta_is_the_smallest_whose_claim_is_that_good(bound):
    problem = ring(5, 2, [1, 1])
    algorithm = SPIBB.for_zeta(3.0, problem, bound=bound, delta=0.2)
    size = ProblemSize(5, 2, 0.2, value_bound=20.0, discount=0.9)
    assert algorithm == SPIBB(n_wedge=n_wedge(bound, 3.0, size))
    assert zeta(bound, algorithm.n_wedge, size) <= 3.0
    assert zeta(bound, algorithm.n_wedge - 1, size) > 3.0


def test_a_zeta_that_no_data_buys_is_refused():
    problem = ring(3, 2, [1, 1])
    with pytest.raises(InvalidParameter, match="zeta is 0 with a gain"):
        SPIBB.for_zeta(0, problem)
    with pytest.raises(InvalidParameter, match="problem is of type int, expected Problem"):
        SPIBB.for_zeta(1.0, 5)
    with pytest.raises(InvalidParameter, match="method is 'spib'; did you mean spibb"):
        SPIBB.for_zeta(1.0, problem, bound="spib")


@settings(max_examples=3)
@given(data=st.data())
@pytest.mark.parametrize("name", ALGORITHMS)
def test_improvements_of_an_estimated_behavior_policy_are_marked(name, data):
    algorithm = SETTINGS[name][0]
    problem = data.draw(logged_problems() if needs_log(algorithm) else problems())
    assert not algorithm.improve(problem).behavior_is_estimated
    estimated = replace(problem, behavior=estimate_behavior(problem.counts))
    assert algorithm.improve(estimated).behavior_is_estimated


@given(problem=problems(), n_wedge=st.sampled_from([0, 5, 50]))
def test_lower_spibb_is_at_least_as_good_as_spibb_in_the_estimate(problem, n_wedge):
    """Every policy of Π_b is one of Π_≤b."""
    upper = SPIBB(n_wedge=n_wedge).improve(problem).plan
    lower = LowerSPIBB(n_wedge=n_wedge).improve(problem).plan
    assert (lower.value >= upper.value - upper.error_bound - lower.error_bound).all()


def test_ties_go_to_the_lowest_trusted_action_whatever_the_rounding():
    table = np.full((1, 4, 1), 10)
    table[0, 0] = 1
    counts = Counts.from_dense(table, rewards=[[9.0, 0.3, 0.1 + 0.2, 0.3]])
    problem = uniform_problem(counts, 0.5, (0.0, 18.0))
    for kind in (SPIBB, LowerSPIBB):
        row = kind(n_wedge=5).improve(problem).policy.dense()[0]
        assert row.tolist() == [0.25, 0.75, 0.0, 0.0]


def bandit(visits, rewards, **terms):
    """One state, one action an arm; every step leads back."""
    counts = Counts.from_dense([[[n] for n in visits]], rewards=[rewards])
    return uniform_problem(counts, **{"discount": 0.5, "value_bounds": (-2.0, 10.0)} | terms)


def chosen(algorithm, problem):
    """The action that the algorithm takes in state 0."""
    return int(algorithm.improve(problem).policy.dense()[0].argmax())


@settings(max_examples=25)
@given(problem=problems(max_states=3))
def test_basic_rl_is_brute_force_on_the_estimated_mdp(problem):
    plan = BasicRL().improve(problem).plan
    assert largest_gap(plan.value, brute_force_optimum(problem.estimate())) <= plan.error_bound


@pytest.mark.parametrize(("kappa", "arm"), [(0.0, 1), (0.9, 1), (1.3, 0), (100.0, 0)])
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
    problem = uniform_problem(counts, 0.5, (-2.0, 10.0))
    assert chosen(RMin(n_wedge=0), problem) == 1
    assert chosen(RMin(n_wedge=1), problem) == 0  # 0.9 + ½ · (−2) < 0


@pytest.mark.parametrize("algorithm", [RaMDP(kappa=5.0), RMin(n_wedge=5)])
def test_known_ends_are_not_scarce(algorithm):
    """An end is worth its known reward: nobody will ever visit it."""
    table = np.zeros((2, 2, 2), int)
    table[0, 0, 0], table[0, 1, 1] = 10**6, 10**6
    counts = Counts.from_dense(table, rewards=[[0.0, 0.0], [7.0, 8.0]], terminal=[False, True])
    problem = uniform_problem(counts, 0.5, (-99.0, 10.0))
    found = algorithm.improve(problem)
    assert found.policy.dense().argmax(axis=1).tolist() == [1, 1]
    assert found.plan.value == pytest.approx([4.0, 8.0])


def test_ties_go_to_the_lowest_action_whatever_the_rounding():
    problem = bandit([3, 7, 9], [0.3, 0.1 + 0.2, 0.3])  # 0.1 + 0.2 > 0.3 by one rounding error
    for algorithm in (BasicRL(), RaMDP(kappa=0.0), RMin(n_wedge=0)):
        assert chosen(algorithm, problem) == 0
