"""Runs of successors under the pairs: what models and counts share."""

from __future__ import annotations

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import ErrorType, FloatArray, IndexArray, IntArray
from surestep.model.pairs import Pairs


def read_successors(
    pairs: Pairs, offsets: object, successor: object, error: ErrorType
) -> tuple[IntArray, IndexArray]:
    """Frozen offsets [K+1] and successors [T]; each successor once in its pair's run."""
    total = arrays.numbers("successor", successor, error).size
    starts = arrays.read_offsets("transition offsets", offsets, pairs.num_pairs, total, error)
    states = arrays.indices(
        "successor",
        successor,
        pairs.num_states,
        error,
        lambda t: pairs.pair_name(arrays.owner(starts, t)),
    )
    arrays.refuse_where(
        arrays.repeated_in_run(states, starts),
        lambda t: (
            f"successor {states[t]} of {pairs.pair_name(arrays.owner(starts, t))} is listed twice; "
            "expected each successor once (add the probabilities or counts up)"
        ),
        "transition",
        error,
    )
    return arrays.freeze(starts), arrays.freeze(states)


def transition_name(pairs: Pairs, offsets: IntArray, successor: IndexArray, index: int) -> str:
    """'state 3, action 1 → state 5', or the same with labels."""
    pair = pairs.pair_name(arrays.owner(offsets, index))
    return f"{pair} → {pairs.state_name(int(successor[index]))}"


def dense_cube(
    pairs: Pairs, offsets: IntArray, successor: IndexArray, values: FloatArray
) -> FloatArray:
    """Values per transition [T] as a table [S, A, S], 0 elsewhere."""
    cube = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states))
    pair = arrays.run_owners(offsets)
    cube[pairs.state[pair], pairs.action[pair], successor] = values
    return cube
