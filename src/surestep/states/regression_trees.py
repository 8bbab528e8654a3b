"""States from a tree: leaves that tell the return from here, in words that people read."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
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
    return grown_to_sizes(rows, columns, [leaves], least_rows)[0]


def grown_to_sizes(
    rows: Rows, columns: tuple[str, ...], sizes: Sequence[int], least_rows: int
) -> list[TreeRule]:
    """Returns the trees of several sizes, of which the largest alone is grown.

    Best first, the tree of a size is what the largest one was when it had as many leaves.
    """
    tree = (
        scikit_learn("sklearn.tree")
        .DecisionTreeRegressor(
            max_leaf_nodes=max(sizes), min_samples_leaf=least_rows, random_state=0
        )
        .fit(rows.values, rows.returns)
        .tree_
    )
    order = best_first(tree)
    if not order:
        raise InvalidLog(
            f"a tree of {', '.join(columns)} finds no split that tells returns apart with "
            f"{least_rows} rows on each side; expected measurements that say something of what is "
            f"earned, or bins of your own with {said('bins', '--bin')}"
        )
    everyone = np.arange(rows.values.shape[0])
    rules = []
    for leaves in sizes:
        root = split_at(tree, 0, rows.values, everyone, columns, {*order[: leaves - 1]})
        assert root is not None
        rules.append(TreeRule(columns, root))
    return rules


def best_first(tree: Any) -> list[int]:
    """Returns the nodes that are split, those that tell most first, none before its parent."""
    mass = tree.weighted_n_node_samples * tree.impurity
    below, above = tree.children_left, tree.children_right
    waiting, order = [(0.0, 0)], list[int]()
    while waiting:
        _, node = heapq.heappop(waiting)
        if below[node] < 0:
            continue
        order.append(node)
        for child in (int(below[node]), int(above[node])):
            told = mass[child] - mass[below[child]] - mass[above[child]] if below[child] >= 0 else 0
            heapq.heappush(waiting, (-float(told), child))
    return order


def split_at(
    tree: Any,
    node: int,
    values: FloatArray,
    members: IntArray,
    columns: tuple[str, ...],
    kept: set[int],
) -> Split | None:
    """Returns the split of a node that is kept of scikit-learn's tree, for rows that reach it."""
    if node not in kept:
        return None
    place = int(tree.feature[node])
    # scikit-learn compares as 32-bit numbers: what goes left is what it says goes left.
    low = values[members, place].astype(np.float32) <= tree.threshold[node]
    below, above = members[low], members[~low]
    threshold = short_between(values[below, place].max(), values[above, place].min())
    return Split(
        columns[place],
        threshold,
        split_at(tree, int(tree.children_left[node]), values, below, columns, kept),
        split_at(tree, int(tree.children_right[node]), values, above, columns, kept),
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
