"""States from a tree: leaves that tell the return from here, in words that people read."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.errors import InvalidLog, said
from surestep.io.labels.state_rules import Split, TreeRule
from surestep.states.choosing_size import Rows, scikit_learn


def grown(rows: Rows, columns: tuple[str, ...], leaves: int, least_rows: int) -> TreeRule:
    """Returns a tree of at most so many leaves, each of at least so many rows.

    It is grown best first, by the variance of returns, actions pooled (scikit-learn's
    `DecisionTreeRegressor`); thresholds are then the shortest numbers that split the rows alike.
    """
    made = (
        scikit_learn("sklearn.tree")
        .DecisionTreeRegressor(max_leaf_nodes=leaves, min_samples_leaf=least_rows, random_state=0)
        .fit(rows.values, rows.returns)
    )
    root = split_at(made.tree_, 0, rows.values, np.arange(rows.values.shape[0]), columns)
    if root is None:
        raise InvalidLog(
            f"a tree of {', '.join(columns)} finds no split that tells returns apart with "
            f"{least_rows} rows on each side; expected measurements that say something of what is "
            f"earned, or bins of your own with {said('bins', '--bin')}"
        )
    return TreeRule(columns, root)


def split_at(
    tree: Any, node: int, values: FloatArray, members: IntArray, columns: tuple[str, ...]
) -> Split | None:
    """Returns the split of a node of scikit-learn's tree, for the rows that reach it."""
    if tree.children_left[node] < 0:
        return None
    place = int(tree.feature[node])
    # scikit-learn compares as 32-bit numbers: what goes left is what it says goes left.
    low = values[members, place].astype(np.float32) <= tree.threshold[node]
    below, above = members[low], members[~low]
    threshold = short_between(values[below, place].max(), values[above, place].min())
    return Split(
        columns[place],
        threshold,
        split_at(tree, int(tree.children_left[node]), values, below, columns),
        split_at(tree, int(tree.children_right[node]), values, above, columns),
    )


def short_between(low: float, high: float) -> float:
    """Returns the number of fewest digits above `low` and at most `high`; of several, the lowest.

    >>> short_between(2.03, 2.18), short_between(39.0, 40.0), short_between(-0.5, 0.25)
    (2.1, 40.0, 0.0)
    """
    below, up_to = Decimal(repr(float(low))), Decimal(repr(float(high)))
    if below < 0 < up_to:
        return 0.0
    for exponent in range(20, -330, -1):
        unit = Decimal(1).scaleb(exponent)
        rounded = (below / unit).to_integral_value(ROUND_CEILING) * unit
        candidate = rounded if rounded > below else rounded + unit
        if candidate <= up_to and low < float(candidate) <= high:
            return float(candidate)
    return float(high)
