"""Small worlds with names for everything, the logs they leave, and what a plain count finds there.

A state is two columns, place and level; labels rise like numbers, and the last state, in which
episodes end, comes last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from support.strategies import random_policy
from surestep import DecisionLog, FiniteMDP, Policy, sample_log

COLUMNS = {"state": ("place", "level"), "action": "move"}
NEXT = ("next_place", "next_level")
FLAGS = ("terminated", "truncated")
NAMES = ("episode", "step", "place", "level", "move", "reward", *NEXT, *FLAGS)
DERIVED = tuple(name for name in NAMES if name not in NEXT)


def place_of(state):
    return f"p{state // 2}", f"{state % 2}"


@dataclass(frozen=True)
class World:
    """A model, the policy that acts in it, and a log of both."""

    mdp: FiniteMDP
    behavior: Policy
    log: DecisionLog

    @property
    def rows(self):
        """The log as plain rows."""
        rows, log = [], self.log
        pair = self.mdp.pairs.find(log.state, log.action)
        for e in range(log.num_episodes):
            for step, i in enumerate(range(*log.episode_offsets[e : e + 2])):
                here, there = place_of(log.state[i]), place_of(log.next_state[i])
                rows.append(
                    {
                        "episode": e,
                        "step": step,
                        "place": here[0],
                        "level": here[1],
                        "move": f"m{log.action[i]}",
                        "reward": float(log.reward[i]),
                        "next_place": there[0],
                        "next_level": there[1],
                        "terminated": bool(log.terminated[i]),
                        "truncated": bool(log.truncated[i]),
                        "behavior_prob": float(self.behavior.probability[pair[i]]),
                    }
                )
        return rows

    @property
    def table(self):
        """The behavior policy as plain rows, one a pair that can be chosen."""
        pairs, end = self.mdp.pairs, self.mdp.num_states - 1
        return [
            {
                "place": place_of(s)[0],
                "level": place_of(s)[1],
                "move": f"m{a}",
                "probability": float(p),
            }
            for s, a, p in zip(pairs.state, pairs.action, self.behavior.probability, strict=True)
            if s < end
        ]


def world(seed, states=4, actions=3, episodes=25, horizon=5):
    """A world whose values do not tie, with ragged actions and some that are never taken."""
    rng = np.random.default_rng(seed)
    enabled = rng.random((states, actions)) < 0.8
    enabled[~enabled.any(axis=1), 0] = True
    enabled[-1] = np.arange(actions) == 0
    P = rng.dirichlet(np.full(states, 0.5), (states, actions)) * enabled[..., None]
    P[-1] = 0.0
    R = np.round(rng.normal(size=P.shape), 3)
    start = np.append(np.full(states - 1, 1 / (states - 1)), 0.0)
    mdp = FiniteMDP.from_dense(P, R, 0.9, start, enabled)
    behavior = random_policy(mdp.pairs, rng)
    return World(mdp, behavior, sample_log(mdp, behavior, episodes, horizon, rng))


WORLDS = st.builds(
    world, st.integers(0, 10**6), st.integers(3, 5), st.integers(1, 3), st.integers(1, 40)
)
# Worlds of which the log shows the end, and whose table has all actions: nothing is unknown.
ENDING = WORLDS.filter(
    lambda each: (
        each.log.terminated.any()
        and np.unique(each.mdp.pairs.action).size == each.mdp.pairs.num_actions
    )
)
