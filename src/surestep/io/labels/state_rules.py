"""State rules: which finite state a row of measurements falls into, in Python and in SQL alike.

A rule is plain numbers: thresholds of a tree, or centres. What is learnt about them is learnt
elsewhere (`surestep.states`); a rule is only applied here, and saved as JSON that anyone can read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surestep._arrays import FloatArray, IntArray, floats, is_number
from surestep.errors import InvalidParameter
from surestep.io.labels.binning import literal, written

MOST_STATES = 10_000
DEEPEST = 60  # splits between the root of a tree and a leaf: SQL nests as deep


@dataclass(frozen=True, slots=True)
class Split:
    """A node of a tree: rows with `column` < `threshold` go to `below`, others to `above`."""

    column: str
    threshold: float
    below: Split | None  # None: a leaf
    above: Split | None


@dataclass(frozen=True, slots=True)
class TreeRule:
    """The leaves of a binary tree of thresholds, numbered from the lowest side to the highest."""

    columns: tuple[str, ...]
    root: Split
    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        """Checks the columns, the thresholds and the depth."""
        object.__setattr__(self, "columns", read_columns(self.columns))
        for depth, split in splits_below(self.root, 1):
            if split.column not in self.columns:
                raise InvalidParameter(
                    f"a tree splits column {split.column!r}, expected one of "
                    f"{', '.join(self.columns)}"
                )
            if not (is_number(split.threshold) and math.isfinite(split.threshold)):
                raise InvalidParameter(
                    f"a tree splits column {split.column!r} at {split.threshold!r}, expected a "
                    "finite number"
                )
            if depth > DEEPEST:
                raise InvalidParameter(f"a tree is deeper than {DEEPEST} splits")
        check_size(self.num_states)

    @property
    def num_states(self) -> int:
        """Counts the leaves: one more than there are splits."""
        return 1 + sum(1 for _ in splits_below(self.root, 1))

    def labels(self) -> tuple[str, ...]:
        """Returns the states in words: 'lactate ≥ 2.1, age < 60'."""
        return tuple(in_words(limits) for limits in leaf_limits(self.root, {}))

    def indices(self, values: object) -> IntArray:
        """Returns the state [N] of each row [N, C] of finite measurements."""
        rows = read_rows(values, len(self.columns))
        found = np.empty(rows.shape[0], np.int64)
        waiting: list[tuple[Split | None, IntArray]] = [(self.root, np.arange(rows.shape[0]))]
        leaf = 0
        while waiting:
            split, members = waiting.pop()
            if split is None:
                found[members] = leaf
                leaf += 1
                continue
            low = rows[members, self.columns.index(split.column)] < split.threshold
            waiting += [(split.above, members[~low]), (split.below, members[low])]
        return found

    def sql(self, numbers: Mapping[str, str]) -> str:
        """Returns SQL for the state, from the DOUBLE expression of each column."""
        leaves = iter(range(self.num_states))

        def code(split: Split | None) -> str:
            if split is None:
                return str(next(leaves))
            test = f"{numbers[split.column]} < {literal(split.threshold)}"
            return f"CASE WHEN {test} THEN {code(split.below)} ELSE {code(split.above)} END"

        return code(self.root)

    def to_json(self) -> dict[str, Any]:
        """Returns the rule as JSON: at each split, a column, a threshold and both sides."""
        names = iter(self.labels())

        def content(split: Split | None) -> object:
            if split is None:
                return {"state": next(names)}
            return {
                "column": split.column,
                "threshold": split.threshold,
                "below": content(split.below),
                "at_or_above": content(split.above),
            }

        return {"kind": self.kind, "columns": list(self.columns), "tree": content(self.root)}


@dataclass(frozen=True, slots=True)
class CentreRule:
    """The nearest of some centres, in units of each column's own: Σ_c ((x_c − centre_c)/unit_c)².

    Both here and in SQL the smallest of b_k + Σ_c a_kc x_c is looked for, with the same operations
    in the same order, where b_k = Σ_c (centre_kc/unit_c)² and a_kc = −2 centre_kc/unit_c²: the
    square of x is the same for all centres. So both find the same one; of equal ones, the first.
    """

    columns: tuple[str, ...]
    units: tuple[float, ...]
    centres: tuple[tuple[float, ...], ...]
    kind: ClassVar[str] = "centres"

    def __post_init__(self) -> None:
        """Checks that there is one finite number a column, and that units are above 0."""
        columns = read_columns(self.columns)
        units = floats("units", self.units, (len(columns),), InvalidParameter)
        centres = floats("centres", self.centres, None, InvalidParameter)
        if centres.ndim != 2 or centres.shape[1] != len(columns):
            raise InvalidParameter(
                f"centres have shape {centres.shape}, expected one number for each of "
                f"{', '.join(columns)}"
            )
        if not (units > 0).all():
            raise InvalidParameter(f"units are {units.tolist()}, expected numbers above 0")
        check_size(centres.shape[0])
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "units", tuple(units.tolist()))
        object.__setattr__(self, "centres", tuple(map(tuple, centres.tolist())))

    @property
    def num_states(self) -> int:
        """Counts the centres."""
        return len(self.centres)

    def labels(self) -> tuple[str, ...]:
        """Returns the states in words: 'cluster 07'; numbers as long as the last one."""
        width = len(str(self.num_states))
        return tuple(f"cluster {k:0{width}d}" for k in range(1, self.num_states + 1))

    def planes(self) -> tuple[FloatArray, FloatArray]:
        """Returns b [K] and a [K, C] of the linear forms."""
        centres, units = np.array(self.centres), np.array(self.units)
        return ((centres / units) ** 2).sum(axis=1), -2 * centres / units**2

    def indices(self, values: object) -> IntArray:
        """Returns the state [N] of each row [N, C] of finite measurements."""
        rows = read_rows(values, len(self.columns))
        constants, slopes = self.planes()
        nearest = np.zeros(rows.shape[0], np.int64)
        smallest = np.full(rows.shape[0], np.inf)
        for k in range(self.num_states):
            form = np.full(rows.shape[0], constants[k])
            for c in range(len(self.columns)):
                form = form + slopes[k, c] * rows[:, c]
            closer = form < smallest
            nearest[closer], smallest[closer] = k, form[closer]
        return nearest

    def sql(self, numbers: Mapping[str, str]) -> str:
        """Returns SQL for the state, from the DOUBLE expression of each column."""
        forms = []
        for constant, slopes in zip(*self.planes(), strict=True):
            terms = [
                f"{literal(slope)} * {numbers[column]}"
                for column, slope in zip(self.columns, slopes, strict=True)
            ]
            forms.append(" + ".join([literal(constant), *terms]))
        together = f"[{', '.join(forms)}]"
        return f"list_position({together}, list_min({together})) - 1"

    def to_json(self) -> dict[str, Any]:
        """Returns the rule as JSON: the unit of each column, and each state's centre."""
        return {
            "kind": self.kind,
            "columns": list(self.columns),
            "units": list(self.units),
            "centres": [
                {"state": label, "centre": list(centre)}
                for label, centre in zip(self.labels(), self.centres, strict=True)
            ],
        }


