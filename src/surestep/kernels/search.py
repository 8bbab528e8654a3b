"""Breadth-first search over runs of successors."""

from __future__ import annotations

from surestep.kernels._compile import kernel
from surestep.kernels._types import IndicesIn, IntsIn, IntsOut


@kernel()
def breadth_first(
    offsets: IntsIn, successor: IndicesIn, start: int, order: IntsOut, parent: IntsOut
) -> int:
    """The states that can be reached from `start`, into `order` as they are met; their number.

    The successors of a state are met in the order of its run. `parent` [S] gets the state from
    which each was met first: itself for the start, −1 where no way leads.
    """
    parent[:] = -1
    parent[start] = start
    order[0] = start
    met = 1
    done = 0
    while done < met:
        state = order[done]
        done += 1
        for i in range(offsets[state], offsets[state + 1]):
            target = successor[i]
            if parent[target] < 0:
                parent[target] = state
                order[met] = target
                met += 1
    return met
