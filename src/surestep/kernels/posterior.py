"""Models drawn from a Dirichlet posterior, sparsely.

The row of a pair is Dirichlet(times + c · m): what was seen, and a base m of total weight c. Gamma
numbers add up, so it is a mixture of Dirichlet(times) and Dirichlet(c · m), with weights Gamma(n)
and Gamma(c). The latter is drawn by breaking a stick (Sethuraman 1994): again and again a state
that is drawn from m gets a share Beta(1, c) of what is left. When a hundredth of the stick is left,
the next state takes all of it: every mean stays what it is, and what rows say of the states that
nobody saw varies by a trifle more than it should. It is a hundredth of the stick, not of the row:
else all of a well-known row's stick would go to one state, and rare disasters would become rarer.

To draw from m costs no table of m: with the chance `pooled` it is where a step of the row's own
state led, any of the log with the same chance, and otherwise a draw from `elsewhere`.

Where c is large beside the number of states, or a row is about given successors only, all of them
are drawn. Gamma numbers of tiny shapes are too small for doubles, so their logarithms are: for a
shape a < 1, Gamma(a) has the law of Gamma(a + 1) · U^(1/a).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import helper, inlined, tasks
from surestep.kernels._types import BoolsIn, FloatsIn, IndicesIn, IntsIn, TableIn
from surestep.kernels.drawn import Chunk
from surestep.kernels.random_streams import Words, beta, gamma, start_stream, uniform

# Of a row: what the last state takes, at most. That adds no more than its square to the variance of
# a mean over the row (of values that span 1), which is of the order of 1/n after n visits.
REMAINDER = 0.01
LOW, REACH, FIRST, SECOND, WEIGHT = range(5)  # what a row of a table of rewards holds


class RewardDraws(NamedTuple):
    """The law of mean rewards.

    A row (low, reach, first, second, weight) of `seen` has the mean low + reach · x, where x ~
    Beta(first, second), and where it has a weight, a share of what is not known of it yet: w of
    that mean and 1 − w of one like it, w ~ Beta(weight, κ). Where low is NaN nothing is known. One
    like it has the mean of an atom of its group, each as likely as its weight, or where that is
    NaN, of any atom; the weights are drawn once in a model.
    """

    per_pair: bool  # one reward a pair [K], not one a transition [T]
    by_successor: bool  # what leads to the same state is of one group [S]
    group: IntsIn  # [K] of each pair, where it is not
    seen: TableIn  # [K, 5] or [T, 5]
    group_offsets: IntsIn  # of each group's atoms
    atoms: TableIn  # [atoms, 5]
    others: float  # κ

    @classmethod
    def known(cls, values: FloatArray, per_pair: bool, num_pairs: int) -> RewardDraws:
        """Rewards that are what they are."""
        seen = np.zeros((values.size, 5))
        seen[:, LOW] = values
        nothing = np.zeros(num_pairs, np.int64)
        return cls(per_pair, False, nothing, seen, np.zeros(2, np.int64), np.zeros((0, 5)), 0.0)

    def moved(self, place: IntArray, size: int) -> RewardDraws:
        """Moves the transition t to `place`[t] of `size`; −1: it cannot come."""
        if self.per_pair:
            return self
        kept = place >= 0
        moved = np.zeros((size, 5))
        moved[:, LOW] = math.nan
        moved[place[kept]] = self.seen[kept]
        return self._replace(seen=moved)


class PriorRows(NamedTuple):
    """The law of rows.

    Without `given` weights, a row is about all states, those that are not stored included. Its
    prior has the total `weight`, `pooled` of which lies where steps of its state led.
    """

    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    times: IntsIn  # [T]
    given: FloatsIn  # [T] weights, where rows are about the stored successors only
    weight: float  # c
    pooled: FloatsIn  # [K]
    elsewhere: FloatsIn  # [S] running sums of the chances of all states

    @property
    def singly(self) -> bool:
        """Tells whether every state has a piece: breaking a stick would take nearly as many."""
        return self.weight * -math.log(REMAINDER) >= self.elsewhere.size


class DirichletPosterior(NamedTuple):
    """A posterior over models, and which of their rows are drawn."""

    seed: int
    pair_offsets: IntsIn  # [S+1]
    used: BoolsIn  # [K] pairs whose rows are drawn
    ending: FloatsIn  # [K] what other pairs earn
    rows: PriorRows
    sums: FloatsIn  # [T] running sums of the times
    singly: bool  # every state has a share of its own in a row
    start_weight: FloatsIn  # [S]; empty where starts are not drawn
    rewards: RewardDraws


class AtomWeights(NamedTuple):
    """The drawn weights of atoms, and how likely it is to be like one of one's own group."""

    sums: FloatArray  # [atoms] running sums
    kinship: FloatArray  # [groups]


