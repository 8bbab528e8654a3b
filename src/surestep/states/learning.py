"""From measurements to states: candidates of several sizes, and the smallest that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from surestep.errors import InvalidLog, InvalidParameter, said
from surestep.io.labels.state_rules import StateRule
from surestep.states.bins import BinStates, EdgesOf, by_quantiles, by_width, cut_columns
from surestep.states.choosing_size import (
    Fit,
    Rows,
    fit_of,
    making_and_measuring,
    smallest_good,
    squared_errors,
)
from surestep.states.clusters import clustered
from surestep.states.regression_trees import grown, grown_to_sizes

Method = Literal["tree", "kmeans", "bins"]
METHODS: tuple[Method, ...] = get_args(Method)
SIZES: dict[Method, tuple[int, ...]] = {  # that are tried: leaves, clusters, bins of a column
    "tree": (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128),
    "kmeans": (4, 8, 16, 32, 64, 128),
    "bins": (2, 3, 4, 5, 6, 8, 10),
}
FEW_COLUMNS = (1, 2, 3, 4, 6, 8, 12)  # that may be cut into bins, and all
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
        maker = maker_of(method, names, size)
    else:
        maker, fits = smallest_enough(rows, names, method, progress)
    return Learnt(maker(rows), method, fits, rows.num_episodes, rows.returns.size)


def maker_of(method: Method, columns: tuple[str, ...], size: int) -> Maker:
    """Returns what makes states of this size from rows."""
    match method:
        case "tree":
            return partial(grown, columns=columns, leaves=size, least_rows=ROWS_A_STATE)
        case "kmeans":
            return partial(clustered, columns=columns, clusters=size)
        case "bins":
            return partial(binned, columns=columns, edges_of=by_quantiles, size=size, most=None)


def binned(
    rows: Rows, columns: tuple[str, ...], edges_of: EdgesOf, size: int, most: int | None
) -> States:
    """Returns the bins of the columns that tell most, at most so many of them (None: all)."""
    return cut_columns(rows, columns, edges_of, size, ROWS_A_STATE).of_best(most)


def candidates(
    making: Rows, method: Method, columns: tuple[str, ...], sizes: Sequence[int]
) -> Iterator[list[tuple[States, Maker]]]:
    """Yields the states of each size that some rows make, and what made them.

    Trees of all sizes are one that is grown once, and columns are cut once for all choices of them.
    """
    if method == "tree":
        trees = grown_to_sizes(making, columns, sizes, ROWS_A_STATE)
        for tree, size in zip(trees, sizes, strict=True):
            yield [(tree, maker_of(method, columns, size))]
        return
    for size in sizes:
        if method == "kmeans":
            maker = maker_of(method, columns, size)
            yield [(maker(making), maker)]
            continue
        found = list[tuple[States, Maker]]()
        for edges_of in (by_quantiles, by_width):
            cut = cut_columns(making, columns, edges_of, size, ROWS_A_STATE)
            for most in (*(few for few in FEW_COLUMNS if few < len(columns)), None):
                maker = partial(binned, columns=columns, edges_of=edges_of, size=size, most=most)
                found.append((cut.of_best(most), maker))
        yield found


def smallest_enough(
    rows: Rows,
    columns: tuple[str, ...],
    method: Method,
    progress: Callable[[int, int], None] | None,
) -> tuple[Maker, tuple[Fit, ...]]:
    """Returns the maker of the smallest states that are good enough, and the fits of all."""
    sizes = [number for number in SIZES[method] if number * ROWS_A_STATE <= rows.returns.size]
    making, measuring = making_and_measuring(rows)
    tried = []
    for done, of_size in enumerate(candidates(making, method, columns, sizes)):
        if progress is not None:
            progress(done, len(sizes))
        for states, maker in of_size:
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
