"""Bounds that the data refute: what they may be off by, and which rewards count."""

import numpy as np
import pytest

from surestep import Counts, Pairs, Policy, Problem
from surestep.certificates.refuting import check_ends, check_observed, check_reward_bounds
from surestep.errors import RefutedBounds
from surestep.model.counts import LoggedRewards

BOUNDS = (-3.0, 2.0)
SLACK = 1e-9 * 3.0  # of the larger bound


def counts_of(rewards, visits=(4, 1, 0)):
    """One state of three actions that all lead to an end, and the end with what it is worth."""
    times = np.zeros((2, 3, 2), int)
    times[0, :, 1] = visits
    return Counts.from_dense(times, **rewards, terminal=[False, True])


def problem_of(counts, discount=0.5, bounds=BOUNDS):
    return Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=discount, value_bounds=bounds
    )


def known(pair, reward):
    """Rewards of 0, but for one of the six pairs."""
    values = np.zeros(6)
    values[pair] = reward
    return {"rewards": values.reshape(2, 3)}


def refuted(check, *arguments):
    """Why the check refuses, or nothing."""
    try:
        check(*arguments)
    except RefutedBounds as reason:
        return str(reason)
    return ""


@pytest.mark.parametrize(
    ("end", "beyond"), [(BOUNDS[0] - SLACK, -np.inf), (BOUNDS[1] + SLACK, np.inf)]
)
def test_rewards_may_exceed_their_bounds_by_a_rounding(end, beyond):
    assert not refuted(check_reward_bounds, counts_of(known(1, end)), BOUNDS)
    further = np.nextafter(end, beyond)
    assert "a reward of state 0, action 1 is" in refuted(
        check_reward_bounds, counts_of(known(1, further)), BOUNDS
    )
    # Of a pair that was never seen, nothing is known but what was said.
    assert not refuted(check_reward_bounds, counts_of(known(2, further)), BOUNDS)


def test_a_reward_is_a_mean_where_only_sums_are_known():
    summed = counts_of({"reward_sums": [[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]]})
    text = refuted(check_reward_bounds, summed, BOUNDS)
    assert text.startswith("the mean reward of state 0, action 0 is 2.25, expected")
    ends = np.array([1.0, 0, 0, 0, 0, 0]), np.array([3.0, 0, 0, 0, 0, 0])
    single = LoggedRewards(summed.rewards.values, "pair", False, *ends)
    seen = Counts(summed.pairs, summed.offsets, summed.successor, summed.times, single,
                  summed.starts, summed.terminal)  # fmt: skip
    text = refuted(check_reward_bounds, seen, BOUNDS)
    assert text.startswith("a reward of state 0, action 0 is 3.0, expected")


def test_rewards_of_transitions_are_named_by_them():
    pairs = Pairs.full(2, 1)
    # One transition seen, one stored only: of the second nothing is refuted.
    for place, wrong in ((0, True), (1, False)):
        values = np.zeros(2)
        values[place] = 9.0
        known_each = LoggedRewards(values, "transition", True)
        counts = Counts(pairs, [0, 2, 2], [0, 1], [1, 0], known_each, [1, 0])
        text = refuted(check_reward_bounds, counts, BOUNDS)
        assert text.startswith("a reward of state 0, action 0 → state 0 is 9.0") == wrong
        assert bool(refuted(check_observed, problem_of(counts))) == wrong


@pytest.mark.parametrize(
    ("end", "beyond"), [(-3.0 - 0.5 * 2.0 - SLACK, -np.inf), (2.0 + 0.5 * 3.0 + SLACK, np.inf)]
)
def test_a_step_earns_no_more_than_the_values_before_and_after_differ(end, beyond):
    assert not refuted(check_observed, problem_of(counts_of(known(1, end))))
    further = np.nextafter(end, beyond)
    text = refuted(check_observed, problem_of(counts_of(known(1, further))))
    assert text.startswith("state 0, action 1 earns")
    assert "allow only -4 to 3.5" in text
    assert not refuted(check_observed, problem_of(counts_of(known(2, further))))


def test_a_mean_is_that_of_all_visits():
    sums = [[4 * 3.4, 3.4, 0.0], [0.0, 0.0, 0.0]]
    assert not refuted(check_observed, problem_of(counts_of({"reward_sums": sums})))
    sums[0][1] = 3.6  # in one visit
    text = refuted(check_observed, problem_of(counts_of({"reward_sums": sums})))
    assert text.startswith("state 0, action 1 earns 3.6 to 3.6, but")


@pytest.mark.parametrize(
    ("end", "beyond"), [(BOUNDS[0] - SLACK, -np.inf), (BOUNDS[1] + SLACK, np.inf)]
)
def test_an_end_may_exceed_its_bounds_by_a_rounding(end, beyond):
    assert not refuted(check_ends, problem_of(counts_of(known(3, end))))
    further = np.nextafter(end, beyond)
    text = refuted(check_ends, problem_of(counts_of(known(3, further))))
    assert text.startswith("state 1, action 0 ends the episode with")
    assert not refuted(check_ends, problem_of(counts_of(known(2, further))))
