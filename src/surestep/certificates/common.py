"""Defines the base of all kinds of certificates, and checks and assumptions that they share."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Settings, check_settings
from surestep.errors import CertificateRefused, InvalidParameter
from surestep.model import Policy, Problem, Signal
from surestep.model.certificate import Certificate, Standing
from surestep.model.known import LARGEST, Known
from surestep.model.statements import Scalar, Statement

TRUE_OF_CHANCES = ("rewards-known", "values-bounded", "returns-bounded")  # whatever the world is
Made = TypeVar("Made")
End = Annotated[float | None, Meta(ge=-LARGEST, le=LARGEST)]  # of a range; both, or neither
Seed = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]
Claim = Certificate | CertificateRefused
Bound = float | CertificateRefused  # L, or why there is none
Again = Callable[[Problem], Sequence[Policy]]  # the policies that other data lead to


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The needs of a kind of certificate besides counts."""

    episodes: bool = False  # the log itself, not its counts alone
    held_out: bool = False  # a part of the log that had no part in choosing the policy
    exact_rewards: bool = False  # rewards that are known: means of others count as exact


class WithRanges(Settings):
    """Settings with ranges, such as `reward_low` and `reward_high`."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_settings(self)
        for what in ("reward", "return", "ending"):
            low, high = (getattr(self, f"{what}_{end}", None) for end in ("low", "high"))
            if (low is None) != (high is None) or (low is not None and low > high):
                raise InvalidParameter(
                    f"{what}_low is {low} and {what}_high {high}, expected two numbers, the lower "
                    "one first, or neither"
                )


def refuse_settings(wrong: Mapping[str, bool]) -> None:
    """Refuses settings with the first sentence of `wrong` whose condition is true."""
    for refusal, holds in wrong.items():
        if holds:
            raise InvalidParameter(refusal)


def range_of(settings: object, what: str) -> tuple[float, float] | None:
    """Returns the two ends of a range of the settings; None where the range is not given."""
    low, high = (getattr(settings, f"{what}_{end}") for end in ("low", "high"))
    return None if low is None or high is None else (float(low), float(high))


def refused(
    code: str, kind: type[CertificateRefused] = CertificateRefused, /, **values: Any
) -> CertificateRefused:
    """Returns the refusal with this code, and with the values that its sentence needs."""
    return kind(Statement(code, values))


def usable_discount(problem: Problem) -> float:
    """Returns γ; refuses discounts per pair, and value bounds whose difference is infinite."""
    low, high = problem.value_bounds
    if not isinstance(problem.discount, float):
        raise refused("discount-per-pair")
    if not math.isfinite(high - low):
        raise refused("value-bounds-unusable", low=low, high=high)
    return problem.discount


def check_delta(delta: float, what: str, least: float) -> None:
    """Refuses a δ that is too small to compute with."""
    if delta < least:
        raise refused("delta-too-small", delta=delta, what=what, least=least)


def terms_of(problem: Problem) -> dict[str, Scalar]:
    """Returns the figures of a claim that name its terms: discount, value bounds, steps."""
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


def unless_refused(answer: Made | CertificateRefused) -> Made:
    """Returns an answer, or raises it if it is a refusal."""
    if isinstance(answer, CertificateRefused):
        raise answer
    return answer


def usable(answers: Iterable[Made | CertificateRefused]) -> list[Made]:
    """Returns the answers that are no refusals."""
    return [answer for answer in answers if not isinstance(answer, CertificateRefused)]


def answered(
    before: Iterable[object], answers: Iterable[Made | CertificateRefused]
) -> list[Made | CertificateRefused]:
    """Puts the answers in the places of the usable questions; refusals stay in theirs."""
    following = iter(answers)
    return [one if isinstance(one, CertificateRefused) else next(following) for one in before]


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
    return Certificate(
        kind=certifier.name,
        standing=standing,
        lower=lower,
        delta=certifier.delta,
        span=min(high - low, span),
        assumptions=assumptions,
        notes=notes,
        parameters={
            field.name: getattr(certifier, field.name) for field in dataclasses.fields(certifier)
        },
        figures=figures,
    )


def statement_if(holds: bool, code: str, /, **values: Any) -> tuple[Statement, ...]:
    """Returns the statement with this code, and the values of its sentence, if it holds."""
    return (Statement(code, values),) if holds else ()


def nothing_changed(problem: Problem, policy: Policy) -> tuple[Statement, ...]:
    """Returns the note that the policy is π_b, or nothing if it differs or claims are absolute."""
    same = bool((policy.probability == problem.behavior.probability).all())
    return statement_if(same and not problem.alone, "nothing-changed")


def log_statements(problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumptions about the log and its logger that every claim by counts makes."""
    return (
        Statement("markov"),
        Statement("no-hidden-causes"),
        Statement("nothing-beyond-given"),
        Statement("behavior-estimated")
        if problem.behavior_is_estimated
        else Statement("behavior-known"),
    )


def support_statements(problem: Problem) -> tuple[Statement, ...]:
    """Returns the assumption about where pairs may lead, if the problem says where."""
    return () if problem.support is None else (problem.support.statement(),)


