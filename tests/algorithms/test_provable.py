"""Provable policies: the program's optimum, its limits, and where it is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import assume, given
from hypothesis import strategies as st

from support.problems import logged_problem, uniform_problem
from support.strategies import problems
from surestep import Counts, FiniteMDP, Policy, Problem, optimal, performance, sample_log
from surestep.algorithms import Provable
from surestep.algorithms import provable as module
from surestep.algorithms.provable import KAPPA, Program
from surestep.errors import InvalidParameter, NeverEnds, NotConverged
from surestep.planning import occupancy

ROUNDS = st.sampled_from([0.5, 2.0, 8.0, 50.0])


def visits_of(problem, policy):
    return occupancy(problem.estimate(), Policy(problem.counts.pairs, policy))


def worth_in_program(program, policy):
    """Σ d r̂ − Σ β u of a policy, in the units of the program's costs."""
    problem, size = program.problem, policy.size
    d = visits_of(problem, policy)
    state = problem.counts.pairs.state
    total = np.bincount(state, d, problem.num_states)[state]
    u = np.maximum(d - problem.behavior.probability * total, 0.0)
    return -(program.cost[:size] @ d + program.cost[size : 2 * size] @ u)


@given(problem=problems(max_states=4), rounds=ROUNDS)
def test_flow_and_limits_hold(problem, rounds):
    program = Program.of(problem, 1.0)
    limits = program.limits(rounds)
    d, estimate = program.solved(limits), program.estimate
    pairs, gamma = estimate.pairs, problem.single_discount
    owner = np.repeat(np.arange(d.size), np.diff(estimate.offsets))
    inflow = np.bincount(estimate.successor, estimate.probability * d[owner], pairs.num_states)
    total = np.bincount(pairs.state, d, pairs.num_states)
    scale = 1e-8 * max(1.0, total.sum())
    np.testing.assert_allclose(total, estimate.initial + gamma * inflow, atol=scale)
    assert (d <= limits + scale).all()
    n = problem.counts.visits
    most = np.maximum((n - np.sqrt(n)) / (rounds * KAPPA[0]), program.visits)
    assert (d <= most + scale)[n > 0].all()  # whatever κ is
    still = (n == 0) | ~problem.open_pairs()
    assert (d <= problem.behavior.probability * total[pairs.state] + scale)[still].all()


@pytest.mark.thorough
@given(problem=problems(max_states=3, max_actions=2), rounds=ROUNDS, seed=st.integers(0, 99))
def test_no_policy_within_the_limits_is_worth_more(problem, rounds, seed):
    program = Program.of(problem, 1.0)
    limits, pairs = program.limits(rounds), problem.counts.pairs
    d = program.solved(limits)
    size = d.size
    total = np.bincount(pairs.state, d, pairs.num_states)[pairs.state]
    u = np.maximum(d - problem.behavior.probability * total, 0.0)
    best = -(program.cost[:size] @ d + program.cost[size : 2 * size] @ u)
    still = (problem.counts.visits == 0) | ~problem.open_pairs()
    rng, rows = np.random.default_rng(seed), []
    for first, last in zip(pairs.offsets[:-1], pairs.offsets[1:], strict=True):
        behavior = problem.behavior.probability[first:last]
        rows.append([behavior, *np.eye(last - first), rng.dirichlet(np.ones(last - first))])
    for chosen in product(*rows):
        policy = np.concatenate(chosen)
        if (policy > problem.behavior.probability)[still].any():
            continue
        if (visits_of(problem, policy) > limits).any():
            continue
        assert worth_in_program(program, policy) <= best + 1e-7 * max(1.0, abs(best))


@given(problem=problems(max_states=4, all_visited=True))
def test_without_limits_and_price_it_is_the_best_policy_of_the_estimate(problem):
    # Less one standard error, one visit leaves no round at all.
    assume((problem.counts.visits[~problem.counts.terminal[problem.counts.pairs.state]] > 1).all())
    estimate = problem.estimate()
    best = optimal(estimate).value @ estimate.initial
    found = Provable(rounds=1e-9, price=0).improve(problem).policy
    scale = max(1.0, np.abs(estimate.reward).max(initial=0.0)) / (1 - problem.single_discount)
    assert performance(estimate, found) == pytest.approx(best, abs=1e-7 * scale)


