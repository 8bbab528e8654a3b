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

Under several priors of one weight, each model is drawn with the same numbers. What was seen, and
how the stick is broken, is the same then and drawn once; only where its pieces lie is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import borrowing, inlined, tasks
from surestep.kernels._types import (
    BoolsIn,
    FloatsIn,
    IndicesIn,
    IntsIn,
    Room,
    RoomSize,
    TableIn,
)
from surestep.kernels.drawn import Chunk
from surestep.kernels.lines import line, part, places
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

    A step earns a `least` and a `greatest` reward, by where it leads. One of these is among those
    of a pair that was seen, as if so many visits `more` had earned it: the least where that is < 0.
    """

    per_pair: bool  # one reward a pair [K], not one a transition [T]
    by_successor: bool  # what leads to the same state is of one group [S]
    group: IntsIn  # [K] of each pair, where it is not
    seen: TableIn  # [K, 5] or [T, 5]
    group_offsets: IntsIn  # of each group's atoms
    atoms: TableIn  # [atoms, 5]
    others: float  # κ
    more: FloatsIn = np.zeros(0)  # [K], or empty
    least: FloatsIn = np.zeros(0)  # [S], or empty
    greatest: FloatsIn = np.zeros(0)  # [S], or empty

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


class Bases(NamedTuple):
    """The bases m of a row under each of P priors, as in `PriorRows`; in all else they agree."""

    given: FloatsIn  # [P·T]
    pooled: FloatsIn  # [P·K]
    elsewhere: FloatsIn  # [P·S]

    @classmethod
    def of(cls, rows: Sequence[PriorRows]) -> Bases:
        """Lines up the bases of several priors."""
        given, pooled, elsewhere = zip(
            *((each.given, each.pooled, each.elsewhere) for each in rows), strict=True
        )
        return cls(np.concatenate(given), np.concatenate(pooled), np.concatenate(elsewhere))


class DirichletPosterior(NamedTuple):
    """A posterior over models, and which of their rows are drawn."""

    seed: int
    pair_offsets: IntsIn  # [S+1]
    used: BoolsIn  # [K] pairs whose rows are drawn
    ending: FloatsIn  # [K] what other pairs earn
    rows: PriorRows  # under the first prior
    bases: Bases
    sums: FloatsIn  # [T] running sums of the times
    singly: bool  # every state has a share of its own in a row
    start_weight: FloatsIn  # [S]; empty where starts are not drawn
    rewards: RewardDraws


class Parts(NamedTuple):
    """The places at which those of each data set begin, in arrays in which they follow each other.

    The last place is where all of them end.
    """

    transitions: IntsIn  # [D+1]
    seen: IntsIn  # [D+1] rows of rewards
    groups: IntsIn  # [D+1] of offsets, one more than there are groups
    atoms: IntsIn  # [D+1]


class Posteriors(NamedTuple):
    """Posteriors of D data sets over the same pairs, under P priors each, after each other.

    All of them have starts to be drawn and given successors, or none has.
    """

    priors: int  # P
    seed: IntsIn  # [D]
    pair_offsets: IntsIn  # [S+1]
    used: BoolsIn  # [D·K]
    ending: FloatsIn  # [D·K]
    parts: Parts
    offsets: IntsIn  # [D·(K+1)] from 0 on in each data set
    successor: IndicesIn
    times: IntsIn
    weight: FloatsIn  # [D]
    bases: Bases  # [D·P·…]
    sums: FloatsIn
    singly: BoolsIn  # [D]
    start_weight: FloatsIn  # [D·S]
    per_pair: bool
    by_successor: BoolsIn  # [D]
    group: IntsIn  # [D·K]
    seen: TableIn
    group_offsets: IntsIn
    atoms: TableIn
    others: FloatsIn  # [D]
    more: FloatsIn  # [D·K], or empty
    least: FloatsIn  # [D·S], or empty
    greatest: FloatsIn  # [D·S], or empty

    @classmethod
    def of(cls, each: Sequence[DirichletPosterior], priors: int) -> Posteriors:
        """Lines up the posteriors of several data sets."""
        rows, rewards = [one.rows for one in each], [one.rewards for one in each]
        return cls(
            priors,
            np.array([one.seed for one in each]),
            each[0].pair_offsets,
            line(one.used for one in each),
            line(one.ending for one in each),
            Parts(
                places(one.successor for one in rows),
                places(one.seen for one in rewards),
                places(one.group_offsets for one in rewards),
                places(one.atoms for one in rewards),
            ),
            line(one.offsets for one in rows),
            line(one.successor for one in rows),
            line(one.times for one in rows),
            np.array([float(one.weight) for one in rows]),
            Bases(*(line(several) for several in zip(*(one.bases for one in each), strict=True))),
            line(one.sums for one in each),
            np.array([one.singly for one in each]),
            line(one.start_weight for one in each),
            rewards[0].per_pair,
            np.array([one.by_successor for one in rewards]),
            line(one.group for one in rewards),
            line(one.seen for one in rewards),
            line(one.group_offsets for one in rewards),
            line(one.atoms for one in rewards),
            np.array([float(one.others) for one in rewards]),
            line(one.more for one in rewards),
            line(one.least for one in rewards),
            line(one.greatest for one in rewards),
        )


@inlined
def posterior_of(posteriors: Posteriors, d: int) -> DirichletPosterior:
    """Returns the posterior of one data set, in the same memory."""
    transitions, of_seen, of_groups, of_atoms = posteriors.parts
    given, pooled, elsewhere = posteriors.bases
    number, priors = posteriors.seed.size, posteriors.priors
    first, last = transitions[d], transitions[d + 1]
    if given.size > 0:
        given = given[priors * first : priors * last]
    own_elsewhere = part(elsewhere, d, number)
    own_pooled = part(pooled, d, number)
    rows = PriorRows(
        part(posteriors.offsets, d, number),
        posteriors.successor[first:last],
        posteriors.times[first:last],
        given,
        posteriors.weight[d],
        own_pooled,
        own_elsewhere,
    )
    rewards = RewardDraws(
        posteriors.per_pair,
        posteriors.by_successor[d],
        part(posteriors.group, d, number),
        posteriors.seen[of_seen[d] : of_seen[d + 1]],
        posteriors.group_offsets[of_groups[d] : of_groups[d + 1]],
        posteriors.atoms[of_atoms[d] : of_atoms[d + 1]],
        posteriors.others[d],
        part(posteriors.more, d, number),
        part(posteriors.least, d, number),
        part(posteriors.greatest, d, number),
    )
    return DirichletPosterior(
        posteriors.seed[d],
        posteriors.pair_offsets,
        part(posteriors.used, d, number),
        part(posteriors.ending, d, number),
        rows,
        Bases(given, own_pooled, own_elsewhere),
        posteriors.sums[first:last],
        posteriors.singly[d],
        part(posteriors.start_weight, d, number),
        rewards,
    )


class Blocks(NamedTuple):
    """The pairs of a model in blocks that are drawn by themselves, and the cells for their rows."""

    pairs: IntsIn  # [N+1]
    cells: IntsIn  # [N+1]


class AtomWeights(NamedTuple):
    """The drawn weights of atoms, and how likely it is to be like one of one's own group."""

    sums: FloatArray  # [atoms] running sums
    kinship: FloatArray  # [groups]


