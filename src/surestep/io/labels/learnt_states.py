"""Learns states from measurements with scikit-learn: leaves of a tree, or clusters.

The rule is plain numbers, which a file can keep and people can read; it gives the same states in
Python and in SQL. Measurements are rounded to six significant digits before learning, and so are
rules, so that no state depends on the last bits of a machine.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np

import surestep._arrays as arrays
from surestep.description import Bin, several
from surestep.errors import InvalidLog, InvalidParameter, optional_module
from surestep.io.labels.binning import brief, literal, span
from surestep.io.sql import sql_name, sql_text

MOST_STATES = 1000
SIZES = (4, 8, 16, 32, 64)  # the numbers of states that 'auto' tries
DIGITS = 6
LARGEST = 1e100  # of a measurement or a spread: its square is finite
MOST_ROWS = 200_000  # to learn from; more rows do not improve the states
MOST_FOR_CENTRES = 20_000  # rows to learn from, evenly spread; more do not improve the centres
LEAST_ROWS = 5  # of a leaf
SAME = 1e-9  # relative; returns and errors this close differ by rounding only

NEED = "learnt states need scikit-learn"

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Ends = tuple[float | None, float | None]  # at least, less than; None: no limit
Leaf = tuple[Ends, ...]  # of each column
Centre = tuple[float, ...]
Rule = tuple[tuple[Leaf, ...], tuple[Centre, ...], Centre]  # leaves, centres, spreads


class LearntStates(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True):
    """States learnt from measurements in `columns`; their labels fill the new column `name`.

    They are the `leaves` [K] of a tree, or clusters around `centres` [K, C], with the `spreads` [C]
    of columns for distances. A row is in the first state of least distance: the number of columns
    outside of the leaf, or Σ_c (x_c / spread_c − centre_kc / spread_c)².
    """

    name: Name
    columns: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=100)]
    leaves: Annotated[tuple[Leaf, ...], msgspec.Meta(max_length=MOST_STATES)] = ()
    centres: Annotated[tuple[Centre, ...], msgspec.Meta(max_length=MOST_STATES)] = ()
    spreads: tuple[Annotated[float, msgspec.Meta(gt=0, le=LARGEST)], ...] = ()

    def __post_init__(self) -> None:
        """Checks that there are leaves or centres, and that no two states have the same label."""
        twice = any(len({*names}) < len(names) for names in (self.columns, self.labels))
        if twice or len(self.numbers) < 2 or (self.leaves and self.centres):
            raise ValueError("Expected at least two leaves, or two centres, and no name twice")

    @cached_property
    def numbers(self) -> arrays.FloatArray:
        """Returns the limits of leaves [K, C, 2], or the centres [K, C, 1] in units of spreads."""
        shape = len(self.leaves or self.centres), len(self.columns), 2 if self.leaves else 1
        given: arrays.FloatArray = np.array(self.leaves or self.centres, float).reshape(shape)
        if self.leaves:  # None has become NaN
            return np.where(np.isnan(given), (-np.inf, np.inf), given)
        with np.errstate(over="ignore"):
            scaled = given / np.reshape(self.spreads, (shape[1], 1))
        return arrays.floats("centres in spreads", scaled, shape, InvalidParameter)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels such as 'age < 40, lactate >= 2.1', or 'age about 63, lactate about 2.1'."""
        for digits in range(2, 18):  # of centres: the fewest that tell all apart
            short = [[to_digits(x, digits) for x in centre] for centre in self.centres]
            labels = tuple(state_in_words(self.columns, state) for state in short or self.leaves)
            if len(set(labels)) == len(labels):
                break
        return labels

    def indices(self, values: object) -> arrays.IntArray:
        """Returns the state [N] of each row [N, C] of finite measurements, a place in `labels`."""
        rows = arrays.floats("measurements", values, None, InvalidParameter)
        away = np.zeros((len(self.labels), rows.shape[0]))
        with np.errstate(over="ignore"):
            for c, x in enumerate(rows.T):
                low = self.numbers[:, c, :1]
                high = self.numbers[:, c, -1:]
                away += (x < low) | (x >= high) if self.leaves else (x / self.spreads[c] - low) ** 2
        return np.asarray(away.argmin(axis=0))

    def label(self, row: Mapping[str, object]) -> str:
        """Returns the label of one row of measurements, all of them finite numbers."""
        given = {name: row.get(name) for name in self.columns}
        try:
            numbers = [float(value) for value in given.values()]  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter(f"{self.name!r}: expected numbers, found {given}") from None
        return self.labels[int(self.indices([numbers])[0])]

    def sql(self) -> str:
        """Returns SQL for the label; NULL where a measurement is missing or not finite.

        It does the operations of `indices` one by one.
        """
        read = [f"TRY_CAST({sql_name(name)} AS DOUBLE)" for name in self.columns]
        there = " AND ".join(f"isfinite({number})" for number in read)
        scaled = [f"{x} / {literal(s)}" for x, s in zip(read, self.spreads, strict=False)] or read
        term = "({0} < {1} OR {0} >= {2})::INTEGER" if self.leaves else "({0} - {1}) * ({0} - {1})"
        away = list[str]()
        for state in self.numbers:
            told = [(x, at) for x, at in zip(scaled, state, strict=True) if np.isfinite(at).any()]
            away.append(" + ".join(term.format(x, *map(literal, at)) for x, at in told))
        place = f"list_transform([[{', '.join(away)}]], lambda d: list_position(d, list_min(d)))[1]"
        return f"CASE WHEN {there} THEN [{', '.join(map(sql_text, self.labels))}][{place}] END"


