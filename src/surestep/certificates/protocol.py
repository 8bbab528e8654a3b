"""The face of a kind of certificate to all others, and what some kinds do in a way of their own.

A kind has the members of `Certifier`. Whatever else others ask of it has an answer that is usual
for all kinds, unless it has a member for that: `claims` (see `ClaimsTogether`), `claims_each` (see
`ClaimsEach`), `choosing_bounds` (see `Chooser` and `ChoosesTogether`), `gains_each` (see
`GainsTogether`), `told` (see `ToldOfData`), `why_not_rehearsed` (see `NotRehearsed`), `label` (see
`Labelled`), and `chooses_by`, words for what N∧ is chosen by if not by the lower bound of the claim
itself; and one that is calibrated in worlds has what `Believer` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeGuard, runtime_checkable

from surestep._arrays import BoolArray, FloatArray
from surestep.certificates.common import Needs
from surestep.certificates.known import Known
from surestep.errors import CertificateRefused
from surestep.model.certificate import Certificate
from surestep.model.policy import Policy
from surestep.model.problem import Problem

Claim = Certificate | CertificateRefused
Bound = float | CertificateRefused  # L, or why there is none
Again = Callable[[Problem], Sequence[Policy]]  # the policies that other data lead to


class Certifier(Protocol):
    """A frozen dataclass of settings with one verb."""

    name: ClassVar[str]  # the kind of its certificates
    value_figures: ClassVar[frozenset[str]]  # figures in the unit of values: 0 is as good as 1e-12
    needs: ClassVar[Needs]  # what it must be given beside counts
    may_choose: ClassVar[bool]  # whether its claims may choose among policies, as N∧ does

    @property
    def delta(self) -> float:
        """δ, the chance that the claim is wrong."""
        ...

    def certify(self, problem: Problem, policy: Policy) -> Certificate:
        """Returns the claim about the policy; CertificateRefused where there is none."""
        ...


@runtime_checkable
class ClaimsTogether(Protocol):
    """A certifier that makes many claims at once faster than one by one."""

    def claims(self, problems: Sequence[Problem], policies: Sequence[Policy]) -> list[Claim]:
        """Returns the claim about the policy of each problem, or why there is none."""
        ...


@runtime_checkable
class ClaimsEach(Protocol):
    """A certifier that does so together with others of its kind, each with settings of its own."""

    def claims_each(
        self,
        certifiers: Sequence[Any],
        problems: Sequence[Problem],
        policies: Sequence[Policy],
    ) -> list[Claim]:
        """Returns what each certifier, all of its kind, claims of the policy of its problem."""
        ...


@runtime_checkable
class Chooser(Protocol):
    """A certifier by whose claims themselves no policy may be chosen, but by something near."""

    def choosing_bounds(
        self, problem: Problem, policies: Sequence[Policy], again: Again
    ) -> list[Bound]:
        """Returns what is to be expected of each policy, if all of the problem may choose.

        `again` makes the policies once more, from a part of the problem.
        """
        ...


@runtime_checkable
class ChoosesTogether(Protocol):
    """A chooser, without a need for policies `again`, that answers many problems at once."""

    def choosing_bounds_each(
        self, problems: Sequence[Problem], policies: Sequence[Sequence[Policy]]
    ) -> list[list[Bound]]:
        """Returns what `Chooser.choosing_bounds` says of the policies of each problem."""
        ...


@runtime_checkable
class ToldOfData(Protocol):
    """A kind that has settings of its own to be told, where nobody gave them."""

    @classmethod
    def told(cls, known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that follow from what is known; those given win over them."""
        ...


@runtime_checkable
class NotRehearsed(Protocol):
    """A kind that cannot be rehearsed with all of its settings."""

    @classmethod
    def why_not_rehearsed(cls, given: Mapping[str, Any]) -> str:
        """Returns what stands against a rehearsal with these settings; empty where nothing does."""
        ...


@runtime_checkable
class Labelled(Protocol):
    """A kind of which several may stand side by side, told apart by some of their settings."""

    @classmethod
    def label(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:
        """Returns the settings to call a certificate by, beside its kind; None is left out."""
        ...


class Believer(Certifier, Protocol):
    """A certifier whose claim is the r-th smallest gain in drawn models: it is only believed."""

    @property
    def draws(self) -> int:
        """Returns how many models are drawn."""
        ...

    @property
    def seed(self) -> int:
        """Returns the seed of the draws."""
        ...

    @property
    def rank(self) -> int:
        """Returns r."""
        ...

    @property
    def noise(self) -> tuple[float, float] | None:
        """Returns the bounds of single rewards, where they are taken to be noisy."""
        ...

    def with_draws(self, draws: int) -> Self:
        """Returns the same with so many draws."""
        ...

    def has_prior(self, name: str, weight: float | None) -> bool:
        """Tells whether it draws models under this very prior."""
        ...

    def gains(self, problem: Problem, policies: Sequence[Policy]) -> FloatArray:
        """Returns the gain of each policy in the same draws [P, draws]."""
        ...

    def certify_at(
        self, problem: Problem, policy: Policy, levels: Sequence[float]
    ) -> list[Certificate]:
        """Returns the claims at several δ, all from the same draws."""
        ...

    def cells(self, problem: Problem, taken: BoolArray) -> list[int]:
        """Returns how many transitions models drawn under each prior have, of the pairs taken."""
        ...


@runtime_checkable
class GainsTogether(Protocol):
    """A believer that draws models for many problems at once."""

    def gains_each(
        self,
        certifiers: Sequence[Any],
        problems: Sequence[Problem],
        policies: Sequence[Sequence[Policy]],
    ) -> list[FloatArray | CertificateRefused]:
        """Returns the gains by each certifier, all of its kind, or why there are none."""
        ...


def believes(certifier: Certifier | None) -> TypeGuard[Believer]:
    """Tells whether a certifier claims by draws, and is calibrated in worlds."""
    return certifier is not None and certifier.needs.calibration
