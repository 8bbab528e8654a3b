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
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import borrowing, inlined, tasks
from surestep.kernels.drawn import Chunk
from surestep.kernels.random_streams import Words, beta, first_above, gamma, start_stream, uniform
from surestep.kernels.records import copy_into, fill
from surestep.kernels.types import BoolsIn, FloatsIn, IndicesIn, IntsIn, Room, RoomSize, TableIn

# Of a row: what the last state takes, at most. That adds no more than its square to the variance of
# a mean over the row (of values that span 1), which is of the order of 1/n after n visits.
REMAINDER = 0.01
PIECES = -math.log(REMAINDER)  # of a stick on average, for every unit of its weight
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
    group: IntsIn  # [K] of each pair; −1: what leads to the same state is of one group [S]
    seen: TableIn  # [K, 5] or [T, 5]
    group_offsets: IntsIn  # of each group's atoms
    atoms: TableIn  # [atoms, 5]
    others: FloatsIn  # [1] κ
    more: FloatsIn = np.zeros(0)  # [K], or empty
    least: FloatsIn = np.zeros(0)  # [S], or empty
    greatest: FloatsIn = np.zeros(0)  # [S], or empty

    @classmethod
    def known(cls, values: FloatArray, per_pair: bool, num_pairs: int) -> RewardDraws:
        """Rewards that are what they are."""
        seen = np.zeros((values.size, 5))
        seen[:, LOW] = values
        return cls(
            per_pair,
            np.zeros(num_pairs, np.int64),
            seen,
            np.zeros(2, np.int64),
            np.zeros((0, 5)),
            np.zeros(1),
        )

    def moved(self, place: IntArray, size: int) -> RewardDraws:
        """Moves the transition t to `place`[t] of `size`; −1: it cannot come."""
        if self.per_pair:
            return self
        kept = place >= 0
        moved = np.zeros((size, 5))
        moved[:, LOW] = math.nan
        moved[place[kept]] = self.seen[kept]
        return self._replace(seen=moved)


class Rows(NamedTuple):
    """The law of the rows of D data sets over the same pairs, under P priors each.

    The transitions of all data sets follow each other. Without `given` weights, a row is about all
    states, those that are not stored included. Its prior has the total `weight`, `pooled` of which
    lies where steps of its state led.
    """

    offsets: IntsIn  # [D·K+1]
    successor: IndicesIn  # [T]
    times: IntsIn  # [T]
    sums: FloatsIn  # [T] running sums of the times
    given: FloatsIn  # [P·T] weights, where rows are about the stored successors only
    weight: FloatsIn  # [D] c
    pooled: FloatsIn  # [P·D·K]
    elsewhere: FloatsIn  # [P·D·S] running sums of the chances of all states


class Posteriors(NamedTuple):
    """Posteriors of D data sets over the same pairs, under P priors each.

    All of them have starts to be drawn and given successors, or none has. Those that follow a first
    one agree with it in all but rewards: its rows and starts are theirs.
    """

    firsts: IntsIn  # [F+1] where the first of `members`, and those that follow it, begin
    members: IntsIn  # [D]
    priors: int  # P
    seed: IntsIn  # [D]
    pair_offsets: IntsIn  # [S+1]
    used: BoolsIn  # [D·K] pairs whose rows are drawn
    ending: FloatsIn  # [D·K] what other pairs earn
    starts: FloatsIn  # [D·S] weights, or chances that are known
    starts_drawn: bool
    rows: Rows
    rewards: RewardDraws  # of all data sets; groups and atoms are numbered in each
    groups: IntsIn  # [D+1] where the offsets of groups begin
    atoms: IntsIn  # [D+1] where atoms begin


class Blocks(NamedTuple):
    """The pairs of a model in blocks that are drawn by themselves, and the cells for their rows."""

    pairs: IntsIn  # [N+1]
    cells: IntsIn  # [N+1]


