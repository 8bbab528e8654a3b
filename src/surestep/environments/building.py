"""Parts of all benchmarks: checked parameters, and models from tables of rows."""

from __future__ import annotations

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, FloatArray
from surestep.errors import InvalidParameter
from surestep.model.mdp import FiniteMDP, spread_initial
from surestep.model.pairs import Pairs

MOST_STATES = 2_000_000  # a Wet Chicken of that size takes some 7 GB while it is built
MOST_TRANSITIONS = 50_000_000
MOST_SEEDS = 2**32  # of NumPy's legacy generator


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """Returns a parameter that is a whole number from `low` to `high`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and low <= value <= high):  # type: ignore[operator]
        raise InvalidParameter(f"{name} is {value!r}, expected a whole number, {low} to {high}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def share(name: str, value: object) -> float:
    """Returns a parameter between 0 and 1, both included."""
    if not (arrays.is_number(value) and 0 <= value <= 1):
        raise InvalidParameter(f"{name} is {value!r}, expected a number, 0 to 1")
    return float(value)


def check_size(parameters: str, states: int, transitions: int = 0) -> None:
    """Refuses parameters that make more states or transitions than a model should have."""
    for what, number, most in (
        ("states", states, MOST_STATES),
        ("transitions", transitions, MOST_TRANSITIONS),
    ):
        if number > most:
            raise InvalidParameter(f"{parameters} make {number} {what}, expected at most {most}")


def legacy_generator(seed: object) -> np.random.RandomState:
    """Returns the generator of the published code: a seed gives what it gave there."""
    return np.random.RandomState(whole_number("seed", seed, 0, MOST_SEEDS - 1))


def mdp_of_rows(
    pairs: Pairs, successor: AnyArray, probability: FloatArray, reward: AnyArray, discount: float
) -> FiniteMDP:
    """Returns the MDP of one row of successors a pair, starting in state 0.

    All tables are [K, W]; entries of probability 0 stand for nothing, and a row of them for a pair
    that ends the episode.
    """
    kept = probability > 0
    return FiniteMDP(
        pairs,
        arrays.own(arrays.offsets_of(np.count_nonzero(kept, axis=1))),
        np.broadcast_to(successor, kept.shape)[kept],
        arrays.own(probability[kept]),
        arrays.own(np.broadcast_to(reward, kept.shape)[kept].astype(np.float64)),
        arrays.own(np.full(pairs.num_pairs, discount)),
        spread_initial(pairs, 0),
    )


# ---- settings that several published experiments share ------------------------------------------

# "More for Less" (IJCAI 2023): the same for its three benchmarks.
PAPER_DELTA = 0.1
PAPER_EPISODES = (
    *(1, 2, 5, 8, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000),
    *(10_000, 20_000, 50_000, 100_000),
)

# Laroche et al. (2019), on Gridworld and Random MDPs alike.
SPIBB_N_WEDGES = (5, 7, 10, 15, 20, 30, 50, 70, 100)

# Scholl et al. (2022), on Wet Chicken and Random MDPs alike.
SCHOLL_N_WEDGES = (3, 7, 10, 20, 50)
