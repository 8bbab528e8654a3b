"""Findings: all that the report shows, as numbers and tables; the page itself computes nothing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from surestep._arrays import FloatArray, run_sums
from surestep.certificates.registry import BY_EXTENSION, may_be_believed, standing_of
from surestep.checks import Check
from surestep.checks.words import asked, forbids_proof
from surestep.io.labels.vocabulary import Label
from surestep.model import Certificate
from surestep.model.certificate import Rung
from surestep.model.statements import STOPPING, WITHIN_SEEN
from surestep.rehearsal import Rehearsal
from surestep.results.groups import GroupGain
from surestep.results.record import Record
from surestep.results.rules import Rules
from surestep.results.table import PolicyTable

Confirmation = Literal["confirmed", "open", "contradicted"]


class StateChange(NamedTuple):
    """A state in which π_I does something else than π_b."""

    state: int
    occupancy: float  # discounted visits of the state under π_b, a share of all: Σ = 1
    advantage: float  # Σ_a π_I(a|s) · advantage(s,a): what one decision gains there
    contribution: float  # to the estimated gain; the contributions of all states add up to it
    evidence: Confirmation | None = None  # by the rows that judge; None where there are none


class WantedPair(NamedTuple):
    """A pair that is kept as it was for lack of data, and what more data there could be worth."""

    pair: int
    more_visits: int  # until it would be trusted
    promise: float  # how much better it looks than π_I, times how often one is there


DECLINED = "none was asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result with everything around it that a reader should see."""

    table: PolicyTable
    behavior_occupancy: FloatArray  # [S] share of discounted visits under π_b in M̂
    changes: tuple[StateChange, ...]  # all changed states, the largest contribution first
    certificate: Certificate  # the one that was settled on before the data
    others: tuple[Certificate, ...]  # further kinds, each at its own δ; refused ones as no-claim
    rehearsal: Rehearsal | None  # the stress test of `certificate`; None where none was made
    no_rehearsal: str = DECLINED  # why, where there is none and none is to come
    wanted: tuple[WantedPair, ...]  # most promising first
    record: Record
    rules: Rules | None = None  # where the policy follows some
    guideline: Mapping[Label, Label] = field(default_factory=dict)  # actions by states

    @property
    def chosen_gain(self) -> float:
        """ρ(π_I, M̂) − ρ(π_b, M̂) by the data that chose the policy, which flatter it."""
        return self.record.estimates["policy"] - self.record.estimates["behavior"]

    @property
    def gain(self) -> float:
        """The estimated gain, by data that did not choose the policy where there are any."""
        return self.record.estimates.get("held_out_gain", self.chosen_gain)

    @property
    def changed_share(self) -> float:
        """The share of the decisions of π_b that would be others."""
        table = self.table
        moved = run_sums(np.abs(table.probability - table.behavior), table.pairs.offsets) / 2
        return math.fsum(one.occupancy * float(moved[one.state]) for one in self.changes)

    @property
    def awaits_stress_test(self) -> bool:
        """Tells whether there will be a stress test, but is none yet."""
        return self.rehearsal is None and len(self.record.parameters.sizes) > 0

    @property
    def verdict(self) -> Rung:
        """Returns how the result may be spoken of: a rung of the ladder of words."""
        return rung_of(
            (self.certificate, *self.others),
            changed=bool(self.changes),
            rehearsal=self.rehearsal,
            awaited=self.awaits_stress_test,
            checks=self.record.checks,
            groups=self.record.groups,
        )


# ---- the ladder of words ------------------------------------------------------------------------
# In which of five ways a result may be spoken of. Only the kind of certificate that the result
# stands by, which was named before the data, can prove. Where nobody declared what steps may earn,
# it proves within the rewards seen, which is less: a rare disaster that the log happens not to
# show would refute it. A belief is weaker, and never looks like a proof: it is what a posterior
# says that saw nothing of the data by which the policy was chosen, unless the stress test undoes
# it.


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
    """Returns how a result may be spoken of; the first certificate is the one to stand by.

    `changed` says whether the policy is another one than π_b, `awaited` that a stress test is still
    to come, which may undo a belief, and `fresh` that the policy was made without the data of the
    certificates. What a failed check forbids is not proved, and nothing is believed before what
    one asks is answered, nor where a group is not shown to be spared.
    """
    if not changed:
        return "nothing changed"
    if asked(checks) or any(group.spared is False for group in groups):
        return "not shown to be better"
    if is_proved(certificates[0]) and not forbids_proof(checks, certificates[0]):
        seen = certificates[0].assumes(WITHIN_SEEN)
        return "proved within the rewards seen" if seen else "proved better"
    belief = belief_in(certificates, fresh=fresh)
    if awaited or belief is None or (belief.lower or 0.0) <= 0 or undone(belief, rehearsal):
        return "not shown to be better"
    return "believed better" if belief.none_worse else "not shown to be better"


def is_proved(certificate: Certificate) -> bool:
    """Tells whether a certificate proves a gain in whole episodes, not in their first steps.

    A claim above its own estimate is none: it says that something it assumes is not so. Kinds that
    are not built in prove nothing here, whatever they say, and none does that leaves out rows of
    which nobody knows where they led.
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
    """Returns the belief by data that had no part in choosing the policy, if any is held.

    It is the one that the stress test measures, so that none is shown with the errors of another.
    It may take lost cases for like the others in the same situation, which no proof does.
    """
    for place, certificate in enumerate(certificates):
        share = certificate.parameters.get("train_share")  # that chose the policy, and is left out
        held_out = isinstance(share, float | int) and share > 0
        if may_be_believed(place, certificate.kind, apart=fresh or held_out):
            belief = standing_of(certificate) in ("posterior", BY_EXTENSION)
            return certificate if belief else None
    return None


def undone(belief: Certificate, rehearsal: Rehearsal | None) -> bool:
    """Tells whether luck alone claims as much in the stress test, or calibration leaves nothing."""
    if rehearsal is None or belief.lower is None:
        return False
    luck = rehearsal.luck_bound_of_beliefs(belief.delta)
    if luck is not None and belief.lower <= luck:
        return True
    calibration = rehearsal.calibration if rehearsal.believes_its_claim else None
    return calibration is not None and calibration.rank == 0