class Row(NamedTuple):
    """A row to be drawn: its pair and transitions, those of its state, its model, and its limit."""

    pair: int  # of all data sets
    data_set: int
    first: int
    last: int
    state_first: int
    state_last: int
    model: int  # the one under the first prior
    apart: int  # so many models later comes the one under the next prior
    limit: int  # the first cell that belongs to others


class Atoms(NamedTuple):
    """The atoms of a data set, and what was drawn of them."""

    offsets: IntArray  # of each group's
    rewards: FloatArray  # [atoms, 5]
    sums: FloatArray  # [atoms] running sums of their weights
    kinship: FloatArray  # [groups] how likely it is to be like one of one's own group


class Desk(NamedTuple):
    """Arrays to work with while a model is drawn."""

    begins: IntArray  # [P] where a row begins
    ends: IntArray  # [P] where it ends; the first is −1 where a model does not fit
    place: IntArray  # [P · S] where a state stands, if that is not before the row
    known: IntArray  # [S] the transition of the counts that leads there
    atoms: FloatArray  # what was drawn of all atoms; see `atoms_of`


@inlined
def state_at(u: float, v: float, rows: Rows, row: Row, prior: int, states: int) -> int | np.int64:
    """Returns the state of a base for two numbers: where u < `pooled`, one where a step led."""
    sums, first, last = rows.sums, row.state_first, row.state_last
    if u < rows.pooled[prior * (rows.offsets.size - 1) + row.pair]:
        before = sums[first] - rows.times[first]
        t = first_above(sums, first, last, before + v * (sums[last - 1] - before))
        return np.int64(rows.successor[t])
    begin = (prior * rows.weight.size + row.data_set) * states
    elsewhere = rows.elsewhere[begin : begin + states]
    x = v * elsewhere[-1]
    state = np.int64(v * states)  # where all have the same chance; v < 1
    if not (elsewhere[state] > x and (state == 0 or elsewhere[state - 1] <= x)):
        state = np.int64(first_above(elsewhere, 0 * first, states, x))
    return state


@inlined
def add_share(
    state: int | np.int64,
    more: float,
    prior: int,
    row: Row,
    desk: Desk,
    target: IndexArray,
    share: FloatArray,
) -> bool:
    """Adds to what a row says of a state, in a new cell where that was nothing; if there is one."""
    model, own = row.model + prior * row.apart, prior * desk.known.size + state
    at = desk.place[own]
    if at < desk.begins[prior]:
        at = desk.ends[prior]
        if at == row.limit:
            desk.ends[0] = -1
            return False
        desk.place[own] = at
        target[model, at], share[model, at] = state, 0.0
        desk.ends[prior] += 1
    share[model, at] += more
    return True


@borrowing
def draw_sparse_rows(
    words: Words, rows: Rows, row: Row, desk: Desk, target: IndexArray, share: FloatArray
) -> Words:
    """Draws a row under each of P priors, from where the one before ends."""
    begins, ends, weight, total = desk.begins, desk.ends, rows.weight[row.data_set], 0.0
    copy_into(begins, ends)
    for t in range(row.first, row.last):
        if rows.times[t] > 0:
            number, words = gamma(words, np.float64(rows.times[t]))
            total += number
            for p in range(begins.size):
                if not add_share(rows.successor[t], number, p, row, desk, target, share):
                    return words
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
        u, words = uniform(words)
        v, words = uniform(words)
        for p in range(begins.size):
            state = state_at(u, v, rows, row, p, desk.known.size)
            if not add_share(state, left * broken, p, row, desk, target, share):
                return words
        left *= 1.0 - broken
    for p in range(begins.size):
        for i in range(begins[p], ends[p]):
            share[row.model + p * row.apart, i] /= total
    return words


@borrowing
def draw_shares(words: Words, share: FloatArray) -> Words:
    """Draws from a Dirichlet whose weights stand in `share`, in their place."""
    largest, total = -np.inf, 0.0
    for i in range(share.size):
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
    for i in range(share.size):
        share[i] = math.exp(share[i] - largest)
        total += share[i]
    for i in range(share.size):
        share[i] /= total
    return words


