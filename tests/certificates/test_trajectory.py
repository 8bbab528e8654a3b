"""Trajectory certificates: closed forms, how often they fail, and that they can be repeated.

A proved claim may fail with probability δ. Tests of that draw with fixed seeds and allow as many
failures as a claim that fails exactly that often would exceed once in 10⁶ tests.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.failures import allowed_failures
from support.problems import logged_problem
from support.strategies import logged_problems
from support.trajectory_examples import (
    BEHAVIOR,
    BOUNDS,
    MDP,
    POLICY,
    PROVED,
    every,
    example,
    problem_of,
    true_difference,
)
from surestep import FiniteMDP, Policy, certify, performance, sample_log
from surestep.certificates import Trajectory, training_part
from surestep.certificates.trajectory import discounted_steps, effective_number
from surestep.errors import CertificateRefused
from surestep.model import Statement
from surestep.offpolicy import (
    ESTIMATORS,
    betting,
    choose_threshold,
    empirical_bernstein,
    importance_weights,
    student_t,
)


def test_values_are_taken_for_bounded_only_where_they_matter():
    """What comes after the horizon counts by the bounds on values, unless the claim ends there."""
    mdp = FiniteMDP.from_dense([[[0.5, 0.5]], [[0.0, 0.0]]], [[1.0], [0.0]], 0.9)
    policy = Policy.uniform(mdp)
    log = sample_log(mdp, policy, 5, 3, np.random.default_rng(0))
    problem = logged_problem(log, policy, 0.9, (0.0, 7.0))
    bounded = Statement("values-bounded", {"low": 0.0, "high": 7.0})
    for terms, matters in (
        ({"horizon": 3}, True),
        ({"horizon": 30}, True),  # 0.9³⁰ · 7 is less than 1
        ({"horizon": 3, "claim": "horizon"}, False),
        ({"horizon": None}, False),
    ):
        assert (bounded in Trajectory(**BOUNDS, **terms).assumptions(problem)) == matters


# ---- closed forms -----------------------------------------------------------------------------


def episode_difference(log, episode, certifier, horizon):
    """Y of one episode, by going through its steps."""
    first, last = log.episode_offsets[episode : episode + 2]
    low, weight, earned, total = certifier.reward_low, 1.0, 0.0, 0.0
    for t in range(horizon):
        reward = 0.0  # after the end, with the last weight
        if first + t < last:
            k = log.pair[first + t]
            weight *= POLICY.probability[k] / BEHAVIOR.probability[k]
            reward = log.reward[first + t]
        earned += 0.7**t * reward
        total += 0.7**t * (weight - 1) * (reward - low)
    if certifier.estimator == "pdis":
        return total
    return (weight - 1) * (earned - low * sum(0.7**t for t in range(horizon)))


@every(PROVED)
def test_proved_claims_are_bounds_of_the_paired_differences(certifier):
    problem = example()
    order = np.random.default_rng(0).permutation(60)
    parts = order[:12], order[12:]
    train, test = (
        np.array([episode_difference(problem.log, e, certifier, 3) for e in part]) for part in parts
    )
    least = -3.0 * (1 + 0.7 + 0.49)
    bound = {
        "betting": lambda: betting(test, least, 0.1),
        "bernstein": lambda: empirical_bernstein(
            np.minimum(test, choose_threshold(train, least, 48, 0.1)),
            least,
            choose_threshold(train, least, 48, 0.1),
            0.1,
        ),
    }[certifier.interval]()
    found = certify(problem, POLICY, certifier)
    assert found.lower == pytest.approx(bound, rel=1e-9)
    assert found.figures["estimate"] == pytest.approx(test.mean(), rel=1e-9)
    assert found.figures["least"] == pytest.approx(least, rel=1e-12)
    assert (found.figures["training_episodes"], found.figures["episodes"]) == (12, 48)
    assert found.standing == "proved"


@pytest.mark.parametrize("estimator", ["is", "pdis", "wis", "wpdis"])
def test_asymptotic_claims_are_bounds_of_estimate_less_return(estimator):
    problem = example()
    test = problem.log.episodes(np.random.default_rng(0).permutation(60)[12:])
    weights = importance_weights(test, POLICY, BEHAVIOR)
    earned = [
        sum(0.7**t * r for t, r in enumerate(test.reward[first:last]))
        for first, last in zip(test.episode_offsets, test.episode_offsets[1:], strict=False)
    ]
    values = ESTIMATORS[estimator]().estimate(weights, 0.7).values - earned
    certifier = Trajectory(estimator=estimator, interval="student-t", horizon=3, claim="horizon")
    found = certify(problem, POLICY, certifier)
    assert found.lower == pytest.approx(student_t(values, 0.1), rel=1e-9)
    assert found.standing == "asymptotic"
    assert Statement("many-episodes") in found.assumptions


def test_doubly_robust_takes_its_model_from_the_training_part():
    problem = example(episodes=100)
    certifier = Trajectory(estimator="dr", interval="student-t", horizon=3)
    found = certify(problem, POLICY, certifier)
    # Other rewards in the test part must not reach the model: q moves with training only.
    order = np.random.default_rng(0).permutation(100)
    log = problem.log
    episode = np.repeat(np.arange(100), np.diff(log.episode_offsets))
    changed = replace(log, reward=log.reward + np.isin(episode, order[:20]) * 10.0)
    other = certify(problem_of(changed), POLICY, certifier)
    assert other.lower != found.lower
    assert training_part(problem_of(changed), 0.2, 0).log.reward.min() > 8.0


# ---- coverage ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logged():
    """Problems of 300 logs, which all certifiers judge by."""
    rng = np.random.default_rng(1)
    return [problem_of(sample_log(MDP, BEHAVIOR, 40, 3, rng)) for _ in range(300)]


@every(PROVED)
def test_proved_claims_fail_no_more_often_than_they_may(certifier, logged):
    judge, truth = replace(certifier, delta=0.3), true_difference(3)
    wrong = sum(certify(problem, POLICY, judge).lower > truth for problem in logged)
    assert wrong <= allowed_failures(len(logged), 0.3)


def test_betting_claims_a_gain_where_there_is_one():
    certifier = Trajectory(estimator="pdis", horizon=20, **BOUNDS)
    log = sample_log(MDP, BEHAVIOR, 4000, 20, np.random.default_rng(2))
    found = certify(problem_of(log), POLICY, certifier)
    truth = performance(MDP, POLICY) - performance(MDP, BEHAVIOR)
    assert 0 < found.lower < truth < 4 * found.lower


def test_a_policy_must_not_be_chosen_by_the_episodes_that_judge_it():
    # Six actions that are all the same: whatever is chosen, Δ = 0, and L > 0 is wrong. With
    # Student's t, which is wrong about as often as it may be; betting is too cautious here to be
    # wrong so often that 100 logs prove it.
    P = np.zeros((3, 6, 3))
    P[0, :, 1:] = 0.5
    R = np.zeros((3, 6, 3))
    R[0, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    behavior = Policy.uniform(mdp)
    arms = [Policy.deterministic(mdp, [a, 0, 0]) for a in range(6)]
    judge = Trajectory(estimator="is", interval="student-t", train_share=0.5)
    chooser = replace(judge, train_share=0.0)
    rng, number = np.random.default_rng(3), 100
    wrong = {"test part": 0, "training part": 0}
    for _ in range(number):
        log = sample_log(mdp, behavior, 300, 1, rng)
        problem = logged_problem(log, behavior, 0.9, (0, 1))
        by_test = max(certify(problem, arm, judge).lower for arm in arms)
        part = training_part(problem, judge.train_share, judge.seed)
        by_training = max(arms, key=lambda arm: certify(part, arm, chooser).lower)
        wrong["test part"] += by_test > 0
        wrong["training part"] += certify(problem, by_training, judge).lower > 0
    assert wrong["training part"] <= allowed_failures(number, 0.1)
    assert wrong["test part"] > allowed_failures(number, 0.1)


@pytest.mark.parametrize(("delta", "resamples"), [(0.1, 2000), (0.01, 2000), (0.005, 4000)])
def test_a_rare_failure_takes_more_resamples(delta, resamples, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "surestep.offpolicy.bca_bootstrap",
        lambda estimate, delta, rng, resamples: asked.append(resamples) or 0.0,
    )
    certify(example(), POLICY, Trajectory(horizon=3, interval="bca", delta=delta))
    assert asked == [resamples]


def test_a_bootstrap_has_a_smallest_level(monkeypatch):
    monkeypatch.setattr("surestep.offpolicy.bca_bootstrap", lambda *arguments: 0.0)
    certifier = Trajectory(horizon=3, interval="bca", claim="horizon", delta=1e-6)
    assert certify(example(), POLICY, certifier).lower == 0.0
    with pytest.raises(CertificateRefused, match="delta is 9e-07, expected at least 1e-06"):
        certify(example(), POLICY, replace(certifier, delta=9e-7))


def test_weights_count_as_so_many_equal_ones():
    assert effective_number(np.array([2.0, 2.0, 2.0])) == pytest.approx(3.0)
    assert effective_number(np.array([3.0, 1.0, 0.0])) == pytest.approx(16 / 10)
    assert effective_number(np.array([1e200, 1e200])) == pytest.approx(2.0)
    assert effective_number(np.zeros(2)) == 0.0


def test_steps_are_discounted():
    assert discounted_steps(0.5, None) == 2.0
    assert discounted_steps(0.5, 3) == 1.75
    assert discounted_steps(1.0, 3) == 3.0


@settings(max_examples=30)
@given(problem=logged_problems(), seed=st.integers(0, 3))
def test_any_log_gets_a_claim_or_a_reason(problem, seed):
    policy = Policy.uniform(problem.counts).mix(problem.behavior, 0.5)
    for certifier in (
        Trajectory(seed=seed, horizon=1, train_share=0.5, reward_low=-9, reward_high=9),
        Trajectory(seed=seed, horizon=2, estimator="wpdis", interval="student-t", train_share=0.0),
        Trajectory(seed=seed, estimator="dr", interval="bca"),
    ):
        try:
            found = certify(problem, policy, certifier)
        except CertificateRefused:
            continue
        assert math.isfinite(found.lower)
