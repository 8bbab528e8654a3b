"""Draws models from a Dirichlet posterior, and stores only the transitions with some weight.

The row of a pair is Dirichlet(times + c · m): the visits seen, and a base m of total weight c.
Gamma numbers add up, so it is a mixture of Dirichlet(times) and Dirichlet(c · m), with weights
Gamma(n) and Gamma(c). The second part is drawn by breaking a stick (Sethuraman 1994): again and
again, a state drawn from m gets a share Beta(1, c) of the rest of the stick. When a hundredth of
the stick is left, the next state takes all of it. This keeps every mean, and the shares of unseen
states vary slightly more than they should. The limit is a hundredth of the stick, not of the row:
otherwise the whole stick of a well-known row would go to one state, and rare disasters would become
rarer.

A draw from m needs no table of m. With the chance `pooled` it is the successor of a random logged
step from the row's own state, and otherwise a draw from `elsewhere`.

If c is large compared with the number of states, or a row has given successors only, all of its
successors are drawn. Gamma numbers of tiny shapes are too small for doubles, so their logarithms
are drawn: for a shape a < 1, Gamma(a) has the law of Gamma(a + 1) · U^(1/a).

Under several priors of one weight, each model is drawn with the same random numbers. The seen
successors and the lengths of the pieces are then the same and drawn once; only the states that get
the pieces differ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray, run_lengths
from surestep.kernels._compile import borrowing, inlined, tasks
from surestep.kernels.drawn import Chunk
from surestep.kernels.random_streams import Words, beta, first_above, gamma, start_stream, uniform
from surestep.kernels.records import copy_into, fill
from surestep.kernels.types import BoolsIn, FloatsIn, IndicesIn, IntsIn, Room, RoomSize, TableIn

# The last state takes at most this part of a row. It adds no more than its square to the variance
# of a mean over the row (of values that span 1), which is of the order of 1/n after n visits.
REMAINDER = 0.01
PIECES = -math.log(REMAINDER)  # the mean number of pieces of a stick, per unit of its weight
LOW, REACH, FIRST, SECOND, WEIGHT = range(5)  # the columns of a table of rewards


class RewardDraws(NamedTuple):
    """The law of mean rewards.

    A row (low, reach, first, second, weight) of `seen` has the mean low + reach · x, where x ~
    Beta(first, second). A row with a weight is mixed with a similar reward: w of its own mean and
    1 − w of the similar one, where w ~ Beta(weight, κ). If low is NaN, the mean is the similar one.
    The similar reward is the mean of an atom, drawn by weight: of the row's group with the chance
    `kinship`, else of any. The weights of atoms are drawn once in a model.

    The successor of a step limits its reward: `least` and `greatest`. A seen pair counts `more`
    further visits that earned the greatest reward, or −`more` that earned the least one.
    """

    per_pair: bool  # one reward a pair [K], not one a transition [T]
    group: IntsIn  # [K] of each pair; −1: transitions to the same state form a group [S]
    seen: TableIn  # [K, 5] or [T, 5]
    group_offsets: IntsIn  # where the atoms of each group begin
    atoms: TableIn  # [atoms, 5]
    others: FloatsIn  # [1] κ
    more: FloatsIn = np.zeros(0)  # [K], or empty
    least: FloatsIn = np.zeros(0)  # [S], or empty
    greatest: FloatsIn = np.zeros(0)  # [S], or empty

    @classmethod
    def known(cls, values: FloatArray, per_pair: bool, num_pairs: int) -> RewardDraws:
        """Returns the law of rewards that are known exactly."""
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
        """Moves the transition t to `place`[t] of `size`; −1 drops it."""
        if self.per_pair:
            return self
        kept = place >= 0
        moved = np.zeros((size, 5))
        moved[:, LOW] = math.nan
        moved[place[kept]] = self.seen[kept]
        return self._replace(seen=moved)


class Rows(NamedTuple):
    """The law of the rows of D data sets over the same pairs, under P priors each.

    The transitions of all data sets follow each other. Without `given` weights, a row covers all
    states, stored successors or not. Its prior has the total `weight`; the part `pooled` of it lies
    on the successors that were seen in the row's state.
    """

    offsets: IntsIn  # [D·K+1]
    successor: IndicesIn  # [T]
    times: IntsIn  # [T]
    sums: FloatsIn  # [T] running sums of the times
    given: FloatsIn  # [P·T] weights, if rows cover the stored successors only; else empty
    weight: FloatsIn  # [D] c
    pooled: FloatsIn  # [P·D·K]
    elsewhere: FloatsIn  # [P·D·S] running sums of the chances of all states


class Posteriors(NamedTuple):
    """Posteriors of D data sets over the same pairs, under P priors each.

    Starts are drawn in all of them or in none; the same holds for given successors. Data sets that
    differ only in rewards form a group: the rows and starts of its first member hold for all.
    """

    firsts: IntsIn  # [F+1] where each such group begins in `members`
    members: IntsIn  # [D]
    priors: int  # P
    seed: IntsIn  # [D]
    pair_offsets: IntsIn  # [S+1]
    used: BoolsIn  # [D·K] pairs whose rows are drawn
    ending: FloatsIn  # [D·K] the rewards of the other pairs
    starts: FloatsIn  # [D·S] weights, or known chances
    starts_drawn: bool
    rows: Rows
    rewards: RewardDraws  # of all data sets; each numbers its groups and atoms from 0 on
    groups: IntsIn  # [D+1] where the offsets of groups begin
    atoms: IntsIn  # [D+1] where atoms begin


class Blocks(NamedTuple):
    """The pairs of a model in blocks, each drawn by one task, and the cells for their rows."""

    pairs: IntsIn  # [N+1]
    cells: IntsIn  # [N+1]


class Row(NamedTuple):
    """A row to draw: its pair, its transitions, the transitions of its state, model and limit."""

    pair: int  # its number among the pairs of all data sets
    data_set: int
    first: int
    last: int
    state_first: int
    state_last: int
    model: int  # the number of the model under the first prior
    apart: int  # the distance to the model under the next prior
    limit: int  # the first cell after its block


class Atoms(NamedTuple):
    """The atoms of a data set, and their drawn weights."""

    offsets: IntArray  # where the atoms of each group begin
    rewards: FloatArray  # [atoms, 5]
    sums: FloatArray  # [atoms] running sums of their weights
    kinship: FloatArray  # [groups] the chance that a similar reward comes from the same group


class Desk(NamedTuple):
    """Arrays to work with while a model is drawn."""

    begins: IntArray  # [P] the cell at which a row begins
    ends: IntArray  # [P] the cell at which it ends; the first is −1 if a model does not fit
    place: IntArray  # [P · S] the cell of a state; stale if it lies before the row
    known: IntArray  # [S] the counted transition that leads to a state
    atoms: FloatArray  # the drawn weights of all atoms; see `atoms_of`


@inlined
def state_at(u: float, v: float, rows: Rows, row: Row, prior: int, states: int) -> int | np.int64:
    """Draws a state of the base m from two uniform numbers: a seen successor if u < `pooled`."""
    sums, first, last = rows.sums, row.state_first, row.state_last
    if u < rows.pooled[prior * (rows.offsets.size - 1) + row.pair]:
        before = sums[first] - rows.times[first]
        t = first_above(sums, first, last, before + v * (sums[last - 1] - before))
        return np.int64(rows.successor[t])
    begin = (prior * rows.weight.size + row.data_set) * states
    elsewhere = rows.elsewhere[begin : begin + states]
    x = v * elsewhere[-1]
    state = np.int64(v * states)  # right if all states have the same chance; v < 1
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
    """Adds to the share of a state, in a new cell if it has none; returns False if none is free."""
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
    """Draws a row under each of P priors, into the cells after the row before."""
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
    """Replaces the weights in `share` by a draw from their Dirichlet distribution."""
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
    """Writes the Dirichlet weights of a row for all its successors: given ones, or all states."""
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
    """Draws the mean reward of row i, between its two rewards; returns the first if reach is 0."""
    reach, x = rewards[i, REACH], 0.0
    if reach > 0.0:
        x, words = beta(words, rewards[i, FIRST], rewards[i, SECOND])
    return rewards[i, LOW] + reach * x, words


@inlined
def draw_like(words: Words, atoms: Atoms, group: int | np.int64) -> tuple[float, Words]:
    """Draws the mean of an atom: of the same group with the chance `kinship`, else of any."""
    offsets, rewards, sums, kinship = atoms
    begin, end = offsets[group], offsets[group + 1]
    u, words = uniform(words)
    if u < kinship[group] and end - begin == 1 and rewards[begin, REACH] == 0.0:  # the usual case
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
    """Draws the mean reward of row i of `seen`, or of an unseen row (−1); see `RewardDraws`."""
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

    The transition `known` of a successor has the number `known` + `shift` in this data set.
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
    if visits > 0.0:  # mix in the least or greatest reward
        extreme, states = 0.0, row.data_set * known.size
        for i in range(target.size):
            s = states + target[i]
            extreme += share[i] * (rewards.least[s] if more < 0.0 else rewards.greatest[s])
        chance, words = beta(words, abs(more), visits)
        earned += chance * (extreme - earned)
    return earned


@inlined
def atoms_of(posteriors: Posteriors, data_set: int, room: FloatArray, begin: int) -> Atoms:
    """Returns the atoms of a data set; their drawn weights stand in `room` from `begin` on."""
    rewards, groups, atoms = posteriors.rewards, posteriors.groups, posteriors.atoms
    offsets = rewards.group_offsets[groups[data_set] : groups[data_set + 1]]
    own = rewards.atoms[atoms[data_set] : atoms[data_set + 1]]
    middle = begin + len(own)
    return Atoms(offsets, own, room[begin:middle], room[middle : middle + offsets.size - 1])


@borrowing
def weigh_atoms(words: Words, atoms: Atoms) -> None:
    """Draws the weights of atoms, and for each group the chance `kinship`.

    The choice among all atoms weighs as much as one visit.
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

    The draw is `model` under the first prior; the next prior's model is `apart` models later. The
    models of the other members have the same rows.
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
    s = 0 * model  # a plain 0 would have another type
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
        elif end[0] >= 0:  # zeros extend the last row up to the next block
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
    sizes = run_lengths(posteriors.atoms) + run_lengths(posteriors.groups) - 1
    together = np.add.reduceat(sizes[posteriors.members], posteriors.firsts[:-1])
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

    The chunk has D · P · B models, ordered by data set, then by prior, then by draw. A task is one
    block of one draw, for one group of data sets with the same rows. Unused pairs have no row and
    their `ending` reward.
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