def values_statement(problem: Problem) -> Statement:
    """Returns the assumption that every value lies within the bounds of the problem."""
    low, high = problem.value_bounds
    return Statement("values-bounded", {"low": low, "high": high})


def bound_of(claim: Claim) -> Bound:
    """Returns L, or why there is none."""
    if isinstance(claim, CertificateRefused):
        return claim
    if claim.lower is None:
        return refused("no-claim", kind=claim.kind)
    return claim.lower


# ---- a kind of certificate ---------------------------------------------------------------------


class Question(NamedTuple):
    """A policy for a problem, and the certifier that is to certify it."""

    certifier: Any
    problem: Problem
    policy: Policy
    at_least: float | None = None  # a level: then only gain ≥ this is tested
    planned_for: float | None = None  # the δ of the plan, if another question made it


class SignalPart(NamedTuple):
    """A signal, its limit, the problem that tests the limit, and the problem of the shown bound."""

    signal: Signal
    limit: float
    tested: Problem
    shown: Problem

    @classmethod
    def of(cls, signal: Signal) -> "SignalPart":
        """Makes the part of a signal; for a chance, the chance itself is shown, not its change."""
        problem = signal.problem
        if problem.reach is None:
            return cls(signal, -signal.margin, problem, problem)
        alone = arrays.altered(problem, reach=problem.reach._replace(alone=True))
        if signal.at_most is None:
            return cls(signal, -signal.margin, problem, alone)
        return cls(signal, -signal.at_most, alone, alone)


class JointBounds(NamedTuple):
    """The claim about the first of several signals, and bounds for all of them."""

    first: Claim
    tested: list[Bound]  # of the tested problems, each at δ
    shown: list[Bound]  # of the shown problems, all at once
    together: bool = True  # whether several kept limits may be claimed jointly


