"""What rewards may be: within their bounds, within what values allow, and known or not."""

import re
from dataclasses import replace

import numpy as np
import pytest

from surestep import Counts, Policy, Problem
from surestep.certificates.refuting import check_ends, check_observed, check_reward_bounds
from surestep.certificates.reward_draws import all_known, reward_draws
from surestep.errors import CertificateRefused, RefutedBounds

SLACK = 1e-9  # of the largest bound


def problem_of(rewards, known=True, **terms):
    """Two states; the second ends episodes. Both actions of the first were seen, 4 and 2 times."""
    times = np.zeros((2, 2, 2), int)
    times[0, 0, [0, 1]], times[0, 1, 1] = [3, 1], 2
    rewards = np.asarray(rewards, float)
    seen = times if rewards.ndim == 3 else times.sum(axis=2)
    told = {"rewards": rewards} if known else {"reward_sums": rewards * seen}
    counts = Counts.from_dense(times, **told, terminal=[False, True])
    terms = {"discount": 0.5, "value_bounds": (-2.0, 8.0)} | terms
    return Problem(counts=counts, behavior=Policy.uniform(counts), **terms)


PAIRS = [[1.0, 2.0], [0.0, 0.0]]


def with_first(value):
    """Known rewards of pairs, the first of which is given."""
    return problem_of([[value, 2.0], [0.0, 0.0]])


def refuses(check, *arguments, match):
    """Whether a check refuses what it is given, in these words."""
    try:
        check(*arguments)
    except RefutedBounds as refusal:
        said = str(refusal)
    else:
        return False
    assert re.search(match, said)
    return True


@pytest.mark.parametrize("bounds", [(-4.0, 2.0), (1.0, 4.0)])
def test_rewards_lie_within_their_bounds_but_for_rounding(bounds):
    low, high = bounds
    for value, outside in (
        (low - 0.9 * 4 * SLACK, False),
        (low - 1.1 * 4 * SLACK, True),
        (high + 0.9 * 4 * SLACK, False),
        (high + 1.1 * 4 * SLACK, True),
    ):
        counts, words = with_first(value).counts, f"a reward of state 0, action 0 is {value}, exp"
        assert refuses(check_reward_bounds, counts, bounds, match=words) == outside
    unseen = problem_of([[1.0, 2.0], [99.0, -99.0]]).counts  # ends that nobody visits
    check_reward_bounds(unseen, bounds)


def test_rewards_are_what_a_step_between_two_values_can_earn():
    # V = r + γ V' with −2 ≤ V, V' ≤ 8 and γ = ½: −2 − 4 ≤ r ≤ 8 + 1.
    for value, outside in (
        (-6.0 - 0.9 * 8 * SLACK, False),
        (-6.0 - 1.1 * 8 * SLACK, True),
        (9.0 + 0.9 * 8 * SLACK, False),
        (9.0 + 1.1 * 8 * SLACK, True),
    ):
        words = r"action 0 earns .* allow only -6 to 9; expected wider bounds"
        assert refuses(check_observed, with_first(value), match=words) == outside
        sums = problem_of([[0.0, value], [0.0, 0.0]], known=False)
        assert refuses(check_observed, sums, match=words.replace("0", "1", 1)) == outside


def test_of_several_rewards_of_a_pair_one_must_be_possible():
    table = np.zeros((2, 2, 2))
    table[0, 0] = [99.0, 0.0]
    assert not refuses(check_observed, problem_of(table), match="")
    table[0, 0, 1] = 10.0
    assert refuses(check_observed, problem_of(table), match="action 0 earns 10 to 99, but values")


@pytest.mark.parametrize(
    ("ending", "outside"),
    [(8 + 7e-9, False), (8 + 9e-9, True), (-2 - 7e-9, False), (-2 - 9e-9, True)],
)
def test_an_end_is_worth_a_value(ending, outside):
    problem = problem_of([[0.0, 0.0], [0.0, ending]])
    words = "state 1, action 1 ends the episode with"
    assert refuses(check_ends, problem, match=words) == outside


def test_rewards_are_known_where_none_is_left_open():
    assert all_known(problem_of(PAIRS))
    assert not all_known(problem_of(PAIRS, known=False))
    assert all_known(problem_of(np.zeros((2, 2, 2))))  # of every transition, seen or not
    assert not all_known(problem_of(np.zeros((2, 2, 2)), known=False))


def test_what_was_observed_is_drawn_as_it_is_and_the_rest_like_it():
    found = reward_draws(problem_of(PAIRS, known=False), "deterministic", None, None)
    assert found.first[:2].tolist() == [1.0, 2.0]
    assert np.isnan(found.first[2:]).all()
    assert (found.atoms.tolist(), found.copies.tolist()) == ([1.0, 2.0], [1, 1])
    assert (found.per_pair, found.noisy, found.span) == (True, False, 0.0)
    bounded = reward_draws(problem_of(PAIRS, known=False), "deterministic", -1.0, 3.0)
    assert (bounded.low, bounded.span, bounded.atoms.size) == (-1.0, 4.0, 0)
    known = reward_draws(problem_of(PAIRS), "deterministic", -1.0, 3.0)
    assert (known.span, known.atoms.size) == (0.0, 0)


def test_noise_between_two_bounds_has_a_beta_of_what_was_earned():
    # Of 4 visits, 1 on average between −1 and 3 is a half: 2 of 4; of 2 visits, 2 is ¾.
    found = reward_draws(problem_of(PAIRS, known=False), "bounded", -1.0, 3.0)
    assert found.first.tolist() == [0.5 + 2.0, 0.5 + 1.5, 0.5, 0.5]
    assert found.second.tolist() == [0.5 + 2.0, 0.5 + 0.5, 0.5, 0.5]
    assert (found.noisy, found.low, found.span) == (True, -1.0, 4.0)


def test_nothing_can_be_drawn_of_rewards_that_nobody_saw():
    counts = Counts.from_dense(np.zeros((1, 1, 1), int), reward_sums=np.zeros((1, 1)))
    empty = replace(problem_of(PAIRS), counts=counts, behavior=Policy.uniform(counts))
    with pytest.raises(CertificateRefused, match="no reward was ever observed"):
        reward_draws(empty, "deterministic", None, None)
    assert reward_draws(empty, "deterministic", 0.0, 1.0).span == 1.0
