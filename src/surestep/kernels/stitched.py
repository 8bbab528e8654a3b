"""Stitches trajectories of two policies together from logged transitions, read in their order.

The visits of pair k are a stack: entry j is the outcome of the j-th visit. In a round both
policies, or one of them, are rolled out from one start. Each reads the entries that no earlier
round has read, in their order, and both may read the same ones. For the j-th visit of a state both
draw their actions with the same number, which makes them agree as often as possible. Or the
policies take turns: one round of π_I, then some of π_b, and so on.

Random numbers depend on (seed, purpose, run, round, state, visit) alone, so none has to be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray, offsets_of, run_lengths
from surestep.kernels._compile import borrowing, helper, inlined, kernel, tasks
from surestep.kernels.random_streams import BITS_12, GOLDEN, first_above, mixed
from surestep.kernels.records import fill, line, part, places
from surestep.kernels.types import (
    BatchOut,
    BoolsIn,
    FloatsIn,
    FloatsOut,
    IntsIn,
    IntsOut,
    Room,
    RoomSize,
    TableIn,
    TableOut,
)

# The policies that a round rolls out; c ≥ 2: in turn, of c rounds the first is π_I's.
BOTH, OURS, THEIRS = 0, 1, -1
# Why a rollout is over; MISSING: the log lacks an entry. Cuts come last.
MISSING, COUNTED_OUT, ENDED, CUT_AFTER, CUT_AT = range(5)
SMALLEST_CELL = 2.0**-12  # the part of the range of returns below which a cell is not halved
SERIES_THREADS = 50_000  # values from which on bets are shared out among threads
FOREVER = 2**62  # no rollout gets so far, since each step uses up an entry
RUN_THREADS = 2_000  # entries of the stacks from which on runs are shared out among threads


class Stacks(NamedTuple):
    """The outcomes of all visits, pair after pair, each pair's in the order of the log."""

    offsets: IntsIn  # [K+1]
    reward: FloatsIn  # [N]
    successor: IntsIn  # [N]
    ended: BoolsIn  # [N] the episode ended; False if only the recording stopped
    starts: IntsIn  # [E] the first states of episodes, in the order of the log

    @property
    def sizes(self) -> IntArray:
        """Returns the number of visits of each pair [K]."""
        return run_lengths(self.offsets)


class Tails(NamedTuple):
    """Values for the rest of a cut rollout: a lower bound for π_I, an upper bound for π_b."""

    at_pair: TableIn  # [2, K] if it is cut at a pair
    at_state: TableIn  # [2, S] if it is cut after its horizon


class Course(NamedTuple):
    """The arrays and numbers, besides stacks, that rollouts of two policies need."""

    pair_offsets: IntsIn  # [S+1]
    chances: FloatsIn  # [4K] see `coupled_chances`
    start_chances: FloatsIn  # [S] cumulated; empty if starts are read from a stack
    over: BoolsIn  # [S] states in which episodes are over
    at_end: TableIn  # [2, S] the value of an end under either policy
    tails: Tails
    discount: float
    limits: tuple[float, float]  # bounds of returns: from below for π_I, from above for π_b
    counted: int = FOREVER  # the steps after which a rollout is over and earns no more


class Cases(NamedTuple):
    """Courses over the same pairs, each on the stacks of one of D logs; arrays follow each other.

    They agree in the discount and in the steps that count, and all starts are known, or none are.
    The cases of a walk differ only in the values of steps, ends and cuts: they are rolled out once.
    """

    walks: IntsIn  # [W+1] where the members of each walk begin
    members: IntsIn  # [C] the cases of each walk
    log: IntsIn  # [C] the log of each
    seed: IntsIn  # [C]
    rounds: IntsIn  # [C] the most rounds of a run
    limits: TableIn  # [C, 2] the `limits` of each course
    readable: BoolsIn  # [C·K]
    episodes: IntsIn  # [D+1] where the starts of each log begin
    stacks: Stacks  # of all logs
    course: Course  # of all cases

    @classmethod
    def of(cls, cases: Sequence[Case], walks: Sequence[Sequence[int]]) -> Cases:
        """Joins the arrays of several cases; stacks that are the same object are stored once."""
        logs = {id(case.stacks): case.stacks for case in cases}
        number = {key: place for place, key in enumerate(logs)}
        stacks, courses = [*logs.values()], [case.course for case in cases]
        offsets = offsets_of(line(one.sizes for one in stacks))
        tails = Tails(*map(line, zip(*(course.tails for course in courses), strict=True)))
        of_all: dict[str, Any] = {
            name: line(getattr(course, name) for course in courses)
            for name in ("chances", "start_chances", "over", "at_end")
        }
        return cls(
            places(np.array(walk) for walk in walks),
            line(np.array(walk) for walk in walks),
            np.array([number[id(case.stacks)] for case in cases]),
            np.array([int(case.seed) for case in cases]),
            np.array([case.rounds for case in cases]),
            np.array([course.limits for course in courses]),
            line(case.readable for case in cases),
            places(one.starts for one in stacks),
            Stacks(offsets, *map(line, [*zip(*stacks, strict=True)][1:])),
            courses[0]._replace(tails=tails, **of_all),
        )