class Base(NamedTuple):
    """The base m of a row under one prior."""

    pooled: float
    elsewhere: FloatArray  # [S]


class Row(NamedTuple):
    """A row to be drawn: its pair and transitions, those of its state, its model, and its limit."""

    pair: int
    first: int
    last: int
    state_first: int
    state_last: int
    model: int  # the one under the first prior
    apart: int  # so many models later comes the one under the next prior
    limit: int  # the first cell that belongs to others


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
def state_at(
    u: float, v: float, rows: PriorRows, sums: FloatArray, row: Row, base: Base
) -> int | np.int64:
    """Returns the state of a base for two numbers: where u < `pooled`, one where a step led."""
    first, last = row.state_first, row.state_last
    if u < base.pooled:
        before = sums[first - 1] if first > 0 else 0.0
        t = first_above(sums, first, last, before + v * (sums[last - 1] - before))
        return np.int64(rows.successor[t])
    elsewhere = base.elsewhere
    x = v * elsewhere[-1]
    state = np.int64(v * elsewhere.size)  # where all have the same chance; v < 1
    if not (elsewhere[state] > x and (state == 0 or elsewhere[state - 1] <= x)):
        state = np.int64(first_above(elsewhere, 0 * first, elsewhere.size, x))
    return state


@borrowing
def draw_sparse_rows(
    words: Words,
    rows: PriorRows,
    bases: Bases,
    sums: FloatArray,
    row: Row,
    begins: IntArray,
    ends: IntArray,
    place: IntArray,
    target: IndexArray,
    share: FloatArray,
) -> Words:
    """Draws a row under each of P priors, from `ends`[p] on.

    `ends` [P] then says where they end, the first −1 if one does not fit; `begins` [P] is to be
    written. `place` [P · S] says where a state stands, if that is not before the row.
    """
    successor, times, weight = rows.successor, rows.times, rows.weight
    num_priors, num_states = begins.size, bases.elsewhere.size // begins.size
    num_pairs = bases.pooled.size // begins.size
    width, seen, total = row.limit, 0, 0.0
    for t in range(row.first, row.last):
        if times[t] > 0:
            number, words = gamma(words, np.float64(times[t]))
            total += number
            for p in range(num_priors):
                at = ends[p] + seen
                if at == width:
                    ends[0] = -1
                    return words
                place[p * num_states + successor[t]] = at
                target[row.model + p * row.apart, at] = successor[t]
                share[row.model + p * row.apart, at] = number
            seen += 1
    left = 1.0
    if total > 0.0:
        left, words = gamma(words, weight)
    total += left
    remainder = REMAINDER * left
    for p in range(num_priors):
        begins[p] = ends[p]
        ends[p] += seen
    while left > 0.0:
        broken = 1.0
        if left > remainder:
            u, words = uniform(words)
            broken = 1.0 - math.exp(math.log(u) / weight)
        u, words = uniform(words)
        v, words = uniform(words)
        for p in range(num_priors):
            m = row.model + p * row.apart
            elsewhere = bases.elsewhere[p * num_states : (p + 1) * num_states]
            base = Base(bases.pooled[p * num_pairs + row.pair], elsewhere)
            state = state_at(u, v, rows, sums, row, base)
            at = place[p * num_states + state]
            if at < begins[p]:
                at = ends[p]
                if at == width:
                    ends[0] = -1
                    return words
                place[p * num_states + state] = at
                target[m, at], share[m, at] = state, 0.0
                ends[p] += 1
            share[m, at] += left * broken
        left *= 1.0 - broken
    for p in range(num_priors):
        for i in range(begins[p], ends[p]):
            share[row.model + p * row.apart, i] /= total
    return words


