"""Rolls out two policies on logged draws of nodes, in worlds with too many states to enumerate.

The draws of a node are a stack: entry j is what its j-th draw in the log gave. A rollout reads, in
each of its steps, the next entry of every node that applies there. Rounds, turns and random numbers
are those of `kernels.stitched`. Policies are tables over enumerated states, which then draw their
actions as there, or rules over columns, which draw by (seed, purpose, run, round, step).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray
from surestep.kernels._compile import borrowing, tasks
from surestep.kernels.random_streams import GOLDEN, first_above, mixed
from surestep.kernels.records import fill
from surestep.kernels.stitched import (
    BOTH,
    COUNTED_OUT,
    CUT_AFTER,
    CUT_AT,
    ENDED,
    MISSING,
    RUN_THREADS,
    THEIRS,
    Desk,
    Run,
    Tallied,
    desk_in,
    is_second,
    joined,
    settle_round,
    unit,
)
from surestep.kernels.types import FloatsIn, IndicesIn, IntsIn, Room, RoomSize

UNKNOWN, UNREADABLE = -1, -2  # stand for the value of a node: read its stack, or cut the rollout


class Sums(NamedTuple):
    """Weighted sums of values that give places in a table: of nodes, or of terms of the reward."""

    first: IntsIn  # [D]
    offsets: IntsIn  # [D+1]
    place: IntsIn
    stride: IntsIn
    part: IntsIn  # [D·A]


class Rules(NamedTuple):
    """An ordered list of R rules over columns; see `ColumnRules` of the model."""

    slots: IntsIn  # [M·W]
    stride: IntsIn  # [W] of the values that a member looks at
    first: IntsIn  # the first rule that holds for each combination of values; R if none does
    actions: IntsIn  # [M·(R+1)] of each rule; last, if no rule holds
    chance: FloatsIn  # [R+1]
    law: FloatsIn  # [(R+1)·A] cumulated chances of random actions
    edge: int  # the value that counts beyond the ends of a row, where a slot is −1


class NodeStacks(NamedTuple):
    """The draws of all nodes, node after node, each node's in the order of the log."""

    offsets: IntsIn  # [K+1]
    stops: IntsIn  # [K] where each stack ends, or its first unknown entry
    entry: IndicesIn  # what was drawn
    starts: IntsIn  # [E·C] the first states of episodes, in the order of the log


class NodeCourse(NamedTuple):
    """All that rollouts of two policies need besides stacks."""

    nodes: Sums
    target: IntsIn  # [D] the columns of the next state, in the order of decisions
    rewards: Sums
    worth: FloatsIn
    num_actions: int
    known: IntsIn  # [K] the value of a node that has only one; else UNKNOWN
    ours: Rules
    theirs: Rules
    chances: FloatsIn  # [4·S·A] see `coupled_chances`; empty if both policies are rules
    strides: IntsIn  # [C] of the columns in the number of a state
    start: IntsIn  # [C] the known start; empty if starts are read from a stack
    discount: float
    limits: tuple[float, float]  # bounds of returns: from below for π_I, from above for π_b
    rest: tuple[float, float]  # the same bounds of the return from any step on
    tails: FloatsIn  # [2·S] these bounds by state, for cuts after a step; empty if there are none
    counted: int  # the steps after which a rollout is over and earns no more


class World(NamedTuple):
    """A course on stacks, its seed, and the most rounds of a run."""

    stacks: NodeStacks
    course: NodeCourse  # with UNREADABLE nodes, which cut a rollout
    seed: int
    rounds: int


def room_for_nodes(num_nodes: int, num_states: int, num_columns: int) -> RoomSize:
    """Returns the room of `node_rounds`: a `Desk` for one case, and the values of a step."""
    return RoomSize(2, 4 * num_nodes + 2 * num_states + 1 + 2 * num_columns + 2)


@borrowing
def place_in(sums: Sums, d: int, z: IntArray, action: int, num_actions: int) -> int:
    """Returns the place of the d-th sum for the values of a step and its action."""
    place = sums.first[d] + sums.part[d * num_actions + action]
    for term in range(sums.offsets[d], sums.offsets[d + 1]):
        place += sums.stride[term] * z[sums.place[term]]
    return int(place)


