"""Models drawn from a Dirichlet posterior, sparsely and exactly.

The row of a pair is Dirichlet over all S states: α + times for a successor that was seen, α for the
m others. Few of those get any weight worth mentioning when α is small. Together they get
Gamma(αm), against Gamma(α + times) for each that was seen; and in an order drawn with chances
proportional to their weights, the i-th takes a share W_i ~ Beta(1 + α, (m − i)α) of what the ones
before it left, while *which* states stand in that order is uniformly random (a finite form of
stick-breaking). So the states that matter come first, and what is left can be made as small as one
likes: it is returned, not dropped.

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
    FLOATS_OUT,
    I64,
    INDEX_TABLE_OUT,
    INDICES_IN,
    INTS_IN,
    TABLE_IN,
    TABLE_OUT,
    helper,
    tasks,
)
from surestep.kernels.random_words import Words, beta, broken_off, gamma, start_stream, uniform

REMAINDER = 1e-6  # of a row: the weight that is not given to any state
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
) -> tuple[int, float, Words]:
    """One row, into `target` and `share` from `begin` on; where it ends, and the weight left over.

    The row is about `size` states, those s with `taken`[s] ≠ `row`; −1 where it does not fit.
    """
    end, total, unseen, left = begin, 0.0, size, 0.0
    for t in range(first, last):
        if times[t] > 0:
            if end == target.size:
                return -1, 0.0, words
            taken[successor[t]] = row
            target[end] = successor[t]
            share[end], words = gamma(words, alpha + times[t])
            total += share[end]
            end += 1
            unseen -= 1
    if alpha >= SINGLY:
        if target.size - end < unseen:
            return -1, 0.0, words
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
        while unseen > 0 and left > REMAINDER * total:
            if end == target.size:
                return -1, 0.0, words
            unseen -= 1
            broken = 1.0
            if unseen > 0:
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
    return end, left / total, words


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


@helper
def draw_mean(words: Words, rewards: FloatArray, i: int) -> tuple[float, Words]:
    """A mean between the two rewards of row i; the first itself where they are the same."""
    reach, x = rewards[i, REACH], 0.0
    if reach > 0.0:
        x, words = beta(words, rewards[i, FIRST], rewards[i, SECOND])
    return rewards[i, LOW] + reach * x, words


@helper
def draw_like(
    words: Words,
    atoms: FloatArray,
    sums: FloatArray,
    any_weight: float,
    begin: int,
    end: int,
) -> tuple[float, Words]:
    """The mean of one of `atoms`[begin:end], by running sums of their weights; or of any atom."""
    before = sums[begin - 1] if begin > 0 else 0.0
    inside = sums[end - 1] - before if end > begin else 0.0
    u, words = uniform(words)
    x = u * (any_weight + inside)
    if x >= inside:
        before, begin, end = 0.0, 0 * begin, sums.size
        u, words = uniform(words)
        x = u * sums[end - 1]
    low, high = begin, end - 1  # of the first running sum above it, or the last
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > before + x:
            high = middle
        else:
            low = middle + 1
    return draw_mean(words, atoms, low)


@helper
def draw_reward(
    words: Words,
    seen: FloatArray,
    i: int,
    atoms: FloatArray,
    sums: FloatArray,
    any_weight: float,
    others: float,
    begin: int,
    end: int,
) -> tuple[float, Words]:
    """The mean reward of row i of `seen`, or of none of them (−1); see `RewardDraws`."""
    if i < 0 or np.isnan(seen[i, LOW]):
        return draw_like(words, atoms, sums, any_weight, begin, end)
    mean, words = draw_mean(words, seen, i)
    if seen[i, WEIGHT] > 0.0:
        other, words = draw_like(words, atoms, sums, any_weight, begin, end)
        share, words = beta(words, seen[i, WEIGHT], others)
        mean = share * mean + (1.0 - share) * other
    return mean, words


@tasks(
    I64, I64, F64, BOOLS_IN, FLOATS_IN, INTS_IN, INDICES_IN, INTS_IN, FLOATS_IN, I64, I64,
    INTS_IN, TABLE_IN, INTS_IN, TABLE_IN, F64, F64, INDICES_IN, INTS_IN, BOOLS_IN,
    COUNT_TABLE_OUT, INDEX_TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT, FLOATS_OUT,
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
    rest: FloatArray,
    initial: FloatArray,
    initial_rest: FloatArray,
) -> None:
    """The draws `first_draw` … of a chunk [B]: rows of the `used` pairs, rewards and starts.

    Row k of draw b is `target`, `share`[b, ends[b, k]:ends[b, k+1]], with `rest`[b, k] left over,
    and earns `reward`[b, k] on average over what is not left over. Pairs that are not used have
    no row and their `ending` reward. `ends`[b, K] = −1 where the draw does not fit. Starts are
    drawn unless `start_alpha` is 0. With `prior_weight` [T], the stored successors are all.
    """
    num_pairs, num_states = used.size, startable.size
    zero = 0 * first_task  # a plain 0 has a type of its own: helpers would be compiled for it too
    for b in range(first_task, end_task):
        taken, place = np.full(num_states, -1), np.full(num_states, -1)
        draw = first_draw + b
        sums, any_weight = np.empty(len(atoms)), np.empty(group_offsets.size - 1)
        words = start_stream(seed, draw, num_pairs + 1)
        for i in range(any_weight.size):
            any_weight[i], words = gamma(words, 1.0)
        total = 0.0
        for i in range(len(atoms)):
            weight, words = gamma(words, atoms[i, WEIGHT])
            total += weight
            sums[i] = total
        end = zero
        for k in range(num_pairs):
            ends[b, k] = end
            reward[b, k], rest[b, k] = ending[k], 0.0
            if not used[k] or end < 0:
                continue
            begin, first, last = end, offsets[k], offsets[k + 1]
            words = start_stream(seed, draw, k)
            if prior_weight.size > 0:
                end, words = draw_given_row(
                    words, first, last, successor, times, prior_weight, target[b], share[b], begin,
                )  # fmt: skip
            else:
                end, rest[b, k], words = draw_row(
                    words, k, first, last, successor, times, alpha, num_states, taken,
                    target[b], share[b], begin,
                )  # fmt: skip
            if end < 0:
                continue
            if per_pair:
                kin = group[k]
                earned, words = draw_reward(
                    words, seen, k, atoms, sums, any_weight[kin], others,
                    group_offsets[kin], group_offsets[kin + 1],
                )  # fmt: skip
                reward[b, k] = earned * (1.0 - rest[b, k])
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
                    words, seen, t, atoms, sums, any_weight[kin], others,
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
            end, initial_rest[b], _ = draw_row(
                words, num_pairs, zero, start_state.size, start_state, start_times, start_alpha,
                size, taken, where, chance, zero,
            )  # fmt: skip
            for i in range(end):
                initial[b, where[i]] = chance[i]
