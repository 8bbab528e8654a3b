"""Actions of a model file: what choices are called there, and the numbers that they get here.

Our actions are numbered once for the whole model and rise within each state. Checkers number
choices state by state and may name them: in any order, only some of them, or several alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from surestep._arrays import IntArray, repeated_in_run, run_lengths, run_owners
from surestep.model.pairs import Labels


class Actions(NamedTuple):
    """The actions of a file's choices."""

    number: IntArray  # [K] in the file's own numbering, 0 … num_actions − 1
    num_actions: int
    names: Sequence[str | None] | None = None  # [num_actions], if the file gives any


class Numbering(NamedTuple):
    """The actions of a model's pairs, as `Pairs` takes them."""

    action: IntArray  # [K] not necessarily rising within a state
    num_actions: int
    labels: Labels


def number_actions(actions: Actions, offsets: IntArray) -> Numbering:
    """Numbers the actions of states' choices, whose runs `offsets` [S+1] delimit, and labels them.

    Numbers are kept where each stands for one action of a state, and names keep their numbers
    where these rise within states. Other names are numbered such that they do, if that can be, and
    else in the order in which they appear. Choices without a name are known by their position.
    """
    code, count, names = actions
    if names is not None and all(names[number] is None for number in np.unique(code).tolist()):
        position = positions_in_runs(offsets)
        return Numbering(position, int(position.max(initial=0)) + 1, None)
    repeated = bool(repeated_in_run(code, offsets).any())
    if names is None and not repeated:
        return Numbering(code, count, None)
    if names is None:
        numbers, code = np.unique(code, return_inverse=True)
        names = [f"a{number}" for number in numbers.tolist()]
    labels = tuple(name for name in names if name is not None)
    plain = len(set(labels)) == len(names) and not repeated
    if plain and rises(code, offsets):
        return Numbering(code, count, labels)
    return number_in_order(*distinct_names(code, names, offsets), offsets)


def rises(code: IntArray, offsets: IntArray) -> bool:
    """Returns whether each number is larger than the one before it in its run."""
    owner = run_owners(offsets)
    return bool(np.all((code[1:] > code[:-1]) | (owner[1:] != owner[:-1])))


def positions_in_runs(offsets: IntArray) -> IntArray:
    """Returns the position of each element in its run, from 0 [K]."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], run_lengths(offsets))


def distinct_names(
    code: IntArray, names: Sequence[str | None], offsets: IntArray
) -> tuple[IntArray, list[str]]:
    """Returns names that differ within each state: (name of each choice [K], all names).

    A choice without a name is called after its position, and the second choice of a name ‘go’ in a
    state is called ‘go (2)’.
    """
    table: dict[str, int] = {}
    known = [-1 if name is None else table.setdefault(name, len(table)) for name in names]
    code = np.array(known, np.int64)[code]
    position = positions_in_runs(offsets)
    for choice in np.flatnonzero(code < 0).tolist():
        code[choice] = table.setdefault(str(position[choice]), len(table))
    while repeated_in_run(code, offsets).any():
        before, texts = earlier_in_run(code, offsets), list(table)
        for choice in np.flatnonzero(before).tolist():
            name = f"{texts[code[choice]]} ({before[choice] + 1})"
            code[choice] = table.setdefault(name, len(table))
    return code, list(table)


def earlier_in_run(code: IntArray, offsets: IntArray) -> IntArray:
    """Counts how often the same number stands earlier in the run [K]."""
    owner = run_owners(offsets)
    order = np.lexsort((code, owner))  # stable: what is equal stays in its order
    fresh = np.ones(code.size, np.bool_)
    fresh[1:] = np.diff(code[order]).astype(np.bool_) | np.diff(owner[order]).astype(np.bool_)
    index = np.arange(code.size)
    before = np.empty(code.size, np.int64)
    before[order] = index - np.maximum.accumulate(np.where(fresh, index, 0))
    return before


def number_in_order(code: IntArray, names: Sequence[str], offsets: IntArray) -> Numbering:
    """Numbers the names that are used so that they rise within states, if they can."""
    first = np.full(len(names), code.size)
    first[code[::-1]] = np.arange(code.size)[::-1]  # of equal indices the last one counts
    appearing = np.argsort(first, kind="stable")[: np.count_nonzero(first < code.size)]
    rank = np.empty(len(names), np.int64)
    rank[appearing] = np.arange(appearing.size)
    order = common_order(rank[code], appearing.size, offsets)
    number = np.empty(len(names), np.int64)
    number[appearing[order]] = np.arange(appearing.size)
    labels = tuple(names[name] for name in appearing[order].tolist())
    return Numbering(number[code], appearing.size, labels)


def common_order(code: IntArray, count: int, offsets: IntArray) -> IntArray:
    """Returns all numbers in an order that every run follows, small ones first; else 0, 1, 2, …

    This is Kahn's topological sort with a heap.
    """
    owner = run_owners(offsets)
    inside = owner[1:] == owner[:-1]
    edges = np.unique(code[:-1][inside] * count + code[1:][inside])
    source, target = edges // count, edges % count
    followers = np.searchsorted(source, np.arange(count + 1)).tolist()
    waiting, targets = np.bincount(target, minlength=count).tolist(), target.tolist()
    ready = [number for number in range(count) if waiting[number] == 0]
    order: list[int] = []
    while ready:
        number = heappop(ready)
        order.append(number)
        for follower in targets[followers[number] : followers[number + 1]]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, follower)
    return np.array(order) if len(order) == count else np.arange(count)