def state_in_words(columns: Sequence[str], state: Leaf | Sequence[float]) -> str:
    """Returns a label for a leaf or a centre, such as 'age < 40, lactate >= 2.1'."""
    words = (span(*x) if isinstance(x, tuple) else f"about {brief(x)}" for x in state)
    return ", ".join(f"{name} {word}" for name, word in zip(columns, words, strict=False) if word)


# ---- learning ---------------------------------------------------------------------------------


def learn(
    name: str,
    rule: Bin,
    values: arrays.FloatArray,
    returns: arrays.FloatArray,
    episode: arrays.IntArray,
) -> LearntStates:
    """Learns states from the measurements [N, C] of the first episodes.

    The leaves of a tree predict the return [N] from each row on; the rule says how many leaves, or
    clusters of k-means, there are at most. For "auto" two of three episodes teach, and the one of
    `SIZES` is taken that predicts the returns of the others best; of equally good ones the
    smallest. `episode` [N] numbers episodes, whose rows stand together.
    """
    number = np.cumsum(np.diff(episode, prepend=episode[:1]) != 0)
    if number.size > MOST_ROWS:
        rows = int(np.searchsorted(number, number[MOST_ROWS])) or MOST_ROWS
        values = values[:rows]
        returns = returns[:rows]
        number = number[:rows]
    table = in_few_digits(values)
    columns = several(rule.columns)
    size = rule.tree or rule.kmeans
    exact = (table == values).all(axis=0)

    def taught(size: int, by: arrays.BoolArray) -> LearntStates:
        make = cluster_centres if rule.tree is None else tree_leaves
        rule_of_states = make(size, table[by], returns[by], exact) if by.any() else ((), (), ())
        if len(rule_of_states[0] or rule_of_states[1]) < 2:
            raise InvalidLog(
                f"{name} would be one state: {', '.join(columns)} (to {DIGITS} digits) do not tell "
                f"{by.sum():,} rows apart, or returns by {LEAST_ROWS} rows a leaf; give other "
                "measurements, or more rows"
            )
        return LearntStates(name, columns, *rule_of_states)

    if isinstance(size, int):
        return taught(size, number >= 0)
    held = number % 3 == 2
    if not held.any():
        raise InvalidLog(f"the size of {name} is found on every third episode; give a size")
    errors = [squared_error(taught(many, ~held).indices(table), returns, held) for many in SIZES]
    enough = min(errors) + SAME * squared_error(np.zeros_like(number), returns, held)
    best = next(many for many, error in zip(SIZES, errors, strict=True) if error <= enough)
    return taught(best, number >= 0)


