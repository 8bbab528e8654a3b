"""Permutation tests: does the past tell more about an outcome than the present group of a row?

Rows with the same present (the group g) and the same past (the run x) are compared: if the past
does not matter, then outcomes are exchangeable among the rows of a group, and shuffled they tell
as much about their runs as they do in the log. The statistic is added up over all groups. With n
shuffles the p-value is (1 + #{shuffled ≥ observed}) / (1 + n).

**Which rows.** Of every episode at most one row a group (all rows of a log of less than 100
episodes): the j-th visit, where j was drawn before looking, with P(j ≥ i) = 1/(2i − 1). So the rows
of a group come from different episodes. Within an episode an outcome decides which past the next
visit has (a process that stays has itself as its past), so that rows of one episode must not be
exchanged for each other; and first visits alone would never show what changes while one stays.

**When that is exact.** Where episodes are independent and alike, and given the group the outcome
does not depend on what came before in its episode, then given the groups and pasts of the chosen
rows the outcomes of each group are independent and alike. The j-th visit is a stopping time, so it
matters neither how somebody decided within the episode, nor why recording stopped. So the test of
every single group is exact; in the sum over groups every term has exactly its mean, terms are
uncorrelated (the later of two outcomes is fresh, given the earlier one), and the distribution of
the sum is right in the limit of many rows. Where a logger learns from earlier episodes the past of
a later row may depend on an outcome of an earlier one: then even a single group is right only in
the limit. Both are tested by simulation.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, FloatArray, IntArray
from surestep.kernels.shuffles import room_to_shuffle, shuffled_information, shuffled_spread
from surestep.model.log import DecisionLog

MANY, FEW = 999, 299  # shuffles
LARGE = 20_000  # rows from which on there are few of them
FEW_EPISODES = 100
ROWS_A_RUN = 10  # on average, or the past is told less finely
TRIES = 20  # logs with an effect that are made to learn whether it is noticed
POWER = 0.8  # of them in which it must be
EFFECTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
SAME = 1e-9  # of a reward: what rounding may make of equal ones

Draws = Callable[[int, float], FloatArray]  # number, effect → the statistic, as observed first


class Arrangement(NamedTuple):
    """Rows by groups and runs; `order` says which rows of the log they are."""

    groups: IntArray  # [G+1] into runs
    runs: IntArray  # [R+1] into rows
    order: IntArray  # [n]

    @property
    def rows(self) -> int:
        """Returns how many rows there are."""
        return self.order.size

    def group_of_rows(self) -> IntArray:
        """Returns the group of each row [n]."""
        return np.repeat(np.arange(self.groups.size - 1), np.diff(self.runs[self.groups]))

    def with_runs(self, past: IntArray) -> Arrangement:
        """Returns the same rows by other pasts [N], which rise within each group as they lie."""
        runs = ends_of_equal(self.group_of_rows() * np.int64(past.max() + 1) + past[self.order])
        return Arrangement(np.searchsorted(runs, self.runs[self.groups]), runs, self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """The outcome of a permutation test."""

    rows: int  # that were compared
    statistic: float  # standard deviations above the mean of the shuffles
    p_value: float
    shuffles: tuple[float, ...]  # the same of the shuffles, rising
    noticed: float | None  # the smallest effect that is found in four of five logs; None: none is


def compared_rows(log: DecisionLog, place: IntArray, seed: int) -> tuple[IntArray, bool]:
    """Returns the rows to compare, and whether they are one an episode and place [N] at most.

    With few episodes all rows are compared: then even the test of one group is right only in the
    limit of many rows. Episodes of one step have one row each anyway.
    """
    if log.num_steps == log.num_episodes:
        return np.arange(log.num_steps), True
    if log.num_episodes < FEW_EPISODES:
        return np.arange(log.num_steps), False
    return drawn_visits(log, place, seed), True


def drawn_visits(log: DecisionLog, place: IntArray, seed: int) -> IntArray:
    """Returns the rows [n] of one visit of each episode to each of its places [N], where it is.

    Which one, the j-th, is drawn beforehand, with P(j ≥ i) = 1 / (2i − 1).
    """
    key = episode_of_rows(log) * np.int64(int(place.max()) + 1) + place
    order = np.argsort(key, kind="stable")
    offsets = ends_of_equal(key[order])
    lengths = arrays.run_lengths(offsets)
    chances = 1.0 - np.random.default_rng(seed).random(lengths.size)  # none is 0
    drawn = np.floor((1.0 / chances + 1.0) / 2.0)  # 1, 2, …
    reached = drawn <= lengths
    return np.sort(order[offsets[:-1][reached] + drawn[reached].astype(np.int64) - 1])


def episode_of_rows(log: DecisionLog) -> IntArray:
    """Returns the episode of each row [N]."""
    return np.repeat(np.arange(log.num_episodes), np.diff(log.episode_offsets))


def finest(group: IntArray, pasts: Sequence[IntArray]) -> IntArray:
    """Returns the first of the pasts [n] of which rows have ten in common, else the last.

    What is told apart too finely says nothing. Which is taken follows from groups and pasts alone,
    so that outcomes have no part in it.
    """
    for past in pasts[:-1]:
        key = group * np.int64(past.max() + 1) + past
        if ROWS_A_RUN * np.unique(key).size <= key.size:
            return past
    return pasts[-1]


def arranged(group: IntArray, past: IntArray, outcome: AnyArray) -> Arrangement:
    """Returns the rows by groups [n] and pasts [n], as far as they can be compared.

    A run of one row, a group of one run, and one whose outcomes [n] are all the same say nothing.
    """
    key = group * np.int64(past.max(initial=0) + 1) + past
    order = np.argsort(key, kind="stable")
    length = arrays.run_lengths(ends_of_equal(key[order]))
    order = order[np.repeat(length > 1, length)]
    length = length[length > 1]
    if order.size == 0:
        return NOTHING
    outcome = outcome[order]
    owner = group[order][np.cumsum(length) - 1]  # of each run
    groups = ends_of_equal(owner)
    runs = arrays.offsets_of(length)
    first = runs[groups[:-1]]
    varies = np.maximum.reduceat(outcome, first) > np.minimum.reduceat(outcome, first)
    kept = varies & (arrays.run_lengths(groups) > 1)
    of_run = np.repeat(kept, arrays.run_lengths(groups))
    return Arrangement(
        arrays.offsets_of(arrays.run_lengths(groups)[kept]),
        arrays.offsets_of(length[of_run]),
        order[np.repeat(of_run, length)],
    )


def ends_of_equal(values: IntArray) -> IntArray:
    """Returns the offsets of the runs of equal neighbours."""
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    return np.concatenate([[0], changes, [values.size]])


NOTHING = Arrangement(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))


def shuffle_test(
    group: IntArray,
    past: IntArray,
    outcome: AnyArray,
    *,
    seed: int,
    level: float,
    finer: Sequence[IntArray] = (),
) -> Shuffled | None:
    """Tests whether the past [n] tells an outcome [n], labels or numbers, beyond the group [n].

    Of labels, which are whole numbers, the statistic is the conditional mutual information of past
    and outcome; an effect ε means that with probability ε the past alone decides. Of numbers it is
    the share of the squares in a group that lies between the means of its pasts; an effect ε means
    that a past shifts the mean by ε standard deviations. None where no two rows can be compared.
    The rows lie in the order of `finer` pasts [n], which are tested along: see `largest`.
    """
    of_numbers = outcome.dtype.kind == "f"
    if of_numbers:
        largest_of_all = float(np.abs(outcome).max(initial=0.0)) or 1.0
        outcome = np.round(outcome, 12 - math.ceil(math.log10(largest_of_all)))  # no mere rounding
    placed = arranged(group, past, outcome)
    if placed.rows == 0:
        return None
    values = outcome[placed.order]
    beside: tuple[FloatArray, ...] = ()
    kernel: Any = shuffled_spread
    if not of_numbers:
        owner = placed.group_of_rows()
        code = np.unique(values + owner * np.int64(outcome.max() + 1), return_inverse=True)[1]
        least = np.minimum.reduceat(code, placed.runs[placed.groups[:-1]])
        many = np.arange(1 + int(np.diff(placed.runs[placed.groups]).max()), dtype=np.float64)
        values = (code - least[owner]).astype(np.int32)
        kernel = shuffled_information
        beside = (many * np.log(np.maximum(many, 1.0)),)

    def draws(scale: Arrangement, number: int, effect: float) -> FloatArray:
        statistic = np.empty(number + 1)
        runs = scale.groups, scale.runs
        room = room_to_shuffle(*runs)
        kernel.all(number + 1, room, seed, effect, *runs, values, *beside, statistic)
        return statistic

    return tested(placed, largest_statistic(placed, finer, draws), level)


def largest_statistic(
    placed: Arrangement,
    finer: Sequence[IntArray],
    draws: Callable[[Arrangement, int, float], FloatArray],
) -> Draws:
    """Returns the statistic of the pasts, or where there are finer ones the largest of all.

    Every past sees the same shuffles, and its statistic counts in standard deviations from the
    mean, both over the shuffles and the log. So all draws are treated alike, and the p-value of
    the largest is as exact as that of one. Effects are made up for the coarsest past alone.
    """
    scales = [placed, *map(placed.with_runs, finer)]
    if len(scales) == 1:
        return lambda number, effect: draws(placed, number, effect)
    every = np.stack([draws(scale, shuffles_of(placed.rows), 0.0) for scale in scales])
    mean = every.mean(axis=1)
    deviation = np.maximum(every.std(axis=1), slack_of(every.max()))
    observed: FloatArray = ((every - mean[:, None]) / deviation[:, None]).max(axis=0)

    def of_all(number: int, effect: float) -> FloatArray:
        if effect == 0:
            return observed
        with_effect: FloatArray = (draws(placed, number, effect) - mean[0]) / deviation[0]
        return with_effect

    return of_all


def tested(placed: Arrangement, draws: Draws, level: float) -> Shuffled:
    """Tests the observed statistic against the shuffles at a level."""
    statistic = draws(shuffles_of(placed.rows), 0.0)
    observed = float(statistic[0])
    shuffled = np.sort(statistic[1:])
    slack = slack_of(observed)
    mean = float(shuffled.mean())
    deviation = max(float(shuffled.std()), slack)
    return Shuffled(
        rows=placed.rows,
        statistic=(observed - mean) / deviation,
        p_value=p_value_of(observed, shuffled),
        shuffles=tuple(((shuffled - mean) / deviation).tolist()),
        noticed=least_noticed(draws, critical_value(shuffled, level) + slack),
    )


def shuffles_of(rows: int) -> int:
    """Returns how many shuffles of so many rows there are."""
    return MANY if rows < LARGE else FEW


def slack_of(observed: float) -> float:
    """Returns what sums of the same terms in another order may differ by."""
    return SAME * (abs(observed) + 1.0)


def p_value_of(observed: float, shuffled: FloatArray) -> float:
    """Returns (1 + #{shuffled ≥ observed}) / (1 + n), where rounding alone tells none apart."""
    at_least = np.count_nonzero(shuffled >= observed - slack_of(observed))
    return float((1 + at_least) / (1 + shuffled.size))


def critical_value(shuffled: FloatArray, level: float) -> float:
    """Returns beyond which value the p-value is at most the level; ∞ where no value is.

    `shuffled` [n] rises. p = (1 + #{shuffled ≥ observed}) / (1 + n).
    """
    allowed = math.floor(level * (1 + shuffled.size)) - 1  # shuffles that may be as large
    if allowed < 0:
        return math.inf
    return float(shuffled[-1 - allowed])


def least_noticed(draws: Draws, critical: float) -> float | None:
    """Returns the smallest effect of a short list that most made-up logs show; None: none is."""

    def is_noticed(effect: float) -> bool:
        return bool(np.mean(draws(TRIES, effect)[1:] > critical) >= POWER)

    place = bisect_left(EFFECTS, True, key=is_noticed)
    return EFFECTS[place] if place < len(EFFECTS) else None
