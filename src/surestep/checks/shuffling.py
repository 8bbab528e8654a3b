"""Runs permutation tests: does the past of a row help to predict its outcome, within a group?

Rows with the same present (the group g) and the same past (the run x) are compared: if the past
does not matter, then outcomes are exchangeable among the rows of a group, and shuffled they tell
as much about their runs as they do in the log. The statistic is added up over all groups.

**When shuffling stops** (Besag and Clifford 1991): at the h-th shuffle that is at least as large as
the log, or after n. If the h-th is shuffle l, then p = h/l; if only g < h of n are as large, then
p = (1 + g) / (1 + n). With T₀ of the log and T₁, T₂, … of the shuffles, P(p ≤ α) ≤ α for every α:

1. If the past does not matter, T₀, …, T_m are exchangeable for every m. So at most k of these m + 1
   have less than k others that are as large, and P(less than k of T₁, …, T_m ≥ T₀) ≤ k / (m + 1).
2. p ≤ h/l for an l ≤ n, if and only if the h-th comes at l or later or never: less than h of
   T₁, …, T_{l−1} are as large. By 1 with k = h and m = l − 1, this has at most the chance h/l.
3. p ≤ (1 + g) / (1 + n) for a g < h, if and only if less than 1 + g of T₁, …, T_n are as large:
   every p by 2 is greater, at least h/n. By 1 the chance is at most (1 + g) / (1 + n).
4. p has no other values, and between two of them P(p ≤ α) is that of the lower one.

Shuffles beyond the h-th, of the same batch, do not count for p.

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

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri

from surestep._arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    first_of_equal,
    offsets_of,
    run_lengths,
    run_owners,
)
from surestep.checks.check import Check, GivenLog, Mark
from surestep.kernels.shuffles import room_to_shuffle, shuffled_information, shuffled_spread
from surestep.model.log import DecisionLog

MANY, FEW = 999, 299  # the most shuffles
LARGE = 20_000  # rows from which on FEW shuffles are drawn at most
ENOUGH = 10  # h: shuffles as large as the log, after which no more are drawn
BATCH = 40  # shuffles that come first; from then on each batch doubles them
APART = 2**40  # between the seeds of batches
FEW_EPISODES = 100
ROWS_A_RUN = 10  # on average; with fewer, a coarser past is taken
TRIES = 20  # simulated logs with an effect, to learn whether the test notices it
POWER = 0.8  # share of them in which the test must notice it
EFFECTS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0)
MOST_BACK = 10  # rows, to find an action that the state does not determine
BLOCKS = (2, 4, 8, 16, 32, 64, 128)  # numbers of blocks of the log
LEAST_IN_BLOCK = 25  # episodes; halves may have fewer
EDGES = tuple(0.5 * i for i in range(-8, 9))  # standard deviations, of the bars of a picture
SAME = 1e-9  # relative; numbers this close differ by rounding only

DrawStatistics = Callable[
    [int, float, int], FloatArray
]  # (number, effect, batch) → the statistic of the log, then of its shuffles


class Arrangement(NamedTuple):
    """Rows of a log in groups, and in runs with the same past; `order` has their numbers."""

    groups: IntArray  # [G+1] into runs
    runs: IntArray  # [R+1] into rows
    order: IntArray  # [n]

    def with_runs(self, past: IntArray) -> "Arrangement":
        """Returns the same rows in runs of another past [N], which must rise within each group."""
        group = run_owners(self.runs[self.groups])
        runs = ends_of_equal(group * np.int64(past.max() + 1) + past[self.order])
        return Arrangement(np.searchsorted(runs, self.runs[self.groups]), runs, self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """The outcome of a permutation test."""

    rows: int  # the number of rows that were compared
    statistic: float  # standard deviations above the mean of the shuffles
    p_value: float
    shuffles: tuple[float, ...]  # the statistics of the shuffles, rising
    noticed: float | None  # the smallest effect found in four of five logs; None: none


def drawn_visits(log: DecisionLog, place: IntArray, seed: int) -> IntArray:
    """Returns the rows [n] of one visit of each episode to each place; rows have a `place` [N].

    It is the j-th visit, if there are so many. j is drawn with P(j ≥ i) = 1 / (2i − 1).
    """
    key = run_owners(log.episode_offsets) * np.int64(int(place.max()) + 1) + place
    order = np.argsort(key, kind="stable")
    offsets = ends_of_equal(key[order])
    lengths = run_lengths(offsets)
    chances = 1.0 - np.random.default_rng(seed).random(lengths.size)  # all above 0
    drawn = np.floor((1.0 / chances + 1.0) / 2.0)  # 1, 2, …
    reached = drawn <= lengths
    return np.sort(order[offsets[:-1][reached] + drawn[reached].astype(np.int64) - 1])


def finest(group: IntArray, pasts: Sequence[IntArray]) -> IntArray:
    """Returns the first of the pasts [n] with ten rows in a run on average, else the last.

    Shorter runs show little. The choice depends on groups and pasts, never on outcomes.
    """
    for past in pasts[:-1]:
        key = group * np.int64(past.max() + 1) + past
        if ROWS_A_RUN * np.unique(key).size <= key.size:
            return past
    return pasts[-1]


def arranged(group: IntArray, past: IntArray, outcome: AnyArray) -> Arrangement:
    """Arranges rows by groups [n] and pasts [n]; drops rows that cannot be compared.

    These are runs of one row, groups of one run, and groups whose outcomes [n] are all equal.
    """
    key = group * np.int64(past.max(initial=0) + 1) + past
    order = np.argsort(key, kind="stable")
    length = run_lengths(ends_of_equal(key[order]))
    order = order[np.repeat(length > 1, length)]
    length = length[length > 1]
    outcome = outcome[order]
    owner = group[order][np.cumsum(length) - 1]  # the group of each run
    groups = ends_of_equal(owner)
    first = offsets_of(length)[groups[:-1]]
    varies = np.maximum.reduceat(outcome, first) > np.minimum.reduceat(outcome, first)
    kept = varies & (run_lengths(groups) > 1)
    of_run = np.repeat(kept, run_lengths(groups))
    return Arrangement(
        offsets_of(run_lengths(groups)[kept]),
        offsets_of(length[of_run]),
        order[np.repeat(of_run, length)],
    )


def ends_of_equal(values: IntArray) -> IntArray:
    """Returns the offsets of runs of equal values."""
    return np.append(np.flatnonzero(first_of_equal(values)), values.size)


def shuffle_test(
    group: IntArray,
    past: IntArray,
    outcome: AnyArray,
    *,
    seed: int,
    level: float,
    finer: Sequence[IntArray] = (),
) -> Shuffled | None:
    """Tests whether the past [n] predicts the outcome [n], labels or numbers, within groups [n].

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
    if placed.order.size == 0:
        return None
    values = outcome[placed.order]
    beside: tuple[FloatArray, ...] = ()
    kernel: Any = shuffled_spread
    if not of_numbers:
        owner = run_owners(placed.runs[placed.groups])
        code = np.unique(values + owner * np.int64(outcome.max() + 1), return_inverse=True)[1]
        least = np.minimum.reduceat(code, placed.runs[placed.groups[:-1]])
        many = np.arange(1 + int(np.diff(placed.runs[placed.groups]).max()), dtype=np.float64)
        values = (code - least[owner]).astype(np.int32)
        kernel = shuffled_information
        beside = (many * np.log(np.maximum(many, 1.0)),)

    def draws(scale: Arrangement, number: int, effect: float, batch: int) -> FloatArray:
        statistic = np.empty(number + 1)
        runs = scale.groups, scale.runs
        given = seed + APART * batch, effect, *runs, values, *beside
        kernel.all(number + 1, room_to_shuffle(*runs), *given, statistic)
        return statistic

    return tested(placed, largest_statistic(placed, finer, draws), level)