class Row(NamedTuple):
    """A row to be drawn: its transitions, those of its state, and where it begins."""

    first: int
    last: int
    state_first: int
    state_last: int
    pooled: float  # the share of the base that lies where steps of the state led
    begin: int


@inlined
def first_above(sums: FloatArray, begin: int, end: int, x: float) -> int:
    """Returns the first of `sums`[begin:end], which rise, that is above x; or the last."""
    left = end - begin
    while left > 1:
        half = left // 2
        begin = begin + half if sums[begin + half - 1] <= x else begin
        left -= half
    return begin


@inlined
def draw_state(
    words: Words, successor: IndexArray, elsewhere: FloatArray, sums: FloatArray, row: Row
) -> tuple[np.int64, Words]:
    """Draws a state of the base: with the chance `pooled` where a step of the state led.

    What is called for every piece takes arrays, not records: to take an array out of a record
    counts its owners, which costs more than the rest.
    """
    first, last = row.state_first, row.state_last
    u, words = uniform(words)
    v, words = uniform(words)
    if u < row.pooled:
        before = sums[first - 1] if first > 0 else 0.0
        t = first_above(sums, first, last, before + v * (sums[last - 1] - before))
        return np.int64(successor[t]), words
    x = v * elsewhere[-1]
    state = np.int64(v * elsewhere.size)  # where all have the same chance; v < 1
    if not (elsewhere[state] > x and (state == 0 or elsewhere[state - 1] <= x)):
        state = np.int64(first_above(elsewhere, 0 * first, elsewhere.size, x))
    return state, words


@helper
def draw_sparse_row(
    words: Words,
    rows: PriorRows,
    sums: FloatArray,
    row: Row,
    place: IntArray,
    target: IndexArray,
    share: FloatArray,
) -> tuple[int, Words]:
    """Draws a row, to `target` and `share` from `begin` on; its end, or −1 if it does not fit.

    `place` [S] says where a state stands, if that is not before `begin`.
    """
    successor, times, elsewhere = rows.successor, rows.times, rows.elsewhere
    weight, begin = rows.weight, row.begin
    end, total = begin, 0.0
    for t in range(row.first, row.last):
        if times[t] > 0:
            if end == target.size:
                return -1, words
            place[successor[t]], target[end] = end, successor[t]
            share[end], words = gamma(words, np.float64(times[t]))
            total += share[end]
            end += 1
    left = 1.0
    if total > 0.0:
        left, words = gamma(words, weight)
    total += left
    remainder = REMAINDER * left
    while left > 0.0:
        broken = 1.0
        if left > remainder:
            u, words = uniform(words)
            broken = 1.0 - math.exp(math.log(u) / weight)
        state, words = draw_state(words, successor, elsewhere, sums, row)
        if place[state] < begin:
            if end == target.size:
                return -1, words
            place[state], target[end], share[end] = end, state, 0.0
            end += 1
        share[place[state]] += left * broken
        left *= 1.0 - broken
    for i in range(begin, end):
        share[i] /= total
    return end, words


