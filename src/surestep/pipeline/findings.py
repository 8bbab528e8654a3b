"""From an improvement to what its report shows: what changes where, and what more data would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, freeze, run_sums
from surestep.algorithms import Algorithm, Limited, Limits
from surestep.algorithms.limits import NO_LIMITS, limited
from surestep.bounds import BOUNDS, ProblemSize, zeta
from surestep.certificates import Certifier
from surestep.certificates.bounding import lower_bounds
from surestep.certificates.protocol import Bound
from surestep.choosing_n_wedge import (
    AutoNWedge,
    Candidate,
    Choice,
    Method,
    n_wedge_setting,
    number_or_none,
    usual_grid,
    with_n_wedge,
)
from surestep.errors import CertificateRefused, InvalidParameter, SurestepError, said
from surestep.model import Certificate, FiniteMDP, Policy, Problem
from surestep.model.problem import Improvement
from surestep.pipeline.certifiers import Claims
from surestep.planning import occupancy
from surestep.results.advantage_intervals import change_intervals
from surestep.results.findings import (
    DataSummary,
    DeltaPoint,
    Evidence,
    Findings,
    NoRehearsal,
    NWedgePoint,
    StateChange,
    WantedPair,
    ZetaCurve,
)
from surestep.results.record import Record
from surestep.results.table import PolicyTable

MOST_WANTED = 25
LEAST_TRIED = 5  # times: below, what looks good may be the luck of a single visit


def findings_of(
    problem: Problem,
    estimate: FiniteMDP,
    table: PolicyTable,
    *,
    settled: Settled,
    certifier: Certifier,
    claims: Claims,
    others: tuple[Certificate, ...],
    no_rehearsal: NoRehearsal,
    data: DataSummary,
    record: Record,
    judging: Problem | None,
    progress: Callable[[int, int], None],
) -> Findings:
    """All that the report shows before a stress test; `estimate` is the estimated MDP.

    `certifier` made the claims, and `judging` is the problem of data that did not choose.
    """
    before, improvement, certificate = record.estimates["behavior"], settled.improvement, claims.own

    def gain_of(improvement: Improvement) -> float:
        return float(estimate.initial @ improvement.plan.value) - before

    visits = decision_visits(estimate, problem.behavior, table)
    ours = decision_visits(estimate, improvement.policy, table)
    return Findings(
        table=table,
        performance=record.estimates["policy"],
        behavior_performance=before,
        n_wedge=improvement.n_wedge,
        behavior_occupancy=shares(visits),
        occupancy=shares(ours),
        changes=state_changes(table, visits, evidence_of(improvement, judging, certificate.delta)),
        certificate=certificate,
        others=others,
        rehearsal=None,
        no_rehearsal=no_rehearsal,
        data=data,
        zeta_curves=zeta_curves(problem, certificate.delta),
        n_wedge_curve=n_wedge_curve(
            problem, settled, certificate, certifier, gain_of=gain_of, progress=progress
        ),
        delta_curve=delta_curve(claims.at),
        wanted=wanted_pairs(table, ours, improvement),
        record=record,
    )


def decision_visits(estimate: FiniteMDP, policy: Policy, table: PolicyTable) -> FloatArray:
    """Expected discounted visits of each state [S] under the policy; 0 where nothing is decided."""
    visits: FloatArray = run_sums(occupancy(estimate, policy), estimate.pairs.offsets)
    return np.where(table.quiet, 0.0, visits)


def shares(visits: FloatArray) -> FloatArray:
    """Visits as shares of all; 0 where there are none at all."""
    total = float(visits.sum())
    return freeze(visits / total if total > 0 else np.zeros(visits.size))


def evidence_of(
    improvement: Improvement, judging: Problem | None, delta: float
) -> Sequence[Evidence | None]:
    """Returns what the rows that judge say of a change in each state [S]; None where none judge.

    A change is confirmed where its interval is above 0, contradicted where it is below; the
    intervals of all changes hold together with about 1 − δ.
    """
    policy, value = improvement.policy, improvement.plan.value
    if judging is None:
        return [None] * value.size
    low, high = change_intervals(judging, value, policy, delta)
    words: tuple[Evidence, ...] = ("contradicted", "open", "confirmed")
    return [words[1 + int(a > 0) - int(b < 0)] for a, b in zip(low, high, strict=True)]


def state_changes(
    table: PolicyTable, visits: FloatArray, evidence: Sequence[Evidence | None]
) -> tuple[StateChange, ...]:
    """The states where π_I differs from π_b, the largest contribution to the gain first.

    ρ(π_I) − ρ(π_b) = Σ_s d_b(s) Σ_a π_I(a|s) · advantage(s,a), with d_b the discounted visits under
    π_b and the advantage of `PolicyTable`: the performance difference lemma with Q of π_I.
    """
    offsets = table.pairs.offsets
    advantage = run_sums(table.probability * table.advantage, offsets)
    contribution, share = visits * advantage, shares(visits)
    changed = np.flatnonzero(table.changed)
    order = changed[np.argsort(-np.abs(contribution[changed]), kind="stable")]
    return tuple(
        StateChange(
            int(s), float(share[s]), float(advantage[s]), float(contribution[s]), evidence[s]
        )
        for s in order
    )


def wanted_pairs(
    table: PolicyTable, visits: FloatArray, improvement: Improvement
) -> tuple[WantedPair, ...]:
    """Pairs seen too seldom to be trusted that look better than what π_I does there.

    Only pairs that were tried a few times: of the others, little but luck is known. And only pairs
    that may be recommended.
    """
    if table.trusted is None or improvement.n_wedge is None:
        return ()
    state = table.pairs.state
    better = table.q - improvement.plan.value[state]
    wanted = ~table.trusted & (table.visits + table.held_out_visits >= LEAST_TRIED)
    if table.allowed is not None:
        wanted &= table.allowed
    promise = np.where(wanted, visits[state] * better, 0.0)
    order = np.argsort(-promise, kind="stable")[:MOST_WANTED]
    return tuple(
        WantedPair(int(k), improvement.n_wedge + 1 - int(table.visits[k]), float(promise[k]))
        for k in order
        if promise[k] > 0
    )


# ---- results of other settings: another N∧, another δ, and any number of visits -----------------

LARGEST_POWER = 12  # ζ is drawn for up to 10¹² visits


class Settled(NamedTuple):
    """The algorithm with the N∧ that it used, what it found, and where N∧ came from."""

    algorithm: Algorithm
    improvement: Improvement
    choice: Choice | None = None  # None where nothing was chosen
    chosen_by: Certifier | None = None
    limits: Limits = NO_LIMITS


def settle(algorithm: Method, problem: Problem) -> Settled:
    """Improves, and where N∧ is to be chosen, chooses."""
    if isinstance(algorithm, Limited):
        improvement = algorithm.improve(problem)
        return Settled(algorithm.algorithm, improvement, limits=algorithm.limits)
    if not isinstance(algorithm, AutoNWedge):
        return Settled(algorithm, algorithm.improve(problem))
    try:
        choice = algorithm.choose(problem)
    except CertificateRefused as refusal:
        raise InvalidParameter(
            f"N∧ cannot be chosen: {refusal}; mend that, or give one "
            f"({said('n_wedge', '--n-wedge')})"
        ) from None
    best = choice.best
    return Settled(best.algorithm, best.improvement, choice, choice.chosen_by, algorithm.limits)


def n_wedge_curve(
    problem: Problem,
    settled: Settled,
    certificate: Certificate,
    certifier: Certifier,
    *,
    gain_of: Callable[[Improvement], float],
    progress: Callable[[int, int], None],
) -> tuple[NWedgePoint, ...]:
    """Returns the outcome of every N∧ of a grid; nothing where there is no N∧.

    The claim at the N∧ that was used is the certificate's own.
    """
    setting = n_wedge_setting(settled.algorithm)
    if setting is None:
        return ()
    used = getattr(settled.algorithm, setting)
    choice, visits = settled.choice, problem.counts.visits
    candidates = (
        [each for each in choice.candidates if each.one_action == choice.best.one_action]
        if choice is not None
        else other_candidates(problem, settled, certifier, max(1, used), progress)
    )
    return tuple(
        NWedgePoint(
            candidate.n_wedge,
            int((visits > (candidate.improvement.n_wedge or candidate.n_wedge)).sum()),
            gain_of(candidate.improvement),
            certificate.lower
            if candidate.n_wedge == used
            else shown(settled, certifier, candidate.lower),
        )
        for candidate in candidates
        if candidate.n_wedge is not None
    )


def shown(settled: Settled, certifier: Certifier, lower: Bound) -> float | None:
    """The bound of a candidate, unless another kind chose: bounds of two kinds make no curve."""
    other = settled.chosen_by is not None and settled.chosen_by.name != certifier.name
    return None if other else number_or_none(lower)


def other_candidates(
    problem: Problem,
    settled: Settled,
    certifier: Certifier,
    used: int,
    progress: Callable[[int, int], None],
) -> list[Candidate]:
    """Makes the whole improvement once more for every N∧ of the usual grid, and the one used.

    Their claims are those that a choice would go by. An a-priori bound is asked at each N∧.
    """
    grid = tuple(sorted({*usual_grid(int(problem.counts.visits.max())), used}))
    limits, improvements = settled.limits, []
    algorithms = [with_n_wedge(settled.algorithm, n_wedge) for n_wedge in grid]
    for done, algorithm in enumerate(algorithms):
        progress(done, len(grid))
        improvements.append(limited(algorithm, limits).improve(problem))
    if certifier.may_choose:
        auto = AutoNWedge(algorithm=settled.algorithm, certifier=certifier, limits=limits)
        _, lower = auto.bounds_of(problem, algorithms, [made.policy for made in improvements])
    else:
        lower = [
            lower_bounds(at_n_wedge(certifier, made.n_wedge), problem, [made.policy])[0]
            for made in improvements
        ]
    progress(len(grid), len(grid))
    return [*map(Candidate, algorithms, improvements, lower)]


def at_n_wedge(certifier: Certifier, n_wedge: int | None) -> Certifier:
    """Returns the certifier at another N∧, if it has one; with 0 visits it finds its own."""
    if not hasattr(certifier, "n_wedge"):
        return certifier
    changed: Certifier = replace(certifier, n_wedge=n_wedge or None)  # type: ignore[type-var]
    return changed


def delta_curve(claims: tuple[Certificate, ...]) -> tuple[DeltaPoint, ...]:
    """Returns L of the same policy at other δ; nothing where the certifier refuses it."""
    return tuple(
        DeltaPoint(claim.delta, claim.lower) for claim in claims if claim.lower is not None
    )


def zeta_curves(problem: Problem, delta: float) -> tuple[ZetaCurve, ...]:
    """ζ of every bound over the number of visits, without any gain; none where γ has no bound."""
    visits = tuple(digit * 10**power for power in range(LARGEST_POWER) for digit in (1, 2, 5))
    try:
        size = ProblemSize.of(problem, delta)
    except SurestepError:  # γ is 0 or 1, or all values are 0: the bounds say why elsewhere
        return ()
    return tuple(
        ZetaCurve(name, bound.standing, visits, tuple(zeta(name, n, size) for n in visits))
        for name, bound in BOUNDS.items()
    )
