"""Holds the numbers and tables that the report shows, and decides the verdict on a result."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from surestep._arrays import AnyArray, BoolArray, ByValue, FloatArray, IntArray, run_sums
from surestep.certificates.node_posterior import NodePosterior
from surestep.certificates.registry import BY_EXTENSION, may_be_believed, standing_of
from surestep.checks import Check
from surestep.checks.words import asked, forbids_proof, speaking_against
from surestep.io.labels.vocabulary import Label, Vocabulary
from surestep.model import Certificate, Pairs, Policy
from surestep.model.certificate import Rung
from surestep.model.noun import noun
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.rehearsal import Rate, Rehearsal
from surestep.results.groups import GroupGain
from surestep.results.record import Record
from surestep.results.rules import Rules

UNCHANGED = 1e-12  # probabilities this close count as equal
ROUNDING = 1e-9  # of a value: less is no difference
LEAST_TRIED = 5  # times: below, what looks good may be the luck of a single visit
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

    @property
    def promising(self) -> FloatArray:
        """How much better than π_I a pair looks that was seen too seldom to be trusted [K], or 0.

        Only pairs that were tried a few times: of the others, little but luck is known. And only
        pairs that may be recommended.
        """
        if self.trusted is None:
            return np.zeros_like(self.q)
        better = self.q - run_sums(self.probability * self.q, self.pairs.offsets)[self.pairs.state]
        tried = (self.visits > 0) & (self.visits + self.held_out_visits >= LEAST_TRIED)
        may_be = True if self.allowed is None else self.allowed
        wanted = tried & ~self.trusted & self.decided & may_be
        return np.where(wanted & (better > ROUNDING * np.abs(self.q)), better, 0.0)


Confirmation = Literal["confirmed", "open", "contradicted"]


class StateChange(NamedTuple):
    """A state in which π_I does something else than π_b."""

    state: int
    occupancy: float  # discounted visits of the state under π_b, a share of all: Σ = 1
    advantage: float  # the gain of one decision there: Σ_a π_I(a|s) · advantage(s,a)
    contribution: float  # its part of the estimated gain; the parts of all states add up to it
    evidence: Confirmation | None = None  # from the rows that judge; None if there are none


class WantedPair(NamedTuple):
    """A pair that the policy keeps for lack of data, and what more data could be worth."""

    pair: int
    more_visits: int  # until it would be trusted
    promise: float  # its estimated gain over π_I, times the visits of its state


DECLINED = "none was asked for"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A policy with its certificates and its record, on which there is a verdict."""

    table: PolicyTable
    # Each at its own δ; the kind of the first was settled on before the data, and a refusal has the
    # kind no-claim.
    certificates: tuple[Certificate, ...]
    record: Record

    if TYPE_CHECKING:  # a field of both kinds, at the place that its constructor has for it

        @property
        def rehearsal(self) -> Rehearsal | None:
            """The stress test of the first certificate; None where none was made."""

    @property
    def estimated_gain(self) -> float:
        """Returns ρ of the new policy less that of π_b, estimated by a model.

        If data were held out from choosing the policy, the estimate uses only these.
        """
        estimates = self.record.estimates
        return estimates.get("held_out_gain", estimates["policy"] - estimates["behavior"])

    @property
    def awaits_stress_test(self) -> bool:
        """Tells whether a stress test was planned and is not finished yet."""
        return self.rehearsal is None and len(self.record.parameters.sizes) > 0

    @property
    def verdict(self) -> Rung:
        """Returns the verdict on the result, such as 'proved better'."""
        return rung_of(
            self.certificates,
            changed=bool(self.table.changed.any()),
            rehearsal=self.rehearsal,
            awaited=self.awaits_stress_test,
            checks=self.record.checks,
            groups=self.record.groups,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Conclusion):
    """Everything that the report on a result shows."""

    behavior_occupancy: FloatArray  # [S] share of discounted visits under π_b in M̂
    changes: tuple[StateChange, ...]  # all changed states, the largest contribution first
    rehearsal: Rehearsal | None  # the stress test of the first; None where none was made
    no_rehearsal: str = DECLINED  # why there will be no stress test
    wanted: tuple[WantedPair, ...]  # most promising first
    rules: Rules | None = None  # None if the policy follows no rules
    guideline: Mapping[Label, Label] = field(default_factory=dict)  # actions by states

    @property
    def chosen_gain(self) -> float:
        """ρ(π_I, M̂) − ρ(π_b, M̂), estimated from the data that chose the policy: too optimistic."""
        return self.record.estimates["policy"] - self.record.estimates["behavior"]

    @property
    def changed_share(self) -> float:
        """The share of decisions, at the visits of π_b, that π_I makes differently."""
        table = self.table
        moved = run_sums(np.abs(table.probability - table.behavior), table.pairs.offsets) / 2
        return math.fsum(one.occupancy * float(moved[one.state]) for one in self.changes)


