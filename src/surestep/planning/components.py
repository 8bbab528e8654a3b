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
    order: IndexArray  # [S] the states, component by component
    place: IndexArray  # [S] where each state stands in the order
    starts: IntArray  # [C+1]

    @classmethod
    def of(cls, model: Backup) -> Components:
        """Finds the components, by a depth-first search where there is a way back at all."""
        states = model.pair_offsets.size - 1
        if leads_ahead(*model[:3]):
            backwards = np.arange(states, dtype=np.int32)[::-1].copy()
            return cls(model, backwards, backwards, np.arange(model.pair_offsets.size))
        order, place = np.empty(states, np.int32), np.empty(states, np.int32)
        starts = np.empty_like(model.pair_offsets)
        number = strong_components(*model[:3], order, place, starts)
        return cls(model, order, place, starts[: number + 1].copy())

    @property
    def number(self) -> int:
        """Returns C, the number of components."""
        return self.starts.size - 1

    def states(self, component: int) -> IndexArray:
        """Returns the states of a component, in the order in which they are swept."""
        return self.order[self.starts[component] : self.starts[component + 1]]

    def settle(self, first: int, target: float, value: FloatArray) -> int:
        """Brings `value` [S] of the components from `first` on to a residual of `target`.

        The first one for which sweeps are too slow, or the number of components.
        """
        by_component = Order(self.order, self.place, self.starts)
        return settle_components(self.model, by_component, first, target, MOST_SWEEPS, value)