def arms(visits=(900, 100), wins=(450, 80)):
    """One decision: an arm that π_b nearly always takes, and one that wins more often."""
    table, rewards = np.zeros((3, 2, 3), int), np.zeros((3, 2, 3))
    table[0, :, 1], table[0, :, 2] = wins, np.subtract(visits, wins)
    rewards[0, :, 1] = 1.0
    counts = Counts.from_dense(
        table, rewards=rewards, starts=[sum(visits), 0, 0], terminal=[False, True, True]
    )
    behavior = Policy.from_dense(counts, [[0.9, 0.1], [0.5, 0.5], [0.5, 0.5]])
    return Problem(counts=counts, behavior=behavior, discount=0.5, value_bounds=(0.0, 1.0))


def test_an_action_is_taken_as_often_as_so_many_rounds_allow():
    problem = arms()
    # 100 visits less 10 are 90 rounds in which it may always be taken, 180 in which half as often.
    for rounds, chance in ((45, 1.0), (90, 1.0), (180, 0.5), (10_000, 0.1)):
        found = Provable(rounds=rounds).improve(problem).policy
        assert found.probability[1] == pytest.approx(chance, abs=1e-6)
    # √(0.25/100) is what a step's value may be off: a gain of less is not worth it.
    lucky = arms(wins=(450, 54))
    assert Provable(rounds=45).improve(lucky).policy == lucky.behavior
    assert Provable(rounds=45, price=0).improve(lucky).policy.probability[1] > 0.999


def test_a_state_whose_free_pairs_have_no_visits_does_as_before():
    """Its closed pairs have a little more than π_b by the solver, and nothing takes the rest."""
    problem = arms(visits=(900, 0), wins=(450, 0))
    behavior = Policy.from_dense(problem.counts, [[1 - 1e-5, 1e-5], [0.5, 0.5], [0.5, 0.5]])
    visits = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert module.policy_with_visits(visits, replace(problem, behavior=behavior)) == behavior


def test_rewards_that_vary_have_a_price():
    rows = np.zeros((2, 2, 2))
    rows[0, :, 1] = 1.0
    mdp = FiniteMDP.from_dense(rows, [[0.0, 0.5], [0.0, 0.0]], 0.9)
    behavior = Policy.from_dense(mdp, [[0.9, 0.1], [0.5, 0.5]])
    exact = sample_log(mdp, behavior, 200, 1, np.random.default_rng(0))
    noise = np.where(np.arange(exact.num_steps) % 2, 10.0, -10.0)
    noisy = replace(exact, reward=exact.reward + noise)
    errors = []
    for log in (exact, noisy):
        counts = log.counts()
        problem = logged_problem(log, 0.9, (-20.0, 20.0), behavior)
        value = np.zeros(2)
        errors.append(module.standard_errors(problem, problem.estimate(), value)[:2])
    assert (errors[0] == 0).all()
    np.testing.assert_allclose(errors[1] * np.sqrt(counts.visits[:2]), 5.0)  # of −10 to 10


def test_what_it_cannot_solve_is_refused(monkeypatch):
    problem = arms()
    for settings, said in (({"rounds": 0}, "rounds is 0"), ({"price": -1}, "price is -1")):
        with pytest.raises(InvalidParameter, match=said):
            Provable(**settings)
    monkeypatch.setattr(module, "MOST_PAIRS", 5)
    with pytest.raises(InvalidParameter, match=r"6 pairs, but the linear program .* 5 at most"):
        Provable().improve(problem)
    monkeypatch.undo()
    several = replace(problem, discount=np.full(6, 0.5))
    with pytest.raises(InvalidParameter, match="a discount for each pair"):
        Provable().improve(several)

    class Failed:
        status, message = 4, "numbers"

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *given, **settings: Failed)
    with pytest.raises(NotConverged, match=r"was not solved: numbers"):
        Provable().improve(problem)


def test_without_discount_the_estimate_has_to_end():
    ends = replace(arms(), discount=1.0)
    assert Provable(rounds=45).improve(ends).policy.probability[1] == pytest.approx(1.0)
    table = np.zeros((2, 1, 2), int)
    table[0, 0, 1] = table[1, 0, 0] = 5
    counts = Counts.from_dense(table, rewards=np.ones((2, 1)))
    endless = uniform_problem(counts, 1.0, (0.0, 1.0))
    with pytest.raises(NeverEnds):
        Provable().improve(endless)