@borrowing
def rule_action(rules: Rules, z: IntArray, number: float, num_actions: int) -> int:
    """Returns the action of the first rule that holds for any member, or one at random.

    It is UNKNOWN where nobody knows what is done.
    """
    width, found = rules.stride.size, rules.chance.size - 1
    action = rules.actions[found]
    for m in range(rules.slots.size // width):
        place = 0
        for w in range(width):
            c = rules.slots[m * width + w]
            place += rules.stride[w] * (z[c] if c >= 0 else rules.edge)
        r = rules.first[place]
        if r < found:
            found = r
            action = rules.actions[m * rules.chance.size + r]
            if r == 0:
                break
    chance = rules.chance[found]
    if number < chance:
        begin = found * num_actions
        action = first_above(rules.law, begin, begin + num_actions, number / chance) - begin
        if rules.law[begin + action] <= number / chance:
            return UNKNOWN
    return int(action)


@borrowing
def read_step(
    side: int, action: int, world: World, desk: Desk, z: IntArray, num_read: int
) -> tuple[int, int]:
    """Reads the next entry of every node that applies, in the order of decisions, into `z`.

    Returns ENDED, MISSING, CUT_AT, or COUNTED_OUT where the rollout goes on; and the number of
    nodes that this round has read.
    """
    stacks, course = world.stacks, world.course
    columns, begin = z.size // 2 - 1, side * desk.base.size
    for d in range(course.target.size):
        k = place_in(course.nodes, d, z, action, course.num_actions)
        drawn = course.known[k]
        if drawn == UNKNOWN:
            row = stacks.offsets[k] + desk.base[k] + desk.reads[begin + k]
            if row >= stacks.stops[k]:
                return MISSING, num_read
            if desk.reads[k] == 0 and desk.reads[desk.base.size + k] == 0:
                desk.read_pairs[num_read] = k
                num_read += 1
            desk.reads[begin + k] += 1
            drawn = np.int64(stacks.entry[row])
        elif drawn == UNREADABLE:
            return CUT_AT, num_read
        z[columns + course.target[d]] = drawn
        if course.target[d] == columns and drawn > 0:
            return ENDED, num_read
    return COUNTED_OUT, num_read


@borrowing
def roll_out_nodes(
    side: int,
    word: np.uint64,
    horizon: int,
    world: World,
    desk: Desk,
    z: IntArray,
    num_read: int,
) -> tuple[int, float, int]:
    """Rolls out π_I (side 0) or π_b (side 1).

    Returns the reason why the rollout is over, its return with the bound of what is left where it
    is cut, and the number of nodes that this round has read.
    """
    course, num_actions, columns = world.course, world.course.num_actions, z.size // 2 - 1
    visits, seen_states = desk.visits, desk.seen_states
    why, total, weight, step, num_seen = COUNTED_OUT, 0.0, 1.0, 0, 0
    while why == COUNTED_OUT and step < course.counted:
        if step == horizon:
            why = CUT_AFTER
            break
        if visits.size > 0:
            s = 0
            for c in range(columns):
                s += course.strides[c] * z[c]
            if visits[s] == 0:
                seen_states[num_seen] = s
                num_seen += 1
            number = unit(joined(joined(word, s), visits[s]))
            visits[s] += 1
            place = 2 * num_actions * (side * visits.size + s)
            chosen = first_above(course.chances, place, place + 2 * num_actions, number) - place
            action = chosen % num_actions
        elif side == 0:
            action = rule_action(course.ours, z, unit(joined(word, step)), num_actions)
        else:
            action = rule_action(course.theirs, z, unit(joined(word, step)), num_actions)
        if action < 0:
            why = CUT_AT
            break
        why, num_read = read_step(side, action, world, desk, z, num_read)
        if why in (MISSING, CUT_AT):
            break
        earned = 0.0
        for q in range(course.rewards.first.size):
            earned += course.worth[place_in(course.rewards, q, z, action, num_actions)]
        total += weight * earned
        weight *= course.discount
        step += 1
        for c in range(columns):
            z[c] = z[columns + c]
    for j in range(num_seen):
        visits[seen_states[j]] = 0
    left = course.rest[side]
    if why == CUT_AFTER and course.tails.size > 0:
        s = side * (course.tails.size // 2)
        for c in range(columns):
            s += course.strides[c] * z[c]
        left = course.tails[s]
    if why >= CUT_AFTER and side == 0:
        total = max(total + weight * left, course.limits[0])
    elif why >= CUT_AFTER:
        total = min(total + weight * left, course.limits[1])
    return why, total, num_read


@borrowing
def start_values(i: int, world: World, z: IntArray) -> bool:
    """Writes the start of round i to `z`; returns False if the log lacks a value of it."""
    starts, begin, whole = world.stacks.starts, i * (z.size // 2 - 1), True
    if world.course.start.size > 0:
        starts, begin = world.course.start, 0
    for c in range(z.size // 2 - 1):
        z[c] = starts[begin + c]
        whole = whole and z[c] >= 0
    return whole


@tasks(threads_from=RUN_THREADS, on_gpu=False)
def node_rounds(
    first: int,
    last: int,
    room: Room,
    purpose: int,
    runs: int,
    turns: IntsIn,
    horizons: IntsIn,
    world: World,
    outcome: Tallied,
) -> None:
    """Writes G_I − G_b of each round of the tasks first, …, last − 1; a task is a run of one way.

    Ways, runs and rounds are those of `stitched_rounds`. A rollout is over when the process is, or
    when no more steps count. It is cut when it needs a node that is UNREADABLE, or after its
    horizon. If the log lacks an entry, or the entry is unknown, the run is over.
    """
    num_nodes = world.course.known.size
    num_states = world.course.chances.size // (4 * world.course.num_actions)
    desk = desk_in(room, num_nodes, num_states)
    the_case, z = desk.shift[:1], desk.shift[1:]
    fill(desk.visits, 0)
    fill(the_case, 0)
    for task in range(first, last):
        way = task // runs
        run = Run(the_case, 0, 0, turns[way], horizons[2 * way : 2 * way + 2], task, 0)
        fill(desk.base, 0)
        fill(desk.reads, 0)
        run_word = joined(joined(mixed(np.uint64(world.seed) + GOLDEN), purpose), task % runs)
        for i in range(world.rounds):
            word = joined(run_word, i)
            desk.earned[0] = 0.0
            why, cuts, num_read = COUNTED_OUT, 0, 0
            theirs_alone = run.who == THEIRS or is_second(i, run.who)
            for side in range(theirs_alone, 2 if run.who == BOTH or theirs_alone else 1):
                why = MISSING
                if not start_values(i, world, z):
                    break
                steps = run.horizons[side]
                why, total, num_read = roll_out_nodes(side, word, steps, world, desk, z, num_read)
                if why == MISSING:
                    break
                desk.earned[0] += total if side == 0 else -total
                cuts += why >= CUT_AFTER
            if why == MISSING:
                break
            settle_round(i, cuts, num_read, run, desk, outcome)
