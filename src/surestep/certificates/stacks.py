"""A log as stacks: what came of the first, second, … visit of each pair, in the order of decisions.

Two policies are rolled out on them together (`kernels.stitched`). `Course` is what both need beside
the stacks: how they act, what a cut rollout counts for, and how the two are discounted.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.refuting import SAME
from surestep.kernels.stitched import (
    FOREVER,
    Case,
    Cases,
    Course,
    Stacks,
    Tails,
    Tallied,
    coupled_chances,
    room_to_stitch,
    stitched_rounds,
)
from surestep.model import DecisionLog, Policy, Problem
from surestep.planning.rectangular import RectangularSet
from surestep.planning.robust import best_value, worst_value

MOST_KEPT = 2**25  # numbers of series and chances that are kept at a time


def stacks_of(log: DecisionLog) -> Stacks:
    """Returns the stacks of a log.

    A row of which nobody knows where it led has its place there: that an entry cannot be read may
    tell what it is, so that leaving it out would leave out what came.
    """
    # Numbers of 16 bits are sorted ten times as fast as others.
    pair = log.pair.astype(np.min_scalar_type(log.pairs.num_pairs))
    order = np.argsort(pair, kind="stable")
    if log.order is not None:
        order = np.lexsort((log.order, pair))
    return Stacks(
        arrays.offsets_of(np.bincount(pair, minlength=log.pairs.num_pairs)),
        log.reward[order],
        log.next_state[order].astype(np.int64),
        log.terminated[order],
        log.starts.astype(np.int64),
    )


def tails_of_set(
    problem: Problem, policies: Sequence[Policy], models: RectangularSet
) -> list[Tails]:
    """Returns, over models of the set, the least values of π_I and the greatest values of π_b.

    Each policy is a π_I; what is left for π_b is the same beside all of them.
    """
    low, high = problem.value_bounds
    best = best_value(models, problem.behavior, np.full(problem.num_states, high))
    slack = SAME * max(abs(low), abs(high), SAME)  # more than the rounding of a backup
    their_high = np.minimum(best.value + best.error_bound, high)
    their_q = np.minimum(slack - models.mirrored().worst(-their_high).q, high)
    tails = []
    for policy in policies:
        worst = worst_value(models, policy, np.full(problem.num_states, low))
        our_low = np.maximum(worst.value - worst.error_bound, low)
        our_q = np.maximum(models.worst(our_low).q - slack, low)
        tails.append(Tails(np.stack([our_q, their_q]), np.stack([our_low, their_high])))
    return tails


def course_of(
    problem: Problem, policy: Policy, limits: tuple[float, float], initial: arrays.FloatArray | None
) -> Course:
    """Returns the course of π_I and π_b; `initial` [S] is the start distribution if known.

    A cut counts with the bounds of all values: the lower one for π_I, the upper one for π_b.
    """
    pairs = problem.counts.pairs
    ending = problem.counts.unseen_reward()
    ends = np.array(problem.value_bounds)[:, np.newaxis]
    both = (policy.probability, problem.behavior.probability)
    chances = np.empty(4 * pairs.num_pairs)
    coupled_chances(pairs.offsets, *both, chances)
    cumulated = np.empty(0) if initial is None else np.cumsum(initial) / np.sum(initial)
    return Course(
        pairs.offsets,
        chances,
        cumulated,
        problem.counts.terminal,
        np.stack([arrays.run_sums(chosen * ending, pairs.offsets) for chosen in both]),
        Tails(np.repeat(ends, pairs.num_pairs, axis=1), np.repeat(ends, pairs.num_states, axis=1)),
        problem.single_discount,
        limits,
        FOREVER if problem.horizon is None else problem.horizon,
    )


class Way(NamedTuple):
    """The policies to roll out, and the most steps of a rollout of either; None for no limit."""

    who: int  # BOTH, OURS, THEIRS, or a number of rounds in turn, of which the first is of π_I
    horizon: int | None = None
    their_horizon: int | None = None


class Tallies(NamedTuple):
    """Rounds of all runs together, of W ways in C cases [C, W, 2].

    Where policies take turns, they are of two kinds, those of π_I and of π_b; else of the first.
    """

    number: arrays.FloatArray  # in a run, on average
    mean: arrays.FloatArray
    variance: arrays.FloatArray


def roll_out_each(
    cases: Sequence[Case], ways: Sequence[Way], purpose: int, runs: int
) -> list[Tallied]:
    """Returns the rounds of each case by its way, until an entry is missing.

    A pair that is not readable cuts a rollout. Runs of the same number have the same random
    numbers. Cases over the same pairs are rolled out together.
    """
    rounds: dict[int, Tallied] = {}
    for group in rolled_together(cases, runs):
        some = [[ways[c]] for c in group]
        tallied = roll_out_group([cases[c] for c in group], some, purpose, runs, keep=True)
        for place, c in enumerate(group):
            part = slice(place * runs, (place + 1) * runs)
            rounds[c] = Tallied(
                tallied.complete[part],
                tallied.cuts[part],
                tallied.moments[part],
                np.ascontiguousarray(tallied.differences[part, : cases[c].rounds]),
            )
    return [rounds[c] for c in range(len(cases))]


def tally_each(
    cases: Sequence[Case], ways: Sequence[Sequence[Way]], purpose: int, runs: int
) -> Tallies:
    """Adds up the rounds of several ways in each case, and keeps none of them.

    Each case has as many ways.
    """
    tallies = Tallies(*np.empty((3, len(cases), len(ways[0]), 2)))
    for group in rolled_together(cases, 0):
        some = [ways[c] for c in group]
        tallied = roll_out_group([cases[c] for c in group], some, purpose, runs, keep=False)
        turns = np.array([[way.who for way in several] for several in some])
        for figure, part in zip(tallies, tallies_of(tallied, turns, runs), strict=True):
            figure[group] = part
    return tallies


def rolled_together(cases: Sequence[Case], series: int) -> Iterator[list[int]]:
    """Yields the places of cases over the same pairs, in groups that fit in memory."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, case in enumerate(cases):
        offsets, _, starts, *_, discount, _, counted = case.course
        kind = offsets.tobytes(), starts.size > 0, discount, counted
        groups.setdefault(kind, []).append(place)
    for group in groups.values():
        longest = max(cases[place].rounds for place in group)
        most = max(1, MOST_KEPT // (series * longest + cases[group[0]].course.chances.size))
        yield from (group[first : first + most] for first in range(0, len(group), most))


def roll_out_group(
    each: Sequence[Case],
    ways: Sequence[Sequence[Way]],
    purpose: int,
    runs: int,
    *,
    keep: bool,
) -> Tallied:
    """Rolls out cases over the same pairs, the ways of each and their runs one after the other."""
    number = len(each) * len(ways[0]) * runs
    longest = max(case.rounds for case in each)
    # A table that goes to a GPU is never empty.
    tallied = Tallied.empty(number, longest if keep else 1)
    every = [way for several in ways for way in several]
    turns = np.array([way.who for way in every])
    steps = np.array([FOREVER if most is None else most for way in every for most in way[1:]])
    course = each[0].course
    walks = walks_of(each, ways)
    room = room_to_stitch(course.chances.size // 4, course.over.size, max(map(len, walks)))
    tasks = len(walks) * len(ways[0]) * runs
    stitched_rounds.all(tasks, room, purpose, runs, turns, steps, Cases.of(each, walks), tallied)
    return tallied


def walks_of(each: Sequence[Case], ways: Sequence[Sequence[Way]]) -> list[list[int]]:
    """Groups the places of cases that take the same steps in the same ways.

    Such cases are several signals, or differ in δ only, or in the worth of a cut.
    """

    def digest(*parts: arrays.AnyArray) -> bytes:
        return hashlib.sha256(b"".join(part.tobytes() for part in parts)).digest()

    steps = {
        id(one): digest(one[0], *one[2:]) for one in {id(c.stacks): c.stacks for c in each}.values()
    }
    walks: dict[tuple[object, ...], list[int]] = {}
    for place, ((stacks, course, readable, seed, rounds), several) in enumerate(
        zip(each, ways, strict=True)
    ):
        acting = digest(course.chances, course.start_chances, course.over, readable)
        walks.setdefault((steps[id(stacks)], acting, seed, rounds, *several), []).append(place)
    return [*walks.values()]


def tallies_of(tallied: Tallied, turns: arrays.IntArray, runs: int) -> Tallies:
    """Adds up the runs of each way; `turns` [C, W] says which policies had them.

    With n, m and q of each run, that are M = Σ n m / Σ n and Σ (q + n (m − M)²) / Σ n.
    """
    cycle = np.repeat(turns, runs)
    complete = tallied.complete
    ours = np.where(cycle > 1, -(-complete // np.maximum(cycle, 1)), complete)
    # Of each kind [2, C, W, runs]; what is added up lies side by side.
    number = np.stack([ours, complete - ours]).reshape(2, *turns.shape, runs).astype(np.float64)
    moments = tallied.moments.reshape(*turns.shape, runs, 2, 2).transpose(4, 3, 0, 1, 2)
    means, squares = np.ascontiguousarray(moments)
    total = np.maximum(number.sum(axis=-1), 1.0)
    mean = (number * means).sum(axis=-1) / total
    off = squares + number * (means - mean[..., np.newaxis]) ** 2
    figures = (number.mean(axis=-1), mean, off.sum(axis=-1) / total)
    return Tallies(*(np.stack([*of_kinds], axis=-1) for of_kinds in figures))


def horizons(discount: float) -> tuple[int | None, ...]:
    """Returns numbers of steps after which to cut a rollout: γ^H is 0.3 to 0.001; None: never.

    Without a discount what comes later counts as much, and rollouts go on until they end.
    """
    if discount == 1:
        return (None,)
    if discount == 0:
        return (1,)
    shares = (0.3, 0.1, 0.03, 0.01, 0.001)
    return (*(math.ceil(math.log(left) / math.log(discount)) for left in shares), None)
