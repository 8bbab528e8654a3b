"""Trajectory claims without grounds, bounds of returns, and settings out of range."""

from dataclasses import replace

import numpy as np
import pytest

from support.problems import logged_problem
from support.trajectory_examples import BOUNDS, MDP, POLICY, example, problem_of
from surestep import FiniteMDP, Policy, certify, estimate_behavior, performance, sample_log
from surestep.certificates import Trajectory, training_part
from surestep.certificates.trajectory import check_rewards
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.model import Statement


def refused(problem, policy=POLICY, **changes):
    """The reason why there is no claim."""
    with pytest.raises(CertificateRefused) as reason:
        certify(problem, policy, replace(Trajectory(horizon=3, **BOUNDS), **changes))
    return str(reason.value)


def test_claims_without_grounds_are_refused():
    problem = example()
    assert "has no log" in refused(replace(problem, log=None))
    guessed = replace(problem, behavior=estimate_behavior(problem.counts))
    assert "only estimated" in refused(guessed)
    careful = Policy.from_dense(MDP, [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    log = sample_log(MDP, careful, 60, 3, np.random.default_rng(0))
    text = refused(problem_of(log, behavior=careful))
    assert "the policy takes state 0, action 1 with probability 0.6, but the behavior" in text
    assert "expected reward_low = -1.0 to reward_high = 0.5" in refused(problem, reward_high=0.5)
    assert "discount is 1" in refused(replace(problem, discount=1.0))
    assert "4 episodes, 1 to choose and plan and 3 to judge" in refused(example(episodes=4))
    assert "0 to choose and plan and 1 to" in refused(example(episodes=1), train_share=0.0)


def test_two_episodes_for_each_part_are_enough():
    problem = example(episodes=4)
    certifier = Trajectory(horizon=3, train_share=0.5, **BOUNDS)
    figures = certify(problem, POLICY, certifier).figures
    assert (figures["training_episodes"], figures["episodes"]) == (2, 2)
    figures = certify(problem, POLICY, replace(certifier, train_share=0.0)).figures
    assert (figures["training_episodes"], figures["episodes"]) == (0, 4)


def test_undiscounted_claims_are_about_a_horizon():
    problem = example(discount=1.0)
    for estimator in ("is", "pdis"):
        certifier = Trajectory(estimator=estimator, horizon=3, claim="horizon", **BOUNDS)
        assert certify(problem, POLICY, certifier).figures["least"] == -9.0
    assert "discount is 1" in refused(
        problem,
        claim="horizon",
        estimator="dr",
        interval="student-t",
        reward_low=None,
        reward_high=None,
    )


def home_or_not(episodes, seed=0):
    """Steps until home, which pays 1, or not; the better action leads there more often."""
    P = np.zeros((3, 2, 3))
    P[0, 0], P[0, 1] = [0.4, 0.2, 0.4], [0.2, 0.6, 0.2]
    R = np.zeros((3, 2, 3))
    R[0, :, 1] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 1.0)
    log = sample_log(mdp, Policy.uniform(mdp), episodes, 1000, np.random.default_rng(seed))
    behavior = Policy.uniform(mdp)
    problem = logged_problem(log, behavior, 1.0, (0.0, 1.0))
    return problem, Policy.from_dense(mdp, [[0.2, 0.8], [0.5, 0.5], [0.5, 0.5]]), mdp


@pytest.mark.parametrize("interval", ["betting", "bernstein", "student-t", "bca"])
def test_bounds_of_returns_are_enough_without_a_discount(interval):
    problem, policy, mdp = home_or_not(3000)
    bounds = {"return_low": 0.0, "return_high": 1.0} if interval in ("betting", "bernstein") else {}
    certifier = Trajectory(estimator="is", interval=interval, **bounds)
    claim = certify(problem, policy, certifier)
    gain = performance(mdp, policy) - performance(mdp, problem.behavior)
    assert gain == pytest.approx(13 / 19 - 4 / 7)
    assert 0 < claim.lower < gain
    if bounds:
        assert claim.figures["least"] == -1.0
        assert Statement("returns-bounded", {"low": 0.0, "high": 1.0}) in claim.assumptions
        assert "rewards-bounded" not in [assumption.code for assumption in claim.assumptions]


def test_claims_from_bounds_of_returns_are_rarely_wrong():
    # 200 logs: at δ = 0.3 no more than 80 wrong ones, but for one run in 1000 where 30 % are.
    wrong = 0
    for seed in range(200):
        problem, policy, _ = home_or_not(40, seed)
        certifier = Trajectory(estimator="is", delta=0.3, return_low=0.0, return_high=1.0)
        wrong += certify(problem, policy, certifier).lower > 13 / 19 - 4 / 7  # as above
    assert wrong <= 80


def test_bounds_of_returns_that_mean_nothing_or_are_wrong_are_refused():
    problem, policy, _ = home_or_not(40)
    narrow = Trajectory(estimator="is", return_low=0.0, return_high=0.5)
    with pytest.raises(
        RefutedBounds, match=r"from episode \d+, step 0 on, 1 is earned, expected 0\.0 to 0\.5"
    ):
        certify(problem, policy, narrow)
    with pytest.raises(CertificateRefused, match=r"discount is 1.*estimator='is' with return_low"):
        certify(problem, policy, Trajectory(reward_low=0.0, reward_high=1.0))


@pytest.mark.parametrize("bounds", [(0.0, 2.0), (-2.0, 0.0), (1.0, 3.0), (-3.0, -1.0)])
def test_the_least_difference_counts_that_ended_episodes_earn_nothing(bounds):
    low, high = bounds
    certifier = Trajectory(horizon=1, reward_low=low, reward_high=high)
    widest = max(high, 0.0) - min(low, 0.0)
    assert certifier._least(0.7) == pytest.approx(-widest)
    assert Statement("rewards-bounded", {"low": low, "high": high}) in certifier.assumptions(
        example()
    )
    for reward, inside in ((low, True), (high, True), (low - 0.5, False), (high + 0.5, False)):
        log = example().log
        log = replace(log, reward=np.full(log.reward.size, reward))
        if inside:
            check_rewards(log, *certifier._rewards)
        else:
            with pytest.raises(RefutedBounds, match=f"expected reward_low = {low} to"):
                check_rewards(log, *certifier._rewards)


def test_notes_say_whether_states_must_be_markov():
    note = Statement("need-not-be-markov")
    assert note in Trajectory(horizon=3, **BOUNDS).notes()
    assert note not in Trajectory(estimator="dr", interval="bca").notes()


def test_a_problem_without_a_log_has_no_training_part():
    with pytest.raises(InvalidParameter, match="has no log"):
        training_part(replace(example(), log=None), 0.5, 0)
    with pytest.raises(InvalidParameter, match="problem is of type"):
        training_part("log", 0.5, 0)
    with pytest.raises(InvalidParameter, match="train_share is 2"):
        training_part(example(), 2, 0)
