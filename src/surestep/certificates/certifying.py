"""Certifies policies, one or several, of one signal or several; makes claims again to verify them.

A claim about several signals: better in the first, and no worse in the rest.

**Whether all hold.** The limits are fixed before the data: the gain of the first signal is above 0,
that of signal k is at least minus its margin, and the chance to reach unsafe states is at most a
number, or at most so much more than before. Each is tested at the *whole* δ: a lower bound L_k at
level δ passes its limit. All are said to hold only if every one of them passes. If signal k does
not keep its limit in truth, then it passes only if L_k is above its true gain, which has a chance
of at most δ, and all pass with no larger chance. So whatever signals are wrong, and however their
bounds depend on each other, P(all pass although not all hold) ≤ δ (an intersection–union test:
Berger 1982). ∎ Nothing is shared, since nobody acts on a part of it alone. Of further signals only
whether they pass is asked for: a stitched claim tries their limits, and no other gains.

**Bounds that hold at once** are shown beside it, at levels δ_k that add up to δ and were fixed
beforehand: P(some L_k is too high) ≤ Σ δ_k = δ. ∎ Stitched ones are made of the rounds and stakes
that were planned for δ. All of m signals have δ/m, with two exceptions:

- robust: *one* event, that the rows of the true model lie in their sets, serves all signals; only
  rewards that are not known have to lie in their sets for each signal. With n things that are not
  known in all, each row, start and reward of each signal has δ/n. A signal for itself has n_k of
  them, and its bound at δ n_k/n has exactly these sets.
- posterior: the gains of all signals are computed in the same draws. All hold if fewer than r draws
  break any limit, r as in `posterior`; the bounds are the q-th smallest gains of each signal, with
  the largest q at which fewer than r draws are below any of them.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import surestep._arrays as arrays
from surestep.certificates.common import (
    Bound,
    Certifier,
    Claim,
    JointBounds,
    Question,
    SignalPart,
    claims_of,
    refused,
    tried,
    unless_refused,
)
from surestep.certificates.registry import (
    SHELF,
    certifier_for,
    check_certifier,
    make_certifier,
    standing_of,
)
from surestep.errors import (
    CertificateMismatch,
    CertificateRefused,
    InvalidCertificate,
    InvalidParameter,
    NeverEnds,
    NotConverged,
)
from surestep.model.certificate import Certificate, SignalClaim
from surestep.model.log import UNKNOWN
from surestep.model.pairs import check_same_pairs
from surestep.model.policy import Policy, PolicyLike, policy_of
from surestep.model.problem import Problem, Signal, stopped
from surestep.model.statements import OWN_WORDS, STOPPING, WITHIN_SEEN, Statement
from surestep.planning import performance, reachability

AGREEMENT = 1e-9  # relative; values of another machine may differ in their last digits


def certify(problem: Problem, policy: PolicyLike, certifier: Certifier | str) -> Certificate:
    """Returns a certificate about ρ(policy) − ρ(π_b), from the data of the problem alone.

    Parameters
    ----------
    problem : Problem
        The data, and their terms. Its premises come after the assumptions of the certifier.
    policy : Policy, Plan, Improvement, Result or array of float [S, A]
        The policy to be judged.
    certifier : Certifier or str
        A kind with its settings, or a text such as "posterior" or "robust:set=l1".

    Returns
    -------
    Certificate
        The claim.

    Raises
    ------
    CertificateRefused
        Where the kind claims nothing of this policy by these data.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[30, 10], [5, 150]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.5, value_bounds=(0.0, 2.0))
    >>> policy = surestep.Policy.deterministic(counts, [1, 0])
    >>> claim = surestep.certify(problem, policy, "robust:known_start=true")
    >>> str(claim.standing), claim.lower > 0
    ('proved', True)
    """
    if isinstance(certifier, str):
        certifier = make_certifier(certifier)
    arrays.expect("problem", problem, Problem)
    (claim,) = certify_many([problem], [policy_of(policy, problem.counts)], certifier)
    return unless_refused(claim)


def certify_many(
    problems: Sequence[Problem],
    policies: Sequence[Policy],
    certifier: Certifier | Sequence[Certifier],
) -> list[Claim]:
    """Returns the certificate of each problem and its policy, or the refusal.

    Parameters
    ----------
    problems : sequence of Problem
        The data.
    policies : sequence of Policy
        A policy for each problem.
    certifier : Certifier or sequence of Certifier
        One for all, or one for each. Robust certificates of small problems over the same pairs are
        made together, on all cores, and so are stitched ones.

    Returns
    -------
    list of Certificate or CertificateRefused
        The claims, or refusals.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[30, 10], [5, 150]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.5, value_bounds=(0.0, 2.0))
    >>> policy = surestep.Policy.deterministic(counts, [1, 0])
    >>> robust = surestep.certificates.Robust(known_start=True)
    >>> claims = surestep.certificates.certify_many(
    ...     [problem] * 2, [policy, problem.behavior], robust)
    >>> claims[0].lower > claims[1].lower == 0
    True
    """
    certifiers = certifier if isinstance(certifier, Sequence) else [certifier] * len(problems)
    if not len(problems) == len(policies) == len(certifiers):
        raise InvalidParameter(
            f"there are {len(problems)} problems, {len(policies)} policies and {len(certifiers)} "
            "certifiers, expected a policy for each problem"
        )
    asked = [*map(Question, certifiers, problems, policies)]
    for judge, problem, policy, *_ in asked:
        arrays.expect("problem", problem, Problem)
        arrays.expect("policy", policy, Policy)
        check_certifier(judge)
        check_same_pairs("the problem", problem.counts.pairs, "the policy", policy.pairs)
    alone = iter(claims_of([question for question in asked if not question.problem.signals]))
    claims = (tried(certify_jointly, *q[:3]) if q.problem.signals else next(alone) for q in asked)
    return [
        claim
        if isinstance(claim, CertificateRefused)
        else accepted(claim, question.certifier, question.problem)
        for claim, question in zip(claims, asked, strict=True)
    ]


def certify_jointly(certifier: Any, problem: Problem, policy: Policy) -> Certificate:
    """Returns the claim about the first signal, with the claims about every signal at once.

    Refuses if the first signal has no claim. If the limits cannot all be claimed to hold together,
    no joint claim is made.
    """
    whole = arrays.altered(problem, signals=())
    first = Signal(name=problem.name, problem=whole, cost=problem.cost)
    parts = [SignalPart(first, 0.0, whole, whole), *map(SignalPart.of, problem.signals)]
    others = [certifier_for(certifier, signal) for signal in problem.signals]
    judges = [certifier.for_signal(first=True), *(one.for_signal(first=False) for one in others)]
    bounds: JointBounds = certifier.joint_bounds(judges, parts, policy)
    claim = unless_refused(bounds.first)
    signals = []
    of_parts = zip(parts, bounds.tested, bounds.shown, strict=True)
    for place, (part, tested, shown) in enumerate(of_parts):
        signal = part.signal
        lower = number_of(tested)
        passes = lower is not None and (lower >= part.limit if place > 0 else lower > 0)
        refusals = [bound for bound in (tested, shown) if isinstance(bound, CertificateRefused)]
        before, after = values_of(signal, (signal.problem.behavior, policy))
        signals.append(
            SignalClaim(
                name=signal.name,
                cost=signal.cost,
                chance=signal.is_chance,
                alone=signal.at_most is not None,
                limit=part.limit,
                tested=lower,
                holds=passes and bounds.together,
                lower=number_of(shown),
                before=before,
                after=after,
                refusal=str(refusals[0]) if refusals else None,
            )
        )
    return dataclasses.replace(claim, signals=tuple(signals))


def number_of(bound: Bound) -> float | None:
    """Returns a bound as a number; None where there is none."""
    return None if isinstance(bound, CertificateRefused) else float(bound)


def values_of(signal: Signal, policies: Sequence[Policy]) -> list[float | None]:
    """Returns a signal's estimate under each policy, costs as positive numbers, or None."""
    problem = stopped(signal.problem)
    model = problem.estimate()
    reach = problem.reach

    def value(policy: Policy) -> float | None:
        try:
            if reach is None:
                worth = performance(model, policy)
                return 0.0 - worth if signal.cost else worth
            chance = reachability(model, reach.states, policy, within=reach.within)
        except (NeverEnds, NotConverged):
            return None
        return float(model.initial @ (chance.lower + chance.upper) / 2)

    return [*map(value, policies)]


