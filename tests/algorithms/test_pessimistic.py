"""MBIE turned round, and the robust MDP with its safety test, on small models."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from support.problems import uniform_problem
from surestep import Counts
from surestep.algorithms import SPIBB, PessimisticMBIE, RobustMDP
from surestep.algorithms.pessimistic import ball_around
from surestep.errors import InvalidParameter
from surestep.planning.robust import best_value, robust_optimal, worst_value
from surestep.transforms import two_successor


def crossing(left, right, rewards=((0.0, 0.0), (1.0, 1.0), (0.0, 0.0)), **terms):
    """State 0 goes left (to end 1) or right (to end 2), seen that often."""
    table = np.zeros((3, 2, 3), int)
    table[0, 0, 1], table[0, 1, 2] = left, right
    counts = Counts.from_dense(table, rewards=rewards, terminal=[False, True, True])
    return uniform_problem(counts, **{"discount": 0.5, "value_bounds": (-2.0, 3.0)} | terms)


def ball_of(algorithm, problem):
    """The set that an algorithm plans against, from its formula."""
    states = problem.num_states
    if isinstance(algorithm, PessimisticMBIE):
        return ball_around(problem, algorithm.delta, math.log(2**states - 2), factor=2)
    return ball_around(problem, algorithm.delta, math.log(2**states), factor=1)


def test_the_radii_are_those_of_the_papers():
    problem = crossing(50, 80)
    mbie = ball_of(PessimisticMBIE(delta=0.2), problem).rows.radius
    robust = ball_of(RobustMDP(delta=0.2), problem).rows.radius
    for k, visits in ((0, 50), (1, 80)):
        assert mbie[k] == pytest.approx(
            math.sqrt(2 * math.log(2 * 3 * 2 * (2**3 - 2) / 0.2) / visits)
        )
        assert robust[k] == pytest.approx(math.sqrt(2 / visits * math.log(3 * 2 * 2**3 / 0.2)))
    assert ball_of(PessimisticMBIE(), crossing(1, 0)).rows.radius[0] == 2.0


@pytest.mark.parametrize(("left", "action"), [(29, 1), (30, 0)])
def test_mbie_prefers_what_is_certain(left, action):
    """The ends are worth 0.5 and 0.4. Right is certain, and worth ½ · 0.4 = 0.2.

    Left, the mass m = radius/2 may stay where it is: ½ (0.5 (1 − m) + 0.2 m). That is more than 0.2
    for m < ⅓, or N > 4.5 ln(2 · 6 · (2³ − 2) / 0.1) = 29.6.
    """
    problem = crossing(left, 10**15, rewards=((0.0, 0.0), (0.5, 0.5), (0.4, 0.4)))
    assert PessimisticMBIE().improve(problem).policy.dense()[0].argmax() == action


def test_known_rewards_of_transitions_never_seen_count():
    """Left was seen to end at 1 only; that ending at 2 would cost 100 is known."""
    table = np.zeros((3, 2, 3), int)
    table[0, 0, 1], table[0, 1, 2] = 1000, 1000
    rewards = np.zeros((3, 2, 3))
    rewards[0, 0, 1], rewards[0, 0, 2] = 1.0, -100.0

    def problem(known):
        told = {"rewards": known} if known is not None else {"reward_sums": rewards * table}
        counts = Counts.from_dense(table, **told, terminal=[False, True, True])
        return uniform_problem(counts, 0.5, (-100.0, 100.0))

    assert PessimisticMBIE().improve(problem(None)).policy.dense()[0].argmax() == 0
    assert PessimisticMBIE().improve(problem(rewards)).policy.dense()[0].argmax() == 1
    ball = ball_of(PessimisticMBIE(), problem(rewards))
    assert ball.worst(np.zeros(3)).q[0] == pytest.approx(1 - 101 * ball.rows.radius[0] / 2)


@pytest.mark.parametrize("unseen", ["terminal", "pessimistic"])
def test_what_was_never_tried_is_worth_the_bounds_whatever_the_rule(unseen):
    problem = crossing(10**9, 0, unseen=unseen)
    ball = ball_of(PessimisticMBIE(), problem)
    assert ball.worst(np.zeros(3)).q[1] == -2.0
    assert -ball.mirrored().worst(np.zeros(3)).q[1] == 3.0
    assert PessimisticMBIE().improve(problem).policy.dense()[0].argmax() == 0


def test_known_ends_are_worth_what_is_known():
    ball = ball_of(RobustMDP(), crossing(5, 5))
    ends = slice(2, 6)
    assert ball.worst(np.zeros(3)).q[ends].tolist() == [1.0, 1.0, 0.0, 0.0]
    best = -ball.mirrored().worst(np.zeros(3)).q
    assert best[ends].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_in_a_single_state_nothing_can_move():
    counts = Counts.from_dense([[[5], [5]]], rewards=[[0.0, 1.0]])
    problem = uniform_problem(counts, 0.5, (0, 2))
    assert PessimisticMBIE().improve(problem).policy.dense().tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(("visits", "passes"), [(10, False), (10_000, True)])
def test_the_robust_policy_is_returned_if_its_worst_case_beats_the_best_of_the_old_one(
    visits, passes
):
    problem = crossing(visits, visits)
    ball = ball_of(RobustMDP(), problem)
    worst = worst_value(ball, robust_optimal(ball).policy).value[0]
    best = best_value(ball, problem.behavior).value[0]
    assert (worst > best) == passes
    policy = RobustMDP().improve(problem).policy
    expected = [1.0, 0.0] if passes else [0.5, 0.5]
    assert policy.dense()[0].tolist() == expected


@pytest.mark.parametrize(
    ("worst", "best", "passes"),
    [
        ((1.0, 0.125), (0.5, 0.25), True),
        ((1.0, 0.125), (0.75, 0.25), False),  # in the best case, 1 against 0.875
        ((1.0, 0.5), (0.75, 0.125), False),
        ((1.0, 0.25), (0.5, 0.25), False),  # 0.75 against 0.75
    ],
)
def test_the_errors_of_both_evaluations_count_against_the_robust_policy(
    worst, best, passes, monkeypatch
):
    problem = crossing(10, 10)

    def valued(value, error):
        return lambda ball, policy: SimpleNamespace(value=np.full(3, value), error_bound=error)

    monkeypatch.setattr("surestep.algorithms.pessimistic.worst_value", valued(*worst))
    monkeypatch.setattr("surestep.algorithms.pessimistic.best_value", valued(*best))
    assert (RobustMDP().improve(problem).policy != problem.behavior) == passes


@pytest.mark.parametrize("algorithm", [PessimisticMBIE(), RobustMDP()])
def test_worst_cases_need_discounting(algorithm):
    split = two_successor(crossing(5, 5).counts)
    problem = uniform_problem(split.counts, np.ones(split.counts.pairs.num_pairs), (0.0, 1.0))
    problem = replace(problem, behavior=split.lift(crossing(5, 5).behavior))
    assert SPIBB(n_wedge=0).improve(problem).plan.value[0] == pytest.approx(1.0)
    with pytest.raises(InvalidParameter, match="discount of state 0, action 0 is 1, expected less"):
        algorithm.improve(problem)