class Case(NamedTuple):
    """A course on stacks, the pairs that it may read, its seed and its number of rounds."""

    stacks: Stacks
    course: Course
    readable: BoolsIn  # [K]
    seed: int
    rounds: int  # the most rounds of a run


class Tallied(NamedTuple):
    """The outcomes of runs, a row for each: the number of rounds, and means and squares by kind.

    If the policies take turns, the rounds of π_b are of the second kind; all other rounds are of
    the first. Squares are sums of squared distances from the mean. The first M rounds are kept.
    """

    complete: IntsOut  # [runs] the number of rounds for which the log had all entries
    cuts: IntsOut  # [runs] the number of cut rollouts in complete rounds
    moments: TableOut  # [runs, 4]: mean and squares of the first kind, and of the second
    differences: BatchOut  # [runs, M] G_I − G_b, or one of them, of each complete round

    @classmethod
    def empty(cls, runs: int, kept: int) -> Tallied:
        """Returns the outcomes of runs without any rounds, with room for the first ones."""
        complete, cuts = np.zeros((2, runs), np.int64)
        return cls(complete, cuts, np.zeros((runs, 4)), np.zeros((runs, kept)))


@helper
def unit(word: np.uint64) -> float:
    """Returns the word as a number more than 0 and less than 1."""
    return (np.float64(word >> BITS_12) + 0.5) * 2.0**-52


@helper
def joined(word: np.uint64, number: int) -> np.uint64:
    """Mixes a word with a number into a new word."""
    return mixed((word ^ np.uint64(number)) + GOLDEN)


@kernel()
def coupled_chances(
    pair_offsets: IntsIn, ours: FloatsIn, theirs: FloatsIn, chances: FloatsOut
) -> None:
    """Cumulates the chances of both policies' actions, into `chances` [4K], 2·A places a state.

    First come the common parts min(π_I, π_b), then the rest of each policy: so one random number
    gives both the same action with the largest possible chance.
    """
    for s in range(pair_offsets.size - 1):
        begin, end = pair_offsets[s], pair_offsets[s + 1]
        for side in range(2):
            total, first = 0.0, 2 * side * ours.size
            for place in range(2 * (end - begin)):
                k = begin + place % (end - begin)
                shared = min(ours[k], theirs[k])
                own = ours[k] if side == 0 else theirs[k]
                total += shared if place < end - begin else own - shared
                chances[first + 2 * begin + place] = total
            for place in range(first + 2 * begin, first + 2 * end):
                chances[place] /= total


class Run(NamedTuple):
    """One run of one way through the cases of a walk; all of them take the steps of the first."""

    members: IntArray  # [M] the cases
    case: int  # the first of them
    log: int
    who: int  # the policies to roll out: BOTH, OURS, THEIRS, or the number of rounds in a cycle
    horizons: IntArray  # [2] the steps after which rollouts of π_I and of π_b are cut
    row: int  # the row of the outcomes of case 0, even if it is no member
    apart: int  # the number of rows between the outcomes of a case and of the next