def largest_statistic(
    placed: Arrangement,
    finer: Sequence[IntArray],
    draws: Callable[[Arrangement, int, float, int], FloatArray],
) -> DrawStatistics:
    """Returns the statistic of the past, or the largest one of all if there are `finer` pasts.

    Every past sees the same shuffles. Its statistic is measured in standard deviations from its
    mean, both over a batch of shuffles that does nothing else. Given that batch, the log and all
    other shuffles are treated alike, and the p-value of the largest is as exact as that of one.
    Effects are simulated for the coarsest past alone.
    """
    scales = [placed, *map(placed.with_runs, finer)]
    if len(scales) == 1:
        return partial(draws, placed)
    every = np.stack([draws(scale, BATCH, 0.0, 0)[1:] for scale in scales])
    mean = every.mean(axis=1, keepdims=True)
    deviation = np.maximum(every.std(axis=1, keepdims=True), slack_of(every.max()))

    def of_all(number: int, effect: float, batch: int) -> FloatArray:
        some = scales if effect == 0 else scales[:1]
        found = np.stack([draws(scale, number, effect, batch) for scale in some])
        return np.asarray(((found - mean[: len(some)]) / deviation[: len(some)]).max(axis=0))

    return of_all


def tested(placed: Arrangement, draws: DrawStatistics, level: float) -> Shuffled:
    """Tests the observed statistic against shuffles at a level, until p is settled.

    What would be noticed is above a quantile of χ² with the moments of the shuffles.
    """
    most = max(shuffles_of(placed.order.size), math.ceil(1 / level))
    statistic = draws(0, 0.0, 0)
    observed = float(statistic[0])
    slack = slack_of(observed)
    as_large: IntArray = np.empty(0, np.int64)  # the numbers of shuffles
    while statistic.size <= most and as_large.size < ENOUGH:
        number = min(max(statistic.size - 1, BATCH), most + 1 - statistic.size)
        statistic = np.append(statistic, draws(number, 0.0, statistic.size)[1:])
        as_large = np.flatnonzero(statistic >= observed - slack)[1:]
    shuffled = np.sort(statistic[1:])
    mean = float(shuffled.mean())
    deviation = max(float(shuffled.std()), slack)
    freedom = placed.runs.size - placed.groups.size
    critical = float(chdtri(freedom, level) - freedom) / math.sqrt(2 * freedom)
    return Shuffled(
        rows=placed.order.size,
        statistic=(observed - mean) / deviation,
        p_value=ENOUGH / int(as_large[ENOUGH - 1])
        if as_large.size >= ENOUGH
        else (1 + as_large.size) / statistic.size,
        shuffles=tuple(((shuffled - mean) / deviation).tolist()),
        noticed=least_noticed(draws, mean + critical * deviation + slack),
    )


