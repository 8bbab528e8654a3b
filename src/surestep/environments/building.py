"""Parts of all benchmarks: the types of parameters, and models from tables of rows.

`make` checks what it is given by these types.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import AnyArray, FloatArray
from surestep.errors import InvalidParameter
from surestep.model.mdp import FiniteMDP, spread_initial
from surestep.model.pairs import Pairs

MOST_STATES = 2_000_000  # a Wet Chicken of that size takes some 7 GB while it is built
MOST_TRANSITIONS = 50_000_000

Share = Annotated[float, Meta(ge=0, le=1)]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]  # of NumPy's legacy generator
Length = Annotated[int, Meta(ge=1, le=MOST_STATES)]


def check_size(parameters: str, states: int, transitions: int = 0) -> None:
    """Refuses parameters that make more states or transitions than a model should have."""
    for what, number, most in (
        ("states", states, MOST_STATES),
        ("transitions", transitions, MOST_TRANSITIONS),
    ):
        if number > most:
            raise InvalidParameter(f"{parameters} make {number} {what}, expected at most {most}")


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
