"""Other cuts: what a change of policy is worth where the same rows have other states.

Rows of a log that is cut finely and of the same log cut coarsely are the same rows, so that each
fine state lies in one coarse state. A policy of the coarse states does the same in all fine states
of one; in states that are coarser still it does what it does on average over the rows there.

**Intervals.** Let fold 1 be the rows that chose the policies, and fold 2 the others. In any states
that are Markov, L of `surestep.certificates.stitched` misses the gain Δ of π over π′ with a chance
of at most δ, given fold 1. Minus the L of the gain of π′ over π is an upper bound of Δ, with the
same chance. Each of the six ends has a sixth of the level, so that all three intervals together
miss with at most the level. The policies themselves may depend on fold 1 alone. In finer states
they do what they do in the state around, which no row decides; in coarser ones the mean is over
the rows of fold 1. Where fold 1 has no row, rows of fold 2 say what is done; but there every
rollout is cut and paid as the bounds of values allow, whatever is done. How rows are cut is taken
as given, as it is for the claim. ∎
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from surestep._arrays import IntArray, offsets_of, run_owners
from surestep.certificates.stitched import Folds, Judging, Stitched, lower_limits
from surestep.checks.check import Check, Unjudged
from surestep.checks.held_out import folds_by
from surestep.checks.of_log import seed_of
from surestep.errors import CertificateRefused
from surestep.model.counts import Counts
from surestep.model.estimate import estimate_mdp
from surestep.model.log import UNKNOWN, DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy
from surestep.model.problem import Problem
from surestep.planning.evaluation import performance


class Terms(NamedTuple):
    """The discount and the bounds of values, and who judges on rows that chose nothing."""

    discount: float
    value_bounds: tuple[float, float]
    judge: Stitched | None  # None where all rows chose the policy


def cut_check(
    log: DecisionLog,
    others: tuple[DecisionLog, DecisionLog],
    policies: tuple[Policy, Policy],
    terms: Terms,
    *,
    claim: float | None,
    level: float,
) -> Check:
    """Holds the estimated gain of the new policy over the current one against other cuts.

    `others` are the same rows cut coarsely and finely, `policies` the new and the current one, over
    the pairs of `log`. It fails where a gain is claimed, and is a loss in the finer states, as
    estimated: then it may come from what the coarser ones throw together. All three intervals
    together miss with a chance of at most `level`.
    """
    coarse, fine = others
    cuts = [Cut.of(log, other, policies, terms) for other in (coarse, log, within_each(log, fine))]
    gains = [gain_among(log, cut, terms.discount) for cut in cuts]
    figures = {"claim": 0.0 if claim is None else claim}
    for name, gain, (low, high) in zip(
        ("half", "own", "twice"), gains, gain_bounds(cuts, terms, level), strict=True
    ):
        figures |= {name: gain, f"{name}_low": low, f"{name}_high": high}
    claimed = claim is not None and claim > 0
    fails = claimed and figures["twice"] < 0
    folds = cuts[0].folds
    return Check(
        code="other-cuts",
        outcome="failed" if fails else "passed" if claimed else "told",
        level=level,
        rows=0 if isinstance(folds, str) else folds.second.num_steps,
        unjudged=folds if isinstance(folds, str) else None,
        figures=figures,
    )


class Cut(NamedTuple):
    """The rows of a log in other states, with two policies over these."""

    rows: DecisionLog
    folds: Folds | Unjudged
    new: Policy
    current: Policy

    @classmethod
    def of(
        cls, log: DecisionLog, other: DecisionLog, policies: tuple[Policy, Policy], terms: Terms
    ) -> Cut:
        """Returns the rows of `log` in the states of `other`, with what did not choose policies."""
        rows = with_actions_of(log, other)
        folds, parts = folds_by(terms.judge, rows), [(log, rows)]
        own = folds_by(terms.judge, log)
        if not (isinstance(folds, str) or isinstance(own, str)):
            parts.insert(0, (own.first, folds.first))
        new, current = (carried(policy, parts, rows.pairs) for policy in policies)
        return cls(rows, folds, new, current)


def gain_bounds(cuts: Sequence[Cut], terms: Terms, level: float) -> list[tuple[float, float]]:
    """Returns an interval of the gain in each cut; all of them miss with at most the level.

    Where fold 2 says nothing it is all that bounds of values allow.
    """
    lowest, highest = terms.value_bounds
    span = highest - lowest
    judging = [claim for cut in cuts for claim in both_ways(cut, terms, level / (2 * len(cuts)))]
    answers = lower_limits(judging)
    lower = [
        -span if isinstance(answer, CertificateRefused) else max(answer[0], -span)
        for answer in answers
    ]
    if not judging:
        return [(-span, span)] * len(cuts)
    return [(low, -opposite) for low, opposite in zip(lower[::2], lower[1::2], strict=True)]


def both_ways(cut: Cut, terms: Terms, delta: float) -> list[Judging]:
    """Returns what is to be judged in a cut: the new policy against the current one, and back.

    Nothing where there is no second fold.
    """
    if terms.judge is None or isinstance(cut.folds, str):
        return []
    folds, first = cut.folds, cut.folds.first
    # A robust set for the tails would take longer than all rollouts.
    judge = replace(terms.judge, delta=delta, seed=seed_of(first), tails=0.0)

    def judged(ours: Policy, theirs: Policy) -> Judging:
        problem = Problem(
            counts=first.counts(),
            behavior=theirs,
            discount=terms.discount,
            value_bounds=terms.value_bounds,
            log=first,
        )
        return Judging(judge, problem, ours, folds, {})

    return [judged(cut.new, cut.current), judged(cut.current, cut.new)]


def gain_among(log: DecisionLog, cut: Cut, discount: float) -> float:
    """Returns the estimated gain of the new policy over the current one in the states of a cut.

    A pair of a fine state that was never seen is taken to be like all rows with its action in the
    state of `log` around it.
    """
    counts = cut.rows.counts()
    model = filled(estimate_mdp(counts, discount), counts, log, cut.rows)
    return performance(model, cut.new) - performance(model, cut.current)


def within_each(log: DecisionLog, other: DecisionLog) -> DecisionLog:
    """Returns the rows with the states of `other` within each state of `log`.

    Finer bins lie within the old ones, and stay what they are; nearest centres need not.
    """
    states, led = np.int64(other.pairs.num_states), log.next_state != UNKNOWN
    here, there = (
        own.astype(np.int64) * states + cut
        for own, cut in ((log.state, other.state), (log.next_state[led], other.next_state[led]))
    )
    shown, place = np.unique(np.concatenate([here, there]), return_inverse=True)
    state, next_state = place[: here.size], np.full(here.size, UNKNOWN)
    next_state[led] = place[here.size :]
    return replaced_states(log, Pairs.full(shown.size, log.pairs.num_actions), state, next_state)


def with_actions_of(log: DecisionLog, other: DecisionLog) -> DecisionLog:
    """Returns the rows with the states of `other`, every action of `log` enabled in all of them."""
    pairs = Pairs.full(other.pairs.num_states, log.pairs.num_actions)
    return replaced_states(log, pairs, other.state, other.next_state)


def replaced_states(
    log: DecisionLog, pairs: Pairs, state: IntArray, next_state: IntArray
) -> DecisionLog:
    """Returns the rows of a log with other states."""
    return replace(log, pairs=pairs, state=state, next_state=next_state, propensity=None)


def around(log: DecisionLog, again: DecisionLog) -> IntArray:
    """Returns the state of `log` around each state [S] of `again`; −1 where nobody decides."""
    state = np.full(again.pairs.num_states, -1, np.int64)
    state[again.state] = log.state
    return state


def carried(
    policy: Policy, parts: Sequence[tuple[DecisionLog, DecisionLog]], pairs: Pairs
) -> Policy:
    """Returns a policy over other states: its mean over their rows.

    `parts` are rows with the states of the policy and the same with the others: the first that has
    rows in a state tells what is done there. Where nobody decides, rows that lead there do; else
    all actions are alike.
    """
    table = policy.dense()
    total = np.zeros((pairs.num_states, table.shape[1]))
    met = [(rows.state, others.state) for rows, others in parts]
    known = [(rows.with_outcomes(), others.with_outcomes()) for rows, others in parts]
    met += [(rows.next_state, others.next_state) for rows, others in known]
    for own, other in met:
        there = (total.sum(axis=1) == 0)[other]
        total += shared_rows(other[there], own[there], (len(total), len(table))) @ table
    total[total.sum(axis=1) == 0] = 1.0
    return Policy.from_dense(pairs, total / total.sum(axis=1, keepdims=True))


def shared_rows(one: IntArray, other: IntArray, shape: tuple[int, int]) -> Any:
    """Returns how many rows [N] have each pair of numbers, as a sparse matrix."""
    return coo_array((np.ones(one.size), (one, other)), shape).tocsr()


def filled(model: FiniteMDP, counts: Counts, log: DecisionLog, again: DecisionLog) -> FiniteMDP:
    """Returns the model with rows for unseen pairs of states that somebody decides in.

    They are like all rows of their action in the state of `log` around them, of which there may be
    none: then the pair stays without a successor.
    """
    pairs, size = again.pairs, np.int64(again.pairs.num_states)
    outer = around(log, again)[pairs.state]
    unseen = np.flatnonzero((counts.visits == 0) & (outer >= 0))
    wide = (outer * np.int64(pairs.num_actions) + pairs.action)[unseen]
    log, again = log.with_outcomes(), again.with_outcomes()
    key = log.state.astype(np.int64) * pairs.num_actions + log.action
    shown, place = np.unique(key * size + again.next_state, return_inverse=True)
    times, paid = np.bincount(place), np.bincount(place, log.reward)
    first = np.searchsorted(shown, wide * size)
    lengths = np.searchsorted(shown, (wide + 1) * size) - first
    taken, filling = ranges(first, lengths), np.repeat(np.arange(unseen.size), lengths)
    visits = np.bincount(filling, times[taken], unseen.size)
    owner = np.concatenate([run_owners(model.offsets), unseen[filling]])
    order = np.argsort(owner, kind="stable")
    probability = np.concatenate([model.probability, times[taken] / visits[filling]])
    reward = np.concatenate([model.reward, paid[taken] / times[taken]])
    successor = np.concatenate([model.successor, shown[taken] % size])
    return FiniteMDP(
        pairs,
        offsets_of(np.bincount(owner, minlength=pairs.num_pairs)),
        successor[order],
        probability[order],
        reward[order],
        model.discount,
        model.initial,
        endless=model.endless,
    )


def ranges(first: IntArray, lengths: IntArray) -> IntArray:
    """Returns first, first + 1, … of each range, one after the other."""
    offsets = offsets_of(lengths)
    return np.arange(int(offsets[-1])) + np.repeat(first - offsets[:-1], lengths)