@borrowing
def weigh_row(rows: Rows, row: Row, prior: int, target: IndexArray, share: FloatArray) -> None:
    """Writes the weights of a row where each successor has one: those given, or all states."""
    successor, times, weight = rows.successor, rows.times, rows.weight[row.data_set]
    if rows.given.size > 0:
        for t in range(row.first, row.last):
            target[t - row.first] = successor[t]
            share[t - row.first] = rows.given[prior * successor.size + t] + times[t]
        return
    pooled = rows.pooled[prior * (rows.offsets.size - 1) + row.pair]
    begin = (prior * rows.weight.size + row.data_set) * target.size
    elsewhere = rows.elsewhere[begin : begin + target.size]
    before, steps = 0.0, 0
    for s in range(target.size):
        target[s] = s
        share[s] = weight * (1.0 - pooled) * (elsewhere[s] - before) / elsewhere[-1]
        before = elsewhere[s]
    for t in range(row.state_first, row.state_last):
        steps += times[t]
    for t in range(row.state_first, row.state_last):
        if steps > 0:
            share[successor[t]] += weight * pooled * (times[t] / steps)
    for t in range(row.first, row.last):
        share[successor[t]] += times[t]


@inlined
def draw_mean(words: Words, rewards: FloatArray, i: int) -> tuple[float, Words]:
    """Returns a mean between the two rewards of row i; the first itself where they are the same."""
    reach, x = rewards[i, REACH], 0.0
    if reach > 0.0:
        x, words = beta(words, rewards[i, FIRST], rewards[i, SECOND])
    return rewards[i, LOW] + reach * x, words


@inlined
def draw_like(words: Words, atoms: Atoms, group: int | np.int64) -> tuple[float, Words]:
    """Draws the mean of an atom: with the chance of kinship one of the group, else any."""
    offsets, rewards, sums, kinship = atoms
    begin, end = offsets[group], offsets[group + 1]
    u, words = uniform(words)
    if u < kinship[group] and end - begin == 1 and rewards[begin, REACH] == 0.0:  # nearly always
        return rewards[begin, LOW], words
    if u >= kinship[group]:
        begin, end = 0 * begin, sums.size
    before = sums[begin - 1] if begin > 0 else 0.0
    u, words = uniform(words)
    x = before + u * (sums[end - 1] - before)
    return draw_mean(words, rewards, first_above(sums, begin, end, x))


@inlined
def draw_reward(
    words: Words, seen: FloatArray, i: int, others: float, atoms: Atoms, group: int | np.int64
) -> tuple[float, Words]:
    """Returns the mean reward of row i of `seen`, or of none of them (−1); see `RewardDraws`."""
    known = i >= 0 and not np.isnan(seen[i, LOW])
    mean = 0.0
    if known:
        mean, words = draw_mean(words, seen, i)
    if not known or seen[i, WEIGHT] > 0.0:
        other, words = draw_like(words, atoms, group)
        share = 0.0
        if known:
            share, words = beta(words, seen[i, WEIGHT], others)
        mean = share * mean + (1.0 - share) * other
    return mean, words


@inlined
def draw_earned(
    words: Words,
    rows: Rows,
    row: Row,
    rewards: RewardDraws,
    known: IntArray,
    shift: int,
    atoms: Atoms,
    target: IndexArray,
    share: FloatArray,
) -> float:
    """Draws the mean reward of a row with these successors.

    A transition that is `known` to lead to one of them comes so much later in this data set.
    """
    group, others = rewards.group[row.pair], rewards.others[row.data_set]
    earned, visits = 0.0, 0.0
    for i in range(1 if rewards.per_pair else target.size):
        at, kin, weight = row.pair, group, 1.0
        if not rewards.per_pair:
            at, weight = known[target[i]] + shift, share[i]
            if not row.first <= at < row.last:
                at = -1
            if group < 0:
                kin = np.int64(target[i])
        mean, words = draw_reward(words, rewards.seen, at, others, atoms, kin)
        earned += weight * mean
    more = rewards.more[row.pair] if rewards.more.size > 0 else 0.0
    if more != 0.0:
        for t in range(row.first, row.last):
            visits += rows.times[t]
    if visits > 0.0:  # the least or greatest reward is among them
        extreme, states = 0.0, row.data_set * known.size
        for i in range(target.size):
            s = states + target[i]
            extreme += share[i] * (rewards.least[s] if more < 0.0 else rewards.greatest[s])
        chance, words = beta(words, abs(more), visits)
        earned += chance * (extreme - earned)
    return earned