class Desk(NamedTuple):
    """Arrays to work with during a run."""

    base: IntArray  # [K] the number of entries of a pair that earlier rounds have read
    reads: IntArray  # [2K] the number that π_I has read in this round, then the same for π_b
    read_pairs: IntArray  # [≤ K] the pairs that were read in this round
    visits: IntArray  # [S] of this rollout
    seen_states: IntArray  # [≤ S] the states of this rollout
    shift: IntArray  # [M] the distance from an entry to the same entry of another case's log
    total: FloatArray  # [M] the return of this rollout in each case
    earned: FloatArray  # [M] the outcome of this round in each case


def room_to_stitch(num_pairs: int, num_states: int, members: int) -> RoomSize:
    """Returns the room of `stitched_rounds`: a `Desk` for walks of at most `members` cases."""
    return RoomSize(2 * members, 4 * num_pairs + 2 * num_states + members)


@inlined
def desk_in(room: Room, num_pairs: int, num_states: int) -> Desk:
    """Lays out the arrays of a `Desk` in the room of a task."""
    states, members = 4 * num_pairs, room.floats.size // 2
    cases = states + 2 * num_states
    return Desk(
        room.ints[:num_pairs],
        room.ints[num_pairs : 3 * num_pairs],
        room.ints[3 * num_pairs : states],
        room.ints[states : states + num_states],
        room.ints[states + num_states : cases],
        room.ints[cases:],
        room.floats[:members],
        room.floats[members:],
    )


@borrowing
def start_run(run: Run, cases: Cases, desk: Desk) -> None:
    """Begins a run: nothing has been read yet."""
    num_pairs, offsets = desk.base.size, cases.stacks.offsets
    fill(desk.base, 0)
    fill(desk.reads, 0)
    for m in range(run.members.size):
        log = cases.log[run.members[m]]
        desk.shift[m] = offsets[log * num_pairs] - offsets[run.log * num_pairs]


@borrowing
def start_of_round(i: int, word: np.uint64, run: Run, cases: Cases, num_states: int) -> int:
    """Returns the state in which round i starts; −1 if the log has no more starts."""
    chances = cases.course.start_chances
    if chances.size > 0:
        first = run.case * num_states
        return (
            first_above(chances, first, first + num_states, unit(joined(word, num_states))) - first
        )
    place = cases.episodes[run.log] + i
    return cases.stacks.starts[place] if place < cases.episodes[run.log + 1] else -1


@borrowing
def roll_out(
    side: int, start: int, word: np.uint64, run: Run, cases: Cases, desk: Desk, num_read: int
) -> tuple[int, int, int, float, int]:
    """Rolls out π_I (side 0) or π_b (side 1), and adds up rewards in `desk.total`.

    Returns the reason why the rollout is over, the last state and pair, the discount so far, and
    the number of pairs that this round has read.
    """
    offsets, reward, successor, ended, _ = cases.stacks
    pair_offsets, chances, _, over, _, _, discount, _, counted = cases.course
    base, reads, read_pairs, visits, seen_states, shift, total, _ = desk
    num_pairs, num_states = base.size, visits.size
    first_pair = run.log * num_pairs
    s, k, weight, step, num_seen = start, 0, 1.0, 0, 0
    fill(total, 0.0)
    while True:
        if over[run.case * num_states + s]:
            why = ENDED
            break
        if step == counted:
            why = COUNTED_OUT
            break
        if step == run.horizons[side]:
            why = CUT_AFTER
            break
        if visits[s] == 0:
            seen_states[num_seen] = s
            num_seen += 1
        number = unit(joined(joined(word, s), visits[s]))
        visits[s] += 1
        lowest, actions = pair_offsets[s], pair_offsets[s + 1] - pair_offsets[s]
        place = 2 * ((2 * run.case + side) * num_pairs + lowest)
        chosen = first_above(chances, place, place + 2 * actions, number) - place
        k = lowest + chosen % actions
        if not cases.readable[run.case * num_pairs + k]:
            why = CUT_AT
            break
        row = offsets[first_pair + k] + base[k] + reads[side * num_pairs + k]
        if row >= offsets[first_pair + k + 1] or successor[row] < 0:
            why = MISSING
            break
        if reads[k] == 0 and reads[num_pairs + k] == 0:
            read_pairs[num_read] = k
            num_read += 1
        reads[side * num_pairs + k] += 1
        for m in range(run.members.size):
            total[m] += weight * reward[row + shift[m]]
        weight *= discount
        step += 1
        s = successor[row]
        if ended[row]:
            why = ENDED
            break
    for j in range(num_seen):
        visits[seen_states[j]] = 0
    return why, s, k, weight, num_read


