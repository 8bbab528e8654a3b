"""Trajectories of two policies, put together from logged transitions that are read in their order.

The visits of pair k are a stack: entry j is what came of the j-th visit. In a round both policies,
or one of them, are rolled out from one start; each reads the entries that no earlier round has
read, in their order, and both may read the same ones. For the j-th visit of a state both draw their
actions with the same number, which makes them agree as often as they can.

Numbers depend on (seed, purpose, run, round, state, visit) alone, so none has to be kept.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep.kernels._compile import (
    BOOLS_IN,
    F64,
    FLOATS_IN,
    I64,
    INTS_IN,
    INTS_OUT,
    TABLE_IN,
    TABLE_OUT,
    helper,
    kernel,
    tasks,
)
from surestep.kernels.random_streams import BITS_12, GOLDEN, mixed

BOTH, OURS, THEIRS = 0, 1, 2  # who is rolled out
RUN_THREADS = 2_000  # entries of the stacks from which on runs are shared out among threads


@helper
def unit(word: np.uint64) -> float:
    """The word as a number more than 0 and less than 1."""
    return (np.float64(word >> BITS_12) + 0.5) * 2.0**-52


@helper
def joined(word: np.uint64, number: int) -> np.uint64:
    """A word that depends on another one and a number."""
    return mixed((word ^ np.uint64(number)) + GOLDEN)


@helper
def first_above(chances: FloatArray, begin: int, end: int, number: float) -> int:
    """The first place from `begin` on whose cumulated chance is above the number."""
    while begin < end - 1:
        middle = (begin + end - 1) // 2
        if number < chances[middle]:
            end = middle + 1
        else:
            begin = middle + 1
    return begin


@kernel(INTS_IN, FLOATS_IN, FLOATS_IN, TABLE_OUT)
def coupled_chances(
    pair_offsets: IntArray, ours: FloatArray, theirs: FloatArray, chances: FloatArray
) -> None:
    """Cumulated chances of both policies' actions, into `chances` [2, 2K], 2·A places a state.

    First comes what both have in common, min(π_I, π_b), then what each has of its own: one number
    gives both the same action with the largest chance that there is.
    """
    for s in range(pair_offsets.size - 1):
        begin, end = pair_offsets[s], pair_offsets[s + 1]
        for side in range(2):
            total = 0.0
            for place in range(2 * (end - begin)):
                k = begin + place % (end - begin)
                shared = min(ours[k], theirs[k])
                own = ours[k] if side == 0 else theirs[k]
                total += shared if place < end - begin else own - shared
                chances[side, 2 * begin + place] = total
            for place in range(2 * begin, 2 * end):
                chances[side, place] /= total


@tasks(
    I64, I64, INTS_IN, INTS_IN, INTS_IN, FLOATS_IN, INTS_IN, BOOLS_IN, INTS_IN, FLOATS_IN, INTS_IN,
    TABLE_IN, BOOLS_IN, BOOLS_IN, TABLE_IN, TABLE_IN, TABLE_IN, F64, FLOATS_IN,
    TABLE_OUT, INTS_OUT, INTS_OUT,
    threads_from=RUN_THREADS,
)  # fmt: skip
def stitched_rounds(
    first: int,
    last: int,
    seed: int,
    purpose: int,
    sides: IntArray,
    horizons: IntArray,
    offsets: IntArray,
    reward: FloatArray,
    successor: IntArray,
    ended: BoolArray,
    starts: IntArray,
    start_chances: FloatArray,
    pair_offsets: IntArray,
    chances: FloatArray,
    readable: BoolArray,
    over: BoolArray,
    at_end: FloatArray,
    at_pair: FloatArray,
    at_state: FloatArray,
    discount: float,
    limits: FloatArray,
    differences: FloatArray,
    complete: IntArray,
    cuts: IntArray,
) -> None:
    """G_I − G_b of each round of the tasks first, …, last − 1, into `differences` [tasks, rounds].

    There are several ways, each with as many runs, one after the other: the way w rolls out who
    `sides`[w] says, BOTH or one policy alone (OURS gives G_I, THEIRS −G_b), and cuts rollouts after
    `horizons`[w] steps. Runs of the same number have the same random numbers, whatever the way.

    The entries of pair k are `offsets[k]` … `offsets[k+1] − 1` of `reward`, `successor` and
    `ended`. Round i starts in `starts[i]`, or, where there are `start_chances` [S], in a state
    drawn by these cumulated ones. `chances` [2, 2K] are those of `coupled_chances`.

    A rollout ends with `at_end` [2, S] where the process is over. It is cut where it takes a pair
    that is not `readable` [K], which is worth `at_pair` [2, K], or after its horizon, which is
    worth `at_state` [2, S]. What it then has in all is at least `limits[0]` for π_I, at most
    `limits[1]` for π_b. `cuts` [tasks] counts cut rollouts.

    Where the log lacks an entry, the run is over: `complete` [tasks] says how many whole rounds
    there are.
    """
    num_pairs, num_states = offsets.size - 1, over.size
    rounds, runs = differences.shape[1], differences.shape[0] // sides.size
    base = np.zeros(num_pairs, np.int64)
    reads = np.zeros((2, num_pairs), np.int64)
    visits = np.zeros(num_states, np.int64)
    read_pairs = np.empty(num_pairs, np.int64)
    seen_states = np.empty(num_states, np.int64)
    for task in range(first, last):
        who, horizon, run = sides[task // runs], horizons[task // runs], task % runs
        for k in range(num_pairs):
            base[k] = 0
            reads[0, k] = 0
            reads[1, k] = 0
        run_word = joined(joined(mixed(np.uint64(seed) + GOLDEN), purpose), run)
        complete[task], cuts[task] = 0, 0
        missing = False
        for i in range(rounds):
            word = joined(run_word, i)
            if start_chances.size > 0:
                begin = first_above(start_chances, 0, num_states, unit(joined(word, num_states)))
            elif i < starts.size:
                begin = starts[i]
            else:
                break
            num_read = 0
            earned = 0.0
            cut_here = 0
            for side in range(who == THEIRS, 2 - (who == OURS)):
                s, weight, total, step, num_seen = begin, 1.0, 0.0, 0, 0
                while True:
                    if over[s]:
                        total += weight * at_end[side, s]
                        break
                    if step == horizon:
                        total += weight * at_state[side, s]
                        total = max(total, limits[0]) if side == 0 else min(total, limits[1])
                        cut_here += 1
                        break
                    if visits[s] == 0:
                        seen_states[num_seen] = s
                        num_seen += 1
                    number = unit(joined(joined(word, s), visits[s]))
                    visits[s] += 1
                    lowest, actions = pair_offsets[s], pair_offsets[s + 1] - pair_offsets[s]
                    place = first_above(chances[side], 2 * lowest, 2 * (lowest + actions), number)
                    k = lowest + (place - 2 * lowest) % actions
                    if not readable[k]:
                        total += weight * at_pair[side, k]
                        total = max(total, limits[0]) if side == 0 else min(total, limits[1])
                        cut_here += 1
                        break
                    row = offsets[k] + base[k] + reads[side, k]
                    if row >= offsets[k + 1]:
                        missing = True
                        break
                    if reads[0, k] == 0 and reads[1, k] == 0:
                        read_pairs[num_read] = k
                        num_read += 1
                    reads[side, k] += 1
                    total += weight * reward[row]
                    weight *= discount
                    step += 1
                    s = successor[row]
                    if ended[row]:
                        total += weight * at_end[side, s]
                        break
                for j in range(num_seen):
                    visits[seen_states[j]] = 0
                if missing:
                    break
                earned += total if side == 0 else -total
            if missing:
                break
            for j in range(num_read):
                k = read_pairs[j]
                base[k] += max(reads[0, k], reads[1, k])
                reads[0, k] = 0
                reads[1, k] = 0
            differences[task, i] = earned
            complete[task] = i + 1
            cuts[task] += cut_here


@kernel(TABLE_IN, INTS_IN, F64, F64, F64, I64, returns=I64)
def enough_series_reach(
    series: FloatArray, complete: IntArray, stake: float, mean: float, goal: float, one_of: int
) -> int:
    """1 where, for some t, one of `one_of` of the first t series [R, M] reaches the goal, else 0.

    What has to reach it is the capital Π (1 + stake (x − mean)), at any time; only the first
    `complete` [R] values are there. A capital too small for a double stays 0.
    """
    reached = 0
    for run in range(complete.size):
        capital = 1.0
        for i in range(complete[run]):
            capital *= 1.0 + stake * (series[run, i] - mean)
            if capital >= goal:
                reached += 1
                break
        if reached * one_of >= run + 1:
            return 1
    return 0