def shuffles_of(rows: int) -> int:
    """Returns the most shuffles for a number of rows."""
    return MANY if rows < LARGE else FEW


def slack_of(observed: float) -> float:
    """Returns a bound on the rounding error of sums in another order: so close counts as equal."""
    return SAME * (abs(observed) + 1.0)


def least_noticed(draws: DrawStatistics, critical: float) -> float | None:
    """Returns the smallest of EFFECTS that most simulated logs show; None if none is shown."""

    def is_noticed(effect: float) -> bool:
        return bool(np.mean(draws(TRIES, effect, 0)[1:] > critical) >= POWER)

    place = bisect_left(EFFECTS, True, key=is_noticed)
    return EFFECTS[place] if place < len(EFFECTS) else None


# ---- from a log to a check -----------------------------------------------------------------------


def permutation_check(
    code: str,
    given: GivenLog,
    place: IntArray,
    outcome: AnyArray,
    pasts: Sequence[IntArray],
    *,
    seed: int,
    group: IntArray | None = None,
    finer: Sequence[IntArray] = (),
    figures: Mapping[str, float] | None = None,
) -> Check:
    """Checks whether the past [N] predicts the outcome [N], labels or numbers, within groups [N].

    One row of each episode and place [N] is compared; places are the groups unless `group` is
    given. With few episodes all rows are compared: then even the test of one group is right only in
    the limit of many rows. `pasts` are ordered from fine to coarse, and the first with enough rows
    a run is taken. Pasts in `finer` are tested together with it.
    """
    log = given.log
    seed += given.seed
    rows: IntArray = np.arange(log.num_steps)
    apart = log.num_steps == log.num_episodes  # every episode has a single row
    if not apart and log.num_episodes >= FEW_EPISODES:
        rows = drawn_visits(log, place, seed)
        apart = True
    group = (place if group is None else group)[rows]
    outcome = outcome[rows]
    if outcome.dtype.kind != "f":
        outcome = outcome.astype(np.int64)
    past = finest(group, [one[rows] for one in pasts])
    shuffled = shuffle_test(
        group, past, outcome, seed=seed, level=given.level, finer=[one[rows] for one in finer]
    )
    if shuffled is None and outcome.dtype.kind == "f" and not above_usual(log).any():
        return Check.unchecked(code, "nothing-varies")
    return check_of(code, shuffled, given.level, apart, figures)