@borrowing
def settle_rollout(
    side: int, why: int, s: int, k: int, weight: float, run: Run, cases: Cases, desk: Desk
) -> None:
    """Adds the worth of the last state of a rollout, and its return to the outcome of the round."""
    course, total = cases.course, desk.total
    for m in range(run.members.size):
        own = 2 * run.members[m] + side
        if why == ENDED:
            total[m] += weight * course.at_end[own, s]
        elif why != COUNTED_OUT:
            if why == CUT_AFTER:
                total[m] += weight * course.tails.at_state[own, s]
            else:
                total[m] += weight * course.tails.at_pair[own, k]
            limit = cases.limits[run.members[m], side]
            total[m] = max(total[m], limit) if side == 0 else min(total[m], limit)
        desk.earned[m] += total[m] if side == 0 else -total[m]


@borrowing
def settle_round(i: int, cuts: int, num_read: int, run: Run, desk: Desk, out: Tallied) -> None:
    """Counts round i as complete: its entries are used up, and its outcome is tallied."""
    base, reads, read_pairs, _, _, _, _, earned = desk
    for j in range(num_read):
        k = read_pairs[j]
        base[k] += max(reads[k], reads[base.size + k])
        reads[k] = 0
        reads[base.size + k] = 0
    second = is_second(i, run.who)
    ours = i // run.who + 1 if run.who > 1 else i + 1
    number = i + 1 - ours if second else ours
    mean = 2 if second else 0
    for m in range(run.members.size):
        row = run.row + run.members[m] * run.apart
        if i < out.differences.shape[1]:
            out.differences[row, i] = earned[m]
        out.complete[row] = i + 1
        out.cuts[row] += cuts
        off = earned[m] - out.moments[row, mean]  # sums as they go (Welford 1962)
        out.moments[row, mean] += off / number
        out.moments[row, mean + 1] += off * (earned[m] - out.moments[row, mean])


@helper
def is_second(i: int, who: int) -> bool:
    """Tells whether the policies take turns and round i is of π_b (the second kind)."""
    return who > 1 and i % who > 0


