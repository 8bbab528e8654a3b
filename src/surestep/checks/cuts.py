"""Other cuts: what a change of policy is worth where the same rows have other states.

Rows of a log that is cut finely and of the same log cut coarsely are the same rows, so that each
fine state lies in one coarse state. A policy of the coarse states does the same in all fine states
of one; in states that are coarser still it does what it does on average over the rows there.
"""

from __future__ import annotations

import numpy as np

from surestep._arrays import IntArray, offsets_of, run_owners
from surestep.checks.check import Check
from surestep.model.counts import Counts
from surestep.model.estimate import estimate_mdp
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy
from surestep.planning.evaluation import performance


def cut_check(
    log: DecisionLog,
    coarse: DecisionLog,
    fine: DecisionLog,
    policies: tuple[Policy, Policy],
    *,
    discount: float,
    claim: float | None,
) -> Check:
    """Holds the estimated gain of the new policy over the current one against other cuts.

    `policies` are both, over the pairs of `log`. It fails where a gain is claimed, and is a loss in
    the finer states: then it may come from what the coarser ones throw together.
    """
    gains = {
        "half": gain_among(log, coarse, policies, discount),
        "own": gain_among(log, log, policies, discount),
        "twice": gain_among(log, fine, policies, discount),
    }
    claimed = claim is not None and claim > 0
    fails = claimed and gains["twice"] < 0
    return Check(
        code="other-cuts",
        outcome="failed" if fails else "passed" if claimed else "told",
        rows=log.num_steps,
        figures={**gains, "claim": 0.0 if claim is None else claim},
    )


def gain_among(
    log: DecisionLog, other: DecisionLog, policies: tuple[Policy, Policy], discount: float
) -> float:
    """Returns the estimated gain of the first policy over the second, in the states of `other`.

    Policies are over the pairs of `log`, which has the same rows. A pair of a fine state that was
    never seen is taken to be like all rows with its action in the state of `log` around it.
    """
    again = with_actions_of(log, other)
    counts = again.counts()
    model = filled(estimate_mdp(counts, discount), counts, log, again)
    new, current = (
        performance(model, carried(policy, log, again.pairs, other)) for policy in policies
    )
    return new - current


def with_actions_of(log: DecisionLog, other: DecisionLog) -> DecisionLog:
    """Returns the rows with the states of `other`, every action of `log` enabled in all of them."""
    return DecisionLog(
        Pairs.full(other.pairs.num_states, log.pairs.num_actions),
        other.state,
        log.action,
        log.reward,
        other.next_state,
        log.terminated,
        log.truncated,
        log.episode_offsets,
    )


def carried(policy: Policy, log: DecisionLog, pairs: Pairs, other: DecisionLog) -> Policy:
    """Returns a policy of the states of `log` over other states: its mean over their rows.

    Where nobody decides, any row that leads there tells the state of `log`; else all are alike.
    """
    table = policy.dense()
    total = np.zeros((pairs.num_states, pairs.num_actions))
    np.add.at(total, other.state, table[log.state])
    quiet = total.sum(axis=1) == 0
    arriving = quiet[other.next_state]
    np.add.at(total, other.next_state[arriving], table[log.next_state[arriving]])
    total[total.sum(axis=1) == 0] = 1.0
    return Policy.from_dense(pairs, total / total.sum(axis=1, keepdims=True))


def filled(model: FiniteMDP, counts: Counts, log: DecisionLog, again: DecisionLog) -> FiniteMDP:
    """Returns the model with rows for unseen pairs of states that somebody decides in.

    They are like all rows of their action in the state of `log` around them, of which there may be
    none: then the pair stays without a successor.
    """
    pairs, size = again.pairs, np.int64(again.pairs.num_states)
    around = np.full(pairs.num_states, -1, np.int64)
    around[again.state] = log.state
    unseen = np.flatnonzero((counts.visits == 0) & (around[pairs.state] >= 0))
    wide = (around[pairs.state] * np.int64(pairs.num_actions) + pairs.action)[unseen]
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
    )


def ranges(first: IntArray, lengths: IntArray) -> IntArray:
    """Returns first, first + 1, … of each range, one after the other."""
    offsets = offsets_of(lengths)
    return np.arange(int(offsets[-1])) + np.repeat(first - offsets[:-1], lengths)
