"""Builds Random MDPs: Garnets, with a behavior policy of a given quality (Laroche et al. 2019).

A Garnet has 50 states, 4 actions and, for each pair, 4 random successors with random chances.
Episodes start in state 0 and end in a goal, which pays 1 for entering it. The goal is the state
that is hardest to reach within some 50 steps.
"""

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.environments.benchmark import Benchmark, LegacySeed, Portion, mdp_from_rows
from surestep.errors import InvalidParameter
from surestep.model import FiniteMDP, MDPBatch, Pairs, Policy
from surestep.planning import optimal, optimal_batch, q_values

STATES = 50
ACTIONS = 4
SUCCESSORS = 4
DISCOUNT = 0.95
HORIZON = 50
LEAST_OPTIMUM = DISCOUNT**HORIZON  # a goal must be worth more than this
FIRST_SHARPNESS = 2e6  # the inverse temperature at which the search for a softmax begins
FACTOR = 0.9  # each step of the search lowers sharpness or probabilities by this factor


def random_mdp(seed: LegacySeed = 1, ratio: Portion = 0.5) -> Benchmark:
    """Returns a Random MDP whose π_b has the share `ratio` of the optimum's gain over uniform.

    ρ(π_b) is just below ratio · (ρ(π*) − ρ(uniform)) + ρ(uniform). `seed` is a seed of NumPy's
    legacy generator: it gives the same MDP and policy as in the published code, where ratios are
    0.1, 0.2, …, 0.9, each with its own Garnets.
    """
    return draw_random_mdp("random-mdp", seed, ratio)


def random_mdp_easter_egg(seed: LegacySeed = 1, ratio: Portion = 0.5) -> Benchmark:
    """Returns a Random MDP with a second state that ends the episode and pays 1, unknown to π_b.

    The egg is placed after π_b was made, in any state but the start and the goal. Nadjahi et al.
    (2019) and Scholl et al. (2022) have this experiment.
    """
    return draw_random_mdp("random-mdp/easter-egg", seed, ratio, egg=1.0)


def random_mdp_bad_egg(seed: LegacySeed = 1, ratio: Portion = 0.5) -> Benchmark:
    """Returns a Random MDP with a second state that ends the episode and costs 1, unknown to π_b.

    The egg is placed as in `random-mdp/easter-egg`. Scholl et al. (2022) describe it, but their
    published code cannot run it.
    """
    return draw_random_mdp("random-mdp/bad-egg", seed, ratio, egg=-1.0)


def draw_random_mdp(name: str, seed: int, ratio: float, egg: float | None = None) -> Benchmark:
    """Returns a Random MDP; with `egg`, a second state ends the episode with this reward."""
    rng = np.random.RandomState(seed)
    garnet = draw_garnet(STATES * ACTIONS, STATES, SUCCESSORS, rng)
    goal = hardest_goal(garnet)
    prizes = {goal: 1.0}
    behavior = draw_behavior(garnet.mdp(prizes), ratio, rng)
    if egg is not None:
        prizes[int(rng.choice([state for state in range(1, STATES) if state != goal]))] = egg
    return Benchmark(
        name=name,
        mdp=garnet.mdp(prizes),
        behavior=behavior,
        horizon=HORIZON,
        value_bounds=(min(egg or 0.0, 0.0), 1.0),  # one of the rewards is paid, once
    )


class Garnet(NamedTuple):
    """Random dynamics, still without rewards and ends."""

    successor: arrays.IntArray  # [K, W]
    probability: arrays.FloatArray  # [K, W]

    def mdp(self, prizes: dict[int, float]) -> FiniteMDP:
        """Returns the model in which entering a state of `prizes` pays its prize and ends."""
        pairs = Pairs.full(STATES, ACTIONS)
        prize = np.zeros(STATES)
        prize[list(prizes)] = list(prizes.values())
        probability = np.where(
            np.isin(pairs.state, list(prizes))[:, np.newaxis], 0.0, self.probability
        )
        return mdp_from_rows(pairs, self.successor, probability, prize[self.successor], DISCOUNT)


def draw_garnet(pairs: int, states: int, successors: int, rng: np.random.RandomState) -> Garnet:
    """Draws chances that are, for each pair, the gaps between sorted uniform numbers in [0, 1]."""
    shape = (pairs, successors)
    successor, probability = np.empty(shape, np.int64), np.empty(shape)
    for pair in range(pairs):
        probability[pair] = np.diff(
            np.sort(rng.uniform(size=successors - 1)), prepend=0.0, append=1.0
        )
        successor[pair] = rng.choice(states, successors, replace=False)
    return Garnet(successor, probability)


def hardest_goal(garnet: Garnet) -> int:
    """Finds the goal of the smallest ρ(π*) > γ^50: hard to reach, but not too hard."""
    goals = range(1, STATES)
    worlds = MDPBatch.from_models([garnet.mdp({goal: 1.0}) for goal in goals])
    optima = arrays.weighted_rows(optimal_batch(worlds).value, worlds.initial)
    reachable = [goal for goal in goals if optima[goal - 1] > LEAST_OPTIMUM]
    if not reachable:
        raise InvalidParameter(
            "the Garnet of this seed has no state within reach of its start; expected another seed"
        )
    return min(reachable, key=lambda goal: float(optima[goal - 1]))


def draw_behavior(mdp: FiniteMDP, ratio: float, rng: np.random.RandomState) -> Policy:
    """Returns a policy that falls short of the optimum by the ratio, in some states by more.

    First the softmax of Q* is flattened until half of the intended loss is reached. Then the best
    action's probability is lowered in random states until all of it is reached.
    """
    plan = optimal(mdp)
    dense = mdp.dense()
    earned = mdp.pairs.dense(mdp.expected_reward)
    q = mdp.pairs.dense(q_values(mdp, plan.value))
    best = q.argmax(axis=1)

    def worth(table: arrays.FloatArray) -> float:
        """Returns ρ of a table [S, A] by one small solve, since it is called some hundred times."""
        chain = np.einsum("sa,sat->st", table, dense.P)
        values = np.linalg.solve(np.eye(STATES) - DISCOUNT * chain, (table * earned).sum(axis=1))
        return float(mdp.initial @ values)

    chance = worth(Policy.uniform(mdp).dense())
    possible = float(mdp.initial @ plan.value) - chance
    sharpness = FACTOR * FIRST_SHARPNESS
    table = Policy.softmax(mdp, q, 1 / sharpness).dense()
    while worth(table) > (ratio + 1) / 2 * possible + chance:
        sharpness *= FACTOR
        table = Policy.softmax(mdp, q, 1 / sharpness).dense()
    while worth(table) > ratio * possible + chance:
        state = rng.randint(STATES)
        table[state, best[state]] *= FACTOR
        table[state] /= table[state].sum()
    return Policy.from_dense(mdp, table)
