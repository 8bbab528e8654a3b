"""Merges states that differ in one column only, for states that are too fine for their data.

The policy learned on merged states acts alike in all states that were merged. A certificate that
judges it still tells them apart, so nothing is assumed about the column that was left out.
"""

from collections.abc import Sequence

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.trees import StateColumn
from surestep.model import DecisionLog, Policy, Problem
from surestep.model.numbering import merged_log


def without_column(
    problem: Problem, log: DecisionLog, columns: Sequence[StateColumn], left_out: int
) -> tuple[Problem, arrays.IntArray]:
    """Merges states that differ in one column only; returns the problem and each pair's new pair.

    π_b of a merged state is the mean over its states, weighted by visits. A merged pair is closed
    if one of its pairs is closed in `problem`; the caller closes pairs with few visits afterwards.
    """
    pairs = problem.counts.pairs
    codes = [column.code for place, column in enumerate(columns) if place != left_out]
    _, group = np.unique([*codes, problem.counts.terminal], axis=1, return_inverse=True)
    moved, pair = merged_log(log, group)
    weight = arrays.run_sums(problem.counts.visits, pairs.offsets) + 1e-9  # some for unseen states
    taken = np.bincount(pair, weights=weight[pairs.state] * problem.behavior.probability)
    coarse = Problem(
        counts=moved.counts(),
        behavior=Policy(moved.pairs, taken / np.bincount(group, weights=weight)[moved.pairs.state]),
        discount=problem.single_discount,
        value_bounds=problem.value_bounds,
        unseen=problem.unseen,
        closed=np.bincount(pair, weights=~problem.open_pairs()) > 0,
    )
    return coarse, pair


def spread(policy: Policy, coarse: Problem, pair: arrays.IntArray, behavior: Policy) -> Policy:
    """Maps a policy of merged states back to all states; π_b stays where it does not change.

    The policy must take one action in each merged state that it changes. States without that action
    keep π_b.
    """
    taken = ((policy.probability == 1.0) & (coarse.behavior.probability < 1.0))[pair]
    changed = np.isin(behavior.pairs.state, behavior.pairs.state[taken])
    return Policy(behavior.pairs, np.where(changed, taken, behavior.probability))
