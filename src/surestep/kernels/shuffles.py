"""Shuffles of outcomes within groups, and how much the runs of a group tell about them.

Rows lie in runs (rows with the same past), runs in groups (rows whose outcomes are alike if the
past does not matter): group g owns the runs `groups[g]` … `groups[g+1] − 1`, run j the rows
`runs[j]` … `runs[j+1] − 1`. Draw 0 takes the outcomes as they are; every other draw shuffles them
within their groups first. With an effect ε > 0, each shuffled row is then replaced, with
probability ε, by what its run alone decides: so one learns which effects would be noticed.
"""

from __future__ import annotations

import math

import numpy as np

from surestep._arrays import AnyArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, tasks
from surestep.kernels._types import FloatsIn, FloatsOut, IndicesIn, IntsIn, Room, RoomSize
from surestep.kernels.random_streams import Words, start_stream, uniform

NOTHING = 1e-12  # of the squares of a group: what rounding leaves of none


def room_to_shuffle(groups: IntArray, runs: IntArray) -> RoomSize:
    """Returns the room that either kernel needs: for the rows of the largest group."""
    rows = int(np.diff(runs[groups]).max())
    return RoomSize(rows, 3 * rows)


@helper
def shuffle(values: AnyArray, rows: int, words: Words) -> Words:
    """Shuffles the first values in place (Fisher and Yates); returns where the stream goes on."""
    for i in range(rows - 1, 0, -1):
        u, words = uniform(words)
        j = int(u * (i + 1))
        values[i], values[j] = values[j], values[i]
    return words


@tasks(threads_from=SWEEP_THREADS)
def shuffled_information(
    first: int,
    last: int,
    room: Room,
    seed: int,
    effect: float,
    groups: IntsIn,
    runs: IntsIn,
    outcome: IndicesIn,
    n_log_n: FloatsIn,
    information: FloatsOut,
) -> None:
    """Σ_j Σ_y n_jy ln n_jy − Σ_g Σ_y n_gy ln n_gy over runs j, groups g and outcomes y, each draw.

    That is, but for what no shuffle changes, the number of rows times the conditional mutual
    information of run and outcome given the group. `outcome` has numbers from 0 on in each group,
    and `n_log_n` is long enough for the largest group.
    """
    size = room.ints.size // 3
    shuffled, in_run, in_group = room.ints[:size], room.ints[size : 2 * size], room.ints[2 * size :]
    for i in range(size):
        in_run[i], in_group[i] = 0, 0
    for draw in range(first, last):
        total = 0.0
        for g in range(groups.size - 1):
            begin = runs[groups[g]]
            rows = runs[groups[g + 1]] - begin
            words = start_stream(seed, draw, g)
            for i in range(rows):
                shuffled[i] = outcome[begin + i]
            if draw > 0:
                words = shuffle(shuffled, rows, words)
            for j in range(groups[g], groups[g + 1]):
                low, high = runs[j] - begin, runs[j + 1] - begin
                if effect > 0.0:
                    u, words = uniform(words)
                    decided = outcome[begin + int(u * rows)]
                    for i in range(low, high):
                        u, words = uniform(words)
                        if u < effect:
                            shuffled[i] = decided
                for i in range(low, high):
                    in_run[shuffled[i]] += 1
                    in_group[shuffled[i]] += 1
                for i in range(low, high):
                    total += n_log_n[in_run[shuffled[i]]]
                    in_run[shuffled[i]] = 0
            for i in range(rows):
                total -= n_log_n[in_group[shuffled[i]]]
                in_group[shuffled[i]] = 0
        information[draw] = total


@tasks(threads_from=SWEEP_THREADS)
def shuffled_spread(
    first: int,
    last: int,
    room: Room,
    seed: int,
    effect: float,
    groups: IntsIn,
    runs: IntsIn,
    outcome: FloatsIn,
    spread: FloatsOut,
) -> None:
    """Σ_g n_g · (between the means of its runs) / (all) of the squares in a group, each draw.

    An effect here is a shift of every run, up or down by ε standard deviations of its group.
    """
    shuffled = room.floats
    for draw in range(first, last):
        total = 0.0
        for g in range(groups.size - 1):
            begin = runs[groups[g]]
            rows = runs[groups[g + 1]] - begin
            words = start_stream(seed, draw, g)
            mean = 0.0
            for i in range(rows):
                shuffled[i] = outcome[begin + i]
                mean += shuffled[i] / rows
            squares = 0.0
            for i in range(rows):
                shuffled[i] -= mean
                squares += shuffled[i] * shuffled[i]
            if draw > 0:
                words = shuffle(shuffled, rows, words)
            shift, between, everything, whole = 0.0, 0.0, 0.0, 0.0
            for j in range(groups[g], groups[g + 1]):
                low, high = runs[j] - begin, runs[j + 1] - begin
                if effect > 0.0:
                    u, words = uniform(words)
                    shift = effect * math.sqrt(squares / rows) * (1.0 if u < 0.5 else -1.0)
                sum_of_run = 0.0
                for i in range(low, high):
                    value = shuffled[i] + shift
                    sum_of_run += value
                    everything += value * value
                whole += sum_of_run
                between += sum_of_run * sum_of_run / (high - low)
            middle = whole * whole / rows
            if everything - middle > NOTHING * squares:  # shifts may have made all values the same
                total += rows * (between - middle) / (everything - middle)
        spread[draw] = total
