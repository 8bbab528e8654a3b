"""Learns states from measurements: leaves of a tree, or clusters, by scikit-learn.

Measurements teach with six significant digits, and rules have no more, so that none hangs on the
last bits of a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, floats, whole_numbers
from surestep.errors import InvalidLog, InvalidParameter, MissingExtra, install
from surestep.io.labels.learnt_states import DEEPEST, LearntStates, Split, rounded

SIZES = (4, 8, 16, 32, 64)  # that 'auto' tries
DIGITS = 6
LARGEST = 1e100  # measurement: squares are finite
MOST_ROWS = 200_000  # teach: states get no better by more
MOST_FOR_CENTRES = 20_000  # rows, evenly spread: centres get no better by more
LEAST_ROWS = 5  # of a leaf
SAME = 1e-9  # returns, or errors, that differ by no more of their size differ by rounding alone

Maker = Callable[[int, FloatArray, FloatArray], LearntStates]


def learn(
    name: str,
    kind: Literal["tree", "kmeans"],
    size: int | Literal["auto"],
    columns: Sequence[str],
    values: object,
    returns: object,
    episode: object,
) -> LearntStates:
    """Returns states by measurements [N, C], taught by the first episodes.

    A "tree" has at most `size` leaves that tell the return [N] from each row on; "kmeans" has at
    most `size` clusters. "auto" takes the best of `SIZES` (`best_size`). `episode` [N] numbers
    episodes, whose rows stand together.
    """
    names = tuple(columns)
    episodes = whole_numbers("episode", episode, None, InvalidParameter)
    earned = floats("returns", returns, episodes.shape, InvalidLog)
    table = floats(
        "the measurement", values, (episodes.size, len(names)), InvalidLog,
        lambda i: f"{names[i % len(names)]!r} in row {i // len(names) + 1:,}",
    )  # fmt: skip
    if episodes.size == 0:
        raise InvalidLog(f"{name} is to be learnt from no rows, expected at least two")
    number = np.cumsum(np.diff(episodes, prepend=episodes[0]) != 0)
    rows = number.size
    if rows > MOST_ROWS:
        rows = int(np.searchsorted(number, number[MOST_ROWS])) or MOST_ROWS
    table, earned, number = table[:rows], earned[:rows], number[:rows]
    if np.abs(table).max() > LARGEST:
        raise InvalidLog(f"a measurement for {name} is above {LARGEST:g}, expected smaller numbers")
    given, table = table, in_few_digits(table)
    makers = {
        "tree": partial(grown, name, names, (table == given).all(axis=0)),
        "kmeans": partial(clustered, name, names),
    }
    make: Maker = makers[kind]
    chosen = best_size(make, table, earned, number) if size == "auto" else size
    return make(chosen, table, earned)


def best_size(make: Maker, table: FloatArray, returns: FloatArray, number: IntArray) -> int:
    """Returns the size that tells returns best; of equally good ones the smallest.

    Two of three episodes teach. The squared error is that of the mean return of each state there,
    on the rows of every third episode; a state without rows has the mean of all.
    """
    held = number % 3 == 2
    if not held.any():
        raise InvalidLog("the size of states is found on every third episode; give a size instead")
    mean = float(returns[~held].mean())

    def error(size: int) -> float:
        states = make(size, table[~held], returns[~held])
        taught, many = states.indices(table[~held]), len(states.labels)
        total = np.bincount(taught, returns[~held] - mean, many)
        told = mean + total / np.maximum(np.bincount(taught, minlength=many), 1)
        return float(((returns[held] - told[states.indices(table[held])]) ** 2).sum())

    errors = [error(size) for size in SIZES]
    enough = min(errors) + SAME * float(((returns[held] - mean) ** 2).sum())
    return next(size for size, each in zip(SIZES, errors, strict=True) if each <= enough)


def grown(
    name: str, columns: tuple[str, ...], exact: BoolArray, size: int, table: FloatArray,
    returns: FloatArray,
) -> LearntStates:  # fmt: skip
    """Returns a tree, grown best first by the variance of returns (`DecisionTreeRegressor`).

    It is given ranks in place of numbers: it computes with 32 bits and takes small differences for
    none, and a tree of ranks splits the same rows. A threshold is a value of the log where all of
    the column are `exact` [C], that is, have few digits; otherwise it keeps away from values.
    """
    levels, ranks = zip(*(np.unique(each, return_inverse=True) for each in table.T), strict=True)
    spread = float(returns.std())
    tree = None
    if spread > SAME * np.abs(returns).max():
        regressor = scikit_learn("sklearn.tree").DecisionTreeRegressor(
            max_leaf_nodes=size, max_depth=DEEPEST, min_samples_leaf=LEAST_ROWS, random_state=0
        )
        tree = regressor.fit(np.column_stack(ranks), (returns - returns.mean()) / spread).tree_

    def split(node: int) -> Split | None:
        if tree is None or tree.children_left[node] < 0:
            return None
        c = int(tree.feature[node])
        low, high = levels[c][(place := int(tree.threshold[node])) : place + 2].tolist()
        threshold = high if exact[c] else short_between(low, high)
        below, above = int(tree.children_left[node]), int(tree.children_right[node])
        return Split(columns[c], threshold, split(below), split(above))

    root = split(0)
    if root is None:
        raise InvalidLog(
            f"no threshold of {', '.join(columns)} (to {DIGITS} digits) tells returns apart with "
            f"{LEAST_ROWS} rows on each side, so {name} cannot be a tree; give other measurements, "
            "more rows or kmeans"
        )
    return LearntStates(name, columns, root)


def clustered(
    name: str, columns: tuple[str, ...], size: int, table: FloatArray, returns: FloatArray
) -> LearntStates:
    """Returns clusters of measurements in units of their spread (`KMeans`), in a settled order."""
    varies = (table != table[0]).any(axis=0)
    if not varies.any():
        raise InvalidLog(
            f"none of {', '.join(columns)} varies (to {DIGITS} digits) among the rows that {name} "
            "is learnt from, expected measurements that do"
        )
    spreads = in_few_digits(np.where(varies, table.std(axis=0), 1.0)[None])[0]
    spreads[spreads == 0] = 1.0
    scaled = (table - table.mean(axis=0)) / spreads
    every = -(-table.shape[0] // MOST_FOR_CENTRES)
    clusters = min(size, np.unique(table[::every], axis=0).shape[0])
    kmeans = scikit_learn("sklearn.cluster").KMeans(clusters, n_init=4, random_state=0)
    with scikit_learn("threadpoolctl").threadpool_limits(1):  # adds up in one order
        found = kmeans.fit(scaled[::every]).cluster_centers_ * spreads + table.mean(axis=0)
    centres = np.unique(in_few_digits(found), axis=0)
    return LearntStates(
        name, columns, None, tuple(map(tuple, centres.tolist())), tuple(spreads.tolist())
    )


def short_between(low: float, high: float) -> float:
    """Returns a number between two of six digits, with the fewest digits; `high` if there is none.

    >>> short_between(2.03, 2.18), short_between(-0.5, 0.25), short_between(0.100001, 0.100002)
    (2.1, -0.1, 0.100002)
    """
    tried = (rounded(low + (high - low) / 2, digits) for digits in range(1, DIGITS + 1))
    return next((number for number in tried if low < number < high), high)


def in_few_digits(table: FloatArray) -> FloatArray:
    """Returns numbers [N, C] with six significant digits."""
    distinct, places = np.unique(table, return_inverse=True)
    short = np.array([rounded(number, DIGITS) for number in distinct.tolist()])
    return short[places].reshape(table.shape)


def returns_of(episode: object, reward: object, discount: float) -> FloatArray:
    """Returns Σ_i γ^i r_{t+i} [N] from each row t to the end of its episode.

    The rows of an episode stand together, in order.
    """
    episodes = whole_numbers("episode", episode, None, InvalidParameter)
    rewards = floats("reward", reward, episodes.shape, InvalidLog)
    returns, later, last = list[float](), 0.0, None
    for each, earned in zip(reversed(episodes.tolist()), reversed(rewards.tolist()), strict=True):
        later = earned + discount * later if each == last else earned
        last = each
        returns.append(later)
    return np.array(returns[::-1], float)


def scikit_learn(module: str) -> Any:
    """Returns a module of scikit-learn, or of what it brings; it comes with the extra `states`."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(
            f"states are learnt with scikit-learn, which is not installed; {install('states')}"
        ) from None
