"""Other cuts: what a change of policy is worth where the same rows have other states.

Rows of a log that is cut finely and of the same log cut coarsely are the same rows, so that each
fine state lies in one coarse state. A policy of the coarse states does the same in all fine states
of one; in states that are coarser still it does what it does on average over the rows there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from surestep._arrays import FloatArray, IntArray, offsets_of, run_owners, run_sums
from surestep.checks.check import Check
from surestep.checks.luck import interval, variance_of
from surestep.model.counts import Counts
from surestep.model.estimate import estimate_mdp
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy
from surestep.planning.evaluation import evaluate, occupancy


class Gain(NamedTuple):
    """An estimated gain, and its standard error."""

    value: float
    error: float


def cut_check(
    log: DecisionLog,
    others: tuple[DecisionLog, DecisionLog],
    policies: tuple[Policy, Policy],
    *,
    discount: float,
    claim: float | None,
    level: float,
) -> Check:
    """Holds the estimated gain of the new policy over the current one against other cuts.

    `others` are the same rows cut coarsely and finely, `policies` the new and the current one, over
    the pairs of `log`. It fails where a gain is claimed, and is a loss in the finer states: then it
    may come from what the coarser ones throw together. All three intervals together miss with a
    chance of about `level`.
    """
    coarse, fine = others
    gains = {
        "half": gain_among(log, coarse, policies, discount),
        "own": gain_among(log, log, policies, discount),
        "twice": gain_among(log, within_each(log, fine), policies, discount),
    }
    figures = dict[str, float]()
    for name, gain in gains.items():
        low, high = interval(gain.value, gain.error, level / len(gains))
        figures |= {name: gain.value, f"{name}_low": low, f"{name}_high": high}
    claimed = claim is not None and claim > 0
    fails = claimed and gains["twice"].value < 0
    return Check(
        code="other-cuts",
        outcome="failed" if fails else "passed" if claimed else "told",
        level=level,
        rows=log.num_steps,
        figures={**figures, "claim": 0.0 if claim is None else claim},
    )


def gain_among(
    log: DecisionLog, other: DecisionLog, policies: tuple[Policy, Policy], discount: float
) -> Gain:
    """Returns the estimated gain of the first policy over the second, in the states of `other`.

    Policies are over the pairs of `log`, which has the same rows. A pair of a fine state that was
    never seen is taken to be like all rows with its action in the state of `log` around it.
    """
    again = with_actions_of(log, other)
    counts = again.counts()
    model = filled(estimate_mdp(counts, discount), counts, log, again)
    new, current = (
        Worth.of(model, carried(policy, log, again.pairs, other), log, again) for policy in policies
    )
    return Gain(new.value - current.value, gain_error(new, current, again))


class Worth(NamedTuple):
    """The value of a policy in states of the rows, and how each row weighs in it."""

    value: float
    states: FloatArray  # [S] V
    per_visit: FloatArray  # [N] how much a row weighs: its c, see `surestep.checks.luck`
    target: FloatArray  # [N] r + γV(s')
    term: FloatArray  # [N] by how much a row moves the value
    start: FloatArray  # [E] by how much the start of an episode does

    @classmethod
    def of(cls, model: FiniteMDP, policy: Policy, log: DecisionLog, again: DecisionLog) -> Worth:
        """Returns the value of a policy in the model of the rows `again`, filled by those of `log`.

        A row weighs for its own pair, and for pairs that were filled with rows like it.
        """
        states, visits = evaluate(model, policy), occupancy(model, policy)
        target = log.reward + model.discount[0] * states[again.next_state]
        actions = np.int64(again.pairs.num_actions)
        outer = around(log, again)[again.pairs.state]
        lent = np.flatnonzero((again.counts().visits == 0) & (outer >= 0))
        lender = outer[lent] * actions + again.pairs.action[lent]
        mass = np.zeros(log.pairs.num_states * actions)
        np.add.at(mass, lender, visits[lent])
        value = float(model.initial @ states)
        own, own_term = weighed(again.pair, visits, target)
        shared, shared_term = weighed(log.state * actions + log.action, mass, target)
        begun = states[again.state[again.episode_offsets[:-1]]]
        return cls(
            value,
            states,
            own + shared,
            target,
            own_term + shared_term,
            (begun - value) / again.num_episodes,
        )


def weighed(group: IntArray, mass: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Returns the weight [N] of each row, which share the mass of their group, and what it moves.

    That is c(t − Q), with Q the mean of its group.
    """
    times = np.maximum(np.bincount(group, minlength=mass.size), 1)
    mean = np.bincount(group, target, mass.size) / times
    weight = (mass / times)[group]
    return weight, weight * (target - mean[group])


