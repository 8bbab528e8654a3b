"""From an improvement to what its report shows: what changes where, and what more data would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
import surestep.results.findings as found
from surestep._arrays import FloatArray
from surestep.algorithms import Algorithm
from surestep.algorithms.limits import NO_LIMITS, Limited, Limits
from surestep.certificates import Certifier
from surestep.choosing_n_wedge import AutoNWedge, Choice, ConstrainedChoice, Method
from surestep.errors import CertificateRefused, InvalidParameter, said
from surestep.model import Certificate, FiniteMDP, Policy, Problem
from surestep.model.problem import Improvement
from surestep.planning import occupancy
from surestep.results.advantage_intervals import change_intervals
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
    certificate: Certificate,
    others: tuple[Certificate, ...],
    no_rehearsal: found.NoRehearsal,
    data: found.DataSummary,
    record: Record,
    judging: Problem | None,
) -> found.Findings:
    """All that the report shows before a stress test; `estimate` is the estimated MDP.

    `judging` is the problem of data that did not choose the policy.
    """
    before, improvement = record.estimates["behavior"], settled.improvement
    visits = decision_visits(estimate, problem.behavior, table)
    ours = decision_visits(estimate, improvement.policy, table)
    return found.Findings(
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
        wanted=wanted_pairs(table, ours, improvement),
        record=record,
    )


def decision_visits(estimate: FiniteMDP, policy: Policy, table: PolicyTable) -> FloatArray:
    """Expected discounted visits of each state [S] under the policy; 0 where nothing is decided."""
    visits: FloatArray = arrays.run_sums(occupancy(estimate, policy), estimate.pairs.offsets)
    return np.where(table.quiet, 0.0, visits)


def shares(visits: FloatArray) -> FloatArray:
    """Visits as shares of all; 0 where there are none at all."""
    total = float(visits.sum())
    return arrays.freeze(visits / total if total > 0 else np.zeros(visits.size))


def evidence_of(
    improvement: Improvement, judging: Problem | None, delta: float
) -> Sequence[found.Evidence | None]:
    """Returns what the rows that judge say of a change in each state [S]; None where none judge.

    A change is confirmed where its interval is above 0, contradicted where it is below; the
    intervals of all changes hold together with about 1 − δ.
    """
    policy, value = improvement.policy, improvement.plan.value
    if judging is None:
        return [None] * value.size
    low, high = change_intervals(judging, value, policy, delta)
    words: tuple[found.Evidence, ...] = ("contradicted", "open", "confirmed")
    return [words[1 + int(a > 0) - int(b < 0)] for a, b in zip(low, high, strict=True)]


def state_changes(
    table: PolicyTable, visits: FloatArray, evidence: Sequence[found.Evidence | None]
) -> tuple[found.StateChange, ...]:
    """The states where π_I differs from π_b, the largest contribution to the gain first.

    ρ(π_I) − ρ(π_b) = Σ_s d_b(s) Σ_a π_I(a|s) · advantage(s,a), with d_b the discounted visits under
    π_b and the advantage of `PolicyTable`: the performance difference lemma with Q of π_I.
    """
    offsets = table.pairs.offsets
    advantage = arrays.run_sums(table.probability * table.advantage, offsets)
    contribution, share = visits * advantage, shares(visits)
    changed = np.flatnonzero(table.changed)
    order = changed[np.argsort(-np.abs(contribution[changed]), kind="stable")]
    return tuple(
        found.StateChange(
            int(s), float(share[s]), float(advantage[s]), float(contribution[s]), evidence[s]
        )
        for s in order
    )


def wanted_pairs(
    table: PolicyTable, visits: FloatArray, improvement: Improvement
) -> tuple[found.WantedPair, ...]:
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
        found.WantedPair(int(k), improvement.n_wedge + 1 - int(table.visits[k]), float(promise[k]))
        for k in order
        if promise[k] > 0
    )


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
    if not isinstance(algorithm, AutoNWedge | ConstrainedChoice):
        return Settled(algorithm, algorithm.improve(problem))
    try:
        choice = algorithm.choose(problem)
    except CertificateRefused as refusal:
        raise InvalidParameter(
            f"N∧ cannot be chosen: {refusal}; mend that, or give one "
            f"({said('n_wedge', '--n-wedge')})"
        ) from None
    best = choice.best
    judge = choice.chosen_by if isinstance(algorithm, AutoNWedge) else None  # else N∧ was given
    return Settled(best.algorithm, best.improvement, choice, judge, algorithm.limits)
