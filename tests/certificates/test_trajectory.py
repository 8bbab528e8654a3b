"""Trajectory certificates: closed forms, how often they fail, and what they refuse.

A proved claim may fail with probability δ. Tests of that draw with fixed seeds and allow as many
failures as a claim that fails exactly that often would exceed once in 10⁶ tests.
"""

import dataclasses
import json
import math
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep.certificates
from oracles import value_of_steps
from strategies import logged_problems
from surestep import (
    Certificate,
    FiniteMDP,
    Policy,
    Problem,
    certify,
    estimate_behavior,
    performance,
    sample_log,
)
from surestep.certificates import Trajectory, training_part, verify
from surestep.certificates.trajectory import check_rewards, discounted_steps, effective_number
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.model import Statement, certificate_schema
from surestep.offpolicy import (
    ESTIMATORS,
    betting,
    choose_threshold,
    empirical_bernstein,
    first_steps,
    hoeffding,
    importance_weights,
    split_episodes,
    student_t,
)

BOUNDS = {"reward_low": -1.0, "reward_high": 2.0}
PROVED = [
    Trajectory(estimator=estimator, interval=interval, horizon=3, claim="horizon", **BOUNDS)
    for estimator in ("is", "pdis")
    for interval in ("hoeffding", "bernstein", "betting")
]
ASYMPTOTIC = [
    Trajectory(estimator=estimator, interval=interval, horizon=3)
    for estimator in ("is", "pdis", "wis", "wpdis", "dr")
    for interval in ("student-t", "bca")
]
CASES = [
    *PROVED,
    *ASYMPTOTIC,
    Trajectory(horizon=np.int64(2), train_share=np.float64(0.5), seed=7, **BOUNDS),
    Trajectory(horizon=3, train_share=0.0, reward_low=-1, reward_high=2),
]


def every(certifiers):
    """A test for each of the certifiers."""
    return pytest.mark.parametrize("certifier", certifiers, ids=repr)


def allowed_failures(number, delta):
    """What a claim that fails with probability δ exceeds once in 10⁶ tests of so many draws."""
    return int(scipy.stats.binom.ppf(1 - 1e-6, number, delta))


def chain():
    """Two states and an end; action 1 earns more, and ends more often."""
    P = np.zeros((3, 2, 3))
    P[0] = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]
    P[1] = [[0.5, 0.5, 0.0], [0.3, 0.3, 0.4]]
    R = np.zeros((3, 2, 3))
    R[:2, 0] = [0.0, 1.0, -1.0]
    R[:2, 1] = [0.5, 2.0, 1.0]
    return FiniteMDP.from_dense(P, R, 0.7, [0.8, 0.2, 0.0])


MDP = chain()
BEHAVIOR = Policy.from_dense(MDP, [[0.6, 0.4], [0.5, 0.5], [0.5, 0.5]])
POLICY = Policy.from_dense(MDP, [[0.4, 0.6], [0.3, 0.7], [0.0, 1.0]])
VALUES = (-1.0 / 0.3, 2.0 / 0.3)


def problem_of(log, **changes):
    """The problem that a log of the chain poses."""
    terms = {"behavior": BEHAVIOR, "discount": 0.7, "value_bounds": VALUES} | changes
    return Problem(counts=log.counts(), log=log, **terms)


def example(episodes=60, horizon=3, seed=0, **changes):
    """A problem with a log of the chain."""
    log = sample_log(MDP, BEHAVIOR, episodes, horizon, np.random.default_rng(seed))
    return problem_of(log, **changes)


def test_values_are_taken_for_bounded_only_where_they_matter():
    """What comes after the horizon counts by the bounds on values, unless the claim ends there."""
    mdp = FiniteMDP.from_dense([[[0.5, 0.5]], [[0.0, 0.0]]], [[1.0], [0.0]], 0.9)
    policy = Policy.uniform(mdp)
    log = sample_log(mdp, policy, 5, 3, np.random.default_rng(0))
    problem = Problem(
        counts=log.counts(), behavior=policy, discount=0.9, value_bounds=(0.0, 7.0), log=log
    )
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
        "hoeffding": lambda: hoeffding(test, least, (1.5**3 - 1) * -least, 0.1),
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


def true_difference(steps):
    """Δ over so many steps, in rationals."""
    ours, theirs = (value_of_steps(MDP, each, 0.7, steps) for each in (POLICY, BEHAVIOR))
    return float(ours - theirs)


