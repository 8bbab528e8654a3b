"""HCPI: it improves where a log shows it, and seldom harms where there is nothing to gain."""

import numpy as np
import pytest

from support.failures import allowed_failures
from support.logs import one_step_log
from support.problems import logged_problem
from surestep import FiniteMDP, Policy, optimal, performance, sample_log
from surestep.algorithms import HCPI
from surestep.algorithms.hcpi import differences, predicted_bound, trained
from surestep.offpolicy import ESTIMATORS, student_t

# Two decisions in a row, each right or wrong, then the end; what is right pays 1 on average.
TABLE = np.zeros((3, 2, 3))
TABLE[0, :, 1] = 1.0
TABLE[1, :, 2] = 1.0
RIGHT = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])


def world(reward=RIGHT):
    return FiniteMDP.from_dense(TABLE, reward, 0.9)


def problem_of(mdp, behavior, episodes, seed):
    log = sample_log(mdp, behavior, episodes, 5, np.random.default_rng(seed))
    return logged_problem(log, 0.9, (0.0, 2.0), behavior)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("interval", ["student-t", "bca"])
def test_with_many_episodes_it_finds_what_is_right(estimator, interval):
    mdp = world()
    problem = problem_of(mdp, Policy.uniform(mdp), 400, seed=1)
    found = HCPI(estimator=estimator, interval=interval).improve(problem)
    assert performance(mdp, found.policy) > performance(mdp, problem.behavior) + 0.5
    assert performance(mdp, found.policy) <= mdp.initial @ optimal(mdp).value + 1e-9


@pytest.mark.parametrize(
    ("episodes", "share", "tested"),
    [(10, 0.2, 1), (10, 0.8, 1), (3, 0.5, 0), (10, 0, 0), (10, 0.1, 0), (10, 0.9, 0), (10, 1, 0)],
)
def test_a_test_needs_two_episodes_of_each_part(episodes, share, tested, monkeypatch):
    mdp = world()
    problem = problem_of(mdp, Policy.uniform(mdp), episodes, seed=1)
    chosen = Policy.deterministic(mdp, [0, 1, 0])
    monkeypatch.setattr(HCPI, "_tested", lambda self, problem, train, test: chosen)
    found = HCPI(train_share=share).improve(problem).policy
    assert found == (chosen if tested else problem.behavior)


def test_the_predicted_bound_is_that_of_as_many_values_of_their_kind():
    gains = np.array([1.0, 2.0, 6.0])
    assert predicted_bound(gains, 3, 0.1) == pytest.approx(student_t(gains, 0.1))
    assert predicted_bound(gains, 12, 0.1) == pytest.approx(3 - (3 - student_t(gains, 0.1)) / 2)


def test_what_is_returned_passed_the_test_on_the_other_episodes():
    mdp = world()
    problem = problem_of(mdp, Policy.uniform(mdp), 300, seed=2)
    algorithm = HCPI(estimator="pdis", train_share=0.5)
    policy = algorithm.improve(problem).policy
    assert policy != problem.behavior
    estimator = ESTIMATORS["pdis"]
    train, test = problem.log.episodes(slice(0, 150)), problem.log.episodes(slice(150, 300))
    assert student_t(differences(problem, test, policy, estimator), 0.1) > 0
    greedy, _ = trained(problem, train)
    predicted = [
        predicted_bound(
            differences(problem, train, greedy.mix(problem.behavior, tenth / 10), estimator),
            150,
            0.1,
        )
        for tenth in range(10)
    ]
    assert policy == greedy.mix(problem.behavior, int(np.argmax(predicted)) / 10)


@pytest.mark.slow
def test_it_seldom_harms_where_training_is_misled():
    """One decision: arm 0 wins with 0.6, arm 1 with 0.4, and π_b takes arm 0 seven times in ten.

    Few training episodes often make arm 1 look better, and every change towards it is a loss. At
    level δ = 0.1 it may pass once in ten logs; beyond the 1 − 1e-6 quantile of Binomial(300, 0.1)
    this test fails, a false alarm of 1e-6. (Student's t holds in the limit only, hence weights
    that are not far from 1.)
    """
    table = np.zeros((3, 2, 3))
    table[0] = [[0.0, 0.6, 0.4], [0.0, 0.4, 0.6]]
    reward = np.zeros((3, 2, 3))
    reward[0, :, 1] = 1.0
    mdp = FiniteMDP.from_dense(table, reward, 0.9)
    behavior = Policy.from_dense(mdp, [[0.7, 0.3], [0.5, 0.5], [0.5, 0.5]])
    misled = losses = 0
    for seed in range(300):
        problem = problem_of(mdp, behavior, 60, seed)
        greedy, _ = trained(problem, problem.log.episodes(slice(0, 12)))
        misled += greedy.probability[1] > 0.5
        policy = HCPI().improve(problem).policy
        losses += performance(mdp, policy) < performance(mdp, behavior) - 1e-12
    assert misled > 50  # or there would be nothing to test
    assert losses <= allowed_failures(300)


def one_decision(training, test, behavior=(0.5, 0.5)):
    """Episodes of one decision (arm, reward) each; the first half of them is for training."""
    table = np.zeros((2, 2, 2))
    table[0, :, 1] = 1.0
    mdp = FiniteMDP.from_dense(table, np.zeros((2, 2)), 0.9)
    arm, reward = (np.array(column) for column in zip(*training, *test, strict=True))
    behavior = Policy.from_dense(mdp, [behavior, (0.5, 0.5)])
    return logged_problem(one_step_log(mdp.pairs, arm, reward), 0.9, (0.0, 1.0), behavior)


UP = [(0, 0.0), (1, 1.0)] * 20  # arm 1 pays
DOWN = [(0, 1.0), (1, 0.0)] * 20  # arm 0 pays
NOTHING = [(0, 0.0), (1, 0.0)] * 20
HALVES = {"train_share": 0.5, "estimator": "pdis"}


@pytest.mark.parametrize("interval", ["student-t", "bca"])
def test_what_the_other_episodes_contradict_is_not_deployed(interval):
    """Training prefers arm 1 by far. The test decides: for it, against it, or not at all."""
    algorithm = HCPI(interval=interval, **HALVES)
    confirmed = algorithm.improve(one_decision(UP, UP)).policy
    assert confirmed.probability[1] > 0.9
    for test in (DOWN, NOTHING):
        problem = one_decision(UP, test)
        assert algorithm.improve(problem).policy == problem.behavior


def test_a_test_that_cannot_tell_deploys_nothing():
    """Self-normalised weights of the test part add up to 0: no estimate, and so no proof."""
    problem = one_decision(UP, [(0, 0.0)] * 40)
    greedy, _ = trained(problem, problem.log.episodes(slice(0, 40)))
    assert differences(problem, problem.log.episodes(slice(40, 80)), greedy, WEIGHTED) is None
    for interval in ("student-t", "bca"):
        algorithm = HCPI(interval=interval, train_share=0.5, estimator="wis")
        assert algorithm.improve(problem).policy == problem.behavior


WEIGHTED = ESTIMATORS["wis"]
