"""Values found one strongly connected component after the other, successors first.

Models that people make are seldom one tangle: protocols count, clocks run, work gets done. What
comes back to itself are small parts, and for each of them a few sweeps in place are enough once all
that it leads to is known. See `kernels.components`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels.components import Order, leads_ahead, settle_components, strong_components
from surestep.planning.pruning import Backup

MOST_SWEEPS = 1_000  # of one component; one that needs more is left to other methods


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """The strongly connected components of a model; those that others lead to come first."""

    model: Backup
    found: Order

    @classmethod
    def of(cls, model: Backup, found: Order | None = None) -> Components:
        """Finds the components, unless they are known."""
        return cls(model, by_component(*model[:3]) if found is None else found)

    @property
    def number(self) -> int:
        """Returns C, the number of components."""
        return self.found.starts.size - 1

    def states(self, component: int) -> IndexArray:
        """Returns the states of a component, in the order in which they are swept."""
        first, last = self.found.starts[component : component + 2]
        return self.found.order[first:last]

    def settle(self, first: int, target: float, value: FloatArray) -> int:
        """Brings `value` [S] of the components from `first` on to a residual of `target`.

        The first one for which sweeps are too slow, or the number of components.
        """
        return settle_components(self.model, self.found, first, target, MOST_SWEEPS, value)


def by_component(pair_offsets: IntArray, offsets: IntArray, successor: IndexArray) -> Order:
    """Finds the components, by a depth-first search where there is a way back at all."""
    states = pair_offsets.size - 1
    if leads_ahead(pair_offsets, offsets, successor):
        backwards = np.arange(states, dtype=np.int32)[::-1].copy()
        return Order(backwards, backwards, np.arange(states + 1))
    order, place = np.empty(states, np.int32), np.empty(states, np.int32)
    starts = np.empty(states + 1, np.int64)
    number = strong_components(pair_offsets, offsets, successor, order, place, starts)
    return Order(order, place, starts[: number + 1].copy())
