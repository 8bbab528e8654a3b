"""Breadth-first search over runs of successors, by SciPy."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from surestep._arrays import IndexArray, IntArray


def breadth_first(
    offsets: IntArray, successor: IndexArray, start: int
) -> tuple[IntArray, IntArray]:
    """Returns the states that can be reached from `start` as they are met, and their parents [S].

    The successors of a state are met in the order of its run. A parent is the state from which one
    was met first: itself for the start, −1 where no way leads.
    """
    size = offsets.size - 1
    ways = csr_array((np.ones(successor.size), successor, offsets), shape=(size, size))
    order, parent = breadth_first_order(ways, start)
    parent = np.maximum(parent, -1).astype(np.int64)  # −9999 for the start and what is not met
    parent[start] = start
    return order.astype(np.int64), parent
