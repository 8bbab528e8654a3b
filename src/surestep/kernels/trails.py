"""Trails: the same steps in another order, and what the episodes then earn.

Episodes one after the other are a closed trail: a root leads to the first state of each of them,
every row is an exit of its state, and the end of an episode leads back to the root. Permute the
starts, and in every state all exits but the last one, and walk from the root on, taking the next
exit of each state: that always uses up all exits (the BEST theorem; Kandel, Matias, Unger and
Winkler 1996), and every order gives another trail. So uniform permutations draw uniformly from all
trails with the same exits and the same last ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from surestep.kernels._compile import helper, tasks
from surestep.kernels._types import FloatsIn, IntsIn, IntsOut, Room, RoomSize, TableOut
from surestep.kernels.random_streams import Words, start_stream
from surestep.kernels.shuffles import shuffle

WALK_THREADS = 2_000  # rows from which on walks of them are shared out
GONE = 1e-18  # the weight that is none any more, before it is too small for a double
NOTHING = 1e-9  # of squares: what rounding leaves of none


class Trail(NamedTuple):
    """The exits of all states that have any: those of a state together, in the order of the log."""

    starts: IntsIn  # [E] the first state of each episode
    offsets: IntsIn  # [S+1] into exits
    target: IntsIn  # [N] the state an exit leads to; −1: the episode ends
    excess: FloatsIn  # [N] δ = r + γV(s') − V(s), what a step earned beyond what was expected
    variance: FloatsIn  # [S] of the excess
    place: IntsIn  # [S] which of the states that are looked at this is; −1: none


def room_to_walk(trail: Trail, looked_at: int) -> RoomSize:
    """Returns the room that a walk needs."""
    rows, states, episodes = trail.target.size, trail.variance.size, trail.starts.size
    return RoomSize(rows + looked_at * (3 + states), 2 * rows + episodes + states + 2 * looked_at)


@helper
def reorder(trail: Trail, exits: IntsOut, starts: IntsOut, words: Words) -> None:
    """Shuffles the starts, and of every state all exits but the last one."""
    words = shuffle(starts, starts.size, words)
    for s in range(trail.variance.size):
        begin, end = trail.offsets[s], trail.offsets[s + 1]
        words = shuffle(exits[begin:end], end - begin - 1, words)


@tasks(threads_from=WALK_THREADS, on_gpu=False)  # some long walks, each over all of the memory
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
    """Mean return from the first visit on, less V, and its standard deviation [draws, looked at].

    From a first visit at time t₀ on an episode earns V + Σ_t w_t δ_t with w_t = γ^(t − t₀), and V
    of where its recording stopped. δ adds up to 0 in every state. If its order says nothing, the
    mean over n episodes has the variance Σ_s σ²_s (Σ w² − (Σ w)² / n_s) / n², with sums over the
    n_s rows of s. Draw 0 is the log as it is, every other one a trail drawn anew.
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
        for e in range(episodes):
            starts[e] = trail.starts[e]
        if draw > 0:
            reorder(trail, exits, starts, start_stream(seed, draw, 0))
        for i in range(rows):  # side by side, or a walk would wait for memory at every step
            target[i], earned[i] = trail.target[exits[i]], trail.excess[exits[i]]
        for s in range(states):
            following[s] = trail.offsets[s]
        for i in range(states * many):
            sums[i] = 0.0
        for k in range(many):
            total[k], squares[k], visits[k], latest[k] = 0.0, 0.0, 0, -1
        for e in range(episodes):
            s = starts[e]
            for k in range(many):
                weight[k] = 0.0
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
            if spread > NOTHING * squares[k]:
                deviation[draw, k] = math.sqrt(spread) / visits[k]