@tasks(threads_from=RUN_THREADS)
def stitched_rounds(
    first: int,
    last: int,
    room: Room,
    purpose: int,
    runs: int,
    turns: IntsIn,
    horizons: IntsIn,
    cases: Cases,
    outcome: Tallied,
) -> None:
    """Writes G_I − G_b of each round, for each case of the walks of the tasks first, …, last − 1.

    Each case has several ways, and each way has `runs` runs. Way w, counted over all cases, rolls
    out the policies of `turns`[w]: BOTH at once, or one policy in a round (OURS gives G_I, THEIRS
    −G_b). It cuts rollouts of π_I after `horizons`[2w] steps, and of π_b after `horizons`[2w + 1].
    Runs of the same number have the same random numbers in every way. A task is one run of one way
    of a walk; the cases of a walk have the same ways.

    A rollout ends when the process is over, or no more steps count. It is cut when it takes a pair
    that is not `readable` [K], or after its horizon. If the log lacks an entry, or the successor of
    an entry is unknown (below 0), the run is over.
    """
    num_cases, num_states = cases.log.size, cases.course.pair_offsets.size - 1
    ways = turns.size // num_cases
    desk = desk_in(room, cases.readable.size // num_cases, num_states)
    fill(desk.visits, 0)
    for task in range(first, last):
        walk = task // runs // ways
        members = cases.members[cases.walks[walk] : cases.walks[walk + 1]]
        case, way = members[0], members[0] * ways + task // runs % ways
        cut_after = horizons[2 * way : 2 * way + 2]
        row, apart = task - walk * ways * runs, ways * runs
        run = Run(members, case, cases.log[case], turns[way], cut_after, row, apart)
        start_run(run, cases, desk)
        run_word = joined(joined(mixed(np.uint64(cases.seed[case]) + GOLDEN), purpose), task % runs)
        for i in range(cases.rounds[case]):
            word = joined(run_word, i)
            start = start_of_round(i, word, run, cases, num_states)
            if start < 0:
                break
            fill(desk.earned, 0.0)
            why, cuts, num_read = COUNTED_OUT, 0, 0
            theirs_alone = run.who == THEIRS or is_second(i, run.who)
            for side in range(theirs_alone, 2 if run.who == BOTH or theirs_alone else 1):
                why, s, k, weight, num_read = roll_out(
                    side, start, word, run, cases, desk, num_read
                )
                if why == MISSING:
                    break
                settle_rollout(side, why, s, k, weight, run, cases, desk)
                cuts += why >= CUT_AFTER
            if why == MISSING:
                break
            settle_round(i, cuts, num_read, run, desk, outcome)


class Turns(NamedTuple):
    """Bets on rounds of both policies in turn: their cycle, the stakes, and the limits of returns.

    The part `together` of the capital is put on both means at once, and half of the rest on each
    alone. A bet on one mean has a cycle of 1, and all of the capital is `together`.
    """

    cycle: int  # the rounds of a cycle: the first is of π_I, the others are of π_b
    together: float
    ours: float  # stakes of the bet on both means
    theirs: float
    ours_alone: float
    theirs_alone: float
    largest_share: float  # the part of the capital that one round may lose
    limits: tuple[float, float]  # of all returns


@helper
def along_cell(stake: float, share: float, distance: float, width: float) -> tuple[float, float]:
    """Returns p and q: if a factor is f at the worst end of a cell, p·f + q bounds the other end.

    The bound is from below. Let λ be the uncapped stake, y the distance of the worst mean from the
    worst return, and y − w the distance at the other end. Factors are 1 + λ(a − y) along the cell,
    or 1 − c + c·a/y where c/y < λ is the stake. The logarithm of the first is concave, and lies
    above the line between its ends. The logarithm of the second is convex, and lies above the line
    that touches it at the worst end, by which f becomes at least f + (f − 1 + c) w/y. If the cell
    has both forms, the bound is f.
    """
    if stake * distance <= share:
        return 1.0, stake * width
    if distance > width and stake * (distance - width) >= share:
        return 1.0 + width / distance, (share - 1.0) * width / distance
    return 1.0, 0.0


@helper
def enough_reach(
    series: FloatArray,
    complete: IntArray,
    turns: Turns,
    ours: float,
    theirs: float,
    width: float,
    goal: float,
    one_of: int,
) -> bool:
    """Tells whether, for some t ≥ R/2, one in `one_of` of the first t series reaches the goal.

    A series [R, M] reaches the goal if the capital of its bets does at any time; only its first
    `complete` [R] values exist. A capital too small for a double stays 0. `ours` and `theirs` are
    the means to refute: of G_I from below, of G_b from above. With a `width`, they are the worst
    means of a cell: all means of π_b up to `theirs` + width, each with the same gain. The number
    compared with the goal is then a lower bound of the capital everywhere in the cell.

    The capital of a bet on one mean is least at the worst of these means. For the bet on both, a
    line bounds the logarithm of each factor along the cell (`along_cell`): the sum of all is a
    line, too, and least at one of the two ends.
    """
    least, most = turns.limits
    our_cap, their_cap = turns.largest_share / (ours - least), turns.largest_share / (most - theirs)
    our_slope, our_shift = along_cell(turns.ours, turns.largest_share, ours - least, width)
    their_slope, their_shift = along_cell(turns.theirs, turns.largest_share, most - theirs, width)
    stake_ours, alone_ours = min(turns.ours, our_cap), min(turns.ours_alone, our_cap)
    stake_theirs, alone_theirs = min(turns.theirs, their_cap), min(turns.theirs_alone, their_cap)
    reached, half = 0, (complete.size + 1) // 2
    for run in range(complete.size):
        at_first = at_last = turns.together
        our_own = their_own = (1.0 - turns.together) / 2
        capital, first = 0.0, 0
        while capital < goal and first < complete[run]:
            won = series[run, first] - ours
            factor = 1.0 + stake_ours * won
            at_first *= our_slope * factor + our_shift
            at_last *= factor
            our_own *= 1.0 + alone_ours * won
            capital = min(at_first, at_last) + our_own + their_own
            for i in range(first + 1, min(first + turns.cycle, complete[run])):
                if capital >= goal:
                    break
                won = series[run, i] + theirs
                factor = 1.0 + stake_theirs * won
                at_first *= factor
                at_last *= their_slope * factor + their_shift
                their_own *= 1.0 + alone_theirs * won
                capital = min(at_first, at_last) + our_own + their_own
            first += turns.cycle
        reached += capital >= goal
        if reached * one_of >= max(run + 1, half):
            return True  # for this t, or for R/2, whatever the other series do
        if (reached + complete.size - run - 1) * one_of < complete.size:
            return False  # even if all other series reach the goal
    return False


@helper
def first_split_left(
    series: FloatArray,
    complete: IntArray,
    turns: Turns,
    gain: float,
    goal: float,
    one_of: int,
    begin: float,
) -> float:
    """Returns the first mean of π_b from `begin` on that is not refuted with this gain; or `most`.

    The means of π_b are gone through in cells, from small ones to larger ones. A cell in which the
    bound of the capital in `enough_reach` does not reach the goal is halved. Means of π_I below the
    least return need no refutation.
    """
    least, most = turns.limits
    smallest = SMALLEST_CELL * (most - least)
    width = min(smallest, most - begin)
    while begin < most:
        ours = begin + width + gain
        if ours <= least or enough_reach(series, complete, turns, ours, begin, width, goal, one_of):
            begin += width
            width = min(2 * width, most - begin)
        elif width > smallest:
            width /= 2
        else:
            return begin
    return most


@helper
def likely_mean(values: FloatArray, cycle: int, least: float) -> float:
    """Returns the mean return of π_b in its rounds in turn; the least return if it has none."""
    total, number = 0.0, 0
    for i in range(values.size):
        if i % cycle > 0:
            total -= values[i]
            number += 1
    return total / number if number > 0 else least


class Bets(NamedTuple):
    """Bets on C sets of R series each, on one mean or on two in turn; see `Turns`."""

    cycle: IntsIn  # [C]
    stakes: TableIn  # [C, 6] `together` to `largest_share` of `Turns`
    limits: TableIn  # [C, 2] of all values of one mean, or of all returns
    goal: FloatsIn  # [C]
    first: FloatsIn  # [C] the mean, or gain, that is tried first
    halvings: IntsIn  # [C] the steps of the search
    places: IntsIn  # [C+1] where the values of each set begin
    values: FloatsIn  # series after series
    complete: IntsIn  # [C·R] the number of values of each series
    one_of: int


@tasks(threads_from=SERIES_THREADS, on_gpu=False)
def last_refuted_of(first: int, last: int, room: Room, bets: Bets, lower: FloatsOut) -> None:
    """Writes the largest mean, or gain, that the search finds refuted in each set; else the least.

    This does not run on a GPU: sets are few, and the slow sets, with policies in turn, would leave
    it waiting.
    """
    for c in range(first, last):
        complete = part(bets.complete, c, bets.cycle.size)
        series = bets.values[bets.places[c] : bets.places[c + 1]].reshape(complete.size, -1)
        together, ours, theirs, ours_alone, theirs_alone, share = bets.stakes[c]
        least, most = bets.limits[c]
        limits, cycle, goal = (least, most), bets.cycle[c], bets.goal[c]
        turns = Turns(cycle, together, ours, theirs, ours_alone, theirs_alone, share, limits)
        below, above = least, most
        if cycle > 1:
            below, above = least - most, most - least
        hardest = least  # means of π_b below it are refuted with any gain below `above`
        likely = likely_mean(series[0, : complete[0]], cycle, least)  # of π_b
        middle = bets.first[c]
        for _ in range(bets.halvings[c]):
            if not below < middle < above:
                break
            if cycle == 1:
                refuted = enough_reach(
                    series, complete, turns, middle, least, 0.0, goal, bets.one_of
                )
            elif (
                least < likely + middle
                and likely < most
                and not enough_reach(
                    series, complete, turns, likely + middle, likely, 0.0, goal, bets.one_of
                )
            ):
                refuted = False  # one mean is mostly enough, and spares the search of all cells
            else:
                left = first_split_left(series, complete, turns, middle, goal, bets.one_of, hardest)
                refuted = left == most
                if not refuted:
                    hardest = likely = left
            if refuted:
                below = middle
            else:
                above = middle
            middle = below + (above - below) / 2
        lower[c] = below
