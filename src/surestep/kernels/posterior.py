"""Models drawn from a Dirichlet posterior, sparsely and exactly.

The row of a pair is Dirichlet over all S states: α + times for a successor that was seen, α for the
m others. Few of those get any weight worth mentioning when α is small. Together they get
Gamma(αm), against Gamma(α + times) for each that was seen; and in an order drawn with chances
proportional to their weights, the i-th takes a share W_i ~ Beta(1 + α, (m − i)α) of what the ones
before it left, while *which* states stand in that order is uniformly random (a finite form of
stick-breaking). So the states that matter come first, and when little is left, the next one takes
all of it: every mean stays what it is, and rows vary by a trifle more than they should.

A row may also be about given successors only, each with a weight of its own; then all of them are
drawn. Gamma numbers of tiny shapes are too small for doubles, so their logarithms are: for a shape
a < 1, Gamma(a) has the law of Gamma(a + 1) · U^(1/a).
"""

from __future__ import annotations

import math

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray
from surestep.kernels._compile import (
    BOOLS_IN,
    COUNT_TABLE_OUT,
    F64,
    FLOATS_IN,
    I64,
    INDEX_TABLE_OUT,
    INDICES_IN,
    INTS_IN,
    TABLE_IN,
    TABLE_OUT,
    helper,
    inlined,
    tasks,
)
from surestep.kernels.random_words import Words, beta, broken_off, gamma, start_stream, uniform

# Of a row: what the last state takes, at most. That adds no more than its square to the variance of
# a mean over the row (of values that span 1), which is of the order of 1/n after n visits.
REMAINDER = 0.01
SINGLY = 0.08  # α from which on nearly all unseen states would be drawn: then all of them are
LOW, REACH, FIRST, SECOND, WEIGHT = range(5)  # what a row of a table of rewards holds


@helper
def draw_row(
    words: Words,
    row: int,
    first: int,
    last: int,
    successor: IndexArray,
    times: IntArray,
    alpha: float,
    size: int,
    taken: IntArray,
    target: IndexArray,
    share: FloatArray,
    begin: int,
) -> tuple[int, Words]:
    """One row, into `target` and `share` from `begin` on; where it ends, or −1 if it does not fit.

    The row is about `size` states, those s with `taken`[s] ≠ `row`.
    """
    end, total, unseen, left = begin, 0.0, size, 0.0
    for t in range(first, last):
        if times[t] > 0:
            if end == target.size:
                return -1, words
            taken[successor[t]] = row
            target[end] = successor[t]
            share[end], words = gamma(words, alpha + times[t])
            total += share[end]
            end += 1
            unseen -= 1
    if alpha >= SINGLY:
        if target.size - end < unseen:
            return -1, words
        for s in range(taken.size):
            if taken[s] != row:
                target[end] = s
                share[end], words = gamma(words, alpha)
                total += share[end]
                end += 1
    elif unseen > 0:
        left = 1.0
        if total > 0.0:
            left, words = gamma(words, alpha * unseen)
        total += left
        while left > 0.0:
            if end == target.size:
                return -1, words
            unseen -= 1
            broken = 1.0
            if unseen > 0 and left > REMAINDER * total:
                broken, words = broken_off(words, alpha, alpha * unseen)
            u, words = uniform(words)
            while taken[np.uint64(u * taken.size)] == row:
                u, words = uniform(words)
            drawn = np.uint64(u * taken.size)
            taken[drawn] = row
            target[end] = drawn
            share[end] = left * broken
            left *= 1.0 - broken
            end += 1
    for i in range(begin, end):
        share[i] /= total
    return end, words


@helper
def draw_given_row(
    words: Words,
    first: int,
    last: int,
    successor: IndexArray,
    times: IntArray,
    weight: FloatArray,
    target: IndexArray,
    share: FloatArray,
    begin: int,
) -> tuple[int, Words]:
    """One row over its given successors, into `target` and `share`; where it ends, or −1."""
    end = begin + last - first
    if end > target.size:
        return -1, words
    largest, total = -np.inf, 0.0
    for t in range(first, last):
        i, shape = begin + t - first, weight[t] + times[t]
        target[i] = successor[t]
        drawn, words = gamma(words, shape if shape >= 1.0 else shape + 1.0)
        share[i] = math.log(drawn)
        if shape < 1.0:
            boost, words = uniform(words)
            share[i] += math.log(boost) / shape
        largest = max(largest, share[i])
    for i in range(begin, end):
        share[i] = math.exp(share[i] - largest)
        total += share[i]
    for i in range(begin, end):
        share[i] /= total
    return end, words


@inlined
def draw_mean(words: Words, rewards: FloatArray, i: int) -> tuple[float, Words]:
    """A mean between the two rewards of row i; the first itself where they are the same."""
    reach, x = rewards[i, REACH], 0.0
    if reach > 0.0:
        x, words = beta(words, rewards[i, FIRST], rewards[i, SECOND])
    return rewards[i, LOW] + reach * x, words


@inlined
def draw_like(
    words: Words,
    atoms: FloatArray,
    sums: FloatArray,
    kinship: float,
    begin: int,
    end: int,
) -> tuple[float, Words]:
    """The mean of one of `atoms`, by running sums of their weights.

    With the chance `kinship` it is one of `atoms`[begin:end], and otherwise any.
    """
    u, words = uniform(words)
    if u < kinship and end - begin == 1 and atoms[begin, REACH] == 0.0:  # nearly always
        return atoms[begin, LOW], words
    if u >= kinship:
        begin, end = 0 * begin, sums.size
    before = sums[begin - 1] if begin > 0 else 0.0
    u, words = uniform(words)
    x = before + u * (sums[end - 1] - before)
    low, high = begin, end - 1  # of the first running sum above x, or the last
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > x:
            high = middle
        else:
            low = middle + 1
    return draw_mean(words, atoms, low)


