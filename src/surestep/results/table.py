"""Holds the improved policy pair by pair, with the numbers that explain it (`PolicyTable`)."""

from dataclasses import dataclass

import numpy as np

from surestep._arrays import AnyArray, BoolArray, ByValue, FloatArray, IntArray, run_sums
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Pairs, Policy
from surestep.model.noun import noun

UNCHANGED = 1e-12  # probabilities this close count as equal
COLUMNS = (  # fields with one value for each pair
    "probability", "behavior", "visits", "trusted", "q", "advantage", "held_out_visits",
    "advantage_low", "advantage_high", "allowed", "kept_by",
)  # fmt: skip


@noun("pairs.num_states", "pairs.num_pairs", "visits")
@dataclass(frozen=True, slots=True, eq=False)
class PolicyTable(ByValue):
    """One row a pair: what π_b does there, what π_I does, and what the data says about it.

    Parameters
    ----------
    vocabulary : Vocabulary
        What states and actions are called.
    pairs : Pairs
        The actions of each state.
    probability : array of float [K]
        The new policy (π_I).
    behavior : array of float [K]
        The current policy (π_b).
    visits : array of int [K]
        Visits in the part of the log that chose the policy.
    trusted : array of bool [K] or None
        More visits than N∧; None where the algorithm has no N∧.
    q : array of float [K]
        The estimated return of taking the action and following π_I from then on.
    advantage : array of float [K]
        How much better the action is than what π_b does there on average.
    quiet : array of bool [S]
        Nothing is decided there, as episodes end; these states come last.
    held_out_visits : array of int [K]
        Visits in the part of the log that did not choose the policy.
    advantage_low : array of float [K]
        The lower end of an interval for the advantage, from that part where there is one.
    advantage_high : array of float [K]
        Its upper end.
    n_wedge : int or None
        N∧; None where the algorithm has none.
    allowed : array of bool [K], optional
        May be taken more often than by π_b; None: no limits.
    kept_by : array of str [K], optional
        Signals whose limits keep it from being taken more often, with semicolons.

    Notes
    -----
    The advantage is Q(s,a) − Σ_b π_b(b|s) Q(s,b).

    Examples
    --------
    >>> table = {"state": ["mild"] * 60, "action": ["wait", "treat"] * 30, "reward": [1, 0] * 30}
    >>> result = surestep.improve(table, discount=0, ending=(0, 1), worlds=0)
    >>> result.table.probability, result.table.behavior
    (array([0., 1., 1.]), array([0.5, 0.5, 1. ]))
    """

    vocabulary: Vocabulary
    pairs: Pairs
    probability: FloatArray
    behavior: FloatArray
    visits: IntArray
    trusted: BoolArray | None
    q: FloatArray
    advantage: FloatArray
    quiet: BoolArray
    held_out_visits: IntArray
    advantage_low: FloatArray
    advantage_high: FloatArray
    n_wedge: int | None
    allowed: BoolArray | None = None
    kept_by: AnyArray | None = None

    @property
    def policy(self) -> Policy:
        """The new policy (π_I)."""
        return Policy(self.pairs, self.probability)

    @property
    def decided(self) -> BoolArray:
        """Tells of each pair whether something is decided in its state [K]."""
        return np.logical_not(self.quiet[self.pairs.state])

    @property
    def num_deciding(self) -> int:
        """Counts the states in which something is decided."""
        return int(np.count_nonzero(~self.quiet))

    @property
    def all_decisions(self) -> IntArray:
        """The visits [S] of each state in the whole log, the judging part included."""
        return run_sums(self.visits + self.held_out_visits, self.pairs.offsets)

    @property
    def changed(self) -> BoolArray:
        """Tells of each state whether π_I differs from π_b there [S]."""
        moved = run_sums(np.abs(self.probability - self.behavior), self.pairs.offsets)
        return np.logical_and(moved > UNCHANGED, ~self.quiet)
