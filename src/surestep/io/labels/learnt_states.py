"""States learnt from measurements: leaves of a tree, or clusters, by scikit-learn.

The rule is plain numbers, so that a file can keep it and people can read it; it is applied in
Python and in SQL alike. Measurements teach with six significant digits, and rules have no more, so
that none hangs on the last bits of a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import BoolArray, FloatArray, IntArray
from surestep._json import typed
from surestep.errors import InvalidLog, InvalidParameter, MissingExtra, install
from surestep.io.labels.binning import literal, span, written
from surestep.io.sql import sql_name, sql_text

MOST_STATES = 1000
DEEPEST = 60  # splits above a leaf
SIZES = (4, 8, 16, 32, 64)  # that 'auto' tries
DIGITS = 6
LARGEST = 1e100  # measurement that teaches: squares are finite
MOST_ROWS = 200_000  # teach: states get no better by more
MOST_FOR_CENTRES = 20_000  # rows, evenly spread: centres get no better by more
LEAST_ROWS = 5  # of a leaf
SAME = 1e-9  # returns, or errors, that differ by no more of their size differ by rounding alone

Name = Annotated[str, Meta(min_length=1, max_length=1000)]
Leaf = tuple[tuple[float | None, float | None], ...]  # of each column: from, to below; None: any


@dataclass(frozen=True)
class LearntStates:
    """The states of a new column `name`, by measurements in `columns`.

    They are the first of the `leaves` [K] of a tree that a row lies in, or the nearest of `centres`
    [K, C], with the `spreads` [C] of columns for distances: the first k of the least
    Σ_c (x_c / spread_c − centre_kc / spread_c)². What is in no leaf is in the last.
    """

    name: Name
    columns: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=100)]
    leaves: Annotated[tuple[Leaf, ...], Meta(max_length=MOST_STATES)] = ()
    centres: Annotated[tuple[tuple[float, ...], ...], Meta(max_length=MOST_STATES)] = ()
    spreads: tuple[Annotated[float, Meta(gt=0)], ...] = ()

    def __post_init__(self) -> None:
        """Checks that the rule is one, and that no two states have the same label."""
        states = len(self.limits) if self.leaves else len(self.scaled)  # which checks them
        if states < 2 or (self.leaves and self.centres):
            raise InvalidParameter("learnt states have at least two leaves, or as many centres")
        for names in (self.columns, self.labels):
            if len(set(names)) < len(names):
                raise InvalidParameter("a column or a label is there twice, expected each once")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The states in words: 'age < 40, lactate >= 2.1' or 'age about 63, lactate about 2.1'."""
        if not self.leaves:
            return nearly(self.columns, self.centres)
        named = (zip(self.columns, leaf.tolist(), strict=True) for leaf in self.limits)
        return tuple(
            ", ".join(f"{name} {span(*ends)}" for name, ends in leaf if np.isfinite(ends).any())
            for leaf in named
        )

    @cached_property
    def limits(self) -> FloatArray:
        """Returns where the values of each column begin and end in each leaf [K, C, 2]."""
        if {len(leaf) for leaf in self.leaves} != {len(self.columns)}:
            raise InvalidParameter("leaves have other columns, expected limits of each column")
        limits: FloatArray = np.array(self.leaves, float)  # None becomes NaN
        return np.where(np.isnan(limits), (-np.inf, np.inf), limits)

    @cached_property
    def scaled(self) -> FloatArray:
        """The centres [K, C] in units of the spreads."""
        shape = len(self.centres), len(self.columns)
        spreads = arrays.floats("spreads", self.spreads, shape[1:], InvalidParameter)
        centres = arrays.floats("centres", self.centres, shape, InvalidParameter)
        with np.errstate(over="ignore"):
            return arrays.floats("centres in spreads", centres / spreads, shape, InvalidParameter)

    def indices(self, values: object) -> IntArray:
        """Returns the state [N] of each row [N, C] of finite measurements, a place in `labels`."""
        rows = arrays.floats("measurements", values, None, InvalidParameter)
        if self.leaves:
            found = np.full(rows.shape[0], len(self.leaves) - 1)
            for place, (low, high) in reversed([*enumerate(self.limits.swapaxes(1, 2))]):
                found[((low <= rows) & (rows < high)).all(axis=1)] = place
            return found
        distances = np.zeros((len(self.centres), rows.shape[0]))
        with np.errstate(over="ignore"):
            for numbers, spread, centre in zip(rows.T, self.spreads, self.scaled.T, strict=True):
                distances += (numbers / spread - centre[:, None]) ** 2
        nearest: IntArray = distances.argmin(axis=0)
        return nearest

    def label(self, row: Mapping[str, object]) -> str:
        """Returns the label of one row of measurements, all of them finite numbers."""
        try:
            numbers = [float(row[name]) for name in self.columns]  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, OverflowError):
            found = ", ".join(f"{name} = {row.get(name)!r}" for name in self.columns)
            raise InvalidParameter(
                f"{self.name!r} is learnt from numbers, expected some: {found}"
            ) from None
        return self.labels[int(self.indices([numbers])[0])]

    def sql(self) -> str:
        """Returns SQL for the label; NULL where a measurement is missing or not finite."""
        read = [f"TRY_CAST({sql_name(name)} AS DOUBLE)" for name in self.columns]
        labels = [sql_text(label) for label in self.labels]
        if self.leaves:
            inside = [leaf_sql(read, leaf.tolist()) for leaf in self.limits[:-1]]
            told = zip(inside, labels, strict=False)
            whens = " ".join(f"WHEN {inside} THEN {label}" for inside, label in told)
            state = f"CASE {whens} ELSE {labels[-1]} END"
        else:
            state = f"[{', '.join(labels)}][{self.nearest_sql(read)}]"
        there = " AND ".join(f"isfinite({number})" for number in read)
        return f"CASE WHEN {there} THEN {state} END"

    def nearest_sql(self, read: Sequence[str]) -> str:
        """Returns SQL for the place of the nearest centre, from 1, operation by operation."""
        pairs = zip(read, self.spreads, strict=True)
        near = ", ".join(f"{number} / {literal(spread)}" for number, spread in pairs)
        away = [[f"(t[{c}] - {literal(x)})" for c, x in enumerate(z, 1)] for z in self.scaled]
        distances = ", ".join(" + ".join(f"{each} * {each}" for each in row) for row in away)
        listed = f"list_transform([[{near}]], lambda t: [{distances}])"
        return f"list_transform({listed}, lambda d: list_position(d, list_min(d)))[1]"

    def to_json(self) -> dict[str, Any]:
        """Returns the states as an object of JSON."""
        content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return content

    @classmethod
    def from_json(cls, content: object) -> LearntStates:
        """Returns the states that `to_json` wrote; anything else is refused."""
        try:
            return typed(content, cls, "learnt states")
        except (ValueError, RecursionError) as problem:
            raise InvalidParameter(
                f"learnt states cannot be read: {problem}; expected an object that surestep wrote"
            ) from None


