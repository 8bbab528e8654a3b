"""Chances to reach states, as problems of their own; logs with other numbers, or with chances."""

from dataclasses import replace

import numpy as np
import pytest

from surestep import Counts, DecisionLog, Pairs, Policy, Problem
from surestep.errors import ShapeMismatch
from surestep.model import Reach, reaching
from surestep.model.numbering import Numbering
from surestep.model.problem import stopped


def test_reaching_states_ends_there_and_pays_minus_one():
    times = np.zeros((3, 1, 3), int)
    times[0, 0] = [0, 3, 5]
    times[1, 0] = [2, 0, 0]
    counts = Counts.from_dense(times, rewards=np.full((3, 1), 7.0))
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.9, value_bounds=(0.0, 70.0)
    )
    chance = reaching(problem, Reach(np.array([False, True, False])))
    assert (chance.discount, chance.value_bounds, chance.signals) == (1.0, (-1.0, 0.0), ())
    ended = stopped(chance).counts
    assert ended.visits.tolist() == [8, 0, 0]
    assert ended.terminal.tolist() == [False, True, False]
    assert ended.rewards.values.tolist() == [0.0, -1.0, 0.0]
    assert stopped(problem) is problem


def log_of_three():
    """Two episodes; of the last step nobody knows where it led."""
    pairs = Pairs.full(2, 2)
    rows = np.array([[0, 1, 1], [1, 0, 0], [0, 0, -1]]).T
    ends = np.array([False, True, False])
    return DecisionLog(
        pairs, *rows[:2], np.arange(3.0), rows[2], ends, ~ends & False, np.array([0, 2, 3])
    )


def test_other_numbers_leave_unknown_successors_unknown():
    log = log_of_three()
    swapped = Numbering.of(log.pairs, np.array([1, 0]), np.array([1, 0]))
    moved = swapped.log(log)
    assert moved.state.tolist() == [1, 0, 1]
    assert moved.action.tolist() == [0, 1, 1]
    assert moved.next_state.tolist() == [0, 1, -1]
    assert moved.pair.tolist() == [2, 1, 3]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_sums_of_rewards_may_differ_by_rounding_and_no_more(scale):
    log = log_of_three()
    cut = log.terminated  # a log whose process goes on has counts
    log = replace(log, reward=log.reward * scale, terminated=~cut & False, truncated=cut)
    log = log.with_outcomes()
    counts = log.counts()
    told = {"behavior": Policy.uniform(counts), "discount": 0.9, "value_bounds": (-1e9, 1e9)}

    def differing(by):
        sums = counts.rewards.values + by * scale * (counts.observed > 0)
        rewards = replace(counts.rewards, values=sums, least=None, greatest=None)
        return replace(counts, rewards=rewards)

    Problem(counts=differing(1e-11), log=log, **told)
    with pytest.raises(ShapeMismatch, match="reward sum"):
        Problem(counts=differing(1e-7), log=log, **told)