def check_of(
    code: str,
    shuffled: Shuffled | None,
    level: float,
    apart: bool,
    figures: Mapping[str, float] | None = None,
) -> Check:
    """Returns the check of a permutation test, with the shuffles as bars of a picture."""
    if shuffled is None:
        return Check.unchecked(code, "nothing-to-compare")
    failed = shuffled.p_value <= level
    if shuffled.noticed is None and not failed:
        return Check.unchecked(code, "too-small")
    times, _ = np.histogram(np.clip(shuffled.shuffles, EDGES[0], EDGES[-1]), EDGES)
    bars = zip(EDGES, EDGES[1:], times.tolist(), strict=False)
    return Check(
        code=code,
        outcome="failed" if failed else "passed",
        level=level,
        p_value=shuffled.p_value,
        statistic=shuffled.statistic,
        rows=shuffled.rows,
        one_an_episode=apart,
        noticed=shuffled.noticed,
        figures=figures or {},
        picture=tuple(Mark("", low, high, float(many)) for low, high, many in bars),
    )


def steps_before(log: DecisionLog) -> list[IntArray]:
    """Returns two codes of the row before [N], a fine and a coarse one: 1 + pair, and 1 + action.

    At the first step of an episode both are 0. If the state determines the action of the row
    before, for example in a column, the action is that of the latest row for which it does not.
    """
    pair = shifted(log, log.pair + 1)
    action = shifted(log, log.action.astype(np.int64) + 1)
    earlier = action
    for _ in range(MOST_BACK):
        key = log.state * np.int64(earlier.max(initial=0) + 1) + earlier
        if np.unique(key).size > np.unique(log.state).size:
            return [pair, earlier]
        earlier = shifted(log, earlier)
    return [pair, action]


def shifted(log: DecisionLog, values: IntArray) -> IntArray:
    """Returns the value [N] of the row before; 0 at the first step of an episode."""
    before = np.roll(values, 1)
    before[log.episode_offsets[:-1]] = 0
    return before


def transitions(log: DecisionLog) -> IntArray:
    """Numbers the transition (pair and next state) of each row [N]."""
    return log.pair * np.int64(log.pairs.num_states) + log.next_state


def above_usual(log: DecisionLog) -> IntArray:
    """Returns 1 where a reward [N] is above the mean of its transition by more than rounding."""
    place = np.unique(transitions(log), return_inverse=True)[1]
    mean: FloatArray = np.bincount(place, log.reward) / np.bincount(place)
    room = 1e-9 * max(float(np.abs(log.reward).max()), 1e-300)
    return (log.reward > mean[place] + room).astype(np.int64)


def blocks(log: DecisionLog) -> list[IntArray]:
    """Returns the block of each row [N]: in halves of the episodes, and in shorter blocks.

    A log of one episode is cut by its rows.
    """
    place = run_owners(log.episode_offsets)
    size = log.num_episodes
    if size == 1:
        place = np.arange(log.num_steps)
        size = log.num_steps
    return [place * n // size for n in BLOCKS if n == BLOCKS[0] or LEAST_IN_BLOCK * n <= size]
