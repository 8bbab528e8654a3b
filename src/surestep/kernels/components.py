"""Finds strongly connected components, and solves a model one component after the other.

States that lead to each other form a component. A component is solved after all components that it
leads to, so that their values are known. A state that never returns to itself needs one backup. Any
other component is swept in place until its values stand still. Within a component, the states stand
in the order in which a depth-first search leaves them, successors first. A sweep then carries a
value along a whole path; only values that come back around a cycle wait for the next sweep (P. Dai
and J. Goldsmith, "Topological value iteration algorithm for Markov decision processes", IJCAI
2007).
"""

from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels._compile import helper, kernel
from surestep.kernels.backup import pair_value, sweep_in_place
from surestep.kernels.elimination import solve_dense
from surestep.kernels.records import Model, copy_into, fill
from surestep.kernels.types import FloatsOut, IndicesIn, IndicesOut, IntsIn, IntsOut

STANDS_STILL = 2.0**-50  # relative to max |v|: a change this small is rounding
LOOK = 8  # sweeps between two forecasts of the number of sweeps still needed
PATIENCE = 64  # sweeps before a forecast may end the sweeping
STEADY = 0.1  # a rate is steady if it changes by less than this part of 1 − rate
SMALL = 200  # states up to which a component may be solved by dense elimination
MOST_STEPS = 100  # of policy iteration


class Order(NamedTuple):
    """The states by component; a component comes after all components that it leads to."""

    order: IndicesIn  # [S]
    place: IndicesIn  # [S] the place of a state in the order
    starts: IntsIn  # [C+1] the place at which a component begins


@kernel()
def leads_ahead(pair_offsets: IntsIn, offsets: IntsIn, successor: IndicesIn) -> bool:
    """Tells whether every state leads only to itself and to later states."""
    for s in range(pair_offsets.size - 1):
        for t in range(offsets[pair_offsets[s]], offsets[pair_offsets[s + 1]]):
            if successor[t] < s:
                return False
    return True


@kernel()
def strong_components(
    pair_offsets: IntsIn, offsets: IntsIn, successor: IndicesIn
) -> tuple[IndicesOut, IndicesOut, IntsOut]:
    """Returns the arrays of an `Order`.

    The algorithm is R. Tarjan's depth-first search with its own stack (SIAM Journal on Computing 1,
    1972).
    """
    states = pair_offsets.size - 1
    order, place = np.empty(states, np.int32), np.empty(states, np.int32)
    starts = np.empty(states + 1, np.int64)
    time_found = np.full(states, -1, np.int32)  # `states` once a state has a place
    lowest = np.empty(states, np.int32)  # the earliest such time among the states it comes back to
    position = np.empty(states, np.int64)  # the next transition to follow
    path = np.empty(states, np.int32)
    left = np.empty(states, np.int32)  # states without a place that the search has left
    times, num_left, number, filled = 0, 0, 0, 0
    starts[0] = 0
    for root in range(states):
        if time_found[root] >= 0:
            continue
        depth, entered = 0, root
        while depth >= 0:
            if entered >= 0:
                path[depth] = entered
                time_found[entered] = lowest[entered] = times
                position[entered] = offsets[pair_offsets[entered]]
                times, entered = times + 1, -1
            s = path[depth]
            t, end = np.uint64(position[s]), np.uint64(offsets[pair_offsets[s + 1]])
            while t < end and entered < 0:
                target = successor[t]
                if time_found[target] < 0:
                    entered = target
                else:
                    lowest[s] = min(lowest[s], time_found[target])
                t += np.uint64(1)
            position[s] = t
            if entered >= 0:
                depth += 1
                continue
            left[num_left] = s
            num_left += 1
            depth -= 1
            if depth >= 0:
                above = path[depth]
                lowest[above] = min(lowest[above], lowest[s])
            if lowest[s] == time_found[s]:
                # All states found after s that have no place yet come back to s.
                since, first = time_found[s], num_left
                while first > 0 and time_found[left[first - 1]] >= since:
                    first -= 1
                for i in range(first, num_left):
                    time_found[left[i]] = states
                    place[left[i]] = filled
                    order[filled] = left[i]
                    filled += 1
                num_left = first
                number += 1
                starts[number] = filled
    return order, place, starts[: number + 1].copy()


@kernel()
def strike_out(offsets: IntsIn, pair: IntsIn, owner: IntsIn, left: IntsOut) -> None:
    """Strikes out states without pairs and the pairs that may lead to them, until no more are.

    State s is entered by the pairs `pair[offsets[s]]` …, pair k belongs to `owner[k]` [K], and
    `left` [S] counts the pairs of each state that are left.
    """
    lost = np.empty(left.size, np.int64)
    struck = np.zeros(owner.size, np.bool_)
    number = 0
    for s in range(left.size):
        if left[s] == 0:
            lost[number] = s
            number += 1
    done = 0
    while done < number:
        s = lost[done]
        for place in range(offsets[s], offsets[s + 1]):
            k = pair[place]
            if not struck[k]:
                struck[k] = True
                left[owner[k]] -= 1
                if left[owner[k]] == 0:
                    lost[number] = owner[k]
                    number += 1
        done += 1


@helper
def settle_singles(
    first: int, model: Model, order: IndexArray, starts: IntArray, value: FloatArray
) -> int:
    """Solves components of one state, from `first` on; returns the first with several states.

    v(s) is max_a of r + ΓPv solved for v(s), all other values being known.
    """
    pair_offsets, offsets, successor, probability, discount, reward = model
    c = first
    while c < starts.size - 1 and starts[c + 1] - starts[c] == 1:
        s = order[starts[c]]
        best = -np.inf
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            staying, ahead = 0.0, 0.0
            for t in range(np.uint64(offsets[k]), np.uint64(offsets[k + 1])):
                if successor[t] == s:
                    staying += probability[t]
                else:
                    ahead += probability[t] * value[successor[t]]
            best = max(best, (reward[k] + discount[k] * ahead) / (1.0 - discount[k] * staying))
        value[s] = best
        c += 1
    return c


