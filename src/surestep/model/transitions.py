"""Runs of successors under the pairs: what models and counts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


def united(pairs: Pairs, parts: Sequence[Any]) -> tuple[IntArray, IndexArray, list[IntArray]]:
    """Returns the successors that any part has, by pair, and where those of each part are.

    Parts are models or counts.
    """
    size = np.int64(pairs.num_states)
    keys = [arrays.run_owners(part.offsets) * size + part.successor for part in parts]
    union = np.concatenate(keys)
    if not (np.diff(union) > 0).all():  # as those of one model mostly do
        union = np.unique(union)
    offsets = arrays.offsets_of(np.bincount(union // size, minlength=pairs.num_pairs))
    return offsets, (union % size).astype(np.int32), [np.searchsorted(union, key) for key in keys]