def gain_error(new: Worth, current: Worth, log: DecisionLog) -> float:
    """Returns the standard error of the difference of two values (see `surestep.checks.luck`)."""
    term, start = new.term - current.term, new.start - current.start
    # The difference of c·t of both policies, wherever a row of this pair might have led.
    apart = np.abs(new.per_visit - current.per_visit) * np.ptp(new.target)
    apart = apart + current.per_visit * np.ptp(new.target - current.target)
    pairs, visits = log.pairs.num_pairs, log.counts().visits
    spread = np.bincount(log.pair, apart, pairs) / np.maximum(visits, 1)
    squares = np.zeros(pairs)
    np.add.at(squares, log.pair, term**2)
    of_rows = variance_of(squares, visits, spread)
    episodes, values = log.num_episodes, new.states - current.states
    of_rows += variance_of(float((start**2).sum()), episodes, float(np.ptp(values)) / episodes)
    whole = run_sums(term, log.episode_offsets) + start
    correction = episodes / max(episodes - 1, 1)  # Bessel's
    return math.sqrt(max(of_rows, correction * float((whole**2).sum())))


def within_each(log: DecisionLog, other: DecisionLog) -> DecisionLog:
    """Returns the rows with the states of `other` within each state of `log`.

    Finer bins lie within the old ones, and stay what they are; nearest centres need not.
    """
    states = np.int64(other.pairs.num_states)
    here, there = (
        own.astype(np.int64) * states + cut
        for own, cut in ((log.state, other.state), (log.next_state, other.next_state))
    )
    shown, place = np.unique(np.concatenate([here, there]), return_inverse=True)
    return replaced_states(log, Pairs.full(shown.size, log.pairs.num_actions), *np.split(place, 2))


def with_actions_of(log: DecisionLog, other: DecisionLog) -> DecisionLog:
    """Returns the rows with the states of `other`, every action of `log` enabled in all of them."""
    pairs = Pairs.full(other.pairs.num_states, log.pairs.num_actions)
    return replaced_states(log, pairs, other.state, other.next_state)


def replaced_states(
    log: DecisionLog, pairs: Pairs, state: IntArray, next_state: IntArray
) -> DecisionLog:
    """Returns the rows of a log with other states."""
    return DecisionLog(
        pairs,
        state,
        log.action,
        log.reward,
        next_state,
        log.terminated,
        log.truncated,
        log.episode_offsets,
    )


def around(log: DecisionLog, again: DecisionLog) -> IntArray:
    """Returns the state of `log` around each state [S] of `again`; −1 where nobody decides."""
    state = np.full(again.pairs.num_states, -1, np.int64)
    state[again.state] = log.state
    return state


def carried(policy: Policy, log: DecisionLog, pairs: Pairs, other: DecisionLog) -> Policy:
    """Returns a policy of the states of `log` over other states: its mean over their rows.

    Where nobody decides, any row that leads there tells the state of `log`; else all are alike.
    """
    table, states = policy.dense(), log.pairs.num_states
    total = shared_rows(other.state, log.state, (pairs.num_states, states)) @ table
    quiet = total.sum(axis=1) == 0
    arriving = quiet[other.next_state]
    met = other.next_state[arriving], log.next_state[arriving]
    total += shared_rows(*met, (pairs.num_states, states)) @ table
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
