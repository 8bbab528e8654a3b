"""Successors: the states that each pair may lead to, where that is known before the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray
from surestep._reprs import short_repr
from surestep._settings import Each
from surestep.errors import InvalidModel, ShapeMismatch
from surestep.model.counts import Counts
from surestep.model.pairs import Pairs, check_same_pairs, read_noun, transition_name
from surestep.model.statements import Statement

LIGHTEST, HEAVIEST = 1e-9, 10**9  # weights of a prior


@dataclass(frozen=True, slots=True, eq=False)
class Successors(arrays.ByValue):
    """The states that each pair may lead to, in rising order; a pair without any ends the episode.

    They must not depend on the data. `weight`, where it is given, is that of each successor in
    the Dirichlet prior of its row.
    """

    pairs: Pairs
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    weight: Annotated[FloatArray | None, Each("T", LIGHTEST, HEAVIEST)] = None

    __repr__ = short_repr("pairs.num_states", "pairs.num_pairs", "sizes")

    def __post_init__(self) -> None:
        """Checks everything once and freezes the arrays."""
        read_noun(self, InvalidModel)
        falling = arrays.not_rising(self.successor, self.offsets)
        for t, others in arrays.first_where(falling, "successor"):
            listed, before = (
                transition_name(self.pairs, self.offsets, self.successor, i) for i in (t, t - 1)
            )
            raise InvalidModel(
                f"{listed} is listed after {before}; expected successors that rise{others}"
            )

    @property
    def sizes(self) -> IntArray:
        """Counts the states that each pair may lead to [K]."""
        return arrays.run_lengths(self.offsets)

    def statement(self) -> Statement:
        """Returns the assumption of a certificate that uses these successors."""
        return Statement("successors-given", {"successors": self.successor.size})

    def ends(self) -> BoolArray:
        """Returns the states [S] whose pairs all end the episode."""
        over: BoolArray = arrays.run_sums(self.sizes, self.pairs.offsets) == 0
        return over

    def places(self, counts: Counts) -> IntArray:
        """Finds each transition [T] that the counts store among these [T']; −1 if it is missing.

        Pairs and successors rise, so that a transition is found by halving.
        """
        size = np.int64(self.pairs.num_states)
        given, stored = (
            arrays.run_owners(part.offsets) * size + part.successor for part in (self, counts)
        )
        if given.size == 0:
            return np.full(stored.size, -1)
        place = np.minimum(np.searchsorted(given, stored), given.size - 1)
        return np.where(given[place] == stored, place, -1)

    def times(self, counts: Counts) -> IntArray:
        """Counts how often each successor [T'] was observed."""
        place = self.places(counts)
        times = np.zeros(self.successor.size, np.int64)
        times[place[place >= 0]] = counts.times[place >= 0]
        return times

    __setstate__ = arrays.restore_frozen


def check_support(counts: Counts, support: Successors) -> None:
    """Refuses successors that the counts contradict: an observed one is missing, or all are."""
    pairs = counts.pairs
    check_same_pairs("the counts", pairs, "the support", support.pairs)
    missing = (counts.times > 0) & (support.places(counts) < 0)
    for t, others in arrays.first_where(missing, "transition"):
        raise ShapeMismatch(
            f"{transition_name(pairs, counts.offsets, counts.successor, t)} was observed "
            f"{counts.times[t]} times, but is not in the support; expected all that may "
            f"come{others}"
        )
    ended = (support.sizes == 0) & ~counts.terminal[pairs.state]
    for k, others in arrays.first_where(ended, "pair"):
        raise ShapeMismatch(
            f"the support of {pairs.pair_name(k)} is empty, but its state is not marked as "
            f"terminal; expected at least one successor, or an end of episodes{others}"
        )
