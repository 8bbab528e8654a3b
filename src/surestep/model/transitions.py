"""Runs of successors under the pairs: what models and counts share."""

from __future__ import annotations

import numpy as np

from surestep._arrays import (
    ErrorType,
    FloatArray,
    IndexArray,
    IntArray,
    freeze,
    indices,
    numbers,
    own,
    read_offsets,
    refuse_where,
    repeated_in_run,
    run_owners,
)
from surestep.model.pairs import Pairs


def read_successors(
    pairs: Pairs, offsets: object, successor: object, error: ErrorType
) -> tuple[IntArray, IndexArray]:
    """Frozen offsets [K+1] and successors [T]; each successor once in its pair's run."""
    total = numbers("successor", successor, error).size
    starts = read_offsets("transition offsets", offsets, pairs.num_pairs, total, error)
    states = indices(
        "successor",
        successor,
        pairs.num_states,
        error,
        lambda t: pairs.pair_name(owner(starts, t)),
    )
    refuse_where(
        repeated_in_run(states, starts),
        lambda t: (
            f"successor {states[t]} of {pairs.pair_name(owner(starts, t))} is listed twice; "
            "expected each successor once (add the probabilities or counts up)"
        ),
        "transition",
        error,
    )
    return freeze(starts), own(states)


def owner(offsets: IntArray, element: int) -> int:
    """The item whose run holds the element."""
    return int(np.searchsorted(offsets, element, side="right")) - 1


def transition_name(pairs: Pairs, offsets: IntArray, successor: IndexArray, index: int) -> str:
    """'state 3, action 1 → state 5', or the same with labels."""
    return f"{pairs.pair_name(owner(offsets, index))} → {pairs.state_name(int(successor[index]))}"


def state_on_cycle(num_states: int, source: IntArray, target: IndexArray) -> int | None:
    """A state on a cycle of the edges source → target, or None where there is no cycle.

    Linear in states and edges: an edge lies on a cycle iff both of its ends are in one strongly
    connected component.
    """
    has_way_out = np.zeros(num_states, np.bool_)
    has_way_out[source] = True
    on_path = has_way_out[target]
    source, target = source[on_path], target[on_path]
    if (source < target).all():  # as in split models, whose nodes come after their parents
        return None
    # Imported here because only other models with pairs of discount 1 need it.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(source.size, np.int8), (source, target)), (num_states, num_states))
    component = connected_components(edges.tocsr(), connection="strong")[1]
    closing = component[source] == component[target]
    return int(source[np.argmax(closing)]) if closing.any() else None


def dense_cube(
    pairs: Pairs, offsets: IntArray, successor: IndexArray, values: FloatArray
) -> FloatArray:
    """Values per transition [T] as a table [S, A, S], 0 elsewhere."""
    cube = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states))
    pair = run_owners(offsets)
    cube[pairs.state[pair], pairs.action[pair], successor] = values
    return cube