def squared_error(
    place: arrays.IntArray, returns: arrays.FloatArray, held: arrays.BoolArray
) -> float:
    """Returns the squared error of the mean return of each state on the rows `held` out.

    A state without other rows has the mean of all.
    """
    taught = place[~held]
    mean = returns[~held].mean()
    many = place.max() + 1
    total = np.bincount(taught, returns[~held] - mean, many)
    told = mean + total / np.maximum(np.bincount(taught, minlength=many), 1)
    return float(((returns - told[place])[held] ** 2).sum())


def tree_leaves(
    size: int, table: arrays.FloatArray, returns: arrays.FloatArray, exact: arrays.BoolArray
) -> Rule:
    """Returns the leaves of a tree that splits first where the variance of returns falls most.

    `DecisionTreeRegressor` gets ranks in place of numbers: it computes with 32 bits and ignores
    small differences, and a tree of ranks splits the same rows. A threshold is a value of the log
    if all values of the column are `exact` [C], that is, have few digits; otherwise it lies between
    two values.
    """
    levels, ranks = zip(
        *(np.unique(column, return_inverse=True) for column in table.T), strict=True
    )
    spread = float(returns.std())
    learner = optional_module("sklearn.tree", NEED, "states").DecisionTreeRegressor
    varied = (returns - returns.mean()) / spread if spread > SAME * np.abs(returns).max() else 0.0
    regressor = learner(max_leaf_nodes=size, min_samples_leaf=LEAST_ROWS, random_state=0)
    tree = regressor.fit(np.column_stack(ranks), varied + np.zeros(returns.size)).tree_
    everything: dict[int, Ends] = dict.fromkeys(range(exact.size), (None, None))
    leaves = list[Leaf]()
    waiting = [(0, everything)]
    while waiting:
        node, limits = waiting.pop()
        if tree.children_left[node] < 0:
            leaves.append(tuple(limits.values()))
            continue
        c = int(tree.feature[node])
        rank = int(tree.threshold[node])
        low, high = levels[c][rank : rank + 2].tolist()
        threshold = high if exact[c] else short_between(low, high)
        waiting.append((int(tree.children_right[node]), limits | {c: (threshold, limits[c][1])}))
        waiting.append((int(tree.children_left[node]), limits | {c: (limits[c][0], threshold)}))
    return tuple(leaves), (), ()


def cluster_centres(
    size: int, table: arrays.FloatArray, _returns: arrays.FloatArray, _exact: arrays.BoolArray
) -> Rule:
    """Returns no leaves, sorted centres (by `KMeans` in units of the spreads), and the spreads."""
    varies = (table != table[0]).any(axis=0)
    mean = table.mean(axis=0)
    spreads = in_few_digits(np.where(varies & (table.std(axis=0) > 0), table.std(axis=0), 1.0))
    some = table[:: -(-table.shape[0] // MOST_FOR_CENTRES)]
    clusters = min(size, np.unique(some, axis=0).shape[0])
    kmeans = optional_module("sklearn.cluster", NEED, "states").KMeans(
        clusters, n_init=4, random_state=0
    )
    with optional_module("threadpoolctl", NEED, "states").threadpool_limits(
        1
    ):  # one thread adds in a fixed order
        centres = kmeans.fit((some - mean) / spreads).cluster_centers_ * spreads + mean
    distinct = np.unique(in_few_digits(centres), axis=0)
    return (), tuple(map(tuple, distinct.tolist())), tuple(spreads.tolist())


def short_between(low: float, high: float) -> float:
    """Returns the number of fewest digits between `low` and `high`; `high` if six do not do.

    >>> short_between(2.03, 2.18), short_between(-0.5, 0.25), short_between(0.100001, 0.100002)
    (2.1, -0.1, 0.100002)
    """
    tried = (to_digits(low + (high - low) / 2, digits) for digits in range(1, DIGITS + 1))
    return next((number for number in tried if low < number < high), high)


def to_digits(number: float, digits: int = DIGITS) -> float:
    """Rounds a number to `digits` significant digits; turns −0 into 0."""
    return float(f"{number:.{digits}g}") + 0.0


def in_few_digits(table: arrays.FloatArray) -> arrays.FloatArray:
    """Rounds numbers, in an array of any shape, to six significant digits."""
    distinct, places = np.unique(table, return_inverse=True)
    short = np.array([to_digits(number) for number in distinct.tolist()])
    return short[places].reshape(table.shape)
