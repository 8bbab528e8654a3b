"""Defines the states that each pair may lead to, if they are known before the data."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

import surestep._arrays as arrays
from surestep._settings import Each
from surestep.errors import InvalidModel, ShapeMismatch
from surestep.model.counts import Counts
from surestep.model.noun import noun
from surestep.model.pairs import Transitions, check_same_pairs, read_noun
from surestep.model.statements import Statement

LIGHTEST = 1e-9  # the smallest and the largest weight in a prior
HEAVIEST = 10**9


@noun("pairs.num_states", "pairs.num_pairs", "sizes")
@dataclass(frozen=True, slots=True, eq=False)
class Successors(Transitions, arrays.ByValue):
    """The states that each pair may lead to; a pair without any ends the episode.

    They must not depend on the data.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    offsets : array of int [K+1]
        Pair k owns the successors `offsets[k]` … `offsets[k+1] − 1`.
    successor : array of int [T]
        The states, rising within each pair.
    weight : array of float [T], optional
        The weight of each successor in the Dirichlet prior of its row.

    Examples
    --------
    >>> from surestep.model import Successors
    >>> pairs = surestep.Pairs.full(2, 1)
    >>> known = Successors(pairs, offsets=[0, 2, 2], successor=[0, 1])
    >>> known.sizes, known.ends()
    (array([2, 0]), array([False,  True]))
    """

    weight: Annotated[arrays.FloatArray | None, Each("T", LIGHTEST, HEAVIEST)] = None

    def __post_init__(self) -> None:
        read_noun(self, InvalidModel)
        for t, others in arrays.first_where(
            arrays.not_rising(self.successor, self.offsets), "successor"
        ):
            listed, before = map(self.transition_name, (t, t - 1))
            raise InvalidModel(
                f"{listed} is listed after {before}; expected successors that rise{others}"
            )

    @property
    def sizes(self) -> arrays.IntArray:
        """Counts the states that each pair may lead to [K]."""
        return arrays.run_lengths(self.offsets)

    def statement(self) -> Statement:
        """Makes the assumption of a certificate that uses these successors.

        Returns
        -------
        Statement
            The assumption.
        """
        return Statement("successors-given", {"successors": self.successor.size})

    def ends(self) -> arrays.BoolArray:
        """Finds the states whose pairs all end the episode.

        Returns
        -------
        array of bool [S]
            True for these states.
        """
        over: arrays.BoolArray = arrays.run_sums(self.sizes, self.pairs.offsets) == 0
        return over

    def places(self, counts: Counts) -> arrays.IntArray:
        """Finds the stored transitions of counts among these successors.

        Parameters
        ----------
        counts : Counts
            Counts over the same pairs.

        Returns
        -------
        array of int [T of the counts]
            The place of each transition in `successor`; −1 if it is missing.
        """
        return arrays.places_among(self.keys(), counts.keys())

    def times(self, counts: Counts) -> arrays.IntArray:
        """Counts the observations of each successor.

        Parameters
        ----------
        counts : Counts
            Counts over the same pairs.

        Returns
        -------
        array of int [T]
            The number of observations.
        """
        place = self.places(counts)
        times = np.zeros(self.successor.size, np.int64)
        times[place[place >= 0]] = counts.times[place >= 0]
        return times


def check_support(counts: Counts, support: Successors) -> None:
    """Refuses a support that lacks an observed successor, or is empty for a pair that goes on."""
    pairs = counts.pairs
    check_same_pairs("the counts", pairs, "the support", support.pairs)
    for t, others in arrays.first_where(
        (counts.times > 0) & (support.places(counts) < 0), "transition"
    ):
        raise ShapeMismatch(
            f"{counts.transition_name(t)} was observed "
            f"{counts.times[t]} times, but is not in the support; expected all that may "
            f"come{others}"
        )
    for k, others in arrays.first_where(
        (support.sizes == 0) & ~counts.terminal[pairs.state], "pair"
    ):
        raise ShapeMismatch(
            f"the support of {pairs.pair_name(k)} is empty, but its state is not marked as "
            f"terminal; expected at least one successor, or an end of episodes{others}"
        )
