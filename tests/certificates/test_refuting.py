"""Bounds that the data refute: what they may be off by, and which rewards count."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from support.problems import uniform_problem
from surestep import Counts, DecisionLog, Pairs
from surestep.certificates.refuting import check_returns, check_reward_bounds, check_values
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
    return uniform_problem(counts, discount, bounds)


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
    text = refuted(check_reward_bounds, replace(summed, rewards=single), BOUNDS)
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
        assert bool(refuted(check_values, problem_of(counts))) == wrong


@pytest.mark.parametrize(
    ("end", "beyond"), [(-3.0 - 0.5 * 2.0 - SLACK, -np.inf), (2.0 + 0.5 * 3.0 + SLACK, np.inf)]
)
def test_a_step_earns_no_more_than_the_values_before_and_after_differ(end, beyond):
    assert not refuted(check_values, problem_of(counts_of(known(1, end))))
    further = np.nextafter(end, beyond)
    text = refuted(check_values, problem_of(counts_of(known(1, further))))
    assert text.startswith("state 0, action 1 earns")
    assert "allow only -4 to 3.5" in text
    assert not refuted(check_values, problem_of(counts_of(known(2, further))))


def test_of_several_rewards_of_a_pair_one_must_be_possible():
    times, table = np.zeros((2, 3, 2), int), np.zeros((2, 3, 2))
    times[0, 0] = [3, 1]
    for second, words in ((0.0, ""), (10.0, "state 0, action 0 earns 10 to 99, but values")):
        table[0, 0] = 99.0, second
        counts = Counts.from_dense(times, rewards=table, terminal=[False, True])
        assert refuted(check_values, problem_of(counts))[: len(words) or None] == words


def test_sums_of_rewards_refute_nothing_as_single_ones_may_lie_anywhere():
    sums = {"reward_sums": [[0.0, 100.0, 0.0], [0.0, 0.0, 0.0]]}  # 100 in one visit
    assert not refuted(check_values, problem_of(counts_of(sums)))
    many = counts_of({"reward_sums": [[0.0, 4e4, 0.0], [0.0, 0.0, 0.0]]}, (4, 400, 0))
    assert not refuted(check_values, problem_of(many))
    # A log beside the sums tells whether rewards vary.
    pairs = Pairs.full(1, 1)
    for earned, exact in (([9.0, 9.0], True), ([9.0, 8.0], False)):
        log = DecisionLog(
            pairs, [0] * 2, [0] * 2, earned, [0] * 2, [False] * 2, [False, True], [0, 2]
        )
        seen = log.counts()
        summed = replace(seen, rewards=LoggedRewards([sum(earned)], "pair", False))
        problem = replace(problem_of(summed), log=log)
        assert bool(refuted(check_values, problem)) == exact


def test_what_rounding_leaves_is_no_noise():
    def with_first(least, greatest, total=0.4):
        rewards = LoggedRewards(
            np.array([total, 30.0, 0, 0, 0, 0]), "pair", False,
            np.array([least, 30.0, 0, 0, 0, 0]), np.array([greatest, 30.0, 0, 0, 0, 0]),
        )  # fmt: skip
        return problem_of(replace(counts_of(known(0, 0.0)), rewards=rewards))

    for least, greatest, exact in (
        (0.1, 0.1, True),
        (np.nextafter(0.1, 0), 0.1, True),
        (0.1 * (1 - 1e-12), 0.1 * (1 + 1e-12), True),
        (0.1 - 1e-6, 0.1 + 1e-6, False),  # then the other action may be noisy too
    ):
        assert bool(refuted(check_values, with_first(least, greatest))) == exact
    # 0.1 + 0.2 − 0.3, where 0 is meant.
    assert refuted(check_values, with_first(0.0, 5.5e-17, total=5.5e-17))


def noisy_counts(wins, visits, per):
    """Two actions that earn a prize of 20 so often, and nothing otherwise; then an end."""
    plain, wins = counts_of({"reward_sums": np.zeros((2, 3))}, (*visits, 0)), np.array(wins)
    sums, least, greatest = np.zeros((3, 6 if per == "pair" else plain.times.size))
    sums[:2], least[:2], greatest[:2] = 20 * wins, 20 * (wins == visits), 20 * (wins > 0)
    return replace(plain, rewards=LoggedRewards(sums, per, False, least, greatest))


@pytest.mark.parametrize("per", ["transition", "pair"])
def test_a_noisy_reward_beyond_the_bounds_of_means_refutes_nothing(per):
    # Means may be up to 3.5. Nobody knows what else might be earned besides a prize of 20.
    for wins, visits in (([5, 1], [100, 1]), ([5, 200], [100, 400])):
        assert not refuted(check_values, problem_of(noisy_counts(wins, visits, per)))
    # Rewards that never varied are what they are.
    assert refuted(check_values, problem_of(noisy_counts([0, 1], [100, 1], per)))


@pytest.mark.parametrize(
    ("end", "beyond"), [(BOUNDS[0] - SLACK, -np.inf), (BOUNDS[1] + SLACK, np.inf)]
)
def test_an_end_may_exceed_its_bounds_by_a_rounding(end, beyond):
    assert not refuted(check_values, problem_of(counts_of(known(3, end))))
    further = np.nextafter(end, beyond)
    text = refuted(check_values, problem_of(counts_of(known(3, further))))
    assert text.startswith("state 1, action 0 earns")
    assert not refuted(check_values, problem_of(counts_of(known(2, further))))


def test_returns_are_of_whole_episodes_unless_their_rests_are_asked_for():
    """The second step loses 5, the episode nothing: only its rest is beyond."""
    pairs = Pairs.full(2, 1)
    log = DecisionLog(
        pairs, [0, 0], [0, 0], [5.0, -5.0], [0, 1], [False, True], [False, False], [0, 2]
    )
    problem = uniform_problem(log.counts(), 1.0, (-9.0, 9.0))
    assert not refuted(check_returns, problem, log, (-1.0, 1.0))
    rests = refuted(partial(check_returns, rests=True), problem, log, (-1.0, 1.0))
    assert rests.startswith("from episode 0, step 1 on, -5 is earned, expected -1.0 to 1.0")
    assert not refuted(partial(check_returns, rests=True), problem, log, (-5.0, 1.0))
    assert "step 0 on, 0 is earned" in refuted(check_returns, problem, log, (1.0, 2.0))
