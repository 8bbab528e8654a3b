"""Computes running sums, products and returns along runs of an array, and simulates episodes.

Trajectories of a Markov policy are exchangeable, so only the number of them in each state matters
at each time. To count many at once, their number is split over actions and successors by
multinomial draws; the cost is per time step and pair, not per trajectory.
"""

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.kernels._compile import helper, kernel
from surestep.kernels.random_streams import first_above
from surestep.kernels.records import Process
from surestep.kernels.types import FloatsIn, FloatsOut, IntsIn, IntsOut

FEW = 5  # up to this number, single draws are faster than a binomial one


@kernel()
def running_sums(offsets: IntsIn, values: FloatsIn) -> FloatsOut:
    """Returns the sum of each run up to and including each of its elements."""
    sums = np.empty(values.size)
    for run in range(offsets.size - 1):
        total = 0.0
        for i in range(offsets[run], offsets[run + 1]):
            total += values[i]
            sums[i] = total
    return sums


@kernel()
def running_products(offsets: IntsIn, values: FloatsIn) -> FloatsOut:
    """Returns the product of each run up to and including each of its elements."""
    products = np.empty(values.size)
    for run in range(offsets.size - 1):
        total = 1.0
        for i in range(offsets[run], offsets[run + 1]):
            total *= values[i]
            products[i] = total
    return products


@helper
def element_at(offsets: IntArray, cumulative: FloatArray, run: int, uniform: float) -> int:
    """Returns the element of the run at which its running sums pass `uniform` in [0, 1).

    It is the first element whose running sum exceeds u · (sum of the run). So an element of
    probability 0 is never drawn, and the run need not sum to exactly 1.
    """
    end = offsets[run + 1]
    return first_above(cumulative, offsets[run], end, uniform * cumulative[end - 1])


@kernel()
def simulate(
    rng: np.random.Generator, sums: Process, horizon: int, lengths: IntsOut, taken: IntsOut
) -> int:
    """Draws episodes as long as `taken` has room for `horizon` more steps; returns their number.

    The chances are running sums. The transitions of the episodes go into `taken`, their numbers of
    steps into `lengths`.
    """
    pair_offsets, policy, offsets, successor, probability, over, initial = sums
    whole = np.array([0, initial.size])
    used = 0
    for episode in range(lengths.size):
        if taken.size - used < horizon:
            return episode
        state = element_at(whole, initial, 0, rng.random())
        first = used
        while used - first < horizon and not over[state]:
            transition = element_at(
                offsets,
                probability,
                element_at(pair_offsets, policy, state, rng.random()),
                rng.random(),
            )
            taken[used] = transition
            used += 1
            state = successor[transition]
        lengths[episode] = used - first
    return lengths.size


@kernel()
def discounted_returns(episode_offsets: IntsIn, reward: FloatsIn, discount: float) -> FloatsOut:
    """Returns G_t = r_t + γ G_{t+1} of every step [N], within each episode."""
    returns = np.empty(reward.size)
    for episode in range(episode_offsets.size - 1):
        total = 0.0
        for back in range(episode_offsets[episode + 1] - episode_offsets[episode]):
            step = episode_offsets[episode + 1] - 1 - back
            total = reward[step] + discount * total
            returns[step] = total
    return returns


def shares_of_rest(offsets: IntArray, probability: FloatArray) -> FloatArray:
    """Returns p_i / (p_i + … + p_last) in each run: an element's chance if none before is drawn.

    The last element of positive probability has the share 1, so that no trajectory is lost.
    """
    rest = discounted_returns(offsets, probability, 1.0)
    share: FloatArray = np.zeros(rest.size)
    np.divide(probability, rest, out=share, where=probability > 0.0)
    return share


@helper
def split_off(rng: np.random.Generator, number: int, share: float) -> int:
    """Draws the number that goes to the next element, out of `number`, each with chance `share`."""
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
    """Counts the transitions of `episodes` trajectories of at most `horizon` steps.

    Adds to `times` [T] and `starts` [S], which must be 0. The chances are `shares_of_rest`.
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