def accepted(claim: Certificate, certifier: Certifier, problem: Problem) -> Certificate:
    """Adds the premises of the problem to a claim; refuses one under another kind's name.

    Premises of further signals that the first does not have come with their names. A claim of a
    plug-in stands by extension, never as proved.
    """
    arrays.expect("certificate", claim, Certificate)
    if claim.kind != certifier.name:
        raise InvalidParameter(
            f"{type(certifier).__name__} makes a certificate of the kind {claim.kind!r}, expected "
            f"its own, {certifier.name!r}"
        )
    of_signals = (
        # That no reward lies outside of those seen keeps its code: it forbids a proof.
        said
        if said.code == WITHIN_SEEN
        else Statement(OWN_WORDS, {"sentence": f"Of {signal.name}: {said}"})
        for signal in problem.signals
        for said in signal.problem.premises
        if said not in problem.premises
    )
    premises = premises_of(certifier, problem)
    return dataclasses.replace(
        claim, standing=standing_of(claim), assumptions=(*claim.assumptions, *premises, *of_signals)
    )


def premises_of(certifier: Certifier, problem: Problem) -> tuple[Statement, ...]:
    """Returns the premises of the problem that a claim rests on.

    A certifier that reads the log itself leaves out no row; counts leave out rows whose next state
    is unknown.
    """
    others = tuple(said for said in problem.premises if said.code != STOPPING.code)
    if certifier.needs.episodes:
        return others
    log = problem.log
    if log is not None and (log.next_state == UNKNOWN).any() and others == problem.premises:
        return (*others, STOPPING)
    return problem.premises


