"""Runs of successors under the pairs: what models and counts share."""

from __future__ import annotations

from typing import Protocol

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import ErrorType, FloatArray, IndexArray, IntArray
from surestep.model.pairs import Pairs


class PairNames(Protocol):
    """Pairs as messages speak of them: those of a whole model, or of a block of its states."""

    @property
    def num_states(self) -> int:
        """|S|, of the whole model."""
        ...

    @property
    def num_pairs(self) -> int:
        """Returns the number of pairs, of the block."""
        ...

    def state_name(self, state: int) -> str:
        """Returns the name of a state of the whole model."""
        ...

    def pair_name(self, pair: int) -> str:
        """Returns the name of a pair of the block."""
        ...


def read_successors(
    pairs: PairNames, offsets: object, successor: object, error: ErrorType
) -> tuple[IntArray, IndexArray]:
    """Frozen offsets [K+1] and successors [T]; each successor once in its pair's run."""
    total = arrays.numbers("successor", successor, error).size
    starts = arrays.read_offsets("transition offsets", offsets, pairs.num_pairs, total, error)
    states = arrays.indices(
        "successor",
        successor,
        pairs.num_states,
        error,
        lambda t: pairs.pair_name(owner(starts, t)),
    )
    arrays.refuse_where(
        arrays.repeated_in_run(states, starts),
        lambda t: (
            f"successor {states[t]} of {pairs.pair_name(owner(starts, t))} is listed twice; "
            "expected each successor once (add the probabilities or counts up)"
        ),
        "transition",
        error,
    )
    return arrays.freeze(starts), arrays.own(states)


def owner(offsets: IntArray, element: int) -> int:
    """Returns the item whose run holds the element."""
    return int(np.searchsorted(offsets, element, side="right")) - 1


def transition_name(pairs: PairNames, offsets: IntArray, successor: IndexArray, index: int) -> str:
    """'state 3, action 1 → state 5', or the same with labels."""
    return f"{pairs.pair_name(owner(offsets, index))} → {pairs.state_name(int(successor[index]))}"


def dense_cube(
    pairs: Pairs, offsets: IntArray, successor: IndexArray, values: FloatArray
) -> FloatArray:
    """Values per transition [T] as a table [S, A, S], 0 elsewhere."""
    cube = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states))
    pair = arrays.run_owners(offsets)
    cube[pairs.state[pair], pairs.action[pair], successor] = values
    return cube
