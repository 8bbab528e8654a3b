"""Worlds in which little can be gained: what an action does is shrunk towards what all of them do.

A random model as Garnets are, whose last state ends the episode and pays 1 for entering it, and a
random behavior policy. With effects at λ, the row of a pair is
(1 − λ) · (mean row of the state under π_b) + λ · (its own row), so that π_b is worth the same at
every λ, and at λ = 0 all policies are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import legacy_generator, share, whole_number
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy

STATES, ACTIONS, SUCCESSORS = 20, 4, 4
DISCOUNT = 0.95
HORIZON = 50
MOST = 1_000  # states and actions


def alike(seed: int = 1) -> Benchmark:
    """Builds a world of 20 states and 4 actions in which no action does anything."""
    world = draw_world(STATES, ACTIONS, SUCCESSORS, legacy_generator(seed))
    return little_effect("alike", 0.0, world)


def nearly_alike(
    seed: int = 1,
    effect: float = 0.05,
    states: int = STATES,
    actions: int = ACTIONS,
    successors: int = SUCCESSORS,
) -> Benchmark:
    """Builds a world in which actions do the share `effect` of what they do in a random model.

    The same seed and size give the same π_b, worth the same, and the same rows to shrink.
    """
    effect = share("effect", effect)
    states = whole_number("states", states, 3, MOST)
    actions = whole_number("actions", actions, 1, MOST)
    successors = whole_number("successors", successors, 1, states)
    world = draw_world(states, actions, successors, legacy_generator(seed))
    return little_effect("nearly-alike", effect, world)


class AlikeWorld(NamedTuple):
    """Random rows and a random behavior policy; the last state ends the episode."""

    rows: FloatArray  # [S, A, S]
    behavior: FloatArray  # [S, A]

    def shrunk(self, effect: float) -> FloatArray:
        """Returns the rows with effects at that share."""
        return shrunk(self.rows, self.behavior, effect)


def draw_world(
    states: int, actions: int, successors: int, rng: np.random.RandomState
) -> AlikeWorld:
    """Draws successors for each pair, with the gaps of sorted uniform numbers as chances.

    π_b is uniform on the simplex, state by state.
    """
    rows = np.zeros((states, actions, states))
    for state in range(states - 1):
        for action in range(actions):
            cuts = np.sort(rng.uniform(size=successors - 1))
            targets = rng.choice(states, successors, replace=False)
            rows[state, action, targets] = np.diff(cuts, prepend=0.0, append=1.0)
    return AlikeWorld(rows, rng.dirichlet(np.ones(actions), size=states))


def shrunk(rows: FloatArray, behavior: FloatArray, effect: float) -> FloatArray:
    """Returns (1 − λ) Σ_a π_b(a|s) P(·|s,a) + λ P(·|s,a) of rows P [S, A, S], λ = `effect`."""
    mean = np.einsum("sa,sat->st", behavior, rows)
    less: FloatArray = (1 - effect) * mean[:, np.newaxis] + effect * rows
    return less


def little_effect(name: str, effect: float, world: AlikeWorld) -> Benchmark:
    """Returns the benchmark of the world with effects at that share."""
    prize = np.zeros(len(world.rows))
    prize[-1] = 1.0
    rows = world.shrunk(effect)
    mdp = FiniteMDP.from_dense(rows, np.broadcast_to(prize, rows.shape), DISCOUNT)
    return Benchmark(
        name=name,
        mdp=mdp,
        behavior=Policy.from_dense(mdp, world.behavior),
        horizon=HORIZON,
        rewards="observed",
        value_bounds=(0.0, 1.0),  # the reward of 1 is paid once
    )
