"""Counts of many trajectories at once, without simulating any of them.

Trajectories of a Markov policy are exchangeable, so all that matters at each time is how many of
them are in each state. Their number is split over actions and successors by multinomial draws; the
cost is per time step and pair, not per trajectory.
"""

from __future__ import annotations

import numpy as np

from surestep.kernels._compile import helper, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IntsIn, IntsOut
from surestep.kernels.records import Process

FEW = 5  # up to here single draws are faster than a binomial one


@kernel()
def shares_of_rest(offsets: IntsIn, probability: FloatsIn, share: FloatsOut) -> None:
    """p_i / (p_i + … + p_last) within each run: the chance of an element, none before it drawn.

    The last element with any probability has 1, so that nobody is lost.
    """
    for run in range(offsets.size - 1):
        rest = 0.0
        for back in range(offsets[run + 1] - offsets[run]):
            i = offsets[run + 1] - 1 - back
            rest += probability[i]
            share[i] = probability[i] / rest if probability[i] > 0.0 else 0.0


@helper
def split_off(rng: np.random.Generator, number: int, share: float) -> int:
    """Draws how many of `number` go to the next element, each with probability `share`."""
    if share >= 1.0:
        return number
    if share <= 0.0:
        return 0
    if number > FEW:
        return rng.binomial(number, share)
    going = 0
    for _ in range(number):
        if rng.random() < share:
            going += 1
    return going


@kernel()
def population_counts(
    rng: np.random.Generator,
    shares: Process,
    episodes: int,
    horizon: int,
    times: IntsOut,
    starts: IntsOut,
) -> None:
    """Counts how often `episodes` trajectories of at most `horizon` steps take each transition.

    Into `times` [T] and `starts` [S], which are 0 before. The chances are `shares_of_rest`.
    """
    pair_offsets, action_share, offsets, successor, successor_share, over, initial_share = shares
    num_states = over.size
    here, there = np.zeros(num_states, np.int64), np.zeros(num_states, np.int64)
    occupied, reached = np.empty(num_states, np.int64), np.empty(num_states, np.int64)
    num_occupied, left = 0, episodes
    for s in range(num_states):
        starting = split_off(rng, left, initial_share[s])
        if starting > 0:
            starts[s] = starting
            here[s] = starting
            occupied[num_occupied] = s
            num_occupied += 1
            left -= starting
        if left == 0:
            break
    for _ in range(horizon):
        num_reached = 0
        for i in range(num_occupied):
            s = occupied[i]
            undecided = here[s]
            here[s] = 0
            k = pair_offsets[s]
            while undecided > 0:
                moving = split_off(rng, undecided, action_share[k])
                undecided -= moving
                t = offsets[k]
                while moving > 0:
                    taking = split_off(rng, moving, successor_share[t])
                    if taking > 0:
                        moving -= taking
                        times[t] += taking
                        target = successor[t]
                        if not over[target]:
                            if there[target] == 0:
                                reached[num_reached] = target
                                num_reached += 1
                            there[target] += taking
                    t += 1
                k += 1
        here, there = there, here
        occupied, reached = reached, occupied
        num_occupied = num_reached
        if num_occupied == 0:
            break