@helper
def draw_shares(words: Words, share: FloatArray, begin: int, end: int) -> Words:
    """Draws from a Dirichlet whose weights stand in `share`[begin:end], in their place."""
    largest, total = -np.inf, 0.0
    for i in range(begin, end):
        shape = share[i]
        if shape > 0.0:
            drawn, words = gamma(words, shape if shape >= 1.0 else shape + 1.0)
            share[i] = math.log(drawn)
            if shape < 1.0:
                boost, words = uniform(words)
                share[i] += math.log(boost) / shape
            largest = max(largest, share[i])
        else:
            share[i] = -np.inf
    for i in range(begin, end):
        share[i] = math.exp(share[i] - largest)
        total += share[i]
    for i in range(begin, end):
        share[i] /= total
    return words


@helper
def weigh_all(rows: PriorRows, row: Row, target: IndexArray, share: FloatArray) -> int:
    """Weighs all states in a row, into `share` from `begin` on; where it ends, or −1."""
    successor, times, elsewhere = rows.successor, rows.times, rows.elsewhere
    begin, weight, pooled = row.begin, rows.weight, row.pooled
    end = begin + elsewhere.size
    if end > target.size:
        return -1
    before, steps = 0.0, 0
    for s in range(elsewhere.size):
        target[begin + s] = s
        share[begin + s] = weight * (1.0 - pooled) * (elsewhere[s] - before) / elsewhere[-1]
        before = elsewhere[s]
    for t in range(row.state_first, row.state_last):
        steps += times[t]
    for t in range(row.state_first, row.state_last):
        if steps > 0:
            share[begin + successor[t]] += weight * pooled * (times[t] / steps)
    for t in range(row.first, row.last):
        share[begin + successor[t]] += times[t]
    return end


@inlined
def draw_mean(words: Words, rewards: FloatArray, i: int) -> tuple[float, Words]:
    """Returns a mean between the two rewards of row i; the first itself where they are the same."""
    reach, x = rewards[i, REACH], 0.0
    if reach > 0.0:
        x, words = beta(words, rewards[i, FIRST], rewards[i, SECOND])
    return rewards[i, LOW] + reach * x, words


@inlined
def draw_like(
    words: Words,
    atoms: FloatArray,
    group_offsets: IntArray,
    sums: FloatArray,
    kinship: FloatArray,
    group: int | np.int64,
) -> tuple[float, Words]:
    """Draws the mean of an atom: with the chance of kinship one of the group, else any."""
    begin, end = group_offsets[group], group_offsets[group + 1]
    u, words = uniform(words)
    if u < kinship[group] and end - begin == 1 and atoms[begin, REACH] == 0.0:  # nearly always
        return atoms[begin, LOW], words
    if u >= kinship[group]:
        begin, end = 0 * begin, sums.size
    before = sums[begin - 1] if begin > 0 else 0.0
    u, words = uniform(words)
    x = before + u * (sums[end - 1] - before)
    return draw_mean(words, atoms, first_above(sums, begin, end, x))


@inlined
def draw_reward(
    words: Words,
    seen: FloatArray,
    others: float,
    atoms: FloatArray,
    group_offsets: IntArray,
    sums: FloatArray,
    kinship: FloatArray,
    i: int,
    group: int | np.int64,
) -> tuple[float, Words]:
    """Returns the mean reward of row i of `seen`, or of none of them (−1); see `RewardDraws`."""
    if i < 0 or np.isnan(seen[i, LOW]):
        return draw_like(words, atoms, group_offsets, sums, kinship, group)
    mean, words = draw_mean(words, seen, i)
    if seen[i, WEIGHT] > 0.0:
        other, words = draw_like(words, atoms, group_offsets, sums, kinship, group)
        share, words = beta(words, seen[i, WEIGHT], others)
        mean = share * mean + (1.0 - share) * other
    return mean, words