@inlined
def draw_reward(
    words: Words,
    seen: FloatArray,
    i: int,
    atoms: FloatArray,
    sums: FloatArray,
    kinship: float,
    others: float,
    begin: int,
    end: int,
) -> tuple[float, Words]:
    """The mean reward of row i of `seen`, or of none of them (−1); see `RewardDraws`."""
    if i < 0 or np.isnan(seen[i, LOW]):
        return draw_like(words, atoms, sums, kinship, begin, end)
    mean, words = draw_mean(words, seen, i)
    if seen[i, WEIGHT] > 0.0:
        other, words = draw_like(words, atoms, sums, kinship, begin, end)
        share, words = beta(words, seen[i, WEIGHT], others)
        mean = share * mean + (1.0 - share) * other
    return mean, words


@helper
def weigh_atoms(
    words: Words,
    group_offsets: IntArray,
    atoms: FloatArray,
    sums: FloatArray,
    kinship: FloatArray,
) -> None:
    """Draws the weights of atoms; running `sums`, and how likely it is to be like one's own group.

    Like any is what weighs as much as one visit.
    """
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


@tasks(
    I64, I64, F64, BOOLS_IN, FLOATS_IN, INTS_IN, INDICES_IN, INTS_IN, FLOATS_IN, I64, I64,
    INTS_IN, TABLE_IN, INTS_IN, TABLE_IN, F64, F64, INDICES_IN, INTS_IN, BOOLS_IN,
    COUNT_TABLE_OUT, INDEX_TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT,
    threads_from=1_000,
)  # fmt: skip
def draw_models(
    first_task: int,
    end_task: int,
    seed: int,
    first_draw: int,
    alpha: float,
    used: BoolArray,
    ending: FloatArray,
    offsets: IntArray,
    successor: IndexArray,
    times: IntArray,
    prior_weight: FloatArray,
    per_pair: int,
    by_successor: int,
    group: IntArray,
    seen: FloatArray,
    group_offsets: IntArray,
    atoms: FloatArray,
    others: float,
    start_alpha: float,
    start_state: IndexArray,
    start_times: IntArray,
    startable: BoolArray,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    initial: FloatArray,
) -> None:
    """The draws `first_draw` … of a chunk [B]: rows of the `used` pairs, rewards and starts.

    Row k of draw b is `target`, `share`[b, ends[b, k]:ends[b, k+1]], and earns `reward`[b, k] on
    average. Pairs that are not used have no row and their `ending` reward. `ends`[b, K] = −1 where
    the draw does not fit. Starts are drawn unless `start_alpha` is 0. With `prior_weight` [T], the
    stored successors are all.
    """
    num_pairs, num_states = used.size, startable.size
    zero = 0 * first_task  # a plain 0 has a type of its own: helpers would be compiled for it too
    for b in range(first_task, end_task):
        taken, place = np.full(num_states, -1), np.full(num_states, -1)
        draw = first_draw + b
        sums, kinship = np.empty(len(atoms)), np.empty(group_offsets.size - 1)
        words = start_stream(seed, draw, num_pairs + 1)
        weigh_atoms(words, group_offsets, atoms, sums, kinship)
        end = zero
        for k in range(num_pairs):
            ends[b, k] = end
            reward[b, k] = ending[k]
            if not used[k] or end < 0:
                continue
            begin, first, last = end, offsets[k], offsets[k + 1]
            words = start_stream(seed, draw, k)
            if prior_weight.size > 0:
                end, words = draw_given_row(
                    words, first, last, successor, times, prior_weight, target[b], share[b], begin,
                )  # fmt: skip
            else:
                end, words = draw_row(
                    words, k, first, last, successor, times, alpha, num_states, taken,
                    target[b], share[b], begin,
                )  # fmt: skip
            if end < 0:
                continue
            if per_pair:
                kin = group[k]
                reward[b, k], words = draw_reward(
                    words, seen, k, atoms, sums, kinship[kin], others,
                    group_offsets[kin], group_offsets[kin + 1],
                )  # fmt: skip
                continue
            for t in range(first, last):
                place[successor[t]] = t
            earned = 0.0
            for i in range(begin, end):
                t = place[target[b, i]]
                if not first <= t < last:
                    t = -1
                kin = np.int64(target[b, i]) if by_successor else group[k]
                one_reward, words = draw_reward(
                    words, seen, t, atoms, sums, kinship[kin], others,
                    group_offsets[kin], group_offsets[kin + 1],
                )  # fmt: skip
                earned += share[b, i] * one_reward
            reward[b, k] = earned
        ends[b, num_pairs] = end
        if start_alpha > 0.0:
            size = zero
            for s in range(num_states):
                initial[b, s] = 0.0
                taken[s] = -1 if startable[s] else num_pairs
                size += startable[s]
            where, chance = np.empty(num_states, np.int32), np.empty(num_states)
            words = start_stream(seed, draw, num_pairs)
            end, _ = draw_row(
                words, num_pairs, zero, start_state.size, start_state, start_times, start_alpha,
                size, taken, where, chance, zero,
            )  # fmt: skip
            for i in range(end):
                initial[b, where[i]] = chance[i]
