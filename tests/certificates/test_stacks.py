"""Stacks and courses by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from support.problems import logged_problem, uniform_problem
from support.rollouts import Draw, roll_out
from surestep import Counts, FiniteMDP, Pairs, Policy, sample_log
from surestep.certificates import stacks as module
from surestep.certificates.stacks import (
    Rounds,
    Stacks,
    Way,
    course_of,
    horizons,
    stacks_of,
    tails_of_set,
)
from surestep.kernels.stitched import BOTH, OURS
from surestep.planning.rectangular import Earnings, L1Rows, RectangularSet


def test_stacks_hold_the_visits_of_each_pair_in_their_order():
    mdp = FiniteMDP.from_dense(
        np.full((2, 2, 2), 0.5), np.arange(8.0).reshape(2, 2, 2), 0.5, [0.5, 0.5]
    )
    log = sample_log(mdp, Policy.uniform(mdp), 5, 3, np.random.default_rng(0))
    stacks = stacks_of(log)
    starts, entries = [], [[] for _ in range(4)]
    for first, last in zip(log.episode_offsets, log.episode_offsets[1:], strict=False):
        starts.append(log.state[first])
        for i in range(first, last):
            entries[log.pair[i]].append((log.reward[i], log.next_state[i], log.terminated[i]))
    assert stacks.starts.tolist() == starts
    assert stacks.sizes.tolist() == [len(each) for each in entries]
    assert [*zip(stacks.reward, stacks.successor, stacks.ended, strict=True)] == [
        entry for each in entries for entry in each
    ]


@pytest.mark.parametrize("way", [Way(BOTH, 4, 4), Way(OURS, 4, 4), Way(3, 4, 4)])
def test_a_run_is_over_where_it_needs_a_step_of_which_nobody_knows_where_it_led(way):
    """So it is the run on stacks that end before such steps, whatever comes after them."""
    mdp = FiniteMDP.from_dense(
        np.full((3, 2, 3), 1 / 3), np.arange(18.0).reshape(3, 2, 3), 0.5, [0.5, 0.5, 0.0]
    )
    log = sample_log(mdp, Policy.uniform(mdp), 40, 6, np.random.default_rng(1))
    problem = logged_problem(log, Policy.uniform(mdp), 0.5, (0.0, 40.0))  # fmt: skip
    policy = Policy.deterministic(mdp.pairs, [1, 0, 1])
    course = course_of(problem, policy, (0.0, 40.0), None)
    last = np.isin(np.arange(log.num_steps), log.episode_offsets[1:] - 1)
    lost = last & (np.arange(log.num_steps) > log.num_steps / 3)
    unknown = stacks_of(
        replace(log, next_state=np.where(lost, -1, log.next_state), truncated=log.truncated & ~lost)
    )
    cut = [np.flatnonzero(run < 0) for run in np.split(unknown.successor, unknown.offsets[1:-1])]
    sizes = [gone[0] if gone.size else size for gone, size in zip(cut, unknown.sizes, strict=True)]
    kept = np.concatenate(
        [np.arange(first, first + size)
         for first, size in zip(unknown.offsets[:-1], sizes, strict=True)]
    )  # fmt: skip
    shorter = Stacks(
        np.append(0, np.cumsum(sizes)),
        unknown.reward[kept], unknown.successor[kept], unknown.ended[kept], unknown.starts,
    )  # fmt: skip
    ours, theirs, whole = (
        roll_out(stacks, course, np.ones(6, bool), way, Draw(3, 1, 8, 40))
        for stacks in (unknown, shorter, stacks_of(log))
    )
    assert (ours.complete == theirs.complete).all()
    assert (ours.values == theirs.values).all()
    assert 0 < ours.complete.sum() < whole.complete.sum()


def test_a_course_has_the_starts_the_ends_and_what_cuts_count_for():
    counts = Counts.from_dense(
        [[[1, 1], [2, 0]], [[0, 0], [0, 0]]],
        rewards=[[0.0, 0.0], [3.0, 5.0]],
        terminal=[False, True],
    )
    problem = uniform_problem(counts, 0.5, (-2.0, 6.0))
    policy = Policy.from_dense(counts, [[0.5, 0.5], [0.25, 0.75]])
    course = course_of(problem, policy, (-2.0, 6.0), np.array([1.0, 3.0]))
    assert course.start_chances.tolist() == [0.25, 1.0]
    # In either state first what both have in common, then what each has of its own.
    assert course.chances.reshape(2, -1).tolist() == [
        [0.5, 1.0, 1.0, 1.0, 0.25, 0.75, 0.75, 1.0],
        [0.5, 1.0, 1.0, 1.0, 0.25, 0.75, 1.0, 1.0],
    ]
    assert course_of(problem, policy, (-2.0, 6.0), None).start_chances.size == 0
    assert course.at_end.tolist() == [[0.0, 4.5], [0.0, 4.0]]
    assert course.tails.at_pair.tolist() == [[-2.0] * 4, [6.0] * 4]
    assert course.tails.at_state.tolist() == [[-2.0] * 2, [6.0] * 2]


def test_robust_tails_are_what_a_set_proves_within_the_bounds_of_values(monkeypatch):
    # State 0 earns 1 to 2 and goes to state 1; there, one way goes on and one is over.
    pairs, zeros = Pairs(np.array([0, 1, 3]), np.array([0, 0, 1]), 2), np.zeros(3)
    rows = L1Rows.of(
        np.array([0, 1, 2, 2]),
        np.array([1, 0], np.int32),
        np.ones(2),
        zeros,
        np.array([False, False, True]),
        closed=True,
    )
    low, high = (Earnings(np.full(2, r), np.full(3, r), np.full(3, r)) for r in (1.0, 2.0))
    models = RectangularSet(pairs, np.full(3, 0.5), rows, low, high)
    problem = SimpleNamespace(
        value_bounds=(-3.0, 4.0), num_states=2, behavior=Policy.uniform(pairs)
    )
    floors = []

    def valued(state_values):
        def answer(models, policy, floor):
            floors.append(floor.tolist())
            return SimpleNamespace(value=np.array(state_values), error_bound=0.25)

        return answer

    monkeypatch.setattr(module, "worst_value", valued([1.0, -3.0]))
    monkeypatch.setattr(module, "best_value", valued([2.5, 4.0]))
    tails = tails_of_set(problem, Policy.uniform(pairs), models)
    assert floors == [[-3.0] * 2, [4.0] * 2]
    assert tails.at_state.tolist() == [[0.75, -3.0], [2.75, 4.0]]
    slack = 4e-9
    expected = [[1 - 1.5, 1 + 0.375, 1.0], [2 + 2.0, 2 + 1.375, 2.0]]
    expected = np.array(expected) + slack * np.array([[-1.0] * 3, [0.0, 1.0, 1.0]])
    np.testing.assert_allclose(tails.at_pair, expected, rtol=0, atol=1e-12)


def test_values_are_those_of_complete_rounds():
    rounds = Rounds(np.arange(8.0).reshape(2, 4), np.array([1, 3]), np.zeros(2, int))
    assert rounds.values.tolist() == [0.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("discount", "steps"),
    [(0.9, (12, 22, 34, 44, 66, None)), (0.5, (2, 4, 6, 7, 10, None)), (0.0, (1,)), (1.0, (None,))],
)
def test_rollouts_are_cut_where_little_is_left(discount, steps):
    assert horizons(discount) == steps