@helper
def part_of(
    first: int, last: int, model: Model, order: IndexArray, place: IndexArray, value: FloatArray
) -> Model:
    """Returns the model of states `first` … `last − 1` of the order, in that order, from 0 on.

    Its chances are discounted already. The values of transitions that leave these states are added
    to the reward. A chance p to stay in a state is divided away: q = r + γ p v(s) + … is solved for
    q by 1/(1 − γ p).
    """
    pair_offsets, offsets, successor, probability, discount, reward = model
    pairs, transitions = 0, 0
    for i in range(first, last):
        s = order[i]
        pairs += pair_offsets[s + 1] - pair_offsets[s]
        transitions += offsets[pair_offsets[s + 1]] - offsets[pair_offsets[s]]
    part_pairs, part_offsets = np.empty(last - first + 1, np.int64), np.empty(pairs + 1, np.int64)
    targets, weight = np.empty(transitions, np.int32), np.empty(transitions)
    earned = np.empty(pairs)
    part_pairs[0] = part_offsets[0] = 0
    pair, end = 0, 0
    for i in range(first, last):
        s = order[i]
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            begin, staying, outside = end, 0.0, 0.0
            for t in range(offsets[k], offsets[k + 1]):
                where = place[successor[t]]
                if where == i:
                    staying += probability[t]
                elif first <= where < last:
                    targets[end] = where - first
                    weight[end] = discount[k] * probability[t]
                    end += 1
                else:
                    outside += probability[t] * value[successor[t]]
            share = 1.0 / (1.0 - discount[k] * staying)
            earned[pair] = share * (reward[k] + discount[k] * outside)
            for t in range(begin, end):
                weight[t] *= share
            pair += 1
            part_offsets[pair] = end
        part_pairs[i - first + 1] = pair
    return Model(part_pairs, part_offsets, targets, weight, np.ones(pairs), earned)


@helper
def solve_best(part: Model, system: FloatArray, value: FloatArray) -> None:
    """Replaces `value` by the value of its greedy policy, by dense elimination."""
    pair_offsets, offsets, successor, weight, _, reward = part
    size = value.size
    right = np.empty(size)
    for s in range(size):
        best, chosen = -np.inf, pair_offsets[s]
        for k in range(pair_offsets[s], pair_offsets[s + 1]):
            q = pair_value(k, part, value)
            if q > best:
                best, chosen = q, k
        fill(system[s], 0.0)
        system[s, s] = 1.0
        right[s] = reward[chosen]
        for t in range(offsets[chosen], offsets[chosen + 1]):
            system[s, successor[t]] -= weight[t]
    solve_dense(system, right)
    copy_into(value, right)


@helper
def settle_part(part: Model, target: float, limit: int, value: FloatArray) -> bool:
    """Sweeps, or iterates policies if that costs less; tells whether changes fell to `target`.

    Changes that shrink at a steady rate are added up to their limit at once, v + δ rate/(1 − rate),
    as long as that helps. Sweeping ends early if more than `limit` sweeps would be needed.
    """
    entries, size = part.successor.size, value.size
    system, earlier = np.empty((0, 0)), np.empty(size)
    before, last, rate, sweeps, steps, leaps = np.inf, np.inf, 0.0, 0, 0, True
    if size <= SMALL and LOOK * entries > size**3:  # a solution costs less than the first sweeps
        system, steps = np.empty((size, size)), 1
    while True:
        if leaps and sweeps % LOOK == LOOK - 1:
            copy_into(earlier, value)
        change, scale = sweep_in_place(part, True, value)
        sweeps += 1
        goal = max(target, STANDS_STILL * scale)
        if change <= goal:
            return True
        if not change < np.inf or steps >= MOST_STEPS:
            return False
        rate, last, rate_before = change / last, change, rate
        if steps == 0 and sweeps % LOOK == 0:
            # If changes go on shrinking at this rate, change · (change / before)^looks = goal.
            looks = np.log(change / goal) / np.log(before / change) if change < before else np.inf
            leaps = leaps and change < before / 2.0
            if size <= SMALL and LOOK * looks * entries > size**3:
                system, steps = np.empty((size, size)), 1
            elif sweeps >= PATIENCE and not sweeps + LOOK * looks < limit:
                return False
            elif leaps and abs(rate - rate_before) < STEADY * (1.0 - rate):
                for s in range(size):
                    value[s] += (value[s] - earlier[s]) * rate / (1.0 - rate)
            before = change
        if steps > 0:
            solve_best(part, system, value)
            steps += 1


@kernel()
def settle_components(
    model: Model, by_component: Order, first: int, target: float, limit: int, value: FloatsOut
) -> int:
    """Solves the components from `first` on, up to a residual of `target`, into `value`.

    Returns the first component that would take more than `limit` sweeps; its values are as exact as
    the sweeps so far made them. Returns the number of components if there is none.
    """
    order, place, starts = by_component
    c = settle_singles(first, model, order, starts, value)
    while c < starts.size - 1:
        start, end = starts[c], starts[c + 1]
        part = part_of(start, end, model, order, place, value)
        own = value[order[start:end]]
        settled = settle_part(part, target, limit, own)
        for i in range(own.size):
            value[order[start + i]] = own[i]
        if not settled:
            return c
        c = settle_singles(c + 1, model, order, starts, value)
    return c
