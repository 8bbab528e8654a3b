"""The certificate of a policy that nothing covers: no claim, and the reason why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surestep._settings import Delta, Settings
from surestep.certificates.common import Needs, claim_of, values_statement
from surestep.model.certificate import NO_CLAIM, Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class NoClaim(Settings):
    """No L at all: a result without a guarantee.

    A result always carries a certificate. Where the one that was asked for is refused, this says
    so, with the reason, instead of leaving a gap that a reader might overlook.
    """

    code: str  # of the refusal: why there is no other, for programs
    asked: str | None = None  # the kind that was asked for; None where it is not known
    refusal: str  # the same in words
    delta: Delta = 0.1

    name: ClassVar = NO_CLAIM
    value_figures: ClassVar = frozenset[str]()
    needs: ClassVar = Needs()
    may_choose: ClassVar = False

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns a certificate without a claim, with the reason why there is none."""
        notes = (Statement("no-guarantee", {"asked": self.asked, "refusal": self.refusal}),)
        return claim_of(self, problem, None, "none", (values_statement(problem),), {}, notes)
