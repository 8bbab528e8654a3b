"""Draws for permutation tests on logs: shuffles outcomes within groups, or the steps of a log.

Rows lie in runs (rows with the same past), runs in groups (rows whose outcomes are alike if the
past does not matter): group g owns the runs `groups[g]` … `groups[g+1] − 1`, run j the rows
`runs[j]` … `runs[j+1] − 1`. Draw 0 takes the outcomes as they are; every other draw shuffles them
within their groups first. With an effect ε > 0, each shuffled outcome is then replaced, with
probability ε, by one outcome drawn for its run. These draws show which effects the test notices.

**Trails** are the steps of a log in another order, with the returns of the new episodes. Episodes
one after the other are a closed trail: a root leads to the first state of each episode, every row
is an exit of its state, and the end of an episode leads back to the root. Permute the starts, and
in every state all exits but the last one, and walk from the root on, taking the next exit of each
state: that always uses up all exits (the BEST theorem; Kandel, Matias, Unger and Winkler 1996), and
every order gives another trail. So uniform permutations draw uniformly from all trails with the
same exits and the same last ones.
"""

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import AnyArray, IntArray
from surestep.kernels._compile import SWEEP_THREADS, helper, tasks
from surestep.kernels.random_streams import Words, start_stream, uniform
from surestep.kernels.records import copy_into, fill
from surestep.kernels.types import (
    FloatsIn,
    FloatsOut,
    IndicesIn,
    IntsIn,
    IntsOut,
    Room,
    RoomSize,
    TableOut,
)

NOTHING = 1e-12  # a spread below this part of the squares of a group is rounding
WALK_THREADS = 2_000  # rows from which on several threads share the walks
GONE = 1e-18  # smaller weights count as 0, before they are too small for a double
NO_SPREAD = 1e-9  # a variance below this part of the squares is rounding


def room_to_shuffle(groups: IntArray, runs: IntArray) -> RoomSize:
    """Returns the room that both shuffling kernels need: for the rows of the largest group."""
    rows = int(np.diff(runs[groups]).max())
    return RoomSize(rows, 3 * rows)


@helper
def shuffle(values: AnyArray, rows: int, words: Words) -> Words:
    """Shuffles the first `rows` values in place (Fisher and Yates); returns the stream's words."""
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
    """Writes Σ_jy n_jy ln n_jy − Σ_gy n_gy ln n_gy of each draw: runs j, groups g, outcomes y.

    Up to a constant that no shuffle changes, this is the number of rows times the conditional
    mutual information of run and outcome given the group. `outcome` has numbers from 0 on in each
    group, and `n_log_n` is long enough for the largest group.
    """
    size = room.ints.size // 3
    shuffled, in_run, in_group = room.ints[:size], room.ints[size : 2 * size], room.ints[2 * size :]
    fill(room.ints[size:], 0)
    for draw in range(first, last):
        total = 0.0
        for g in range(groups.size - 1):
            begin = runs[groups[g]]
            rows = runs[groups[g + 1]] - begin
            words = start_stream(seed, draw, g)
            copy_into(shuffled[:rows], outcome[begin : begin + rows])
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
    """Writes Σ_g n_g · (squares between the runs of g) / (all squares of g), for each draw.

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


class Trail(NamedTuple):
    """The exits of all states that have any, state by state, each in the order of the log."""

    starts: IntsIn  # [E] the first state of each episode
    offsets: IntsIn  # [S+1] into exits
    target: IntsIn  # [N] the state an exit leads to; −1: the episode ends
    excess: FloatsIn  # [N] δ = r + γV(s') − V(s), the reward of a step beyond its expectation
    variance: FloatsIn  # [S] of the excess
    place: IntsIn  # [S] the number of a state among the tested states; −1: it is not tested


def room_to_walk(trail: Trail, looked_at: int) -> RoomSize:
    """Returns the room that a walk needs if `looked_at` states are tested."""
    rows, states, episodes = trail.target.size, trail.variance.size, trail.starts.size
    return RoomSize(rows + looked_at * (3 + states), 2 * rows + episodes + states + 2 * looked_at)


@helper
def reorder(trail: Trail, exits: IntsOut, starts: IntsOut, words: Words) -> None:
    """Shuffles the starts, and in every state all exits but the last one."""
    words = shuffle(starts, starts.size, words)
    for s in range(trail.variance.size):
        begin, end = trail.offsets[s], trail.offsets[s + 1]
        words = shuffle(exits[begin:end], end - begin - 1, words)


@tasks(threads_from=WALK_THREADS, on_gpu=False)  # few long walks, each over all of the memory
def walk_trails(
    first: int,
    last: int,
    room: Room,
    seed: int,
    discount: float,
    trail: Trail,
    excess: TableOut,
    deviation: TableOut,
) -> None:
    """Writes the mean return after the first visit, less V, and its deviation [draws, tested].

    From a first visit at time t₀ on, an episode earns V + Σ_t w_t δ_t with w_t = γ^(t − t₀), and V
    of the state in which its recording stopped. δ adds up to 0 in every state. If its order carries
    no information, the mean over n episodes has the variance Σ_s σ²_s (Σ w² − (Σ w)² / n_s) / n²,
    with sums over the n_s rows of s. Draw 0 is the log as it is, every other draw a new trail.
    """
    states, rows, episodes = trail.variance.size, trail.target.size, trail.starts.size
    many = excess.shape[1]
    exits, target, ints = room.ints[:rows], room.ints[rows : 2 * rows], room.ints[2 * rows :]
    starts, following = ints[:episodes], ints[episodes : episodes + states]
    visits, latest = ints[episodes + states :][:many], ints[episodes + states + many :]
    earned, floats = room.floats[:rows], room.floats[rows:]
    weight, total, squares = floats[:many], floats[many : 2 * many], floats[2 * many : 3 * many]
    sums = floats[3 * many :]
    for draw in range(first, last):
        for i in range(rows):
            exits[i] = i
        copy_into(starts, trail.starts)
        if draw > 0:
            reorder(trail, exits, starts, start_stream(seed, draw, 0))
        for i in range(rows):  # without these copies, each step of a walk would wait for memory
            target[i], earned[i] = trail.target[exits[i]], trail.excess[exits[i]]
        copy_into(following, trail.offsets)
        fill(sums, 0.0)
        for k in range(many):
            total[k], squares[k], visits[k], latest[k] = 0.0, 0.0, 0, -1
        for e in range(episodes):
            s = starts[e]
            fill(weight, 0.0)
            while s >= 0:
                k = trail.place[s]
                if k >= 0 and latest[k] < e:
                    weight[k], latest[k] = 1.0, e
                    visits[k] += 1
                step = following[s]
                following[s] += 1
                delta, variance, own = earned[step], trail.variance[s], s * many
                for k in range(many):
                    w = weight[k]
                    total[k] += w * delta
                    squares[k] += w * w * variance
                    sums[own + k] += w
                    w *= discount
                    weight[k] = w if w > GONE else 0.0
                s = target[step]
        for k in range(many):
            spread = squares[k]
            for s in range(states):
                sum_of_state = sums[s * many + k]
                exits_of_state = trail.offsets[s + 1] - trail.offsets[s]
                spread -= trail.variance[s] * sum_of_state * sum_of_state / exits_of_state
            excess[draw, k] = total[k] / visits[k]
            deviation[draw, k] = 0.0
            if spread > NO_SPREAD * squares[k]:
                deviation[draw, k] = math.sqrt(spread) / visits[k]