def nearly(columns: Sequence[str], centres: Sequence[Sequence[float]]) -> tuple[str, ...]:
    """Returns labels of centres, with the fewest digits, from two on, that tell all apart."""
    labels = list[str]()
    for digits in range(2, 18):
        short = (zip(columns, (rounded(x, digits) for x in z), strict=True) for z in centres)
        labels = [", ".join(f"{name} about {written(x)}" for name, x in pairs) for pairs in short]
        if len(set(labels)) == len(labels):
            break
    return tuple(labels)


def leaf_sql(read: Sequence[str], limits: Sequence[Sequence[float]]) -> str:
    """Returns SQL: a row lies in a leaf."""
    parts = ["true"]
    for number, (low, high) in zip(read, limits, strict=True):
        parts += [f"{number} >= {literal(low)}"] if low > -np.inf else []
        parts += [f"{number} < {literal(high)}"] if high < np.inf else []
    return " AND ".join(parts)


# ---- learning ---------------------------------------------------------------------------------


def learn(
    name: str,
    kind: Literal["tree", "kmeans"],
    size: int | Literal["auto"],
    columns: Sequence[str],
    values: FloatArray,
    returns: FloatArray,
    episode: IntArray,
) -> LearntStates:
    """Returns states by measurements [N, C], taught by the first episodes.

    A "tree" has at most `size` leaves that tell the return [N] from each row on; "kmeans" has at
    most `size` clusters. "auto" takes the best of `SIZES` (`best_size`). `episode` [N] numbers
    episodes, whose rows stand together.
    """
    number = np.cumsum(np.diff(episode, prepend=episode[:1]) != 0)
    if number.size == 0 or np.abs(values).max() > LARGEST:
        raise InvalidLog(
            f"{name} is to be learnt from {number.size:,} rows, expected at least two, and no "
            f"number above {LARGEST:g}"
        )
    if number.size > MOST_ROWS:
        rows = int(np.searchsorted(number, number[MOST_ROWS])) or MOST_ROWS
        values, returns, number = values[:rows], returns[:rows], number[:rows]
    table = in_few_digits(values)
    exact = (table == values).all(axis=0)
    rule = partial(grown, exact=exact) if kind == "tree" else clustered
    make: Maker = partial(rule, name, tuple(columns))
    return make(best_size(make, table, returns, number) if size == "auto" else size, table, returns)