StateRule = TreeRule | CentreRule


def rule_from_json(content: object) -> StateRule:
    """Returns the rule that `to_json` wrote; anything else is refused."""
    try:
        rule = parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise InvalidParameter(
            f"a rule of states cannot be read ({type(problem).__name__}: {problem}), expected an "
            "object that surestep wrote, with 'kind' 'tree' or 'centres'"
        ) from None
    if rule.to_json() != content:
        raise InvalidParameter("a rule of states has other names of states, or more, than it says")
    return rule


def parsed(content: Any) -> StateRule:
    """Returns the rule in an object of JSON, which may be wrong in any way."""
    columns = tuple(content["columns"])
    if content["kind"] == TreeRule.kind:
        root = parsed_split(content["tree"])
        if root is None:
            raise ValueError("the tree has no split")
        return TreeRule(columns, root)
    if content["kind"] == CentreRule.kind:
        centres = tuple(tuple(each["centre"]) for each in content["centres"])
        return CentreRule(columns, tuple(content["units"]), centres)
    raise ValueError(f"kind is {content['kind']!r}")


def parsed_split(content: Any) -> Split | None:
    """Returns the split in an object of JSON; None for a leaf."""
    if "state" in content:
        return None
    return Split(
        content["column"],
        content["threshold"],
        parsed_split(content["below"]),
        parsed_split(content["at_or_above"]),
    )


def splits_below(split: Split | None, depth: int) -> Iterator[tuple[int, Split]]:
    """Yields every split from this one down, with its depth."""
    if split is not None:
        yield depth, split
        yield from splits_below(split.below, depth + 1)
        yield from splits_below(split.above, depth + 1)


Limits = Mapping[str, tuple[float, float]]  # column → from, to below


def leaf_limits(split: Split | None, limits: Limits) -> Iterator[Limits]:
    """Yields what each leaf says of each column, in the order of the columns' first splits."""
    if split is None:
        yield limits
        return
    low, high = limits.get(split.column, (-math.inf, math.inf))
    below = {**limits, split.column: (low, min(high, split.threshold))}
    above = {**limits, split.column: (max(low, split.threshold), high)}
    yield from leaf_limits(split.below, below)
    yield from leaf_limits(split.above, above)


def in_words(limits: Limits) -> str:
    """Returns the limits of a leaf in words: 'lactate ≥ 2.1, age 40 to < 60'."""
    texts = []
    for column, (low, high) in limits.items():
        if low == -math.inf:
            texts.append(f"{column} < {written(high)}")
        elif high == math.inf:
            texts.append(f"{column} ≥ {written(low)}")
        else:
            texts.append(f"{column} {written(low)} to < {written(high)}")
    return ", ".join(texts)


def read_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Checks and returns names of columns, at least one, each once."""
    names = tuple(columns)
    wrong = not all(isinstance(name, str) and name for name in names)
    if wrong or not names or len(set(names)) < len(names):
        raise InvalidParameter(
            f"columns of measurements are {columns!r}, expected names, once each"
        )
    return names


def read_rows(values: object, columns: int) -> FloatArray:
    """Checks and returns rows of finite measurements [N, C]."""
    rows = floats("measurements", values, None, InvalidParameter)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise InvalidParameter(
            f"measurements have shape {rows.shape}, expected {columns} numbers a row"
        )
    return rows


def check_size(states: int) -> None:
    """Refuses rules of fewer than two states, or of more than can be told apart in SQL."""
    if not 2 <= states <= MOST_STATES:
        raise InvalidParameter(f"a rule has {states:,} states, expected 2 to {MOST_STATES:,}")