@borrowing
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


@borrowing
def weigh_all(
    rows: PriorRows, base: Base, row: Row, begin: int, target: IndexArray, share: FloatArray
) -> int:
    """Weighs all states in a row, into `share` from `begin` on; where it ends, or −1."""
    successor, times, weight = rows.successor, rows.times, rows.weight
    pooled, elsewhere = base
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
    words: Words, rewards: RewardDraws, weights: AtomWeights, group: int | np.int64
) -> tuple[float, Words]:
    """Draws the mean of an atom: with the chance of kinship one of the group, else any."""
    atoms, group_offsets = rewards.atoms, rewards.group_offsets
    sums, kinship = weights
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
    words: Words, rewards: RewardDraws, weights: AtomWeights, i: int, group: int | np.int64
) -> tuple[float, Words]:
    """Returns the mean reward of row i of `seen`, or of none of them (−1); see `RewardDraws`."""
    seen = rewards.seen
    known = i >= 0 and not np.isnan(seen[i, LOW])
    mean = 0.0
    if known:
        mean, words = draw_mean(words, seen, i)
    if not known or seen[i, WEIGHT] > 0.0:
        other, words = draw_like(words, rewards, weights, group)
        share = 0.0
        if known:
            share, words = beta(words, seen[i, WEIGHT], rewards.others)
        mean = share * mean + (1.0 - share) * other
    return mean, words


