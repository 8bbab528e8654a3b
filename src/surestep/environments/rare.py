"""Worlds in which the worst, or the best, reward hardly ever shows.

Each step is in one of several situations, all alike, and ends the episode with the chance 0.1. Both
actions lead on in the same way: only what they earn differs. π_b takes the tempting action with the
chance 0.2. It seems to earn 0.5 more a step than the usual one, and truly earns 0.5 less: now and
then it meets a disaster, or the usual one a jackpot. Most logs of 100 episodes show none.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray
from surestep.environments.benchmark import Benchmark
from surestep.environments.building import share, whole_number
from surestep.environments.merged import Merged
from surestep.errors import InvalidParameter
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy

DISCOUNT, ENDS, TEMPTED, HORIZON = 0.95, 0.1, 0.2, 50
USUAL, TEMPTING = 1.0, 1.5  # what the actions nearly always earn
MOST = 100  # situations


def disaster(chance: float = 0.002, situations: int = 1, declared: bool = True) -> Benchmark:
    """Builds a world in which the tempting action loses 500 with that chance."""
    earned = np.array([[USUAL, USUAL], [TEMPTING, -500.0]])
    return rare("disaster", earned, (0.0, share("chance", chance)), situations, declared)


def jackpot(chance: float = 0.0005, situations: int = 1, declared: bool = True) -> Benchmark:
    """Builds a world in which the usual action earns 2000 with that chance."""
    earned = np.array([[USUAL, 2000.0], [TEMPTING, TEMPTING]])
    return rare("jackpot", earned, (share("chance", chance), 0.0), situations, declared)


def rare(
    name: str,
    earned: FloatArray,
    chances: tuple[float, float],
    situations: int,
    declared: bool,
) -> Benchmark:
    """Returns the world in which action a earns `earned`[a, 1] with its chance, else [a, 0].

    Not `declared`, what steps may earn is what the log happens to show.
    """
    number = whole_number("situations", situations, 1, MOST)
    if not isinstance(declared, bool):
        raise InvalidParameter(f"declared is {declared!r}, expected True or False")
    states = number + 1  # the last ends the episode
    leads = np.append(np.full(number, (1 - ENDS) / number), ENDS)
    rarely = np.array([[1 - chance, chance] for chance in chances])
    # Each state stands twice in the finer model: entered as usual, and with what is rare.
    rows = np.einsum("s,aj->asj", leads, rarely).reshape(2, -1)
    pays = np.broadcast_to(earned[:, np.newaxis], (2, states, 2)).reshape(2, -1)
    cube = np.zeros((2 * states, 2, 2 * states))
    cube[: 2 * number] = rows
    pairs = Pairs.full(states, 2, action_labels=("usual", "tempting"))
    log = Merged(
        mdp=FiniteMDP.from_dense(cube, np.broadcast_to(pays, cube.shape), DISCOUNT),
        pairs=pairs,
        shown=np.repeat(np.arange(states), 2),
    )
    low, high = float(earned.min()), float(earned.max())
    return Benchmark(
        name=name,
        mdp=log.model(np.ones(log.mdp.num_pairs)),
        behavior=Policy.from_dense(pairs, [[1 - TEMPTED, TEMPTED]] * states),
        horizon=HORIZON,
        rewards="observed",
        value_bounds=(min(0.0, low) / (1 - DISCOUNT), high / (1 - DISCOUNT)),
        ranges=((low, high), (low, high)),
        declared=declared,
        simulator=log,
    )