@inlined
def atoms_of(posteriors: Posteriors, data_set: int, room: FloatArray, begin: int) -> Atoms:
    """Returns the atoms of a data set, with what is drawn of them from `begin` on."""
    rewards, groups, atoms = posteriors.rewards, posteriors.groups, posteriors.atoms
    offsets = rewards.group_offsets[groups[data_set] : groups[data_set + 1]]
    own = rewards.atoms[atoms[data_set] : atoms[data_set + 1]]
    middle = begin + len(own)
    return Atoms(offsets, own, room[begin:middle], room[middle : middle + offsets.size - 1])


@borrowing
def weigh_atoms(words: Words, atoms: Atoms) -> None:
    """Draws the weights of atoms, and how likely it is to be like one's own group.

    Like any is what weighs as much as one visit.
    """
    offsets, rewards, sums, kinship = atoms
    total = 0.0
    for i in range(sums.size):
        weight, words = gamma(words, rewards[i, WEIGHT])
        total += weight
        sums[i] = total
    for g in range(kinship.size):
        begin, end = offsets[g], offsets[g + 1]
        inside = 0.0
        if end > begin:
            inside = sums[end - 1] - (sums[begin - 1] if begin > 0 else 0.0)
        weight, words = gamma(words, 1.0)
        kinship[g] = inside / (inside + weight)


@borrowing
def draw_block(
    posteriors: Posteriors,
    members: IntArray,
    draw: int,
    model: int,
    apart: int,
    blocks: Blocks,
    block: int,
    models: Chunk,
    desk: Desk,
) -> None:
    """Writes a block of one draw under each prior: rows and rewards; see `draw_models`.

    It is `model` under the first prior, and so many models `apart` under the next. Those of other
    members have the same rows.
    """
    _, _, num_priors, seed, pair_offsets, used, ending, _, _, rows, rewards, _, _ = posteriors
    data_set = members[0]
    ends, target, share, reward, _ = models
    offsets, end, num_states = rows.offsets, desk.ends, desk.known.size
    first_pair, last_pair, limit = (
        blocks.pairs[block],
        blocks.pairs[block + 1],
        blocks.cells[block + 1],
    )
    num_pairs, given = used.size // seed.size, rows.given.size > 0
    before = data_set * num_pairs
    sparse = not given and rows.weight[data_set] * PIECES < num_states
    s = 0 * model  # a plain 0 has a type of its own
    fill(end, blocks.cells[block])
    for k in range(first_pair, last_pair):
        for p in range(num_priors):
            ends[model + p * apart, k] = end[p]
            for d in members:
                m = model + ((d - data_set) * num_priors + p) * apart
                reward[m, k] = ending[d * num_pairs + k]
        if not used[before + k] or end[0] < 0:
            continue
        while k >= pair_offsets[s + 1]:
            s += 1
        first, last = offsets[before + k], offsets[before + k + 1]
        states = offsets[before + pair_offsets[s]], offsets[before + pair_offsets[s + 1]]
        row = Row(before + k, data_set, first, last, states[0], states[1], model, apart, limit)
        row_words = start_stream(seed[data_set], draw, k)
        if sparse:
            row_words = draw_sparse_rows(row_words, rows, row, desk, target, share)
        for t in range(first, last):
            desk.known[rows.successor[t]] = t
        for p in range(num_priors):
            m, words = model + p * apart, row_words
            begin = ends[m, k]
            if not sparse:
                end[p] = begin + (last - first if given else num_states)
                if end[p] > limit:
                    end[0] = -1
            if end[0] < 0:
                break
            here, shares = target[m, begin : end[p]], share[m, begin : end[p]]
            if not sparse:
                weigh_row(rows, row, p, here, shares)
                words = draw_shares(words, shares)
            drawn = 0 * first
            for d in members:
                pair, atoms = d * num_pairs + k, atoms_of(posteriors, d, desk.atoms, drawn)
                drawn += atoms.sums.size + atoms.kinship.size
                shift = offsets[pair] - first
                own = Row(pair, d, first + shift, last + shift, 0, 0, model, apart, limit)
                reward[m + (d - data_set) * num_priors * apart, k] = draw_earned(
                    words, rows, own, rewards, desk.known, shift, atoms, here, shares
                )
    if end[0] < 0:
        ends[model, last_pair - 1] = -1
    for p in range(num_priors):
        if last_pair == blocks.pairs[-1]:
            ends[model + p * apart, last_pair] = end[p]
        elif end[0] >= 0:  # the last row goes on to where the next block begins
            for i in range(end[p], limit):
                target[model + p * apart, i], share[model + p * apart, i] = 0, 0.0
            end[p] = limit
    for other in range(1, members.size):
        for p in range(num_priors):
            m = model + p * apart
            same = m + (members[other] - data_set) * num_priors * apart
            for k in range(first_pair, last_pair + (last_pair == blocks.pairs[-1])):
                ends[same, k] = ends[m, k]
            for i in range(blocks.cells[block], end[p]):
                target[same, i], share[same, i] = target[m, i], share[m, i]


