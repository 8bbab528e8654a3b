"""Works out what a report shows: the changes in each state, and where more data would help."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    freeze,
    run_sums,
)
from surestep.algorithms import Algorithm
from surestep.algorithms.contract import Limited
from surestep.candidates import Choice, best_of
from surestep.certificates import Certifier
from surestep.choosing_n_wedge import AutoNWedge
from surestep.choosing_within_limits import ConstrainedChoice
from surestep.errors import CertificateRefused, InvalidParameter, said
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model import Certificate, FiniteMDP, Improvement, Policy, Problem
from surestep.model.numbering import Numbering
from surestep.pipeline.terms import Improving
from surestep.planning import occupancy, q_values
from surestep.results.advantage_intervals import advantage_intervals, change_intervals
from surestep.results.findings import (
    COLUMNS,
    Confirmation,
    Findings,
    PolicyTable,
    StateChange,
    WantedPair,
)
from surestep.results.groups import Group, expected_gains
from surestep.results.record import Record

MOST_WANTED = 25


def policy_table(
    vocabulary: Vocabulary,
    problem: Problem,
    estimate: FiniteMDP,
    improvement: Improvement,
    quiet: BoolArray,
    *,
    judging: Problem | None,
    delta: float,
    allowed: BoolArray | None = None,
) -> PolicyTable:
    """Returns the table of an improvement; `estimate` is the problem's estimated MDP.

    `judging` is the problem of the held-out data, if there are any. `allowed` marks the pairs that
    may be recommended; None allows all.
    """
    behavior = problem.behavior
    visits = problem.counts.visits
    n_wedge = improvement.n_wedge
    held_out = np.zeros_like(visits) if judging is None else judging.counts.visits
    q = q_values(estimate, improvement.plan.value)
    # Q(s,a) − Σ_b π_b(b|s) Q(s,b) for every pair [K].
    usual = run_sums(behavior.probability * q, behavior.pairs.offsets)
    low, high = advantage_intervals(
        problem if judging is None else judging, improvement.plan.value, delta
    )
    kept_by = improvement.kept_by
    return PolicyTable(
        vocabulary=vocabulary,
        pairs=improvement.policy.pairs,
        probability=improvement.policy.probability,
        behavior=behavior.probability,
        visits=visits,
        trusted=None if n_wedge is None else freeze(visits > n_wedge),
        q=freeze(q),
        advantage=freeze(q - usual[behavior.pairs.state]),
        quiet=quiet,
        held_out_visits=freeze(held_out),
        advantage_low=low,
        advantage_high=high,
        n_wedge=n_wedge,
        allowed=allowed,
        kept_by=None if kept_by is None else freeze(np.array(kept_by)),
    )


def in_order_of_labels(findings: Findings, numbering: Numbering) -> Findings:
    """Renumbers findings from the order of first appearance back to the order of labels."""
    table = findings.table
    back = Numbering.of(table.pairs, np.argsort(numbering.state), np.argsort(numbering.action))
    words = table.vocabulary.picked(back.state, back.action)
    moved = {
        name: freeze(values[back.pair])
        for name in COLUMNS
        if (values := getattr(table, name)) is not None
    }
    quiet = freeze(table.quiet[back.state])
    return replace(
        findings,
        table=replace(table, vocabulary=words, pairs=back.pairs, quiet=quiet, **moved),
        behavior_occupancy=freeze(findings.behavior_occupancy[back.state]),
        changes=tuple(c._replace(state=int(numbering.state[c.state])) for c in findings.changes),
        wanted=tuple(w._replace(pair=int(numbering.pair[w.pair])) for w in findings.wanted),
    )


def findings_of(
    problem: Problem,
    estimate: FiniteMDP,
    table: PolicyTable,
    *,
    settled: "Settled",
    certificates: tuple[Certificate, ...],
    no_rehearsal: str,
    record: Record,
    judging: Problem | None,
) -> Findings:
    """Collects what a report shows before a stress test; `estimate` is the estimated MDP.

    `judging` is the problem of data that did not choose the policy.
    """
    improvement = settled.improvement
    visits = decision_visits(estimate, problem.behavior, table)
    ours = decision_visits(estimate, improvement.policy, table)
    return Findings(
        table=table,
        behavior_occupancy=shares(visits),
        changes=state_changes(
            table, visits, evidence_of(improvement, judging, certificates[0].delta)
        ),
        certificates=certificates,
        rehearsal=None,
        no_rehearsal=no_rehearsal,
        wanted=wanted_pairs(table, ours),
        record=record,
    )


def decision_visits(estimate: FiniteMDP, policy: Policy, table: PolicyTable) -> FloatArray:
    """Returns a policy's expected discounted visits [S]; 0 in states without a decision."""
    visits: FloatArray = run_sums(occupancy(estimate, policy), estimate.pairs.offsets)
    return np.where(table.quiet, 0.0, visits)


