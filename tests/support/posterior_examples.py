"""Small problems that tests of the posterior share."""

from dataclasses import replace

import numpy as np

from support.problems import uniform_problem
from surestep import Counts, Policy


def example(**changes):
    """Three states and an end; one pair never visited, one seen once."""
    table = np.zeros((4, 2, 4), int)
    table[0] = [[3, 9, 0, 1], [0, 0, 7, 0]]
    table[1] = [[0, 0, 1, 0], [4, 0, 0, 12]]
    table[2] = [[0, 20, 2, 5], [0, 0, 0, 0]]
    rewards = np.array([[0.0, 1.0], [0.5, -1.0], [2.0, 0.0], [0.0, 0.0]])
    counts = Counts.from_dense(
        table, rewards=rewards, starts=[6, 3, 0, 0], terminal=[False, False, False, True]
    )
    problem = uniform_problem(counts, 0.8, (-5.0, 10.0))
    policy = Policy.from_dense(counts, [[0.2, 0.8], [1, 0], [0.7, 0.3], [0.5, 0.5]])
    return replace(problem, **changes), policy


def with_sums(problem, per):
    """The example with rewards that were observed only: the same each time, or in two sizes."""
    counts = problem.counts
    times = dense_times(counts)
    observed = times.sum(axis=2) if per == "pair" else times
    sizes = np.random.default_rng(4).random(observed.shape)
    seen = Counts.from_dense(
        times, reward_sums=sizes * observed, starts=counts.starts, terminal=counts.terminal
    )
    return replace(problem, counts=seen)


def dense_times(counts):
    """#_D(s,a,s') as a table [S, A, S]."""
    pairs = counts.pairs
    table = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states), int)
    pair = np.repeat(np.arange(pairs.num_pairs), np.diff(counts.offsets))
    table[pairs.state[pair], pairs.action[pair], counts.successor] = counts.times
    return table


BOUNDS = {"reward_low": -0.5, "reward_high": 1.5}