@borrowing
def with_extreme(
    words: Words,
    rewards: RewardDraws,
    pair: int,
    visits: float,
    earned: float,
    target: IndexArray,
    share: FloatArray,
) -> tuple[float, Words]:
    """Returns the mean reward of a row that was seen so often, with its least or greatest one."""
    more, extreme = rewards.more[pair], 0.0
    for i in range(target.size):
        s = target[i]
        extreme += share[i] * (rewards.least[s] if more < 0.0 else rewards.greatest[s])
    chance, words = beta(words, abs(more), visits)
    return earned + chance * (extreme - earned), words


@borrowing
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


@borrowing
def draw_whole_row(
    words: Words,
    rows: PriorRows,
    bases: Bases,
    row: Row,
    prior: int,
    num_priors: int,
    begin: int,
    target: IndexArray,
    share: FloatArray,
) -> tuple[int, Words]:
    """Draws a row of which every successor has a share of its own; its end, or −1."""
    successor, times, given = rows.successor, rows.times, bases.given
    if given.size == 0:
        num_pairs = bases.pooled.size // num_priors
        num_states = bases.elsewhere.size // num_priors
        elsewhere = bases.elsewhere[prior * num_states : (prior + 1) * num_states]
        base = Base(bases.pooled[prior * num_pairs + row.pair], elsewhere)
        end = weigh_all(rows, base, row, begin, target, share)
    else:
        end = begin + row.last - row.first
        if end > target.size:
            end = -1
        else:
            for t in range(row.first, row.last):
                target[begin + t - row.first] = successor[t]
                share[begin + t - row.first] = given[prior * successor.size + t] + times[t]
    if end >= 0:
        words = draw_shares(words, share, begin, end)
    return end, words


class Desk(NamedTuple):
    """Arrays to work with while a model is drawn."""

    begins: IntArray  # [P] where a row begins
    ends: IntArray  # [P] where it ends; the first is −1 where a model does not fit
    place: IntArray  # [P · S]
    known: IntArray  # [S] the transition of the counts that leads there
    weights: AtomWeights


@borrowing
def draw_block(
    posterior: DirichletPosterior,
    draw: int,
    model: int,
    apart: int,
    blocks: Blocks,
    block: int,
    models: Chunk,
    desk: Desk,
) -> None:
    """Writes a block of one draw under each prior: rows and rewards; see `draw_models`.

    It is `model` under the first prior, and so many models `apart` under the next.
    """
    seed, pair_offsets, used, ending, rows, bases, sums, singly, _, rewards = posterior
    ends, target, share, reward, _ = models
    offsets, successor = rows.offsets, rows.successor
    per_pair, by_successor, group = rewards.per_pair, rewards.by_successor, rewards.group
    begins, end, place, known, weights = desk
    num_priors, first_pair, last_pair = begins.size, blocks.pairs[block], blocks.pairs[block + 1]
    limit = blocks.cells[block + 1]
    sparse = bases.given.size == 0 and not singly
    s = 0 * model  # a plain 0 has a type of its own
    for p in range(num_priors):
        end[p] = blocks.cells[block]
    for k in range(first_pair, last_pair):
        for p in range(num_priors):
            ends[model + p * apart, k] = end[p]
            reward[model + p * apart, k] = ending[k]
        if not used[k] or end[0] < 0:
            continue
        while k >= pair_offsets[s + 1]:
            s += 1
        first, last = offsets[k], offsets[k + 1]
        states = offsets[pair_offsets[s]], offsets[pair_offsets[s + 1]]
        row = Row(k, first, last, states[0], states[1], model, apart, limit)
        row_words = start_stream(seed, draw, k)
        if sparse:
            row_words = draw_sparse_rows(
                row_words, rows, bases, sums, row, begins, end, place, target, share
            )
        visits = 0.0
        for t in range(first, last):
            known[successor[t]] = t
            visits += rows.times[t]
        for p in range(num_priors):
            m, words = model + p * apart, row_words
            begin = ends[m, k]
            if not sparse:
                end[p], words = draw_whole_row(
                    words,
                    rows,
                    bases,
                    row,
                    p,
                    num_priors,
                    begin,
                    target[m, :limit],
                    share[m, :limit],
                )
            if end[0] < 0 or end[p] < 0:
                end[0] = -1
                break
            earned = 0.0
            for i in range(begin, begin + 1 if per_pair else end[p]):
                t, kin, weight = k, group[k], 1.0
                if not per_pair:
                    t, weight = known[target[m, i]], share[m, i]
                    if not first <= t < last:
                        t = -1
                    if by_successor:
                        kin = np.int64(target[m, i])
                one_reward, words = draw_reward(words, rewards, weights, t, kin)
                earned += weight * one_reward
            if rewards.more.size > 0 and rewards.more[k] != 0.0 and visits > 0.0:
                here, shares = target[m, begin : end[p]], share[m, begin : end[p]]
                earned, words = with_extreme(words, rewards, k, visits, earned, here, shares)
            reward[m, k] = earned
    if end[0] < 0:
        ends[model, last_pair - 1] = -1
    for p in range(num_priors):
        if last_pair == used.size:
            ends[model + p * apart, last_pair] = end[p]
        elif end[0] >= 0:  # the last row goes on to where the next block begins
            for i in range(end[p], limit):
                target[model + p * apart, i], share[model + p * apart, i] = 0, 0.0


