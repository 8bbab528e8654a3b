"""From measurements to states: candidates of several sizes, and the smallest that is enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.labels.state_rules import StateRule
from surestep.states.bins import BinStates, by_quantiles, by_width
from surestep.states.choosing_size import (
    Fit,
    Rows,
    fit_of,
    making_and_measuring,
    smallest_good,
    squared_errors,
)
from surestep.states.clusters import clustered
from surestep.states.trees import grown

Method = Literal["tree", "kmeans", "bins"]
METHODS: tuple[Method, ...] = get_args(Method)
SIZES: dict[Method, tuple[int, ...]] = {  # that are tried: leaves, clusters, bins of a column
    "tree": (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128),
    "kmeans": (4, 8, 16, 32, 64, 128),
    "bins": (2, 3, 4, 5, 6, 8, 10),
}
LEAST_EPISODES = 20
LEAST_ROWS = 100
ROWS_A_STATE = 20  # at the least, on average
MOST_ROWS = 200_000  # learn: the first whole episodes of no more; states get no better by more
LARGEST = 1e30  # scikit-learn computes with 32 bits

States = StateRule | BinStates
Maker = Callable[[Rows], States]


@dataclass(frozen=True, slots=True)
class Learnt:
    """States, and how they were chosen."""

    states: States
    method: Method
    fits: tuple[Fit, ...]  # of all candidates, the smallest first; none where a size was given
    num_episodes: int  # that taught
    num_rows: int


def learn_states(
    rows: Rows,
    columns: Sequence[str],
    method: Method,
    *,
    size: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Learnt:
    """Returns states by a method, of a given size or of the smallest that is good enough.

    The size is the number of leaves, of clusters, or of bins of each column. Once it is chosen, the
    states are made anew from all rows.
    """
    names = tuple(columns)
    check_method(method, size)
    rows = first_rows(rows)
    check_enough(rows, names)
    fits: tuple[Fit, ...] = ()
    if size is not None:
        maker = makers(method, names, size)[0]
    else:
        sizes = [number for number in SIZES[method] if number * ROWS_A_STATE <= rows.returns.size]
        every = [maker for number in sizes for maker in makers(method, names, number)]
        maker, fits = smallest_enough(rows, every, progress)
    return Learnt(maker(rows), method, fits, rows.num_episodes, rows.returns.size)


def makers(method: Method, columns: tuple[str, ...], size: int) -> list[Maker]:
    """Returns what makes states of this size from rows."""
    match method:
        case "tree":
            return [partial(grown, columns=columns, leaves=size, least_rows=ROWS_A_STATE)]
        case "kmeans":
            return [partial(clustered, columns=columns, clusters=size)]
        case "bins":
            return [
                partial(make, columns=columns, number=size) for make in (by_quantiles, by_width)
            ]


def smallest_enough(
    rows: Rows, every: Sequence[Maker], progress: Callable[[int, int], None] | None
) -> tuple[Maker, tuple[Fit, ...]]:
    """Returns the maker of the smallest states that are good enough, and the fits of all."""
    making, measuring = making_and_measuring(rows)
    tried = []
    for done, maker in enumerate(every):
        if progress is not None:
            progress(done, len(every))
        states = maker(making)
        numbers = states.indices(making.values), states.indices(measuring.values)
        errors = squared_errors(making, measuring, numbers, states.num_states)
        tried.append((states.num_states, errors, maker))
    tried.sort(key=lambda each: each[0])
    chosen = smallest_good([errors for _, errors, _ in tried])
    return tried[chosen][2], tuple(fit_of(n, errors, measuring) for n, errors, _ in tried)


def first_rows(rows: Rows) -> Rows:
    """Returns the first whole episodes that hold no more rows than are learnt from."""
    episodes = int(np.searchsorted(rows.offsets, MOST_ROWS, side="right")) - 1
    return rows.part(0, min(max(episodes, 1), rows.num_episodes))


def check_method(method: object, size: int | None) -> None:
    """Refuses methods that there are not, and sizes of no use."""
    if method not in METHODS:
        raise InvalidParameter(f"states are learnt by {method!r}, expected {', '.join(METHODS)}")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 2):
        raise InvalidParameter(f"the size of states is {size!r}, expected a whole number from 2 on")


def check_enough(rows: Rows, columns: Sequence[str]) -> None:
    """Refuses too few episodes or rows to learn from, and columns that nothing can be learnt of."""
    if rows.num_episodes < LEAST_EPISODES or rows.returns.size < LEAST_ROWS:
        raise InvalidLog(
            f"states are to be learnt from {rows.num_episodes:,} episodes with "
            f"{rows.returns.size:,} rows, expected at least {LEAST_EPISODES} episodes and "
            f"{LEAST_ROWS} rows; give a larger share of the log to learning, or bins of your own "
            f"with {said('bins', '--bin')}"
        )
    if not (rows.values != rows.values[:1]).any():
        raise InvalidLog(
            f"no column of {', '.join(columns)} varies among the {rows.returns.size:,} rows that "
            "states are learnt from; expected measurements that do"
        )
    largest = np.abs(rows.values).max(axis=0)
    if (largest > LARGEST).any():
        column = columns[int(np.argmax(largest > LARGEST))]
        raise InvalidLog(
            f"column {column!r} holds {largest.max():g}, expected numbers up to {LARGEST:g} to "
            "learn states from"
        )
