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
    offsets_of,
    run_sums,
)
from surestep.certificates.refuting import SAME
from surestep.kernels.stitched import (
    Course,
    Draw,
    Rounds,
    Stacks,
    Tails,
    coupled_chances,
    room_to_stitch,
    stitched_rounds,
)
from surestep.model.log import DecisionLog
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.planning.rectangular import RectangularSet
from surestep.planning.robust import best_value, worst_value

FOREVER = 2**62  # a horizon that no rollout reaches: each step reads an entry of its own


def stacks_of(log: DecisionLog) -> Stacks:
    """Returns the stacks of a log."""
    order = np.argsort(log.pair, kind="stable")
    return Stacks(
        offsets_of(np.bincount(log.pair, minlength=log.pairs.num_pairs)),
        log.reward[order],
        log.next_state[order].astype(np.int64),
        log.terminated[order],
        log.state[log.episode_offsets[:-1]].astype(np.int64),
    )


def tails_of_bounds(problem: Problem) -> Tails:
    """Returns the bounds of all values: the lower one for π_I, the upper one for π_b."""
    ends = np.array(problem.value_bounds)[:, np.newaxis]
    pairs = problem.counts.pairs
    return Tails(
        np.repeat(ends, pairs.num_pairs, axis=1), np.repeat(ends, pairs.num_states, axis=1)
    )


def tails_of_set(problem: Problem, policy: Policy, models: RectangularSet) -> Tails:
    """Returns the worst that a model of the set leaves to π_I, the best that one leaves to π_b."""
    (low, high), size = problem.value_bounds, problem.num_states
    worst = worst_value(models, policy, np.full(size, low))
    best = best_value(models, problem.behavior, np.full(size, high))
    our_low = np.maximum(worst.value - worst.error_bound, low)
    their_high = np.minimum(best.value + best.error_bound, high)
    slack = SAME * max(abs(low), abs(high), SAME)  # more than the rounding of a backup
    return Tails(
        np.stack(
            [
                np.maximum(models.worst(our_low).q - slack, low),
                np.minimum(slack - models.mirrored().worst(-their_high).q, high),
            ]
        ),
        np.stack([our_low, their_high]),
    )


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
        np.stack([run_sums(chosen * ending, pairs.offsets) for chosen in both]),
        tails_of_bounds(problem),
        problem.single_discount,
        limits,
    )


class Way(NamedTuple):
    """The policies to roll out, and the most steps of a rollout of either; None for no limit."""

    who: int  # BOTH, OURS, THEIRS, or a number of rounds in turn, of which the first is of π_I
    horizon: int | None = None
    their_horizon: int | None = None


def roll_out(stacks: Stacks, course: Course, readable: BoolArray, way: Way, draw: Draw) -> Rounds:
    """Rounds until an entry is missing; a pair that is not `readable` [K] cuts a rollout."""
    return roll_out_each(stacks, course, readable, [way], draw)[0]


def roll_out_each(
    stacks: Stacks, course: Course, readable: BoolArray, ways: Sequence[Way], draw: Draw
) -> list[Rounds]:
    """Returns the rounds of each of several ways, all with the same random numbers."""
    tasks = len(ways) * draw.runs
    rounds = Rounds(
        np.zeros((tasks, draw.rounds)), np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
    )
    turns = np.array([way.who for way in ways])
    longest = np.array([FOREVER if steps is None else steps for way in ways for steps in way[1:]])
    room = room_to_stitch(stacks.offsets.size - 1, course.over.size)
    stitched_rounds.all(tasks, room, draw, turns, longest, stacks, course, readable, rounds)
    differences, complete, cuts = rounds
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