@every(PROVED)
def test_proved_claims_fail_no_more_often_than_they_may(certifier):
    number = 300
    truth = true_difference(3)
    rng = np.random.default_rng(1)
    lower = []
    for _ in range(number):
        problem = problem_of(sample_log(MDP, BEHAVIOR, 40, 3, rng))
        lower.append(certify(problem, POLICY, replace(certifier, delta=0.3)).lower)
    assert (np.array(lower) > truth).sum() <= allowed_failures(number, 0.3)


def test_betting_claims_a_gain_where_there_is_one():
    certifier = Trajectory(estimator="pdis", horizon=20, **BOUNDS)
    log = sample_log(MDP, BEHAVIOR, 4000, 20, np.random.default_rng(2))
    found = certify(problem_of(log), POLICY, certifier)
    truth = performance(MDP, POLICY) - performance(MDP, BEHAVIOR)
    assert 0 < found.lower < truth < 4 * found.lower


def test_a_policy_must_not_be_chosen_by_the_episodes_that_judge_it():
    # Twelve actions that are all the same: whatever is chosen, Δ = 0, and L > 0 is wrong. With
    # Student's t, which is wrong about as often as it may be; betting is too cautious here to be
    # wrong so often that 100 logs prove it (24 of them were, instead of at most 10 on average).
    P = np.zeros((3, 12, 3))
    P[0, :, 1:] = 0.5
    R = np.zeros((3, 12, 3))
    R[0, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    behavior = Policy.uniform(mdp)
    arms = [Policy.deterministic(mdp, [a, 0, 0]) for a in range(12)]
    judge = Trajectory(estimator="is", interval="student-t", train_share=0.5)
    chooser = replace(judge, train_share=0.0)
    rng, number = np.random.default_rng(3), 100
    wrong = {"test part": 0, "training part": 0}
    for _ in range(number):
        log = sample_log(mdp, behavior, 300, 1, rng)
        problem = Problem(
            counts=log.counts(), behavior=behavior, discount=0.9, value_bounds=(0, 1), log=log
        )
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
        "surestep.certificates.trajectory.bca_bootstrap",
        lambda estimate, delta, rng, resamples: asked.append(resamples) or 0.0,
    )
    certify(example(), POLICY, Trajectory(horizon=3, interval="bca", delta=delta))
    assert asked == [resamples]


def test_a_bootstrap_has_a_smallest_level(monkeypatch):
    monkeypatch.setattr("surestep.certificates.trajectory.bca_bootstrap", lambda *arguments: 0.0)
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


# ---- horizons ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_what_follows_after_the_horizon_is_no_more_than_that(steps):
    whole = performance(MDP, POLICY) - performance(MDP, BEHAVIOR)
    span = VALUES[1] - VALUES[0]
    assert abs(whole - true_difference(steps)) <= 0.7**steps * span


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


# ---- the two parts ----------------------------------------------------------------------------


def episodes_of(log):
    """The episodes as lists."""
    return [
        [log.pair[a:b].tolist(), log.reward[a:b].tolist(), log.next_state[a:b].tolist()]
        for a, b in zip(log.episode_offsets[:-1], log.episode_offsets[1:], strict=True)
    ]


@given(problem=logged_problems(), share=st.sampled_from([0.2, 0.5, 0.9]), seed=st.integers(0, 3))
def test_the_two_parts_are_the_log(problem, share, seed):
    train, test = split_episodes(problem.log, share, seed)
    both = [each for part in (train, test) if part for each in episodes_of(part)]
    assert sorted(both) == sorted(episodes_of(problem.log))
    number = round(share * problem.log.num_episodes)
    assert (train.num_episodes if train else 0) == number
    in_order = split_episodes(problem.log, share)
    assert [each for part in in_order if part for each in episodes_of(part)] == episodes_of(
        problem.log
    )
    if not number:
        with pytest.raises(InvalidParameter, match="for training"):
            training_part(problem, share, seed)
        return
    part = training_part(problem, share, seed)  # that its counts are the log's, Problem checks
    assert part.log == train
    assert part.counts.rewards.known == problem.counts.rewards.known
    assert part.counts.rewards.per == problem.counts.rewards.per
    if part.counts.rewards.known:
        np.testing.assert_array_equal(part.counts.rewards.values, problem.counts.rewards.values)
    assert (part.behavior, part.discount, part.value_bounds, part.unseen) == (
        problem.behavior,
        problem.discount,
        problem.value_bounds,
        problem.unseen,
    )


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