def room_to_draw(posteriors: Posteriors) -> RoomSize:
    """Returns the room that `draw_models` needs: a `Desk`."""
    num_priors, num_states = posteriors.priors, posteriors.pair_offsets.size - 1
    each = arrays.run_lengths(posteriors.atoms) + arrays.run_lengths(posteriors.groups) - 1
    together = np.add.reduceat(each[posteriors.members], posteriors.firsts[:-1])
    return RoomSize(int(together.max()), 2 * num_priors + (num_priors + 1) * num_states)


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
    under the first prior. A task is a block of a draw, for a first data set and those that follow
    it. Pairs that are not used have no row and their `ending` reward.
    """
    seeds, initial = posteriors.seed, models.initial
    num_priors, num_blocks = posteriors.priors, blocks.pairs.size - 1
    num_states, num_pairs = posteriors.pair_offsets.size - 1, posteriors.used.size // seeds.size
    draws = len(initial) // (num_priors * seeds.size)
    begins, ends = room.ints[:num_priors], room.ints[num_priors : 2 * num_priors]
    places = room.ints[2 * num_priors : 2 * num_priors + (num_priors + 1) * num_states]
    for task in range(first_task, end_task):
        block, b, f = task % num_blocks, task // num_blocks % draws, task // num_blocks // draws
        members = posteriors.members[posteriors.firsts[f] : posteriors.firsts[f + 1]]
        d, draw = members[0], first_draw + b
        model, drawn = d * num_priors * draws + b, 0
        for other in members:
            atoms = atoms_of(posteriors, other, room.floats, drawn)
            weigh_atoms(start_stream(seeds[d], draw, num_pairs + 1), atoms)
            drawn += atoms.sums.size + atoms.kinship.size
        fill(places, -1)
        desk = Desk(begins, ends, places[num_states:], places[:num_states], room.floats)
        draw_block(posteriors, members, draw, model, draws, blocks, block, models, desk)
        if block == 0:
            copy_into(initial[model], posteriors.starts[d * num_states : (d + 1) * num_states])
            if posteriors.starts_drawn:
                draw_shares(start_stream(seeds[d], draw, num_pairs), initial[model])
            for other in members:
                for p in range(num_priors):
                    same = model + ((other - d) * num_priors + p) * draws
                    copy_into(initial[same], initial[model])
