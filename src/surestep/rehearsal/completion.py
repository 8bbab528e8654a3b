"""Completes the estimated MDP: a rule fills in the rows of pairs that the data never visits.

Where there is data, every completion is the maximum-likelihood estimate; they differ in what they
say about the rest. So none is the truth, and together they show how much rests on what is unknown.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidParameter
from surestep.model import Counts, FiniteMDP, Problem
from surestep.planning.evaluation import evaluate

Fill = Literal["self-loop", "uniform", "pessimistic", "optimistic"]
MOST_ROUNDS = 100  # of policy iteration; it rarely takes five
TIE = 1e-9  # of the largest value: a difference that is not worth a move
MOST_CELLS = 20_000_000  # of rows that lead everywhere


class CompletedRows(NamedTuple):
    """Transitions of some pairs, in any order."""

    pair: arrays.IntArray
    successor: arrays.IntArray
    probability: arrays.FloatArray

    def and_also(self, other: "CompletedRows") -> "CompletedRows":
        """Returns the transitions of both."""
        return CompletedRows(*(np.concatenate(parts) for parts in zip(self, other, strict=True)))


def numbered(pair: arrays.IntArray, successor: arrays.AnyArray, num_states: int) -> arrays.IntArray:
    """Returns the numbers of transitions in a table of all pairs and states, in 64 bits."""
    return pair * np.int64(num_states) + successor


def completed(problem: Problem, fill: Fill) -> FiniteMDP:
    """Returns the MLE-MDP of the problem, in which unseen pairs have rows.

    They lead back to their state ("self-loop"), everywhere ("uniform"), or to the visited state
    where it is worst or best, r + γ V^{π_b} taken together ("pessimistic", "optimistic"). None
    leads to where it cannot: that probability goes to the other successors, to all alike where
    there are none.
    """
    unseen = np.flatnonzero(problem.unseen_pairs())
    rules: dict[str, Callable[[Problem, arrays.IntArray], CompletedRows]] = {
        "self-loop": self_loops,
        "uniform": uniform_rows,
        "pessimistic": partial(extreme_rows, -1.0),
        "optimistic": partial(extreme_rows, 1.0),
    }
    filled = within_support(problem, rules[fill](problem, unseen), unseen)
    return mdp_of_rows(problem, estimated_rows(problem.counts).and_also(filled))


def within_support(problem: Problem, rows: CompletedRows, filled: arrays.IntArray) -> CompletedRows:
    """Removes impossible successors from rows, and rescales what is left.

    A `filled` pair that is left without successors leads to all its possible ones alike.
    """
    if problem.support is None:
        return rows
    support = problem.support
    owner = arrays.run_owners(support.offsets)
    possible = numbered(owner, support.successor, problem.num_states)
    inside = np.isin(numbered(rows.pair, rows.successor, problem.num_states), possible)
    kept = CompletedRows(rows.pair[inside], rows.successor[inside], rows.probability[inside])
    total = np.bincount(kept.pair, kept.probability, problem.counts.pairs.num_pairs)
    kept = kept._replace(probability=kept.probability / total[kept.pair])
    lost = np.isin(owner, filled[total[filled] == 0])
    pair = owner[lost]
    return kept.and_also(
        CompletedRows(pair, support.successor[lost].astype(np.int64), 1 / support.sizes[pair])
    )


def actions_alike(problem: Problem) -> FiniteMDP:
    """Returns the MLE-MDP of states alone: every action has the pooled row and mean rewards.

    A state without recorded decisions leads back to itself, or ends the episode if γ = 1.
    """
    counts = problem.counts
    pairs = counts.pairs
    seen = counts.times > 0
    owner = arrays.run_owners(counts.offsets)[seen]
    key = numbered(pairs.state[owner], counts.successor[seen], pairs.num_states)
    cell, place = np.unique(key, return_inverse=True)
    times = np.bincount(place, counts.times[seen])
    state, successor = np.divmod(cell, pairs.num_states)
    offsets = arrays.offsets_of(np.bincount(state, minlength=pairs.num_states))
    share = times / np.bincount(state, times, pairs.num_states)[state]
    going_on = np.flatnonzero(~counts.terminal[pairs.state])
    lengths = arrays.run_lengths(offsets)[pairs.state[going_on]]
    stored = arrays.ranges(offsets[pairs.state[going_on]], lengths)
    rows = CompletedRows(np.repeat(going_on, lengths), successor[stored], share[stored])
    if problem.single_discount < 1:
        rows = rows.and_also(self_loops(problem, going_on[lengths == 0]))
    mdp = mdp_of_rows(problem, rows)
    if counts.rewards.known:
        return mdp
    pooled = np.bincount(place, counts.times[seen] * counts.mean_reward()[seen]) / times
    key = numbered(pairs.state[arrays.run_owners(mdp.offsets)], mdp.successor, pairs.num_states)
    known = arrays.places_among(cell, key)
    return replace(mdp, reward=arrays.own(np.where(known >= 0, pooled[known], mdp.reward)))


def estimated_rows(counts: Counts) -> CompletedRows:
    """Returns P̂(s'|s,a) = #_D(s,a,s') / #_D(s,a) of the transitions that were seen."""
    seen = counts.times > 0
    pair = arrays.run_owners(counts.offsets)[seen]
    return CompletedRows(
        pair, counts.successor[seen].astype(np.int64), counts.times[seen] / counts.visits[pair]
    )