class Certifier:
    """The base of all kinds of certificates: a frozen dataclass of settings with one verb.

    A kind has `certify(problem, policy)`, which returns a `Certificate` or raises
    `CertificateRefused`. A kind that makes many claims faster together has a static
    `certify_many(asked)` instead, which returns the claim of each `Question`, or its refusal.
    The other methods answer the questions of the pipeline; their defaults suit most kinds.

    Attributes
    ----------
    delta : float
        The chance δ that a claim is wrong.
    name : str
        The kind of its certificates.
    value_figures : frozenset of str
        The figures in the unit of values, in which 0 is as good as 1e-12.
    needs : Needs
        The data that it needs beside counts.
    may_choose : bool
        Whether its bounds may choose among policies, as N∧ does.
    calibrates : bool, default False
        Whether a claim is the `rank`-th smallest of `draws` draws, the `gains`; then a stress test
        calibrates it.
    claims_chances : bool, default False
        Whether it makes claims about the chance to reach states.
    compares_many : bool, default False
        Whether it compares many policies quickly; `improve` then offers it more candidates.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from surestep.certificates.common import Needs, claim_of
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Silent(surestep.certificates.Certifier):
    ...     delta: float = 0.1
    ...     name: ClassVar = "silent"
    ...     value_figures: ClassVar = frozenset()
    ...     needs: ClassVar = Needs()
    ...     may_choose: ClassVar = False
    ...
    ...     def certify(self, problem, policy):
    ...         return claim_of(self, problem, None, "none")
    """

    __slots__ = ()

    name: ClassVar[str]
    value_figures: ClassVar[frozenset[str]]
    needs: ClassVar[Needs]
    may_choose: ClassVar[bool]
    calibrates: ClassVar[bool] = False
    claims_chances: ClassVar[bool] = False
    compares_many: ClassVar[bool] = False
    formerly: ClassVar[Mapping[str, Any]] = {}  # settings of claims from before there were such
    delta: float
    draws: int  # where it calibrates

    @property
    def rank(self) -> int:
        """Returns r = ⌊δ(n + 1)⌋, at most n: a claim by n draws is the r-th smallest of them."""
        return min(math.floor(self.delta * (self.draws + 1) + 1e-9), self.draws)

    @property
    def noise(self) -> tuple[float, float] | None:
        """Returns the bounds of single rewards if it takes rewards for noisy, else None."""
        return None

    @classmethod
    def told(cls, known: Known, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the settings that follow from facts of the data, beside those given.

        Parameters
        ----------
        known : Known
            Facts of the data.
        given : mapping of str to value
            The settings that the user gave.

        Returns
        -------
        dict of str to value
            Settings by name; those that the kind does not have are left out later.
        """
        return known.usual()

    def choosing_bounds(
        self, problems: Sequence[Problem], policies: Sequence[Sequence[Policy]], again: Again
    ) -> list[list[Bound]]:
        """Returns the bounds by which a policy of each problem is chosen; by default its claims.

        Parameters
        ----------
        problems : sequence of Problem
            All of their data may choose.
        policies : sequence of sequences of Policy
            The candidates of each problem.
        again : callable
            `again(part)` makes the candidates once more from a part of a problem.

        Returns
        -------
        list of lists of float or CertificateRefused
            The bound of each candidate, or its refusal.
        """
        return [
            [*map(bound_of, claims_of([Question(self, problem, policy) for policy in several]))]
            for problem, several in zip(problems, policies, strict=True)
        ]

    def gains(self, problem: Problem, policies: Sequence[Policy]) -> arrays.FloatArray:
        """Returns the gain of each policy in each draw, where the kind calibrates.

        Parameters
        ----------
        problem : Problem
            The data.
        policies : sequence of Policy
            The policies, compared in the same draws.

        Returns
        -------
        array of float [P, draws]
            Δ_k of each policy.

        Raises
        ------
        CertificateRefused
            Where nothing can be drawn.
        """
        raise NotImplementedError

    @staticmethod
    def gains_each(
        certifiers: Sequence[Any],
        problems: Sequence[Problem],
        policies: Sequence[Sequence[Policy]],
    ) -> list[arrays.FloatArray | CertificateRefused]:
        """Returns the `gains` of several certifiers of one kind, each for its own problem.

        Parameters
        ----------
        certifiers : sequence of Certifier
            One for each problem.
        problems : sequence of Problem
            The data.
        policies : sequence of sequences of Policy
            The policies of each problem.

        Returns
        -------
        list of arrays of float [P, draws] or CertificateRefused
            The gains, or the refusal.
        """
        return [
            tried(judge.gains, problem, several)
            for judge, problem, several in zip(certifiers, problems, policies, strict=True)
        ]

    def lighter(self) -> Self:
        """Returns the certifier for claims in worlds of a stress test, with less work if it can.

        Returns
        -------
        Certifier
            By default itself.
        """
        return self

    def lightest(self) -> Self:
        """Returns the certifier for beliefs and choices in worlds of a stress test.

        Returns
        -------
        Certifier
            By default `lighter`.
        """
        return self.lighter()

    def has_prior(self, name: str, weight: float | None) -> bool:
        """Tells whether the certifier has this prior; worlds drawn from it would hardly refute it.

        Parameters
        ----------
        name : str
            The name of a prior of rows.
        weight : float or None
            Its weight, where the name does not say it.

        Returns
        -------
        bool
            By default False.
        """
        return False

    def growth_for_proof(self, training: Problem, policy: Policy) -> float | None:
        """Returns the factor by which the log must grow to prove a gain.

        Parameters
        ----------
        training : Problem
            The part of the log that chose the policy.
        policy : Policy
            The policy.

        Returns
        -------
        float or None
            The factor; None where no log is expected to.

        Raises
        ------
        CertificateRefused
            By default, as most kinds do not foresee their claims.
        """
        raise refused("no-claim", kind=self.name)

    def for_signal(self, *, first: bool) -> Self:
        """Returns the certifier as it judges one of several signals; by default itself.

        Parameters
        ----------
        first : bool
            Whether it is the signal to be improved.

        Returns
        -------
        Certifier
            The certifier for that signal.
        """
        return self

    def shares(self, problems: Sequence[Problem]) -> list[float]:
        """Returns the share of δ for each of several bounds that hold at once.

        Parameters
        ----------
        problems : sequence of Problem
            The problems that the bounds are about, one for each signal.

        Returns
        -------
        list of float
            By default the same for all.
        """
        return [1 / len(problems)] * len(problems)

    @staticmethod
    def joint_bounds(
        judges: Sequence[Any], parts: Sequence[SignalPart], policy: Policy
    ) -> JointBounds:
        """Returns bounds for several signals: tested at δ, and shown at shares of δ.

        Parameters
        ----------
        judges : sequence of Certifier
            The certifier of each signal.
        parts : sequence of SignalPart
            The signals.
        policy : Policy
            The policy.

        Returns
        -------
        JointBounds
            The claim about the first signal, and all bounds.
        """
        first, *_ = judges
        shares = first.shares([part.shown for part in parts])
        tested = [
            Question(judge, part.tested, policy, at_least=part.limit)
            for judge, part in zip(judges[1:], parts[1:], strict=True)
        ]
        shown = [
            Question(
                dataclasses.replace(judge, delta=share * judge.delta),
                part.shown,
                policy,
                planned_for=judge.delta,
            )
            for judge, part, share in zip(judges, parts, shares, strict=True)
        ]
        asked = [Question(first, parts[0].tested, policy), *tested, *shown]
        silent = refused("no-claim", kind=first.name)
        before = [q if first.claims_chances or q.problem.reach is None else silent for q in asked]
        claims = answered(before, claims_of(usable(before)))
        bounds = [*map(bound_of, claims)]
        return JointBounds(claims[0], bounds[: len(parts)], bounds[len(parts) :])


def claims_of(asked: Sequence[Question]) -> list[Claim]:
    """Returns the claim of each question, or its refusal; those of one kind are made together."""
    if len({type(question.certifier) for question in asked}) > 1:
        return [claim for question in asked for claim in claims_of([question])]
    if asked and hasattr(asked[0].certifier, "certify_many"):
        together: list[Claim] = asked[0].certifier.certify_many(asked)
        return together
    return [tried(judge.certify, problem, policy) for judge, problem, policy, *_ in asked]