def room_to_draw(posteriors: Posteriors) -> RoomSize:
    """Returns the room that `draw_models` needs: a `Desk`."""
    num_priors, num_states = posteriors.priors, posteriors.pair_offsets.size - 1
    _, _, groups, atoms = posteriors.parts
    most = int((arrays.run_lengths(atoms) + arrays.run_lengths(groups) - 1).max())
    return RoomSize(most, 2 * num_priors + (num_priors + 1) * num_states)


@tasks(threads_from=1_000)
def draw_models(
    first_task: int,
    end_task: int,
    room: Room,
    posteriors: Posteriors,
    first_draw: int,
    blocks: Blocks,
    models: Chunk,
) -> None:
    """Writes the draws `first_draw` … [B]: rows of the `used` pairs, rewards and starts.

    The chunk is of D · P · B models: those of the first data set come first, and of these the ones
    under the first prior. A task is a block of a draw. Pairs that are not used have no row and
    their `ending` reward.
    """
    initial, num_priors, num_blocks = models.initial, posteriors.priors, blocks.pairs.size - 1
    draws = len(initial) // (num_priors * posteriors.seed.size)
    num_states = posteriors.pair_offsets.size - 1
    begins, ends = room.ints[:num_priors], room.ints[num_priors : 2 * num_priors]
    places = room.ints[2 * num_priors : 2 * num_priors + (num_priors + 1) * num_states]
    place, known = places[num_states:], places[:num_states]
    zero = 0 * first_task  # a plain 0 has a type of its own: helpers would be compiled for it too
    for task in range(first_task, end_task):
        block, b, d = task % num_blocks, task // num_blocks % draws, task // num_blocks // draws
        draw, model = first_draw + b, d * num_priors * draws + b
        posterior = posterior_of(posteriors, d)
        seed, num_pairs, rewards = posterior.seed, posterior.used.size, posterior.rewards
        num_atoms, groups = len(rewards.atoms), rewards.group_offsets.size - 1
        weights = AtomWeights(room.floats[:num_atoms], room.floats[num_atoms : num_atoms + groups])
        weigh_atoms(start_stream(seed, draw, num_pairs + 1), rewards, weights)
        for i in range(places.size):
            places[i] = -1
        desk = Desk(begins, ends, place, known, weights)
        draw_block(posterior, draw, model, draws, blocks, block, models, desk)
        start_weight = posterior.start_weight
        if start_weight.size > 0 and block == 0:
            words = start_stream(seed, draw, num_pairs)
            for s in range(num_states):
                initial[model, s] = start_weight[s]
            draw_shares(words, initial[model], zero, num_states)
            for p in range(1, num_priors):
                for s in range(num_states):
                    initial[model + p * draws, s] = initial[model, s]