def test_an_end_that_was_known_beforehand_is_known_in_training():
    log = sample_log(MDP, BEHAVIOR, 9, 1, np.random.default_rng(4))
    running = log.episodes(~log.terminated)
    assert running.num_episodes >= 4
    counts = replace(running.counts(), terminal=[False, False, True])
    problem = replace(problem_of(running), counts=counts)
    assert training_part(problem, 0.5, 0).counts.terminal[2]


# ---- the contract -----------------------------------------------------------------------------


@every(CASES)
def test_a_claim_is_the_same_every_time_and_survives_being_saved(certifier):
    problem = example()
    found = certify(problem, POLICY, certifier)
    assert certify(problem, POLICY, certifier) == found
    assert (found.kind, found.delta) == ("trajectory", certifier.delta)
    assert found.span == VALUES[1] - VALUES[0]
    assert set(found.parameters) == {field.name for field in dataclasses.fields(certifier)}
    assert certifier.value_figures <= set(found.figures)
    saved = Certificate.from_json(found.to_json())
    assert saved == found
    assert verify(saved, problem, POLICY) == found
    jsonschema.Draft202012Validator(certificate_schema()).validate(json.loads(found.to_json()))
    names = vars(surestep.certificates) | {"np": np}
    assert eval(repr(certifier), names) == certifier  # noqa: S307


@every(CASES)
def test_another_policy_or_log_is_found(certifier):
    problem = example()
    found = certify(problem, POLICY, certifier)
    for other in (BEHAVIOR, POLICY.mix(BEHAVIOR, 1e-6)):
        with pytest.raises(CertificateRefused):
            verify(found, problem, other)
    for changed in (example(seed=1), replace(problem, value_bounds=(-4.0, 7.0))):
        with pytest.raises(CertificateRefused):
            verify(found, changed, POLICY)


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


# ---- refusals ---------------------------------------------------------------------------------


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
    assert "discount for each pair" in refused(replace(problem, discount=np.full(6, 0.7)))
    assert "discount is 1" in refused(replace(problem, discount=1.0))
    assert "4 episodes, 1 for training and 3 for the test" in refused(example(episodes=4))
    assert "0 for training and 1 for" in refused(example(episodes=1), train_share=0.0)


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
    problem = Problem(
        counts=log.counts(), behavior=behavior, discount=1.0, value_bounds=(0.0, 1.0), log=log
    )
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
        problem, policy, mdp = home_or_not(40, seed)
        certifier = Trajectory(estimator="is", delta=0.3, return_low=0.0, return_high=1.0)
        gain = performance(mdp, policy) - performance(mdp, problem.behavior)
        wrong += certify(problem, policy, certifier).lower > gain
    assert wrong <= 80


def test_bounds_of_returns_that_mean_nothing_or_are_wrong_are_refused():
    problem, policy, _ = home_or_not(40)
    bounds = {"return_low": 0.0, "return_high": 1.0}
    with pytest.raises(InvalidParameter, match="expected estimator='is' and horizon=None"):
        Trajectory(**bounds)
    with pytest.raises(InvalidParameter, match="expected estimator='is' and horizon=None"):
        Trajectory(estimator="is", horizon=3, **bounds)
    with pytest.raises(InvalidParameter, match="student-t asks for no bounds"):
        Trajectory(estimator="is", interval="student-t", **bounds)
    with pytest.raises(
        InvalidParameter, match=r"return_low is 1\.0 and return_high None, expected"
    ):
        Trajectory(estimator="is", return_low=1.0)
    narrow = Trajectory(estimator="is", return_low=0.0, return_high=0.5)
    with pytest.raises(
        RefutedBounds, match=r"the return of episode \d+ is 1, expected 0\.0 to 0\.5"
    ):
        certify(problem, policy, narrow)
    with pytest.raises(CertificateRefused, match=r"discount is 1.*estimator='is' with return_low"):
        certify(problem, policy, Trajectory(reward_low=0.0, reward_high=1.0))


def largest_difference(steps, least, chances=((0.1, 0.9), (1.0, 0.0))):
    """The largest paired difference of so many steps, of one state with two actions."""
    mdp = FiniteMDP.from_dense(np.ones((1, 2, 1)), [[0.0, 1.0]], 0.5)
    behavior, policy = (Policy.from_dense(mdp, [each]) for each in chances)
    log = sample_log(mdp, behavior, 2, 1, np.random.default_rng(0))
    problem = Problem(
        counts=log.counts(), behavior=behavior, discount=0.5, value_bounds=(0, 2), log=log
    )
    settings = {"reward_low": 0.0, "reward_high": 1.0}
    return Trajectory(interval="hoeffding", horizon=steps, **settings)._most(problem, policy, least)


