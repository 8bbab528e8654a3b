"""The certificate of a policy that nothing covers: no claim, and the reason why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surestep.certificates.common import Needs, values_statement
from surestep.errors import InvalidParameter
from surestep.model.certificate import NO_CLAIM, Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.statements import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class NoClaim:
    """No L at all: a result without a guarantee.

    A result always carries a certificate. Where the one that was asked for is refused, this says
    so, with the reason, instead of leaving a gap that a reader might overlook.
    """

    refusal: str  # why there is no other, in words
    code: str  # the same for programs: that of the refusal
    asked: str | None = None  # the kind that was asked for; None where it is not known
    delta: float = 0.1

    name: ClassVar = NO_CLAIM
    value_figures: ClassVar = frozenset[str]()
    needs: ClassVar = Needs()
    may_choose: ClassVar = False

    def __post_init__(self) -> None:
        """Checks that there is a reason, with a code, and that the kind asked for is a word."""
        if not isinstance(self.refusal, str) or not self.refusal:
            raise InvalidParameter(f"refusal is {self.refusal!r}, expected a reason in words")
        if not isinstance(self.code, str) or not self.code:
            raise InvalidParameter(f"code is {self.code!r}, expected that of the refusal")
        if self.asked is not None and not (isinstance(self.asked, str) and self.asked):
            raise InvalidParameter(f"asked is {self.asked!r}, expected a kind of certificate")

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns a certificate without a claim, with the reason why there is none."""
        low, high = problem.value_bounds
        why = {"asked": self.asked, "refusal": self.refusal}
        return Certificate(
            kind=self.name,
            standing="none",
            lower=None,
            delta=self.delta,
            span=high - low,
            assumptions=(values_statement(problem),),
            notes=(Statement("no-guarantee", why),),
            parameters={"code": self.code, **why, "delta": self.delta},
            figures={},
        )
