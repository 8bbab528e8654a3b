"""Bandits: one decision, which wins (1) or loses (0)."""

from __future__ import annotations

import numpy as np

from surestep.environments.alike import DISCOUNT, shrunk
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import legacy_generator, share, whole_number
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy

MOST_ARMS = 10_000
START, WON, LOST = range(3)


def bandit(seed: int = 1, arms: int = 10, effect: float = 0.2) -> Benchmark:
    """Builds a bandit whose arms win with random chances, shrunk towards their mean under π_b.

    A chance is uniform on [0, 1] with effects at 1, and the same for all arms with effects at 0.
    π_b is uniform on the simplex.
    """
    arms = whole_number("arms", arms, 1, MOST_ARMS)
    effect = share("effect", effect)
    rng = legacy_generator(seed)
    chance = rng.uniform(size=arms)
    behavior = rng.dirichlet(np.ones(arms), size=LOST + 1)
    rows = np.zeros((LOST + 1, arms, LOST + 1))
    rows[START, :, WON], rows[START, :, LOST] = chance, 1 - chance
    prize = np.zeros(LOST + 1)
    prize[WON] = 1.0
    mdp = FiniteMDP.from_dense(
        shrunk(rows, behavior, effect),
        np.broadcast_to(prize, rows.shape),
        DISCOUNT,
        state_labels=("start", "won", "lost"),
    )
    return Benchmark(
        name="bandit",
        mdp=mdp,
        behavior=Policy.from_dense(mdp, behavior),
        horizon=1,
        rewards="observed",
        value_bounds=(0.0, 1.0),
    )
