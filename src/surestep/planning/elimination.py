"""In which order to eliminate states, and where entries fill in: made once for a shape."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import IndexArray, IntArray
from surestep.kernels.records import EliminationPlan
from surestep.model.pairs import Pairs
from surestep.planning.proof import SMALLEST_NORMAL

MOST_WORK = 2_000_000  # multiplications of one solve; beyond, other ways to a value are faster
MOST_STATES = 2_000  # beyond, even looking for an order takes long where much fills in


def plan_elimination(
    pairs: Pairs, offsets: IntArray, successor: IndexArray
) -> EliminationPlan | None:
    """Returns the plan for models with these successors, or None where that takes too much work.

    The order is SciPy's minimum degree on the pattern of I − P and its transpose. Filling in
    follows from the pattern alone: what is eliminated leaves its row of U to all rows below that
    have its column. Plans are remembered.
    """
    if pairs.num_states > MOST_STATES:
        return None
    source = pairs.state[arrays.run_owners(offsets)].astype(np.int32)
    return plan_for_edges(pairs.num_states, source.tobytes(), successor.tobytes())


@lru_cache(maxsize=32)  # an experiment asks for the same shape again and again
def plan_for_edges(size: int, sources: bytes, targets: bytes) -> EliminationPlan | None:
    """Returns the plan for transitions source → target, given as the bytes of 32-bit numbers."""
    source, successor = np.frombuffer(sources, np.int32), np.frombuffer(targets, np.int32)
    order = minimum_degree(size, source, successor)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    rows: list[set[int]] = [set() for _ in range(size)]
    for i, j in zip(place[source].tolist(), place[successor].tolist(), strict=True):
        rows[i].add(j)
    lower: list[list[int]] = []
    upper: list[list[int]] = []
    work = 0
    for i, row in enumerate(rows):
        below = []
        waiting = {j for j in row if j < i}
        while waiting:
            c = min(waiting)
            waiting.remove(c)
            below.append(c)
            work += len(upper[c])
            row.update(upper[c])
            waiting.update(j for j in upper[c] if j < i)
        if work > MOST_WORK:
            return None
        lower.append(below)
        upper.append(sorted(j for j in row if j > i))
    return EliminationPlan(arrays.own(order), arrays.own(place), *runs_of(lower), *runs_of(upper))


def minimum_degree(size: int, source: IndexArray, target: IndexArray) -> IntArray:
    """Returns an order of the states in which little fills in."""
    from scipy.sparse import coo_array, eye_array
    from scipy.sparse.linalg import splu

    # The order follows from the pattern; entries so small let the diagonal dominate.
    entries = np.full(source.size, SMALLEST_NORMAL)
    edges = coo_array((entries, (source, target)), (size, size)).tocsr()
    dominant = (edges + edges.T + eye_array(size)).tocsc()
    factors = splu(dominant, "MMD_AT_PLUS_A", options={"SymmetricMode": True})
    place: IntArray = factors.perm_c.astype(np.int64)
    order = np.empty(size, np.int64)
    order[place] = np.arange(size)
    return order


def runs_of(lists: list[list[int]]) -> tuple[IntArray, IntArray]:
    """Lists as offsets and one flat array."""
    flat = np.array([entry for entries in lists for entry in entries], np.int64)
    return arrays.own(arrays.offsets_of(np.array([len(entries) for entries in lists]))), arrays.own(
        flat
    )
