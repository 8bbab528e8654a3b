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
from surestep.kernels.random_streams import Words, beta, gamma, start_stream, uniform

# Of a row: what the last state takes, at most. That adds no more than its square to the variance of
# a mean over the row (of values that span 1), which is of the order of 1/n after n visits.
REMAINDER = 0.01
LOW, REACH, FIRST, SECOND, WEIGHT = range(5)  # what a row of a table of rewards holds


@inlined
def first_above(sums: FloatArray, begin: int, end: int, x: float) -> int:
    """The first of `sums`[begin:end], which rise, that is above x; or the last."""
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def draw_state(
    words: Words,
    pooled: float,
    first: int,
    last: int,
    successor: IndexArray,
    sums: FloatArray,
    elsewhere: FloatArray,
) -> tuple[np.int64, Words]:
    """A state of the base: with the chance `pooled` where one of the steps first … last led.

    `sums` [T] are running sums of the steps, `elsewhere` [S] those of the chances of all states.
    """
    u, words = uniform(words)
    v, words = uniform(words)
    if u < pooled:
        before = sums[first - 1] if first > 0 else 0.0
        t = first_above(sums, first, last, before + v * (sums[last - 1] - before))
        return np.int64(successor[t]), words
    state = first_above(elsewhere, 0 * first, elsewhere.size, v * elsewhere[-1])
    return np.int64(state), words


@helper
def draw_sparse_row(
    words: Words,
    first: int,
    last: int,
    state_first: int,
    state_last: int,
    successor: IndexArray,
    times: IntArray,
    sums: FloatArray,
    weight: float,
    pooled: float,
    elsewhere: FloatArray,
    place: IntArray,
    target: IndexArray,
    share: FloatArray,
    begin: int,
) -> tuple[int, Words]:
    """One row, into `target` and `share` from `begin` on; where it ends, or −1 if it does not fit.

    `place` [S] says where a state stands, if that is not before `begin`.
    """
    end, total = begin, 0.0
    for t in range(first, last):
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
        state, words = draw_state(
            words, pooled, state_first, state_last, successor, sums, elsewhere
        )
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
def weigh_all(
    first: int,
    last: int,
    state_first: int,
    state_last: int,
    successor: IndexArray,
    times: IntArray,
    weight: float,
    pooled: float,
    elsewhere: FloatArray,
    target: IndexArray,
    share: FloatArray,
    begin: int,
) -> int:
    """The weights of all states in a row, into `share` from `begin` on; where it ends, or −1."""
    end = begin + elsewhere.size
    if end > target.size:
        return -1
    before, steps = 0.0, 0
    for s in range(elsewhere.size):
        target[begin + s] = s
        share[begin + s] = weight * (1.0 - pooled) * (elsewhere[s] - before) / elsewhere[-1]
        before = elsewhere[s]
    for t in range(state_first, state_last):
        steps += times[t]
    for t in range(state_first, state_last):
        if steps > 0:
            share[begin + successor[t]] += weight * pooled * (times[t] / steps)
    for t in range(first, last):
        share[begin + successor[t]] += times[t]
    return end


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
    return draw_mean(words, atoms, first_above(sums, begin, end, x))


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
    I64, I64, INTS_IN, BOOLS_IN, FLOATS_IN, INTS_IN, INDICES_IN, INTS_IN, FLOATS_IN, F64,
    FLOATS_IN, FLOATS_IN, FLOATS_IN, I64, FLOATS_IN, I64, I64, INTS_IN, TABLE_IN, INTS_IN, TABLE_IN,
    F64, COUNT_TABLE_OUT, INDEX_TABLE_OUT, TABLE_OUT, TABLE_OUT, TABLE_OUT,
    threads_from=1_000,
)  # fmt: skip
def draw_models(
    first_task: int,
    end_task: int,
    seed: int,
    first_draw: int,
    pair_offsets: IntArray,
    used: BoolArray,
    ending: FloatArray,
    offsets: IntArray,
    successor: IndexArray,
    times: IntArray,
    given: FloatArray,
    weight: float,
    pooled: FloatArray,
    elsewhere: FloatArray,
    sums: FloatArray,
    singly: int,
    start_weight: FloatArray,
    per_pair: int,
    by_successor: int,
    group: IntArray,
    seen: FloatArray,
    group_offsets: IntArray,
    atoms: FloatArray,
    others: float,
    ends: IntArray,
    target: IndexArray,
    share: FloatArray,
    reward: FloatArray,
    initial: FloatArray,
) -> None:
    """The draws `first_draw` … of a chunk [B]: rows of the `used` pairs, rewards and starts.

    Row k of draw b is `target`, `share`[b, ends[b, k]:ends[b, k+1]], and earns `reward`[b, k] on
    average. Pairs that are not used have no row and their `ending` reward. `ends`[b, K] = −1 where
    the draw does not fit. With the weights `given` [T], the stored successors are all; otherwise
    rows are about all states, each drawn for itself where `singly` says so. Starts are drawn
    unless `start_weight` [S] is empty.
    """
    num_pairs, num_states = used.size, pair_offsets.size - 1
    zero = 0 * first_task  # a plain 0 has a type of its own: helpers would be compiled for it too
    for b in range(first_task, end_task):
        place, known = np.full(num_states, -1), np.full(num_states, -1)
        draw = first_draw + b
        atom_sums, kinship = np.empty(len(atoms)), np.empty(group_offsets.size - 1)
        words = start_stream(seed, draw, num_pairs + 1)
        weigh_atoms(words, group_offsets, atoms, atom_sums, kinship)
        end = zero
        s = zero
        for k in range(num_pairs):
            ends[b, k] = end
            reward[b, k] = ending[k]
            if not used[k] or end < 0:
                continue
            while k >= pair_offsets[s + 1]:
                s += 1
            state_first, state_last = offsets[pair_offsets[s]], offsets[pair_offsets[s + 1]]
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
            elif singly:
                end = weigh_all(
                    first, last, state_first, state_last, successor, times, weight, pooled[k],
                    elsewhere, target[b], share[b], begin,
                )  # fmt: skip
                if end >= 0:
                    words = draw_shares(words, share[b], begin, end)
            else:
                end, words = draw_sparse_row(
                    words, first, last, state_first, state_last, successor, times, sums, weight,
                    pooled[k], elsewhere, place, target[b], share[b], begin,
                )  # fmt: skip
            if end < 0:
                continue
            if per_pair:
                kin = group[k]
                reward[b, k], words = draw_reward(
                    words, seen, k, atoms, atom_sums, kinship[kin], others,
                    group_offsets[kin], group_offsets[kin + 1],
                )  # fmt: skip
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
                    words, seen, t, atoms, atom_sums, kinship[kin], others,
                    group_offsets[kin], group_offsets[kin + 1],
                )  # fmt: skip
                earned += share[b, i] * one_reward
            reward[b, k] = earned
        ends[b, num_pairs] = end
        if start_weight.size > 0:
            words = start_stream(seed, draw, num_pairs)
            for s in range(num_states):
                initial[b, s] = start_weight[s]
            words = draw_shares(words, initial[b], zero, num_states)