Maker = Callable[[int, FloatArray, FloatArray], LearntStates]


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
    name: str, columns: tuple[str, ...], size: int, table: FloatArray, returns: FloatArray,
    *, exact: BoolArray,
) -> LearntStates:  # fmt: skip
    """Returns a tree, grown best first by the variance of returns (`DecisionTreeRegressor`).

    It is given ranks in place of numbers: it computes with 32 bits and takes small differences for
    none, and a tree of ranks splits the same rows. A threshold is a value of the log where all of
    the column are `exact` [C], that is, have few digits; otherwise it keeps away from values.
    """
    levels, ranks = zip(*(np.unique(each, return_inverse=True) for each in table.T), strict=True)
    regressor = scikit_learn("sklearn.tree").DecisionTreeRegressor(
        max_leaf_nodes=size, max_depth=DEEPEST, min_samples_leaf=LEAST_ROWS, random_state=0
    )
    spread = float(returns.std())
    varied = (returns - returns.mean()) / spread if spread > SAME * np.abs(returns).max() else 0.0
    tree = regressor.fit(np.column_stack(ranks), varied + np.zeros(returns.size)).tree_

    def leaves(node: int, limits: Leaf) -> Iterator[Leaf]:
        below, above = int(tree.children_left[node]), int(tree.children_right[node])
        if below < 0:
            yield limits
            return
        c, rank = int(tree.feature[node]), int(tree.threshold[node])
        low, high = levels[c][rank : rank + 2].tolist()
        threshold = high if exact[c] else short_between(low, high)
        yield from leaves(below, (*limits[:c], (limits[c][0], threshold), *limits[c + 1 :]))
        yield from leaves(above, (*limits[:c], (threshold, limits[c][1]), *limits[c + 1 :]))

    found = tuple(leaves(0, ((None, None),) * len(columns)))
    if len(found) == 1:
        raise InvalidLog(
            f"no threshold of {', '.join(columns)} (to {DIGITS} digits) tells returns apart with "
            f"{LEAST_ROWS} rows on each side, so {name} cannot be a tree; give other measurements, "
            "more rows or kmeans"
        )
    return LearntStates(name, columns, found)


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
        name, columns, (), tuple(map(tuple, centres.tolist())), tuple(spreads.tolist())
    )


def short_between(low: float, high: float) -> float:
    """Returns a number between two of six digits, with the fewest digits; `high` if there is none.

    >>> short_between(2.03, 2.18), short_between(-0.5, 0.25), short_between(0.100001, 0.100002)
    (2.1, -0.1, 0.100002)
    """
    tried = (rounded(low + (high - low) / 2, digits) for digits in range(1, DIGITS + 1))
    return next((number for number in tried if low < number < high), high)


def rounded(number: float, digits: int = DIGITS) -> float:
    """Returns a number with so many significant digits; no negative zero."""
    return float(f"{number:.{digits}g}") + 0.0


def in_few_digits(table: FloatArray) -> FloatArray:
    """Returns numbers [N, C] with six significant digits."""
    distinct, places = np.unique(table, return_inverse=True)
    short = np.array([rounded(number) for number in distinct.tolist()])
    return short[places].reshape(table.shape)


def returns_of(episode: IntArray, reward: FloatArray, discount: float) -> FloatArray:
    """Returns Σ_i γ^i r_{t+i} [N] from each row t to the end of its episode.

    The rows of an episode stand together, in order.
    """
    returns, later, last = list[float](), 0.0, None
    for each, earned in zip(episode[::-1].tolist(), reward[::-1].tolist(), strict=True):
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
