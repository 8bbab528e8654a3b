"""Trajectory certificates: closed forms, how often they fail, their episodes, and refusals.

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
    VALUES,
    every,
    example,
    problem_of,
    true_difference,
)
from surestep import FiniteMDP, Policy, certify, estimate_behavior, performance, sample_log
from surestep.certificates import Trajectory, training_part
from surestep.certificates.trajectory import (
    assumptions_of,
    check_rewards,
    effective_number,
)
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.model import Statement
from surestep.offpolicy import (
    ESTIMATORS,
    betting,
    choose_threshold,
    empirical_bernstein,
    importance_weights,
    split_episodes,
    student_t,
)
from surestep.offpolicy.split import first_steps


def test_values_are_taken_for_bounded_only_where_they_matter():
    """What comes after the horizon counts by the bounds on values, unless the claim ends there."""
    bounded = Statement("values-bounded", {"low": VALUES[0], "high": VALUES[1]})
    for terms, matters in (
        ({"horizon": 3}, True),
        ({"horizon": 30}, True),  # 0.7³⁰ · 7 is less than 1
        ({"horizon": 3, "claim": "horizon"}, False),
        ({"horizon": None}, False),
    ):
        assert (bounded in assumptions_of(Trajectory(**BOUNDS, **terms), example())) == matters


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
    values = ESTIMATORS[estimator](weights, 0.7).values - earned
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


@pytest.fixture(scope="module", params=[100, pytest.param(1000, marks=pytest.mark.slow)])
def logged(request):
    """Problems of so many logs, which all certifiers judge by."""
    rng = np.random.default_rng(1)
    return [problem_of(sample_log(MDP, BEHAVIOR, 40, 3, rng)) for _ in range(request.param)]


@pytest.mark.one_quick
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


@pytest.mark.thorough
def test_a_policy_must_not_be_chosen_by_the_episodes_that_judge_it():
    # Six actions that are all the same: whatever is chosen, Δ = 0, and L > 0 is wrong. With
    # Student's t, which is wrong about as often as it may be; betting is too cautious here to be
    # wrong so often that 50 logs prove it.
    P = np.zeros((3, 6, 3))
    P[0, :, 1:] = 0.5
    R = np.zeros((3, 6, 3))
    R[0, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    behavior = Policy.uniform(mdp)
    arms = [Policy.deterministic(mdp, [a, 0, 0]) for a in range(6)]
    judge = Trajectory(estimator="is", interval="student-t", train_share=0.5)
    chooser = replace(judge, train_share=0.0)
    rng, number = np.random.default_rng(3), 50
    wrong = {"test part": 0, "training part": 0}
    for _ in range(number):
        log = sample_log(mdp, behavior, 300, 1, rng)
        problem = logged_problem(log, 0.9, (0, 1), behavior)
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


def test_what_follows_after_the_horizon_is_taken_off():
    problem = example(horizon=4)
    certifier = Trajectory(horizon=4, **BOUNDS)
    whole = certify(problem, POLICY, certifier)
    steps = certify(problem, POLICY, replace(certifier, claim="horizon"))
    span = VALUES[1] - VALUES[0]
    assert whole.lower == pytest.approx(steps.lower - 0.7**4 * span, rel=1e-12)
    assert whole.figures["after_steps"] == pytest.approx(0.7**4 * span, rel=1e-12)
    about_steps = Statement("first-steps-only", {"steps": 4})
    assert about_steps in steps.notes
    assert about_steps not in whole.notes
    positive = certify(replace(problem, value_bounds=(1.0, 7.0)), POLICY, certifier)
    assert positive.figures["after_steps"] == pytest.approx(0.7**4 * 7.0)  # ends are worth 0
    negative = Trajectory(horizon=4, **BOUNDS)._after_steps(
        replace(problem, value_bounds=(-7.0, -1.0))
    )
    assert negative == pytest.approx(0.7**4 * 7.0)


@pytest.mark.parametrize("steps", [3, 20])
def test_bounds_on_values_are_held_against_the_data_only_where_they_matter(steps):
    """Action 1 earns ½ at least, and values between −0.2 and 0.2 refute that."""
    problem = example(horizon=steps, value_bounds=(-0.2, 0.2))
    certifier = Trajectory(horizon=steps, **BOUNDS)
    assert 0 < certifier._after_steps(problem) < 1
    with pytest.raises(RefutedBounds, match="expected wider bounds"):
        certify(problem, POLICY, certifier)
    found = certify(problem, POLICY, replace(certifier, claim="horizon"))
    assert found.figures["after_steps"] == 0.0


def test_longer_episodes_are_cut_at_the_horizon():
    long = example(horizon=9)
    certifier = Trajectory(horizon=3, claim="horizon", **BOUNDS)
    cut = first_steps(long.log, 3)
    assert np.diff(cut.episode_offsets).max() == 3
    assert cut.truncated.any()
    assert certify(long, POLICY, certifier) == certify(problem_of(cut), POLICY, certifier)
    assert first_steps(cut, 3) is cut


def test_episodes_that_are_all_over_need_no_horizon():
    log = sample_log(MDP, BEHAVIOR, 80, 200, np.random.default_rng(0))
    assert not log.truncated.any()
    for estimator in ("is", "pdis"):
        found = certify(problem_of(log), POLICY, Trajectory(estimator=estimator, **BOUNDS))
        assert found.figures["after_steps"] == 0.0
        assert found.figures["least"] == pytest.approx(-3 / 0.3)
        assert Statement("recorded-until-over") in found.assumptions


def test_truncated_episodes_need_a_horizon_that_they_reach():
    problem = example(horizon=4)
    text = r"episode \d+ is truncated after 4 steps, .* expected a horizon of at most 4"
    for horizon in (None, 5):
        with pytest.raises(CertificateRefused, match=text):
            certify(problem, POLICY, Trajectory(horizon=horizon, **BOUNDS))


@given(problem=logged_problems(), share=st.sampled_from([0.2, 0.5, 0.9]), seed=st.integers(0, 3))
def test_a_training_part_is_on_the_terms_of_the_whole(problem, share, seed):
    train, _ = split_episodes(problem.log, share, seed)
    if train is None:
        with pytest.raises(InvalidParameter, match="for training"):
            training_part(problem, share, seed)
        return
    part = training_part(problem, share, seed)  # that its counts are the log's, Problem checks
    assert part.log == train
    rewards, before = part.counts.rewards, problem.counts.rewards
    assert (rewards.known, rewards.per) == (before.known, before.per)
    if rewards.known:
        np.testing.assert_array_equal(rewards.values, before.values)
    for name in ("behavior", "discount", "value_bounds", "unseen"):
        assert getattr(part, name) == getattr(problem, name)


@pytest.mark.parametrize("kind", ["known by pair", "known", "sums by pair", "sums"])
def test_a_training_part_shows_nothing_of_the_others(kind):
    problem = example()
    whole = problem.log
    counts = whole.counts()
    cube = np.zeros((3, 2, 3)) + np.arange(3)
    if kind != "sums":
        counts = whole.counts(cube if kind == "known" else cube[:, :, 0])
    if kind == "sums by pair":
        sums = np.bincount(whole.pair, whole.reward, 6)
        counts = replace(counts, rewards=replace(counts.rewards, values=sums, known=False))
    problem = replace(problem, counts=counts)
    order = np.random.default_rng(5).permutation(60)
    part = training_part(problem, 0.1, 5)
    assert part.log == whole.episodes(order[:6])
    np.testing.assert_array_equal(part.counts.visits, part.log.counts().visits)
    np.testing.assert_array_equal(part.counts.starts, part.log.counts().starts)
    assert part.counts.terminal.tolist() == [False, False, part.log.terminated.any()]


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
    problem = logged_problem(log, 1.0, (0.0, 1.0), behavior)
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
    # 100 logs: at δ = 0.3 no more than 45 wrong ones, but for one run in 1000 where 30 % are.
    wrong = 0
    for seed in range(100):
        problem, policy, _ = home_or_not(40, seed)
        certifier = Trajectory(estimator="is", delta=0.3, return_low=0.0, return_high=1.0)
        wrong += certify(problem, policy, certifier).lower > 13 / 19 - 4 / 7  # as above
    assert wrong <= 45


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
    assert Statement("rewards-bounded", {"low": low, "high": high}) in assumptions_of(
        certifier, example()
    )
    for reward, inside in ((low, True), (high, True), (low - 0.5, False), (high + 0.5, False)):
        log = example().log
        log = replace(log, reward=np.full(log.reward.size, reward))
        if inside:
            check_rewards(log, *certifier.rewards)
        else:
            with pytest.raises(RefutedBounds, match=f"expected reward_low = {low} to"):
                check_rewards(log, *certifier.rewards)


def test_notes_say_whether_states_must_be_markov():
    note = Statement("need-not-be-markov")
    assert note in certify(example(), POLICY, Trajectory(horizon=3, **BOUNDS)).notes
    modelled = Trajectory(horizon=3, estimator="dr", interval="bca")
    assert note not in certify(example(), POLICY, modelled).notes


def test_a_problem_without_a_log_has_no_training_part():
    with pytest.raises(InvalidParameter, match="has no log"):
        training_part(replace(example(), log=None), 0.5, 0)
    with pytest.raises(InvalidParameter, match="problem is of type"):
        training_part("log", 0.5, 0)
    with pytest.raises(InvalidParameter, match="train_share is 2"):
        training_part(example(), 2, 0)
