"""Findings: all that the report shows, as numbers and tables; the page itself computes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep._reprs import short_repr
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Certificate
from surestep.model.certificate import Rung
from surestep.model.numbering import Numbering, places
from surestep.rehearsal import Rehearsal
from surestep.results.ladder import rung_of
from surestep.results.record import Record
from surestep.results.table import PolicyTable

Evidence = Literal["confirmed", "open", "contradicted"]


class StateChange(NamedTuple):
    """A state in which π_I does something else than π_b."""

    state: int
    occupancy: float  # discounted visits of the state under π_b, a share of all: Σ = 1
    advantage: float  # Σ_a π_I(a|s) · advantage(s,a): what one decision gains there
    contribution: float  # to the estimated gain; the contributions of all states add up to it
    evidence: Evidence | None = None  # by the rows that judge; None where there are none


class WantedPair(NamedTuple):
    """A pair that is kept as it was for lack of data, and what more data there could be worth."""

    pair: int
    more_visits: int  # until it would be trusted
    promise: float  # how much better it looks than π_I, times how often one is there


class DataSummary(NamedTuple):
    """The size of the log, and of what was left out of it."""

    rows: int
    dropped: Mapping[str, int]  # why → rows
    transitions: int  # distinct
    episodes: int | None  # None for loose transitions
    terminated: int | None
    truncated: int | None


class NoRehearsal(NamedTuple):
    """The reason why there is no stress test."""

    why: Literal["declined", "to come", "too much work", "impossible", "nothing changed"]
    seconds: float = 0.0  # of one core that it would take, where it is too much
    obstacle: str = ""  # what makes it impossible


DECLINED = NoRehearsal("declined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result with everything around it that a reader should see."""

    table: PolicyTable
    performance: float  # ρ(π_I, M̂)
    behavior_performance: float  # ρ(π_b, M̂)
    n_wedge: int | None
    behavior_occupancy: FloatArray  # [S] share of discounted visits under π_b in M̂
    occupancy: FloatArray  # [S] the same under π_I
    changes: tuple[StateChange, ...]  # all changed states, the largest contribution first
    certificate: Certificate  # the one that was settled on before the data
    others: tuple[Certificate, ...]  # further kinds, each at its own δ; refused ones as no-claim
    rehearsal: Rehearsal | None  # the stress test of `certificate`; None where none was made
    no_rehearsal: NoRehearsal = DECLINED  # why, where there is none
    data: DataSummary
    wanted: tuple[WantedPair, ...]  # most promising first
    record: Record

    __repr__ = short_repr(
        "performance", "behavior_performance", "n_wedge", "certificate.kind", "certificate.lower"
    )

    def renumbered(self, vocabulary: Vocabulary, numbering: Numbering) -> Findings:
        """Returns the findings with the former numbers of a numbering, which the vocabulary has."""
        state = places(numbering.state)
        return replace(
            self,
            table=self.table.renumbered(vocabulary, numbering),
            behavior_occupancy=arrays.freeze(self.behavior_occupancy[state]),
            occupancy=arrays.freeze(self.occupancy[state]),
            changes=tuple(c._replace(state=int(numbering.state[c.state])) for c in self.changes),
            wanted=tuple(w._replace(pair=int(numbering.pair[w.pair])) for w in self.wanted),
        )

    @property
    def chosen_gain(self) -> float:
        """ρ(π_I, M̂) − ρ(π_b, M̂) by the data that chose the policy, which flatter it."""
        return self.performance - self.behavior_performance

    @property
    def gain(self) -> float:
        """The estimated gain, by data that did not choose the policy where there are any."""
        return self.record.estimates.get("held_out_gain", self.chosen_gain)

    @property
    def changed_share(self) -> float:
        """The share of the decisions of π_b that are made in states that change."""
        return math.fsum(change.occupancy for change in self.changes)

    @property
    def awaits_stress_test(self) -> bool:
        """Tells whether there will be a stress test, but is none yet."""
        return self.rehearsal is None and self.no_rehearsal.why == "to come"

    @property
    def verdict(self) -> Rung:
        """Returns how the result may be spoken of: a rung of the ladder of words."""
        return rung_of(
            (self.certificate, *self.others),
            changed=bool(self.changes),
            rehearsal=self.rehearsal,
            awaited=self.awaits_stress_test,
            checks=self.record.checks,
        )

    @property
    def behavior_is_estimated(self) -> bool:
        """Tells whether π_b was read off the log."""
        return self.record.behavior_is_estimated
