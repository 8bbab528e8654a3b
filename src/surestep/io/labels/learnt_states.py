"""Learnt states: which state a row of measurements is in, in Python and in SQL alike.

The rule is a tree of thresholds, or centres of clusters. `surestep.states` learns it; it is plain
numbers, so that a file can keep it and people can read it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from surestep._arrays import FloatArray, IntArray, floats
from surestep._json import read_json, typed
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import literal, written
from surestep.io.sql import sql_name, sql_text

MOST_STATES = 1000
DEEPEST = 60  # splits above a leaf: SQL nests as deep
FAR = 1e150  # spreads from 0 count as that many where there are more: squares are finite

Name = Annotated[str, Meta(min_length=1, max_length=1000)]
Limits = Mapping[str, tuple[float, float]]  # column → from, to below
EVERYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Split:
    """A node of a tree: rows with `column` < `threshold` go left, others right; None is a leaf."""

    column: Name
    threshold: float
    left: Split | None = None
    right: Split | None = None


@dataclass(frozen=True)
class LearntStates:
    """The states of a new column `name`, by measurements in `columns`.

    They are the leaves of a `tree`, or the nearest of `centres` [K, C], with the `spreads` [C] of
    columns for distances: the first k of the least Σ_c (x_c / spread_c − centre_kc / spread_c)².
    """

    name: Name
    columns: Annotated[tuple[Name, ...], Meta(max_length=100)]
    tree: Split | None = None
    centres: Annotated[tuple[tuple[float, ...], ...], Meta(max_length=MOST_STATES)] = ()
    spreads: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Checks that the rule is one, and that no two states have the same label."""
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidParameter(f"columns are {list(self.columns)}, expected names, each once")
        if (self.tree is None) == (not self.centres):
            raise InvalidParameter("learnt states have either a tree or centres, expected one")
        states = len(self.scaled if self.tree is None else self.leaves)  # which checks them
        if not 2 <= states <= MOST_STATES:
            raise InvalidParameter(f"learnt states are not 2 to {MOST_STATES:,}, expected as many")
        if len(set(self.labels)) < len(self.labels):
            raise InvalidParameter("two learnt states have the same label, expected different ones")

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The states in words: 'age < 40, lactate >= 2.1' or 'age about 63, lactate about 2.1'."""
        if self.tree is None:
            return nearly(self.columns, self.centres)
        return tuple(map(in_words, self.leaves))

    @cached_property
    def leaves(self) -> tuple[Limits, ...]:
        """The limits of all columns in each leaf of the tree, from left to right."""
        everywhere = dict.fromkeys(self.columns, EVERYWHERE)
        return tuple(islice(limits_of_leaves(self.tree, everywhere, 0), MOST_STATES + 1))

    @cached_property
    def scaled(self) -> FloatArray:
        """The centres [K, C] in units of the spreads."""
        shape = len(self.centres), len(self.columns)
        centres = floats("centres", self.centres, shape, InvalidParameter)
        spreads = floats("spreads", self.spreads, shape[1:], InvalidParameter)
        if not (spreads > 0).all() or (np.abs(centres) / FAR > spreads).any():
            raise InvalidParameter(
                f"spreads are {list(self.spreads)}, expected numbers above 0 and not far below "
                "the centres"
            )
        return centres / spreads

    def indices(self, values: object) -> IntArray:
        """Returns the state [N] of each row [N, C] of finite measurements, a place in `labels`."""
        rows = floats("measurements", values, None, InvalidParameter)
        if self.tree is None:
            with np.errstate(over="ignore"):
                near = np.clip(rows / self.spreads, -FAR, FAR)
            distances = np.zeros((len(self.centres), rows.shape[0]))
            for c in range(len(self.columns)):
                distances += (near[:, c] - self.scaled[:, c, None]) ** 2
            nearest: IntArray = distances.argmin(axis=0)
            return nearest
        found = np.zeros(rows.shape[0], np.int64)
        for place, limits in enumerate(self.leaves):
            inside = np.ones(rows.shape[0], np.bool_)
            for numbers, (low, high) in zip(rows.T, limits.values(), strict=True):
                if (low, high) != EVERYWHERE:
                    inside &= (low <= numbers) & (numbers < high)
            found[inside] = place
        return found

    def label(self, row: Mapping[str, object]) -> str:
        """Returns the label of one row of measurements, all of them finite numbers."""
        numbers = []
        for name in self.columns:
            try:
                numbers.append(float(row[name]))  # type: ignore[arg-type]
            except (KeyError, TypeError, ValueError, OverflowError):
                raise InvalidParameter(
                    f"column {name!r} is {row.get(name)!r}, expected a number, since states are "
                    "learnt from it"
                ) from None
        return self.labels[int(self.indices([numbers])[0])]

    def sql(self, numbers: Mapping[str, str] | None = None) -> str:
        """Returns SQL for the label; NULL where a measurement is missing or not finite.

        `numbers` are DOUBLE expressions to take in place of columns, such as those of next states.
        """
        read = {name: f"TRY_CAST({sql_name(name)} AS DOUBLE)" for name in self.columns}
        read |= numbers or {}
        labels = [sql_text(label) for label in self.labels]
        if self.tree is None:
            state = f"[{', '.join(labels)}][{self.nearest_sql(read)}]"
        else:
            state = tree_sql(self.tree, read, iter(labels))
        there = " AND ".join(f"isfinite({read[name]})" for name in self.columns)
        return f"CASE WHEN {there} THEN {state} END"

    def nearest_sql(self, read: Mapping[str, str]) -> str:
        """Returns SQL for the place of the nearest centre, from 1, operation by operation."""
        near = [
            f"least(greatest({read[name]} / {literal(spread)}, {literal(-FAR)}), {literal(FAR)})"
            for name, spread in zip(self.columns, self.spreads, strict=True)
        ]
        away = [[f"(t[{c}] - {literal(x)})" for c, x in enumerate(z, 1)] for z in self.scaled]
        distances = ", ".join(" + ".join(f"{each} * {each}" for each in row) for row in away)
        listed = f"list_transform([[{', '.join(near)}]], lambda t: [{distances}])"
        return f"list_transform({listed}, lambda d: list_position(d, list_min(d)))[1]"

    def to_json(self) -> dict[str, Any]:
        """Returns the states as an object of JSON."""
        content: dict[str, Any] = read_json(msgspec.json.encode(self))
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


def limits_of_leaves(node: Split | None, limits: Limits, depth: int) -> Iterator[Limits]:
    """Yields the limits of each leaf; refuses a split of nothing, and too many above each other."""
    if node is None:
        yield limits
        return
    low, high = limits.get(node.column, (math.nan, math.nan))
    if not low < node.threshold < high or depth == DEEPEST:
        raise InvalidParameter(
            f"split {depth + 1} of a tree is that of {node.column!r} at {node.threshold!r}, "
            f"expected at most {DEEPEST} above each other, a column of {', '.join(limits)}, and a "
            "number within the limits of the splits above"
        )
    below, above = (low, node.threshold), (node.threshold, high)
    yield from limits_of_leaves(node.left, {**limits, node.column: below}, depth + 1)
    yield from limits_of_leaves(node.right, {**limits, node.column: above}, depth + 1)


def in_words(limits: Limits) -> str:
    """Returns the limits of a leaf in words, without columns that have none."""
    texts = []
    for column, (low, high) in limits.items():
        if -math.inf < low and high < math.inf:
            texts.append(f"{column} {written(low)} to < {written(high)}")
        elif high < math.inf:
            texts.append(f"{column} < {written(high)}")
        elif -math.inf < low:
            texts.append(f"{column} >= {written(low)}")
    return ", ".join(texts)


def nearly(columns: tuple[str, ...], centres: tuple[tuple[float, ...], ...]) -> tuple[str, ...]:
    """Returns labels of centres, each with the fewest digits, from two on, that no other has."""
    labels = [""] * len(centres)
    for digits in range(17, 1, -1):
        texts = [
            ", ".join(
                f"{c} about {written(rounded(x, digits))}" for c, x in zip(columns, z, strict=True)
            )
            for z in centres
        ]
        times = Counter(texts)
        labels = [
            text if times[text] == 1 else label for text, label in zip(texts, labels, strict=True)
        ]
    return tuple(labels)


def rounded(number: float, digits: int) -> float:
    """Returns a number with so many significant digits; no negative zero."""
    return float(f"{number:.{digits}g}") + 0.0


def tree_sql(node: Split | None, read: Mapping[str, str], labels: Iterator[str]) -> str:
    """Returns SQL for the label of the leaf below a node."""
    if node is None:
        return next(labels)
    left, right = (tree_sql(child, read, labels) for child in (node.left, node.right))
    return f"CASE WHEN {read[node.column]} < {literal(node.threshold)} THEN {left} ELSE {right} END"
