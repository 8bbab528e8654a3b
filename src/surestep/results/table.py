"""PolicyTable: the improved policy pair by pair, beside all that explains it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, BoolArray, FloatArray, IntArray
from surestep._reprs import short_repr
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import FiniteMDP, Pairs, Policy, Problem
from surestep.model.numbering import Numbering
from surestep.model.problem import Improvement
from surestep.planning import q_values
from surestep.results.advantage_intervals import advantage_intervals

UNCHANGED = 1e-12  # probabilities this close are the same
COLUMNS = (  # values of pairs
    *("probability", "behavior", "visits", "trusted", "q", "advantage", "held_out_visits"),
    *("advantage_low", "advantage_high", "allowed", "kept_by"),
)


class PairCoverage(NamedTuple):
    """The number of pairs to decide on, of those that the log never shows, and shows often."""

    pairs: int
    never: int  # without a visit in all of the log
    trusted: int | None  # more than N∧ visits in what chose; None where the algorithm has no N∧


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTable(arrays.ByValue):
    """One row a pair: what π_b does there, what π_I does, and what the data says about it.

    Q is the estimated return of taking the action and following π_I from then on; the advantage is
    Q(s,a) − Σ_b π_b(b|s) Q(s,b), how much better the action is than what π_b does there on average.
    """

    vocabulary: Vocabulary
    pairs: Pairs
    probability: FloatArray  # [K] π_I
    behavior: FloatArray  # [K] π_b
    visits: IntArray  # [K]
    trusted: BoolArray | None  # [K] more visits than N∧; None where the algorithm has no N∧
    q: FloatArray  # [K]
    advantage: FloatArray  # [K]
    quiet: BoolArray  # [S] nothing is decided there, as episodes end; these states come last
    held_out_visits: IntArray  # [K] in the part of the log that did not choose the policy
    advantage_low: FloatArray  # [K] an interval, from that part where there is one
    advantage_high: FloatArray  # [K]
    n_wedge: int | None  # N∧; None where the algorithm has none
    allowed: BoolArray | None = None  # [K] may be taken more often than by π_b; None: no limits
    # [K] whose limits keep it from being taken more often, with semicolons; None: no signals
    kept_by: AnyArray | None = None

    __repr__ = short_repr("pairs.num_states", "pairs.num_pairs", "visits")

    @classmethod
    def of(
        cls,
        vocabulary: Vocabulary,
        problem: Problem,
        estimate: FiniteMDP,
        improvement: Improvement,
        quiet: BoolArray,
        *,
        judging: Problem | None,
        delta: float,
        allowed: BoolArray | None = None,
    ) -> PolicyTable:
        """The table of an improvement; `estimate` is the problem's estimated MDP.

        `judging` is the problem of the data that did not choose the policy, if there are any, and
        `allowed` says what may be recommended, where not everything may.
        """
        evidence = problem if judging is None else judging
        held_out = (
            np.zeros_like(problem.counts.visits) if judging is None else judging.counts.visits
        )
        q = q_values(estimate, improvement.plan.value)
        visits, n_wedge = problem.counts.visits, improvement.n_wedge
        return cls(
            vocabulary,
            improvement.policy.pairs,
            improvement.policy.probability,
            problem.behavior.probability,
            visits,
            None if n_wedge is None else arrays.freeze(visits > n_wedge),
            arrays.freeze(q),
            arrays.freeze(advantages(problem.behavior, q)),
            quiet,
            arrays.freeze(held_out),
            *advantage_intervals(evidence, improvement.plan.value, delta),
            n_wedge,
            allowed,
            None if improvement.kept_by is None else arrays.freeze(np.array(improvement.kept_by)),
        )

    def renumbered(self, vocabulary: Vocabulary, numbering: Numbering) -> PolicyTable:
        """Returns the table with the former numbers of a numbering, which the vocabulary has."""
        state = np.argsort(numbering.state)
        pair = np.argsort(numbering.pair)
        moved = {
            name: arrays.freeze(values[pair])
            for name in COLUMNS
            if (values := getattr(self, name)) is not None
        }
        offsets = arrays.offsets_of(arrays.run_lengths(self.pairs.offsets)[state])
        action = numbering.action[self.pairs.action][pair]
        pairs = vocabulary.pairs_of(np.stack([arrays.run_owners(offsets), action], axis=1))
        return replace(
            self,
            vocabulary=vocabulary,
            pairs=pairs,
            quiet=arrays.freeze(self.quiet[state]),
            **moved,
        )

    @property
    def policy(self) -> Policy:
        """π_I."""
        return Policy(self.pairs, self.probability)

    @property
    def decided(self) -> BoolArray:
        """The pairs [K] of states in which there is something to decide."""
        decided: BoolArray = ~self.quiet[self.pairs.state]
        return decided

    @property
    def num_deciding(self) -> int:
        """Counts the states in which something is decided."""
        return int(np.count_nonzero(~self.quiet))

    @property
    def coverage(self) -> PairCoverage:
        """Counts the pairs to decide on, those never seen, and those with more than N∧ visits."""
        visits = (self.visits + self.held_out_visits)[self.decided]
        trusted = None if self.trusted is None else int(self.trusted.sum())
        return PairCoverage(visits.size, int((visits == 0).sum()), trusted)

    @property
    def decisions(self) -> IntArray:
        """The visits [S] of every state, whichever action was taken."""
        decisions: IntArray = arrays.run_sums(self.visits, self.pairs.offsets)
        return decisions

    @property
    def all_decisions(self) -> IntArray:
        """The visits [S] of every state in all of the log, the part that judges included."""
        decisions: IntArray = arrays.run_sums(
            self.visits + self.held_out_visits, self.pairs.offsets
        )
        return decisions

    @property
    def changed(self) -> BoolArray:
        """The states [S] in which π_I does something else than π_b."""
        moved = arrays.run_sums(np.abs(self.probability - self.behavior), self.pairs.offsets)
        changed: BoolArray = (moved > UNCHANGED) & ~self.quiet
        return changed

    @property
    def one_action(self) -> bool:
        """Tells whether π_I takes a single action in every state that it changes, if any."""
        inside = self.changed[self.pairs.state]
        return bool(inside.any() and np.isin(self.probability[inside], (0.0, 1.0)).all())

    __setstate__ = arrays.restore_frozen


def advantages(behavior: Policy, q: FloatArray) -> FloatArray:
    """Q(s,a) − Σ_b π_b(b|s) Q(s,b) for every pair [K]."""
    usual = arrays.run_sums(behavior.probability * q, behavior.pairs.offsets)
    advantage: FloatArray = q - usual[behavior.pairs.state]
    return advantage
