"""From an improvement to what its report shows: what changes where, and what more data would do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surestep._arrays import FloatArray, freeze, run_sums
from surestep.certificates import Certifier
from surestep.model import Certificate, FiniteMDP, Policy, Problem
from surestep.model.problem import Improvement
from surestep.pipeline.certifiers import Claims
from surestep.pipeline.sensitivity import Settled, delta_curve, n_wedge_curve, zeta_curves
from surestep.planning import occupancy
from surestep.results.findings import DataSummary, Findings, NoRehearsal, StateChange, WantedPair
from surestep.results.record import Record
from surestep.results.table import PolicyTable

MOST_WANTED = 25


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
    progress: Callable[[int, int], None],
) -> Findings:
    """All that the report shows before a stress test; `estimate` is the estimated MDP.

    `certifier` made the claims.
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
        changes=state_changes(table, visits),
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


def state_changes(table: PolicyTable, visits: FloatArray) -> tuple[StateChange, ...]:
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
        StateChange(int(s), float(share[s]), float(advantage[s]), float(contribution[s]))
        for s in order
    )


def wanted_pairs(
    table: PolicyTable, visits: FloatArray, improvement: Improvement
) -> tuple[WantedPair, ...]:
    """Pairs seen too seldom to be trusted that look better than what π_I does there.

    Only pairs that were tried at all: of the others nothing is known, good or bad. And only pairs
    that may be recommended.
    """
    if table.trusted is None or improvement.n_wedge is None:
        return ()
    state = table.pairs.state
    better = table.q - improvement.plan.value[state]
    wanted = ~table.trusted & (table.visits > 0)
    if table.allowed is not None:
        wanted &= table.allowed
    promise = np.where(wanted, visits[state] * better, 0.0)
    order = np.argsort(-promise, kind="stable")[:MOST_WANTED]
    return tuple(
        WantedPair(int(k), improvement.n_wedge + 1 - int(table.visits[k]), float(promise[k]))
        for k in order
        if promise[k] > 0
    )