@helper
def weigh_atoms(words: Words, rewards: RewardDraws, weights: AtomWeights) -> None:
    """Draws the weights of atoms, and how likely it is to be like one's own group.

    Like any is what weighs as much as one visit.
    """
    group_offsets, atoms = rewards.group_offsets, rewards.atoms
    sums, kinship = weights
    total = 0.0
    for i in range(sums.size):
        weight, words = gamma(words, atoms[i, WEIGHT])
        total += weight
        sums[i] = total
    for g in range(kinship.size):
        begin, end = group_offsets[g], group_offsets[g + 1]
        inside = 0.0
        if end > begin:
            inside = sums[end - 1] - (sums[begin - 1] if begin > 0 else 0.0)
        weight, words = gamma(words, 1.0)
        kinship[g] = inside / (inside + weight)


@tasks(threads_from=1_000)
def draw_models(
    first_task: int, end_task: int, posterior: DirichletPosterior, first_draw: int, models: Chunk
) -> None:
    """Writes the draws `first_draw` … of a chunk [B]: rows of the `used` pairs, rewards and starts.

    Pairs that are not used have no row and their `ending` reward.
    """
    seed, pair_offsets, used, ending, rows, sums, singly, start_weight, rewards = posterior
    ends, target, share, reward, initial = models
    offsets, successor, times, given = rows.offsets, rows.successor, rows.times, rows.given
    per_pair, by_successor, group, seen, group_offsets, atoms, others = rewards
    pooled = rows.pooled
    num_pairs, num_states = used.size, pair_offsets.size - 1
    zero = 0 * first_task  # a plain 0 has a type of its own: helpers would be compiled for it too
    for b in range(first_task, end_task):
        place, known = np.full(num_states, -1), np.full(num_states, -1)
        draw = first_draw + b
        atom_sums, kinship = np.empty(len(atoms)), np.empty(group_offsets.size - 1)
        words = start_stream(seed, draw, num_pairs + 1)
        weigh_atoms(words, rewards, AtomWeights(atom_sums, kinship))
        end = zero
        s = zero
        for k in range(num_pairs):
            ends[b, k] = end
            reward[b, k] = ending[k]
            if not used[k] or end < 0:
                continue
            while k >= pair_offsets[s + 1]:
                s += 1
            begin, first, last = end, offsets[k], offsets[k + 1]
            words = start_stream(seed, draw, k)
            if given.size > 0:
                end = begin + last - first
                if end > target.shape[1]:
                    end = zero - 1
                else:
                    for t in range(first, last):
                        target[b, begin + t - first] = successor[t]
                        share[b, begin + t - first] = given[t] + times[t]
                    words = draw_shares(words, share[b], begin, end)
            else:
                states = offsets[pair_offsets[s]], offsets[pair_offsets[s + 1]]
                row = Row(first, last, states[0], states[1], pooled[k], begin)
                if singly:
                    end = weigh_all(rows, row, target[b], share[b])
                    if end >= 0:
                        words = draw_shares(words, share[b], begin, end)
                else:
                    end, words = draw_sparse_row(words, rows, sums, row, place, target[b], share[b])
            if end < 0:
                continue
            if per_pair:
                reward[b, k], words = draw_reward(
                    words, seen, others, atoms, group_offsets, atom_sums, kinship, k, group[k]
                )
                continue
            for t in range(first, last):
                known[successor[t]] = t
            earned = 0.0
            for i in range(begin, end):
                t = known[target[b, i]]
                if not first <= t < last:
                    t = -1
                kin = np.int64(target[b, i]) if by_successor else group[k]
                one_reward, words = draw_reward(
                    words, seen, others, atoms, group_offsets, atom_sums, kinship, t, kin
                )
                earned += share[b, i] * one_reward
            reward[b, k] = earned
        ends[b, num_pairs] = end
        if start_weight.size > 0:
            words = start_stream(seed, draw, num_pairs)
            for s in range(num_states):
                initial[b, s] = start_weight[s]
            words = draw_shares(words, initial[b], zero, num_states)
