"""DUIPI against its published formulas over dense tables, and how it ends."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.problems import uniform_problem
from surestep import Counts
from surestep.algorithms import DUIPI, duipi


def published(times, rewards, discount, xi, estimator, rounds):
    """The published iteration over tables [S, A, S] without ends, for a number of rounds.

    The policy, and how far q moved in the last round.
    """
    visits = times.sum(axis=2, keepdims=True)
    if estimator == "bayesian":
        weight = times + 0.1
        total = weight.sum(axis=2, keepdims=True)
        P = weight / total
        variance = weight * (total - weight) / (total**2 * (total + 1))
    else:
        P = times / np.maximum(visits, 1)
        sampling = P * (1 - P) / np.maximum(visits - 1, 1)
        variance = np.where(visits > 1, sampling, 0.25)
    states, actions, _ = times.shape
    policy = np.full((states, actions), 1 / actions)
    q, q_variance = np.zeros((2, states, actions))
    for t in range(1, rounds + 1):
        value, risk = (policy * q).sum(axis=1), (policy**2 * q_variance).sum(axis=1)
        outcome = rewards + discount * value
        before, q = q, (P * outcome).sum(axis=2)
        q_variance = discount**2 * (P**2 @ risk) + (variance * outcome**2).sum(axis=2)
        careful = np.where(visits[:, :, 0] > 0, q - xi * np.sqrt(q_variance), -np.inf)
        for s, best in enumerate(careful.argmax(axis=1)):
            step = min(1 / t, 1 - policy[s, best])
            rest = 1 - policy[s, best] - step
            others = np.arange(actions) != best
            policy[s, best] += step
            policy[s, others] *= rest / (rest + step) if rest > 0 else 0.0
    return policy, np.linalg.norm(q - before)


def problem_of(times, rewards, **terms):
    """The problem of tables, with known rewards."""
    counts = Counts.from_dense(times, rewards=rewards, terminal=terms.pop("terminal", None))
    return uniform_problem(counts, **{"discount": 0.9, "value_bounds": (-50.0, 50.0)} | terms)


def random_tables(seed, states=4, actions=3, most=12):
    """Counts in which every state was seen, but not every pair, and rewards per transition."""
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.full(states, 0.5), (states, actions))
    times = rng.multinomial(rng.integers(0, most, (states, actions)), chance)
    times[:, 0, 0] += 1
    return times, rng.normal(size=times.shape)


@pytest.mark.parametrize("estimator", ["bayesian", "frequentist"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), xi=st.sampled_from([0.0, 0.3, 2.0]), per=st.sampled_from([1, 4]))
def test_the_policy_is_that_of_the_published_formulas(estimator, seed, xi, per):
    times, rewards = random_tables(seed)
    rewards = rewards[:, :, :per]  # one for each pair, or one for each transition
    with patch.object(duipi, "ROUNDS", 250):
        found = DUIPI(xi=xi, estimator=estimator).improve(
            problem_of(times, rewards if per > 1 else rewards[:, :, 0])
        )
    expected, _ = published(times, rewards, 0.9, xi, estimator, found.plan.iterations)
    assert found.policy.dense() == pytest.approx(expected, abs=1e-9)


def test_two_actions_may_take_turns_until_the_rounds_are_over():
    """As in published code: the policy nears a mixture, whose variance is below that of each."""
    times = np.array([[[3, 3], [1, 0]], [[3, 3], [1, 0]]])
    rewards = np.array([[0.0, 1.0], [2.0, 0.0]])
    found = DUIPI(xi=1.0).improve(problem_of(times, rewards))
    assert found.plan.iterations == 5_000
    assert found.policy.dense()[0] == pytest.approx([0.289, 0.711], abs=1e-3)
    expected, moved = published(
        times, rewards[:, :, np.newaxis], 0.9, 1.0, "bayesian", duipi.ROUNDS
    )
    assert found.policy.dense() == pytest.approx(expected, abs=1e-9)
    assert moved > 1e-6  # published code stops at 1e-9


def chain(**terms):
    """State 0 leads to 1 or 2 and nothing leads to it; only what comes then tells which is best."""
    times = np.zeros((3, 2, 3), int)
    times[0, 0, 1], times[0, 1, 2] = 10**9, 10**9
    rewards = np.zeros((3, 2))
    rewards[2] = 1.0
    return problem_of(times, rewards, terminal=[False, True, True], **terms)


@pytest.mark.parametrize("estimator", ["bayesian", "frequentist"])
def test_it_waits_for_the_policy_where_values_do_not_tell(estimator):
    found = DUIPI(xi=0.1, estimator=estimator).improve(chain())
    assert found.policy.dense()[0].tolist() == [0.0, 1.0]
    assert found.plan.iterations < 20


@pytest.mark.parametrize("estimator", ["bayesian", "frequentist"])
def test_nothing_is_uncertain_about_a_known_end(estimator):
    """State 0 goes to the end, worth 1, or stays for 0.06 a step: 0.9 against 0.6, both for sure.

    An end whose two actions had a variance of 1 each would lose 0.9 / √2 on the way.
    """
    times = np.zeros((2, 2, 2), int)
    times[0, 0, 1], times[0, 1, 0] = 10**9, 10**9
    rewards = [[0.0, 0.06], [1.0, 1.0]]
    problem = problem_of(times, rewards, terminal=[False, True])
    found = DUIPI(xi=1.0, estimator=estimator).improve(problem)
    assert found.policy.dense()[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("unseen", "action"), [("terminal", 1), ("pessimistic", 0)])
def test_without_a_prior_unseen_pairs_are_worth_what_the_rule_says(unseen, action):
    """State 2 was never left: worth its known reward of 1, or the lower bound; state 1 gives 0."""
    times = np.zeros((3, 2, 3), int)
    times[0, 0, 1], times[0, 1, 2], times[1, :, 1] = 100, 100, 100
    problem = problem_of(times, [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], unseen=unseen)
    found = DUIPI(xi=0.0, estimator="frequentist").improve(problem)
    assert found.policy.dense()[0].argmax() == action
    assert found.policy.dense()[2].tolist() == [0.5, 0.5]  # nothing was tried: nothing to lean to