def verify(certificate: Certificate, problem: Problem, policy: Policy) -> Certificate:
    """Makes a certificate again, and refuses it where it comes out differently.

    Codes, words, whole numbers and settings must be the same, other numbers within 1e-9: relative
    to themselves, or to the span where they are values.

    Parameters
    ----------
    certificate : Certificate
        The claim.
    problem : Problem
        The data that it was made from.
    policy : Policy
        The policy that it is about.

    Returns
    -------
    Certificate
        The certificate that was made again.

    Raises
    ------
    CertificateMismatch
        Where a part of it differs.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[30, 10], [5, 150]], [[0, 0], [0, 0]]],
    ...     rewards=[[0.0, 1.0], [0.0, 0.0]], terminal=[False, True])
    >>> problem = surestep.Problem(counts=counts, behavior=surestep.Policy.uniform(counts),
    ...     discount=0.5, value_bounds=(0.0, 2.0))
    >>> policy = surestep.Policy.deterministic(counts, [1, 0])
    >>> claim = surestep.certify(problem, policy, "robust:known_start=true")
    >>> surestep.certificates.verify(claim, problem, policy) == claim
    True
    """
    arrays.expect("certificate", certificate, Certificate)
    formerly = getattr(SHELF.find(certificate.kind), "formerly", {})
    certificate = dataclasses.replace(
        certificate, parameters={**formerly, **certificate.parameters}
    )
    certifier = certifier_of(certificate)
    again = certify(problem, policy, certifier)
    slack = AGREEMENT * again.span
    must_agree("lower", certificate.lower, again.lower, slack)
    for name in ("delta", "span", "standing"):
        must_agree(name, getattr(certificate, name), getattr(again, name))
    must_agree("the number of signals", len(certificate.signals), len(again.signals))
    for ours, theirs in zip(certificate.signals, again.signals, strict=True):
        for name in SignalClaim.__struct_fields__:
            both = getattr(ours, name), getattr(theirs, name)
            must_agree(f"signals.{ours.name}.{name}", *both, slack if name != "limit" else 0.0)
    for path in ("assumptions", "notes"):
        claimed, expected = getattr(certificate, path), getattr(again, path)
        must_agree(path, [said.code for said in claimed], [said.code for said in expected])
        for place, (said, computed) in enumerate(zip(claimed, expected, strict=True)):
            for name, value in computed.values.items():
                must_agree(f"{path}[{place}].{name}", said.values[name], value)
    for name in ("parameters", "figures"):
        claimed, expected = getattr(certificate, name), getattr(again, name)
        must_agree(f"the names of {name}", sorted(claimed), sorted(expected))
        for key, value in expected.items():
            in_values = name == "figures" and key in certifier.value_figures
            must_agree(f"{name}.{key}", claimed[key], value, slack if in_values else 0.0)
    return again


def certifier_of(certificate: Certificate) -> Certifier:
    """Returns the certifier of that kind with those parameters."""
    kind = SHELF.find(certificate.kind)
    if kind is None:
        known = ", ".join(SHELF.everything())
        raise refused("unknown-kind", kind=certificate.kind, known=known)
    names = [field.name for field in dataclasses.fields(kind)]
    for name in (*names, *certificate.parameters):
        if not (name in names and name in certificate.parameters):
            wrong = "is missing" if name in names else f"is no setting of {certificate.kind}"
            raise InvalidCertificate(f"parameters.{name} {wrong}; expected {', '.join(names)}")
    certifier: Certifier = kind(**certificate.parameters)
    return certifier


def must_agree(path: str, claimed: object, expected: object, slack: float = 0.0) -> None:
    """Refuses a certificate with a part that differs from the part computed from the data."""
    # Other programs may write the double 4.0 as 4.
    if (
        arrays.is_number(claimed)
        and arrays.is_number(expected)
        and float in (type(claimed), type(expected))
    ):
        agrees = math.isclose(claimed, expected, rel_tol=AGREEMENT, abs_tol=slack)
    else:
        agrees = type(claimed) is type(expected) and claimed == expected
    if not agrees:
        raise refused(
            "mismatch",
            CertificateMismatch,
            path=path,
            claimed=repr(claimed),
            computed=repr(expected),
        )