def shares(visits: FloatArray) -> FloatArray:
    """Returns visits as shares of their sum; zeros if there are no visits."""
    total = float(visits.sum())
    return freeze(visits / total if total > 0 else np.zeros(visits.size))


def evidence_of(
    improvement: Improvement, judging: Problem | None, delta: float
) -> Sequence[Confirmation | None]:
    """Tells for each state [S] whether the rows that judge confirm a change; None: no rows judge.

    A change is confirmed where its interval is above 0, contradicted where it is below; the
    intervals of all changes hold together with about 1 − δ.
    """
    value = improvement.plan.value
    if judging is None:
        return [None] * value.size
    low, high = change_intervals(judging, value, improvement.policy, delta)
    words: tuple[Confirmation, ...] = ("contradicted", "open", "confirmed")
    return [words[1 + int(a > 0) - int(b < 0)] for a, b in zip(low, high, strict=True)]


def state_changes(
    table: PolicyTable, visits: FloatArray, evidence: Sequence[Confirmation | None]
) -> tuple[StateChange, ...]:
    """Returns the states where π_I differs from π_b, the largest contribution first.

    ρ(π_I) − ρ(π_b) = Σ_s d_b(s) Σ_a π_I(a|s) · advantage(s,a), with d_b the discounted visits under
    π_b and the advantage of `PolicyTable`: the performance difference lemma with Q of π_I.
    """
    advantage = run_sums(table.probability * table.advantage, table.pairs.offsets)
    contribution = visits * advantage
    share = shares(visits)
    changed = np.flatnonzero(table.changed)
    order = changed[np.argsort(-np.abs(contribution[changed]), kind="stable")]
    return tuple(
        StateChange(
            int(s), float(share[s]), float(advantage[s]), float(contribution[s]), evidence[s]
        )
        for s in order
    )


def wanted_pairs(table: PolicyTable, visits: FloatArray) -> tuple[WantedPair, ...]:
    """Lists pairs that would be worth more data, those with the largest promise first.

    The promise is 0 where the new policy never gets, by its visits [S] in the estimated model.
    """
    better = table.promising
    promise = visits[table.pairs.state] * better
    order = np.lexsort((-better, -promise))[: min(MOST_WANTED, np.count_nonzero(better))]
    return tuple(
        WantedPair(int(k), int(table.n_wedge or 0) + 1 - int(table.visits[k]), float(promise[k]))
        for k in order
    )


class Settled(NamedTuple):
    """The algorithm that was run, its improvement, and how its N∧ was chosen."""

    algorithm: Algorithm
    improvement: Improvement
    choice: Choice | None = None  # None where nothing was chosen
    chosen_by: Certifier | None = None


def settle(
    algorithm: Improving,
    problem: Problem,
    groups: Sequence[Group] = (),
    margin: float | None = None,
) -> Settled:
    """Runs the algorithm on a problem; chooses N∧ if the algorithm leaves it open.

    Leaves out candidates that are expected to cost a group more than the margin.
    """
    if isinstance(algorithm, Limited):
        return Settled(algorithm.algorithm, algorithm.improve(problem))
    if not isinstance(algorithm, AutoNWedge | ConstrainedChoice):
        return Settled(algorithm, algorithm.improve(problem))
    try:
        choice = algorithm.choose(problem)
    except CertificateRefused as refusal:
        raise InvalidParameter(
            f"N∧ cannot be chosen: {refusal}; mend that, or give one "
            f"({said('n_wedge', '--n-wedge')})"
        ) from None
    if margin is not None and isinstance(algorithm, AutoNWedge):
        lower = [
            one.lower
            if min(expected_gains(groups, one.improvement.policy), default=0.0) >= -margin
            else -np.inf
            for one in choice.candidates
        ]
        choice = choice._replace(taken=best_of([one.tried for one in choice.candidates], lower))
    best = choice.best
    judge = choice.chosen_by if isinstance(algorithm, AutoNWedge) else None  # else N∧ was given
    return Settled(best.tried.algorithm, best.improvement, choice, judge)