def test_weights_times_differences_are_doubles_with_squares():
    assert largest_difference(3, -0.5) == pytest.approx(999 * 0.5)
    assert largest_difference(146, -1000.0) == pytest.approx(1e149)
    with pytest.raises(CertificateRefused, match="too large for hoeffding"):
        largest_difference(148, -1000.0)
    half = ((0.5, 0.5), (1.0, 0.0))
    steps = int(math.log2(1e150))  # 2^steps is above 1e150/2
    assert largest_difference(steps, -0.5, half) == pytest.approx(2.0**steps / 2)
    with pytest.raises(CertificateRefused, match="too large for hoeffding"):
        largest_difference(steps + 1, -0.5, half)
    # What neither policy does has no weight.
    assert largest_difference(3, -1.0, ((1.0, 0.0), (1.0, 0.0))) == 0.0


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
            check_rewards(log, *certifier._given_range())
        else:
            with pytest.raises(RefutedBounds, match=f"expected reward_low = {low} to"):
                check_rewards(log, *certifier._given_range())


def test_notes_say_whether_states_must_be_markov():
    note = Statement("need-not-be-markov")
    assert note in Trajectory(horizon=3, **BOUNDS).notes()
    assert note not in Trajectory(estimator="dr", interval="bca").notes()


def test_seeds_are_whole_numbers_of_63_bits():
    assert Trajectory(seed=2**63 - 1, **BOUNDS).seed == 2**63 - 1


def test_weights_beyond_all_doubles_are_refused():
    P = np.ones((1, 2, 1))
    mdp = FiniteMDP.from_dense(P, [[0.0, 1.0]], 0.5)
    behavior = Policy.from_dense(mdp, [[1 - 1e-9, 1e-9]])
    log = sample_log(mdp, behavior, 10, 40, np.random.default_rng(0))
    problem = Problem(
        counts=log.counts(), behavior=behavior, discount=0.5, value_bounds=(0, 2), log=log
    )
    text = refused(
        problem,
        Policy.deterministic(mdp, [1]),
        interval="hoeffding",
        horizon=40,
        reward_low=0.0,
    )
    assert "as large as 1e+09^40, too large for hoeffding" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimator": "mis"}, "estimator is 'mis', expected one of is, pdis"),
        ({"interval": None}, "interval is None"),
        ({"claim": ["horizon"]}, "claim is"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"train_share": 1.0}, "train_share is 1.0"),
        ({"train_share": "half"}, "train_share is 'half'"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"seed": 2**63}, "seed is 9223372036854775808"),
        ({"train_share": -0.1}, "train_share is -0.1, expected at least 0 and less than 1"),
        ({"reward_low": -1e151}, "expected two numbers"),
        ({"interval": "student-t", "reward_low": None}, "student-t asks for no bounds"),
        ({"horizon": 0}, "horizon is 0"),
        ({"horizon": 2.5}, r"horizon is 2\.5"),
        ({"estimator": "wis"}, "whose error nothing bounds; expected is or pdis"),
        ({"reward_low": None}, "betting needs to know what rewards are possible"),
        ({"reward_low": 3.0}, "the lower one first"),
        ({"reward_high": math.inf}, "expected two numbers"),
        ({"interval": "bca"}, "bca asks for no bounds"),
        ({"interval": "bernstein", "train_share": 0}, "a threshold comes from the training part"),
        ({"horizon": None, "interval": "hoeffding"}, "the largest weight of hoeffding needs"),
        ({"horizon": None, "claim": "horizon"}, "the claim needs a number of steps"),
    ],
    ids=range(22),
)
def test_settings_out_of_range_are_refused(changes, message):
    valid = {"horizon": 3, "claim": "performance"} | BOUNDS
    with pytest.raises(InvalidParameter, match=message):
        Trajectory(**valid | changes)


def test_a_problem_without_a_log_has_no_training_part():
    with pytest.raises(InvalidParameter, match="has no log"):
        training_part(replace(example(), log=None), 0.5, 0)
    with pytest.raises(InvalidParameter, match="problem is of type"):
        training_part("log", 0.5, 0)
    with pytest.raises(InvalidParameter, match="train_share is 2"):
        training_part(example(), 2, 0)
