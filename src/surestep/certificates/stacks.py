"""A log as stacks: what came of the first, second, … visit of each pair, in the order of decisions.

Two policies are rolled out on them together (`kernels.stitched`). `Course` is what both need beside
the stacks: how they act, what a cut rollout counts for, and how the two are discounted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    offsets_of,
    run_lengths,
    run_sums,
)
from surestep.certificates.refuting import SAME
from surestep.kernels.stitched import coupled_chances, stitched_rounds
from surestep.model.log import DecisionLog
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.planning.rectangular import RectangularSet
from surestep.planning.robust import best_value, worst_value

FOREVER = 2**62  # a horizon that no rollout reaches: each step reads an entry of its own


class Stacks(NamedTuple):
    """What came of every visit, pair after pair, the visits of a pair in the order of the log."""

    offsets: IntArray  # [K+1]
    reward: FloatArray  # [N]
    successor: IntArray  # [N]
    ended: BoolArray  # [N] the process was over; where only the recording stopped, it was not
    starts: IntArray  # [E] where episodes began, in the order of the log

    @property
    def sizes(self) -> IntArray:
        """How often each pair was visited [K]."""
        return run_lengths(self.offsets)


def stacks_of(log: DecisionLog) -> Stacks:
    """The stacks of a log."""
    order = np.argsort(log.pair, kind="stable")
    return Stacks(
        offsets_of(np.bincount(log.pair, minlength=log.pairs.num_pairs)),
        log.reward[order],
        log.next_state[order].astype(np.int64),
        log.terminated[order],
        log.state[log.episode_offsets[:-1]].astype(np.int64),
    )


class Tails(NamedTuple):
    """What a cut rollout counts for: at most its worth for π_I, at least that for π_b."""

    at_pair: FloatArray  # [2, K]
    at_state: FloatArray  # [2, S]

    @classmethod
    def of_bounds(cls, problem: Problem) -> Tails:
        """The bounds of all values: the lower one for π_I, the upper one for π_b."""
        ends = np.array(problem.value_bounds)[:, np.newaxis]
        pairs = problem.counts.pairs
        return cls(
            np.repeat(ends, pairs.num_pairs, axis=1), np.repeat(ends, pairs.num_states, axis=1)
        )

    @classmethod
    def of_set(cls, problem: Problem, policy: Policy, models: RectangularSet) -> Tails:
        """The worst that any model of a set leaves to π_I, and the best that one leaves to π_b."""
        (low, high), size = problem.value_bounds, problem.num_states
        worst = worst_value(models, policy, np.full(size, low))
        best = best_value(models, problem.behavior, np.full(size, high))
        our_low = np.maximum(worst.value - worst.error_bound, low)
        their_high = np.minimum(best.value + best.error_bound, high)
        slack = SAME * max(abs(low), abs(high), SAME)  # more than the rounding of a backup
        return cls(
            np.stack(
                [
                    np.maximum(models.worst(our_low).q - slack, low),
                    np.minimum(slack - models.mirrored().worst(-their_high).q, high),
                ]
            ),
            np.stack([our_low, their_high]),
        )


class Course(NamedTuple):
    """All that two policies need beside stacks to be rolled out."""

    pair_offsets: IntArray  # [S+1]
    chances: FloatArray  # [2, 2K] see `coupled_chances`
    start_chances: FloatArray  # [S] cumulated; empty where starts are read from a stack
    over: BoolArray  # [S] states in which episodes are over
    at_end: FloatArray  # [2, S] what an end is worth under either policy
    tails: Tails
    discount: float
    limits: tuple[float, float]  # of all returns


def course_of(
    problem: Problem, policy: Policy, limits: tuple[float, float], initial: FloatArray | None
) -> Course:
    """The course of π_I and π_b; `initial` [S] is the start distribution where it is known."""
    pairs, behavior = problem.counts.pairs, problem.behavior
    ending = problem.counts.unseen_reward()
    both = (policy.probability, behavior.probability)
    chances = np.empty((2, 2 * pairs.num_pairs))
    coupled_chances(pairs.offsets, *both, chances)
    cumulated = np.empty(0) if initial is None else np.cumsum(initial) / np.sum(initial)
    return Course(
        pairs.offsets,
        chances,
        cumulated,
        problem.counts.terminal,
        np.stack([run_sums(each * ending, pairs.offsets) for each in both]),
        Tails.of_bounds(problem),
        problem.single_discount,
        limits,
    )


class Rounds(NamedTuple):
    """What came of the rounds of several runs."""

    differences: FloatArray  # [runs, rounds] G_I − G_b where the round is complete; or one of them
    complete: IntArray  # [runs] how many rounds there were all entries for
    cuts: IntArray  # [runs] how many rollouts of complete rounds were cut

    @property
    def values(self) -> FloatArray:
        """What the complete rounds of all runs gave, flat."""
        there = np.arange(self.differences.shape[1]) < self.complete[:, np.newaxis]
        return self.differences[there]


class Way(NamedTuple):
    """Who is rolled out, and for how many steps at the most."""

    who: int  # BOTH, OURS or THEIRS
    horizon: int | None  # None: a rollout is never cut for its length


class Draw(NamedTuple):
    """Who is rolled out, with which random numbers, in how many runs and rounds."""

    seed: int
    purpose: int
    who: int  # BOTH, OURS or THEIRS
    runs: int
    rounds: int


def roll_out(
    stacks: Stacks, course: Course, readable: BoolArray, horizon: int | None, draw: Draw
) -> Rounds:
    """Rounds until an entry is missing; a pair that is not `readable` [K] cuts a rollout."""
    return roll_out_each(stacks, course, readable, [Way(draw.who, horizon)], draw)[0]


def roll_out_each(
    stacks: Stacks, course: Course, readable: BoolArray, ways: Sequence[Way], draw: Draw
) -> list[Rounds]:
    """Returns the rounds of each of several ways, all with the same random numbers."""
    tasks = len(ways) * draw.runs
    found = Rounds(
        np.zeros((tasks, draw.rounds)), np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    )
    stitched_rounds.all(
        tasks,
        draw.seed,
        draw.purpose,
        np.array([way.who for way in ways]),
        np.array([FOREVER if way.horizon is None else way.horizon for way in ways]),
        *stacks,
        course.start_chances,
        course.pair_offsets,
        course.chances,
        readable,
        course.over,
        course.at_end,
        course.tails.at_pair,
        course.tails.at_state,
        course.discount,
        np.array(course.limits),
        *found,
    )
    differences, complete, cuts = found
    parts = [slice(first, first + draw.runs) for first in range(0, tasks, draw.runs)]
    return [Rounds(differences[part], complete[part], cuts[part]) for part in parts]


def horizons(discount: float) -> tuple[int | None, ...]:
    """Numbers of steps after which a rollout may be cut: γ^H is 0.3 to 0.001; None for never.

    Without a discount what comes later counts as much, and rollouts go on until they end.
    """
    if discount == 1:
        return (None,)
    if discount == 0:
        return (1,)
    shares = (0.3, 0.1, 0.03, 0.01, 0.001)
    return (*(math.ceil(math.log(left) / math.log(discount)) for left in shares), None)