# ---- the verdict --------------------------------------------------------------------------------
# There are five verdicts. Only the first certificate, whose kind was named before the data, can
# prove a gain. If no range of rewards was declared, the gain is proved within the rewards seen.
# That is less: a rare disaster that the log happens not to show would refute it. A belief is
# weaker, and never called a proof. It comes from a posterior that saw none of the data that chose
# the policy, and the stress test may undo it.


def rung_of(
    certificates: Sequence[Certificate],
    *,
    changed: bool,
    rehearsal: Rehearsal | None,
    awaited: bool = False,
    fresh: bool = False,
    checks: Sequence[Check] = (),
    groups: Sequence[GroupGain] = (),
) -> Rung:
    """Returns the verdict on a result; only the first certificate can prove a gain.

    `changed`: the policy differs from π_b. `awaited`: a stress test, which may undo a belief, is
    still to come. `fresh`: the policy was made without the data of the certificates. A failed check
    may forbid a proof; one of an assumption undoes every claim that makes it. While a failed check
    asks a question, or a group is not shown to be spared, nothing is proved or believed. Where a
    group is only believed to be spared, so is the gain.
    """
    if not changed:
        return "nothing changed"
    if asked(checks) or any(group.spared is False for group in groups):
        return "not shown to be better"
    if proves(certificates[0], checks):
        if certificates[0].assumes(WITHIN_SEEN):
            return "proved within the rewards seen"
        return "believed better" if any(group.believed for group in groups) else "proved better"
    belief = belief_in(certificates, fresh=fresh)
    if awaited or belief is None or (belief.lower or 0.0) <= 0 or undone(belief, rehearsal):
        return "not shown to be better"
    undermined = speaking_against(checks, belief) or not belief.none_worse
    return "not shown to be better" if undermined else "believed better"


def proves(certificate: Certificate, checks: Sequence[Check]) -> bool:
    """Tells whether a certificate proves a gain, and no failed check forbids to say so."""
    return is_proved(certificate) and not forbids_proof(checks, certificate)


def is_proved(certificate: Certificate) -> bool:
    """Tells whether a certificate proves a gain in whole episodes, not in their first steps.

    A claim above its own estimate proves nothing: one of its assumptions must be wrong. Kinds from
    plug-ins prove nothing here, whatever they say. Neither does a claim that leaves out rows
    without a known outcome.
    """
    if certificate.assumes(STOPPING.code):
        return False
    whole = certificate.parameters.get("claim", "performance") == "performance"
    lower = certificate.lower or 0.0
    estimate = certificate.figures.get("estimate")
    credible = not isinstance(estimate, float) or lower <= estimate
    proved = standing_of(certificate) == "proved" and lower > 0
    return whole and proved and credible and certificate.none_worse


def belief_in(certificates: Sequence[Certificate], *, fresh: bool = False) -> Certificate | None:
    """Returns the belief whose data did not choose the policy; None if there is none.

    It is the belief that the stress test measures. So its error rates are never shown for another
    one. It may assume that lost cases are like others in the same situation; a proof may not.
    """
    for place, certificate in enumerate(certificates):
        if certificate.standing == "believed" and (certificate.lower or 0.0) > 0:
            return certificate
        share = certificate.parameters.get("train_share")  # the part that chose the policy
        held_out = isinstance(share, float | int) and share > 0
        if may_be_believed(place, certificate.kind, apart=fresh or held_out):
            belief = standing_of(certificate) in ("posterior", BY_EXTENSION)
            return certificate if belief else None
    return None


def exceeding(rehearsal: Rehearsal) -> Rate:
    """Returns how often a belief was above the true gain in simulated worlds."""
    return Rate.of((rehearsal.belief > rehearsal.gain + rehearsal.tolerance).ravel())


def undone(belief: Certificate, rehearsal: Rehearsal | None) -> bool:
    """Tells whether the stress test undoes a belief: luck claims as much, or calibration fails."""
    if rehearsal is None or belief.lower is None:
        return False
    if belief.kind == NodePosterior.name:  # its worlds have gains, too, and none without any
        return exceeding(rehearsal).low > rehearsal.delta
    luck = rehearsal.luck_bound_of_beliefs(belief.delta)
    if luck is not None and belief.lower <= luck:
        return True
    calibration = rehearsal.calibration if rehearsal.believes_its_claim else None
    return calibration is not None and calibration.rank == 0
