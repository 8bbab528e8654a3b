"""Noisy rewards: a world of little effect in which entering a state pays a random amount.

Entering state s pays μ(s) · X, with X of mean 1, drawn anew in every step by one of three laws.
μ is 1 at the end of the episode, and at most 0.1 on the way there.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray
from surestep.environments.alike import ACTIONS, DISCOUNT, HORIZON, STATES, SUCCESSORS, draw_world
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import legacy_generator, share
from surestep.environments.merged import Merged
from surestep.errors import InvalidParameter
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy

MOST_ON_THE_WAY = 0.1
TAIL = 1.5  # P(X ≥ x) falls like x^−1.5, so that without the cut X had no variance
DOUBLINGS = 10


def law_of(values: FloatArray, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Returns the values scaled to mean 1, and their chances scaled to sum 1."""
    chances = chances / chances.sum()
    return values / (values @ chances), chances


# law → the values of X, and their chances
LAWS = {
    "two-point": law_of(np.array([0.0, 2.0]), np.array([0.5, 0.5])),
    "skewed": law_of(np.array([0.0, 20.0]), np.array([0.95, 0.05])),
    "heavy-tailed": law_of(2.0 ** np.arange(DOUBLINGS), 2.0 ** (-TAIL * np.arange(DOUBLINGS))),
}


def noisy(seed: int = 1, law: str = "two-point", effect: float = 0.2) -> Benchmark:
    """Builds a world of 20 states with effects at that share, and noise in every reward.

    "two-point" pays nothing or the double; "skewed" nothing in 19 of 20 steps; "heavy-tailed"
    values that double from each to the next, to the 512-fold of the least.
    """
    if not isinstance(law, str) or law not in LAWS:
        raise InvalidParameter(f"law is {law!r}, expected one of {', '.join(LAWS)}")
    rng = legacy_generator(seed)
    world = draw_world(STATES, ACTIONS, SUCCESSORS, rng)
    rows = world.shrunk(share("effect", effect))
    mean = MOST_ON_THE_WAY * rng.uniform(size=STATES)
    mean[-1] = 1.0
    most = 1.0 + MOST_ON_THE_WAY / (1 - DISCOUNT)  # the end, and every step on the way to it
    pairs = Pairs.full(STATES, ACTIONS)
    log = Merged(
        mdp=with_outcomes(rows, mean, *LAWS[law]),
        pairs=pairs,
        shown=np.repeat(np.arange(STATES), LAWS[law][0].size),
    )
    return Benchmark(
        name="noisy",
        # All copies of a state are alike, so their shares do not matter.
        mdp=log.model(np.ones(log.mdp.num_pairs)),
        behavior=Policy.from_dense(pairs, world.behavior),
        horizon=HORIZON,
        rewards="observed",
        value_bounds=(0.0, most),
        return_bounds=(0.0, most * float(LAWS[law][0].max())),
        simulator=log,
    )


def with_outcomes(
    rows: FloatArray, mean: FloatArray, values: FloatArray, chances: FloatArray
) -> FiniteMDP:
    """Returns the model whose state (s, j) is state s, entered with the j-th outcome of X."""
    finer = np.repeat(rows, values.size, axis=0)[..., np.newaxis] * chances
    reward = (mean[:, np.newaxis] * values).ravel()
    cube = finer.reshape(*finer.shape[:2], -1)
    return FiniteMDP.from_dense(cube, np.broadcast_to(reward, cube.shape), DISCOUNT)
