"""Checks, assumptions and figures that several kinds of certificates share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model.certificate import Certificate, Standing
from surestep.model.known import LARGEST
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.model.statements import Scalar, Statement

TRUE_OF_CHANCES = ("rewards-known", "values-bounded", "returns-bounded")  # whatever the world is
Made = TypeVar("Made")
End = Annotated[float | None, Meta(ge=-LARGEST, le=LARGEST)]  # of a range; both, or neither
Seed = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Claim = Certificate | CertificateRefused
Bound = float | CertificateRefused  # L, or why there is none


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The needs of a kind of certificate beside counts; one that holds out has `training`."""

    episodes: bool = False  # the log itself, not its counts alone
    held_out: bool = False  # a part of the log that had no part in choosing the policy
    exact_rewards: bool = False  # rewards that are known: means of others count as exact


def check_ranges(settings: object, *whats: str) -> None:
    """Refuses one end of a range without the other, and ends that are the wrong way round."""
    for what in whats:
        low, high = (getattr(settings, f"{what}_{end}") for end in ("low", "high"))
        if (low is None) != (high is None) or (low is not None and low > high):
            raise InvalidParameter(
                f"{what}_low is {low} and {what}_high {high}, expected two numbers, the lower one "
                "first, or neither"
            )


def refuse_settings(wrong: Mapping[str, bool]) -> None:
    """Refuses settings that do not go together, by the first sentence that is true of them."""
    for refusal, holds in wrong.items():
        if holds:
            raise InvalidParameter(refusal)


def range_of(settings: object, what: str) -> tuple[float, float] | None:
    """Returns the two ends of what was given; None where nothing was."""
    low, high = (getattr(settings, f"{what}_{end}") for end in ("low", "high"))
    return None if low is None or high is None else (float(low), float(high))


def usable_discount(problem: Problem) -> float:
    """Returns γ; refused where pairs have their own, or where values differ beyond all numbers."""
    low, high = problem.value_bounds
    if not isinstance(problem.discount, float):
        raise CertificateRefused(Statement("discount-per-pair"))
    if not math.isfinite(high - low):
        raise CertificateRefused(Statement("value-bounds-unusable", {"low": low, "high": high}))
    return problem.discount


def check_delta(delta: float, what: str, least: float) -> None:
    """Refuses a δ that is too small to compute with."""
    if delta < least:
        said: dict[str, Scalar] = {"delta": delta, "what": what, "least": least}
        raise CertificateRefused(Statement("delta-too-small", said))


def terms_of(problem: Problem) -> dict[str, Scalar]:
    """Returns the figures of a claim about the discount, the value bounds, and what it is about."""
    low, high = problem.value_bounds
    terms: dict[str, Scalar] = {"value_low": low, "value_high": high}
    if problem.reach is not None:
        terms |= {"within": problem.horizon, "alone": problem.alone}
    return {"discount": problem.single_discount, **terms}


def tried(make: Callable[..., Made], *given: Any) -> Made | CertificateRefused:
    """Calls `make(*given)`; returns its result, or the `CertificateRefused` that it raised."""
    try:
        return make(*given)
    except CertificateRefused as refusal:
        return refusal


def usable(answers: Iterable[Made | CertificateRefused]) -> list[Made]:
    """Returns the answers that are no refusals."""
    return [each for each in answers if not isinstance(each, CertificateRefused)]


def answered(
    before: Iterable[object], answers: Iterable[Made | CertificateRefused]
) -> list[Made | CertificateRefused]:
    """Returns for each that is usable what was made of it, and all refusals in their places."""
    following = iter(answers)
    return [each if isinstance(each, CertificateRefused) else next(following) for each in before]


def claim_of(
    certifier: Any,
    problem: Problem,
    lower: float | None,
    standing: Standing,
    *,
    assumptions: tuple[Statement, ...] = (),
    figures: Mapping[str, Scalar] = MappingProxyType({}),
    notes: tuple[Statement, ...] = (),
    span: float = math.inf,
) -> Certificate:
    """Returns the certificate of a kind with all its settings; no gain exceeds the value bounds."""
    low, high = problem.value_bounds
    if problem.reach is not None:
        assumptions = tuple(said for said in assumptions if said.code not in TRUE_OF_CHANCES)
    names = [field.name for field in dataclasses.fields(certifier)]
    return Certificate(
        kind=certifier.name,
        standing=standing,
        lower=lower,
        delta=certifier.delta,
        span=min(high - low, span),
        assumptions=assumptions,
        notes=notes,
        parameters={name: getattr(certifier, name) for name in names},
        figures=figures,
    )


def nothing_changed(problem: Problem, policy: Policy) -> tuple[Statement, ...]:
    """Returns the note on a policy that is π_b, if it is, and is compared with it."""
    same = bool((policy.probability == problem.behavior.probability).all())
    return (Statement("nothing-changed"),) if same and not problem.alone else ()


def log_statements(problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumptions of every claim by counts about the log and who made it."""
    return (
        Statement("markov"),
        Statement("no-hidden-causes"),
        Statement("nothing-beyond-given"),
        Statement("behavior-estimated")
        if problem.behavior_is_estimated
        else Statement("behavior-known"),
    )


def values_statement(problem: Problem) -> Statement:
    """Returns the assumption that every value lies within the bounds of the problem."""
    low, high = problem.value_bounds
    return Statement("values-bounded", {"low": low, "high": high})


def bound_of(claim: Claim) -> Bound:
    """Returns L, or why there is none."""
    if isinstance(claim, CertificateRefused):
        return claim
    if claim.lower is None:
        return CertificateRefused(Statement("no-claim", {"kind": claim.kind}))
    return claim.lower