def mdp_of_rows(problem: Problem, rows: CompletedRows) -> FiniteMDP:
    """Returns the model with these rows, with rewards known or observed, and the log's starts.

    A transition whose reward is known, though its probability is 0, is stored: data drawn from the
    model then know that reward too.
    """
    counts = problem.counts
    if not counts.visits.any():
        raise InvalidParameter("the data has no visits, expected some to make worlds from")
    pairs = counts.pairs
    key = numbered(rows.pair, rows.successor, pairs.num_states)
    if counts.rewards.known and counts.rewards.per == "transition":
        stored = counts.keys()
        more = np.setdiff1d(stored[~counts.terminal[pairs.state[stored // pairs.num_states]]], key)
        rows = rows.and_also(CompletedRows(*np.divmod(more, pairs.num_states), np.zeros(more.size)))
        key = np.concatenate([key, more])
    order = np.argsort(key)
    pair, successor = rows.pair[order], rows.successor[order]
    return FiniteMDP(
        pairs,
        arrays.offsets_of(np.bincount(pair, minlength=pairs.num_pairs)),
        successor.astype(np.int32),
        rows.probability[order],
        arrays.own(rewards_at(counts, pair, successor)),
        np.full(pairs.num_pairs, problem.single_discount),
        counts.starts / counts.starts.sum(),
        np.where(counts.terminal[pairs.state], counts.unseen_reward(), 0.0),
        endless=None,
    )


# ---- rewards ----------------------------------------------------------------------------------


def rewards_at(
    counts: Counts, pair: arrays.IntArray, successor: arrays.IntArray
) -> arrays.FloatArray:
    """Returns the rewards of transitions: known, observed, or else a mean.

    The mean is that of all rewards on entering the same successor, or of all rewards if it was
    never entered.
    """
    settled = (counts.observed > 0) | counts.rewards.known
    value = counts.means()
    if counts.rewards.per == "pair":
        return np.where(settled[pair], value[pair], float(np.average(value, weights=counts.visits)))
    states = counts.pairs.num_states
    stored = counts.keys()[settled]
    order = np.argsort(stored)
    key = numbered(pair, successor, states)
    place = order[np.minimum(np.searchsorted(stored, key, sorter=order), stored.size - 1)]
    into = np.bincount(counts.successor, counts.times, states)
    earned = np.bincount(counts.successor, counts.times * value, states)
    on_entry = np.where(into > 0, earned, earned.sum()) / np.where(into > 0, into, into.sum())
    return np.where(stored[place] == key, value[settled][place], on_entry[successor])


# ---- filling in -------------------------------------------------------------------------------


def self_loops(problem: Problem, unseen: arrays.IntArray) -> CompletedRows:
    """Returns rows that lead back to their state."""
    return CompletedRows(unseen, problem.counts.pairs.state[unseen], np.ones(unseen.size))


def uniform_rows(problem: Problem, unseen: arrays.IntArray) -> CompletedRows:
    """Returns rows in which all states that may come are equally likely."""
    if problem.support is not None:
        return within_support(problem, self_loops(problem, unseen[:0]), unseen)
    pair, everywhere = all_transitions(problem, unseen)
    return CompletedRows(pair, everywhere, np.full(pair.size, 1 / problem.num_states))


def all_transitions(
    problem: Problem, unseen: arrays.IntArray
) -> tuple[arrays.IntArray, arrays.IntArray]:
    """Returns the unseen pairs and all states, each pair with each state."""
    size = problem.num_states
    if unseen.size * size > MOST_CELLS:
        raise InvalidParameter(
            f"{unseen.size} unseen pairs that may lead to any of {size} states have "
            f"{unseen.size * size} transitions, expected at most {MOST_CELLS}; take another fill"
        )
    return np.repeat(unseen, size), np.tile(np.arange(size), unseen.size)


def extreme_rows(sign: float, problem: Problem, unseen: arrays.IntArray) -> CompletedRows:
    """Returns rows that lead to the best (sign 1) or worst (−1) state: the most sign · (r + γ V).

    V is that of π_b in this very world, so it is policy iteration of a nature that moves after
    unseen pairs, from self-loops on. It goes only to states that were visited or end episodes.
    """
    counts = problem.counts
    told_apart = counts.rewards.known and counts.rewards.per == "transition"
    told_apart |= problem.support is not None
    pair, target = all_transitions(problem, unseen if told_apart else unseen[:1])
    earned = sign * rewards_at(counts, pair, target).reshape(-1, problem.num_states)
    earned = earned - barred_states(problem, unseen)
    rows = self_loops(problem, unseen)
    seen = estimated_rows(counts)
    for _ in range(MOST_ROUNDS):
        value = evaluate(mdp_of_rows(problem, seen.and_also(rows)), problem.behavior)
        worth = earned + sign * problem.single_discount * value  # of each pair, or of all alike
        every = np.broadcast_to(worth, (unseen.size, problem.num_states))
        now = every[np.arange(unseen.size), rows.successor]
        better = worth.max(axis=1) > now + TIE * np.abs(value).max()
        if not better.any():
            break
        rows = rows._replace(successor=np.where(better, worth.argmax(axis=1), rows.successor))
    return rows


def barred_states(problem: Problem, unseen: arrays.IntArray) -> arrays.FloatArray:
    """Returns 0 for states that an unseen pair may lead to, else ∞: [S], or [U, S] with a support.

    A pair whose successors were all never visited may lead to any of them.
    """
    counts = problem.counts
    support = problem.support
    open_states = (arrays.run_sums(counts.visits, counts.pairs.offsets) > 0) | counts.terminal
    if support is None:
        return np.where(open_states, 0.0, np.inf)
    owner = arrays.run_owners(support.offsets)
    mine = np.isin(owner, unseen)
    allowed = np.zeros((unseen.size, problem.num_states), np.bool_)
    allowed[np.searchsorted(unseen, owner[mine]), support.successor[mine]] = True
    preferred = allowed & open_states
    return np.where(np.where(preferred.any(axis=1, keepdims=True), preferred, allowed), 0.0, np.inf)
