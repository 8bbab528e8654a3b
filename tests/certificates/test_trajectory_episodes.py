"""The episodes that a trajectory claim is about: their horizon, and the part that trains."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import logged_problems
from support.trajectory_examples import (
    BEHAVIOR,
    BOUNDS,
    MDP,
    POLICY,
    VALUES,
    example,
    problem_of,
    true_difference,
)
from surestep import certify, performance, sample_log
from surestep.certificates import Trajectory, training_part
from surestep.errors import CertificateRefused, InvalidParameter, RefutedBounds
from surestep.model import Statement
from surestep.offpolicy import first_steps, split_episodes

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
