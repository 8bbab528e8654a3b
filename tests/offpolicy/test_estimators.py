"""Estimators against plain rationals, and their means over every trajectory a model can make."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from support.junk import JUNK
from support.logs import log_of, one_step_log
from support.oracles import log_of_all, trajectories, value_of_steps
from support.strategies import DISCOUNTS, decision_logs, episodic_mdps, policies
from surestep import FiniteMDP, Pairs, Policy, SurestepError, evaluate
from surestep.errors import InvalidParameter, UnsupportedPolicy
from surestep.offpolicy.estimators import (
    ESTIMATORS,
    MeanEstimate,
    doubly_robust,
    paired_returns,
    paired_rewards,
    per_decision,
    weighted_importance_sampling,
    weighted_per_decision,
)
from surestep.offpolicy.weights import importance_weights

WHOLE = st.integers(-5, 5).map(float)


def estimators(pairs, draw=None):
    """Every estimator, by name; the doubly robust one with some model or none."""
    size = pairs.num_pairs
    q = np.zeros(size) if draw is None else draw(st.lists(WHOLE, min_size=size, max_size=size))
    made = {name: kind for name, kind in ESTIMATORS.items() if name != "dr"}
    return made | {"dr": partial(doubly_robust, q=np.array(q))}


def drawn_weights(data, log):
    """The log seen from some policy, made by some behavior that may do everything."""
    behavior = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.5)
    return importance_weights(log, data.draw(policies(log.pairs)), behavior)


def exact_episodes(weights, discount):
    """For each episode, a list of (w_{0:t}, ρ_t, γ^t, r_t, row) in rationals."""
    log, result = weights.log, []
    for e in range(log.num_episodes):
        weight, rows = Fraction(1), []
        for t, row in enumerate(range(log.episode_offsets[e], log.episode_offsets[e + 1])):
            k = int(log.pair[row])
            ratio = Fraction(float(weights.policy.probability[k]))
            ratio /= Fraction(float(weights.behavior.probability[k]))
            weight *= ratio
            power = Fraction(discount) ** t
            rows.append((weight, ratio, power, Fraction(float(log.reward[row])), row))
        result.append(rows)
    return result


def exact_estimate(name, weights, discount, q):
    """The textbook formula in rationals; None where it divides by 0."""
    episodes = exact_episodes(weights, discount)
    log, size = weights.log, len(episodes)
    totals = [rows[-1][0] for rows in episodes]
    returns = [sum(power * reward for _, _, power, reward, _ in rows) for rows in episodes]
    if name == "is":
        return sum(w * g for w, g in zip(totals, returns, strict=True)) / size
    if name == "pdis":
        return sum(w * p * r for rows in episodes for w, _, p, r, _ in rows) / size
    if name == "wis":
        total = sum(totals)
        return sum(w * g for w, g in zip(totals, returns, strict=True)) / total if total else None
    if name == "wpdis":
        result = Fraction(0)
        for t in range(max(map(len, episodes))):
            weight = sum(rows[min(t, len(rows) - 1)][0] for rows in episodes)
            if not weight:
                return None
            earned = sum(w * p * r for rows in episodes for w, _, p, r, _ in rows[t : t + 1])
            result += earned / weight
        return result
    doubly_robust = Fraction(0)
    for rows in episodes:
        value = Fraction(0)
        for _, ratio, _, reward, row in reversed(rows):
            s = int(log.state[row])
            run = range(int(log.pairs.offsets[s]), int(log.pairs.offsets[s + 1]))
            expected = sum(
                Fraction(float(weights.policy.probability[k])) * Fraction(float(q[k])) for k in run
            )
            model = Fraction(float(q[log.pair[row]]))
            value = expected + ratio * (reward + Fraction(discount) * value - model)
        doubly_robust += value
    return doubly_robust / size


@given(log=decision_logs(), discount=DISCOUNTS | st.just(1.0), data=st.data())
def test_estimates_are_what_the_textbook_says(log, discount, data):
    weights = drawn_weights(data, log)
    for name, estimator in estimators(log.pairs, data.draw).items():
        exact = exact_estimate(name, weights, discount, getattr(estimator, "keywords", {}).get("q"))
        if exact is None:
            with pytest.raises(UnsupportedPolicy, match="no episode of the log has any weight"):
                estimator(weights, discount)
        else:
            found = estimator(weights, discount)
            scale = 1 + np.abs(found.values).max()
            assert found.value == pytest.approx(float(exact), rel=1e-12, abs=1e-12 * scale)
            assert found.values.mean() == pytest.approx(found.value, abs=1e-11 * scale)
            assert found.values.shape == (log.num_episodes,)


@pytest.mark.thorough
@settings(max_examples=40)
@given(
    mdp=episodic_mdps(max_states=3, max_actions=2),
    discount=st.sampled_from([0.5, 0.75, 1.0]),
    horizon=st.integers(1, 3),
    data=st.data(),
)
def test_over_all_trajectories_every_estimator_is_right(mdp, discount, horizon, data):
    # Each trajectory stands in the log once, and is then weighted with its probability: the mean
    # of an unbiased estimator, and the limit in which a weighted one is consistent.
    behavior = data.draw(policies(mdp.pairs)).mix(Policy.uniform(mdp), 0.5)
    policy = data.draw(policies(mdp.pairs))
    episodes = trajectories(mdp, behavior, horizon)
    chance = np.array([[float(episode.probability) for episode in episodes]])
    weights = importance_weights(log_of_all(mdp, episodes), policy, behavior)
    truth = float(value_of_steps(mdp, policy, Fraction(discount), horizon))
    for name, estimator in estimators(mdp.pairs, data.draw).items():
        found = estimator(weights, discount)
        assert found.resampled(chance)[0] == pytest.approx(truth, rel=1e-9, abs=1e-9), name
        assert isinstance(found, MeanEstimate) == (name in ("is", "pdis", "dr"))
        if isinstance(found, MeanEstimate):
            assert chance[0] @ found.values == pytest.approx(truth, rel=1e-9, abs=1e-9), name


@given(log=decision_logs(), discount=DISCOUNTS, data=st.data())
def test_on_policy_every_estimate_is_the_mean_return(log, discount, data):
    behavior = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.5)
    weights = importance_weights(log, behavior, behavior)
    returns = [sum(p * r for _, _, p, r, _ in rows) for rows in exact_episodes(weights, discount)]
    for name, estimator in estimators(log.pairs).items():
        found = estimator(weights, discount)
        assert found.value == pytest.approx(float(sum(returns) / len(returns)), abs=1e-9), name
        if name != "wpdis":  # whose values go on after the end of an episode
            assert_allclose(found.values, [float(g) for g in returns], rtol=1e-9, atol=1e-9)


@given(log=decision_logs(), discount=DISCOUNTS, data=st.data())
def test_resampling_is_estimating_from_a_log_with_repeated_episodes(log, discount, data):
    weights = drawn_weights(data, log)
    times = data.draw(
        st.lists(st.integers(0, 3), min_size=log.num_episodes, max_size=log.num_episodes)
    )
    chosen = np.repeat(np.arange(log.num_episodes), times)
    if not chosen.size:
        return
    again = importance_weights(log.episodes(chosen), weights.policy, weights.behavior)
    for name, estimator in estimators(log.pairs, data.draw).items():
        try:
            expected = estimator(again, discount).value
        except UnsupportedPolicy:
            continue
        found = estimator(weights, discount).resampled(np.array([times]))
        assert found.shape == (1,)
        assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-9), name


@given(log=decision_logs(), discount=DISCOUNTS, data=st.data())
def test_values_say_how_the_estimate_moves_with_an_episode(log, discount, data):
    # The delta method: value_i − θ = E · dθ/dm_i, m_i being how often episode i is in the log.
    behavior = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.5)
    policy = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.5)
    weights = importance_weights(log, policy, behavior)
    step, size = 1e-5, log.num_episodes
    nudged = [1.0 + sign * step * np.eye(size) for sign in (1, -1)]
    for name, estimator in estimators(log.pairs, data.draw).items():
        found = estimator(weights, discount)
        slope = (found.resampled(nudged[0]) - found.resampled(nudged[1])) / (2 * step)
        scale = 1 + np.abs(found.values).max()
        assert_allclose(found.values, found.value + size * slope, atol=1e-4 * scale, err_msg=name)


def bandit(actions, rewards):
    """One episode of one step for each pull of a two-armed bandit."""
    return one_step_log(Pairs.full(2, 2), actions, rewards)


def test_with_the_right_model_of_a_deterministic_world_doubly_robust_has_no_noise():
    # 0 → 1 → 2 (the end), or straight to 2; rewards differ, and every policy ends.
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, 0, 2] = P[1, 1, 2] = 1.0
    R = np.array([[1.0, 2.0], [3.0, 5.0], [0.0, 0.0]])
    mdp = FiniteMDP.from_dense(P, R, 0.9)
    policy = Policy.from_dense(mdp, [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    value = evaluate(mdp, policy)
    q = R + 0.9 * P @ value
    behavior = Policy.uniform(mdp)
    weights = importance_weights(log_of_all(mdp, trajectories(mdp, behavior, 2)), policy, behavior)
    values = doubly_robust(weights, 0.9, q).values
    assert_allclose(values, value[0], rtol=1e-12)
    assert per_decision(weights, 0.9).values.std() > 0.4


def test_a_log_of_which_the_policy_does_nothing_has_no_weighted_mean():
    log = bandit([0, 0], [1.0, 2.0])
    weights = importance_weights(log, Policy.deterministic(log, [1, 0]), Policy.uniform(log))
    assert per_decision(weights, 0.9).value == 0.0
    for estimator in (weighted_importance_sampling, weighted_per_decision):
        with pytest.raises(UnsupportedPolicy, match="at step 0 no episode of the log has any"):
            estimator(weights, 0.9)


def test_the_first_step_without_any_weight_is_named():
    # Both episodes begin as the policy sometimes would, and then do what it never does.
    log = log_of(
        Pairs.full(3, 2), [(0, 0, 1.0, 1), (1, 1, 2.0, 2)], [(0, 0, 3.0, 1), (1, 1, 4.0, 2)]
    )
    for begins in (1.0, 0.01):
        policy = Policy.from_dense(log, [[begins, 1 - begins], [1.0, 0.0], [1.0, 0.0]])
        weights = importance_weights(log, policy, Policy.uniform(log))
        with pytest.raises(UnsupportedPolicy, match="at step 1 no episode of the log has any wei"):
            weighted_per_decision(weights, 0.9)


def long_log(steps, reward):
    """Two episodes that take action 0 so many times."""
    episode = [(0, 0, reward, 0)] * steps
    return log_of(Pairs.full(1, 2), episode, episode, cut=(0, 1))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimates_beyond_all_doubles_are_refused(name):
    log = long_log(1000, 1e30)
    weights = importance_weights(log, Policy.deterministic(log, [0]), Policy.uniform(log))
    assert weights.total.tolist() == [2.0**1000, 2.0**1000]
    estimator = estimators(log.pairs)[name]
    if name.startswith("w"):  # weights cancel where they stand above and below a fraction
        log = long_log(1000, 1e303)
        weights = importance_weights(log, Policy.uniform(log), Policy.uniform(log))
        assert estimator(weights, 1.0).value == pytest.approx(1e306)
        log = long_log(1000, 1e308)
        weights = importance_weights(log, Policy.uniform(log), Policy.uniform(log))
    with pytest.raises(UnsupportedPolicy, match="too large for doubles"):
        estimator(weights, 1.0)


@pytest.mark.parametrize("discount", [-0.1, 1.1, math.nan, None, "0.9", True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_discount_lies_between_zero_and_one(name, discount):
    log = bandit([0], [1.0])
    weights = importance_weights(log, Policy.uniform(log), Policy.uniform(log))
    with pytest.raises(InvalidParameter, match=r"discount is .*, expected 0 to 1"):
        estimators(log.pairs)[name](weights, discount)


@given(q=JUNK)
def test_a_model_of_any_kind_is_taken_or_refused(q):
    log = bandit([0, 1], [1.0, 2.0])
    weights = importance_weights(log, Policy.uniform(log), Policy.uniform(log))
    try:
        found = doubly_robust(weights, 0.9, q)
    except SurestepError:
        return
    assert math.isfinite(found.value)


def test_estimators_say_what_they_need():
    with pytest.raises(InvalidParameter, match="weights is of type str, expected ImportanceWei"):
        per_decision("weights", 0.9)
    with pytest.raises(
        InvalidParameter, match=r"values have shape \(0,\), expected one an episode"
    ):
        MeanEstimate([])


@pytest.mark.thorough
@settings(max_examples=40)
@given(
    mdp=episodic_mdps(max_states=3, max_actions=2),
    discount=st.sampled_from([0.5, 0.75, 1.0]),
    horizon=st.integers(1, 3),
    data=st.data(),
)
def test_paired_differences_have_the_true_difference_as_mean_and_a_floor(
    mdp, discount, horizon, data
):
    behavior = data.draw(policies(mdp.pairs)).mix(Policy.uniform(mdp), 0.5)
    policy = data.draw(policies(mdp.pairs))
    episodes = trajectories(mdp, behavior, horizon)
    chance = np.array([float(episode.probability) for episode in episodes])
    weights = importance_weights(log_of_all(mdp, episodes), policy, behavior)
    truth = float(
        value_of_steps(mdp, policy, Fraction(discount), horizon)
        - value_of_steps(mdp, behavior, Fraction(discount), horizon)
    )
    low, high = min(weights.log.reward.min(), 0.0), max(weights.log.reward.max(), 0.0)
    low -= data.draw(st.integers(0, 3))
    steps = sum(discount**t for t in range(horizon))
    by_return = paired_returns(weights, discount, low * steps)
    by_reward = paired_rewards(weights, discount, low, horizon)
    for found in (by_return, by_reward):
        assert chance @ found.values == pytest.approx(truth, rel=1e-9, abs=1e-8)
        assert found.values.min() >= -(high - low) * steps - 1e-9


def test_rewards_after_the_end_are_what_makes_a_shifted_difference_right():
    # One arm ends at once, the other goes on once more; every reward is −1. A policy that ends
    # earlier gains; the terms of the recorded steps alone, Σ γ^t (w − 1)(r − r_min), are all 0.
    P = np.zeros((3, 2, 3))
    P[0, 0, 2] = P[0, 1, 1] = P[1, :, 2] = 1.0
    mdp = FiniteMDP.from_dense(P, [[-1.0, -1.0], [-1.0, -1.0], [0.0, 0.0]], 0.5)
    behavior = Policy.uniform(mdp)
    policy = Policy.from_dense(mdp, [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    log = log_of_all(mdp, trajectories(mdp, behavior, 2))
    weights = importance_weights(log, policy, behavior)
    chance = np.array([float(t.probability) for t in trajectories(mdp, behavior, 2)])
    assert chance @ paired_rewards(weights, 0.5, -1.0, 2).values == 0.25
    assert chance @ paired_rewards(weights, 0.5, -1.0, math.inf).values == 0.25
    assert chance @ paired_rewards(weights, 0.0, -2.0, math.inf).values == 0.0  # one step counts
    assert chance @ paired_returns(weights, 0.5, -1.5).values == 0.25


@given(log=decision_logs(), discount=DISCOUNTS, data=st.data())
def test_of_the_behavior_itself_the_difference_is_exactly_zero(log, discount, data):
    behavior = data.draw(policies(log.pairs)).mix(Policy.uniform(log), 0.5)
    weights = importance_weights(log, behavior, behavior)
    found = paired_returns(weights, discount, -100.0 * log.num_steps)
    assert (found.values == 0).all()


def test_a_floor_of_returns_may_be_a_rounded_sum():
    log = long_log(30, -0.1)
    weights = importance_weights(log, Policy.uniform(log), Policy.uniform(log))
    exact = -0.1 * (1 - 0.9**30) / (1 - 0.9)
    for low in (exact * (1 - 1e-14), exact, exact * (1 + 1e-14)):
        assert (paired_returns(weights, 0.9, low).values == 0).all()
    with pytest.raises(InvalidParameter, match="the return of episode 0 is"):
        paired_returns(weights, 0.9, exact * (1 - 1e-9))


@pytest.mark.parametrize(
    ("difference", "terms", "words"),
    [
        (paired_returns, (1.0, 3.5), "return of episode 0 is 3.0, expected at least low = 3.5; 2"),
        (paired_rewards, (1.0, 1.5, 2), "reward of episode 0, step 0 is 1.0, expected at least"),
        (paired_rewards, (1.0, 0.5, 2), "low is 0.5, but episode 1 earns 0 after its end, at st"),
        (paired_rewards, (1.0, 0.0, 1), "episode 0 is truncated after 2 steps; expected horizon"),
        (paired_rewards, (0.5, 0.0, math.inf), "truncated after 2 steps; expected horizon = inf"),
        (paired_rewards, (1.0, 0.0, math.inf), "or inf with a discount below 1"),
        (paired_rewards, (1.0, math.nan, 2), "low is nan, expected a number"),
        (paired_returns, (2.0, 0.0), "discount is 2.0, expected 0 to 1"),
    ],
)
def test_differences_without_a_floor_are_refused_by_name(difference, terms, words):
    # Two steps, then the recording stops; another episode that is over after one.
    log = log_of(Pairs.full(2, 2), [(0, 0, 1.0, 0), (0, 1, 2.0, 0)], [(0, 1, 3.0, 1)], cut=[0])
    weights = importance_weights(log, Policy.uniform(log), Policy.uniform(log))
    with pytest.raises(InvalidParameter) as refusal:
        difference(weights, *terms)
    assert words in str(refusal.value)
