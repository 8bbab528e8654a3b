"""Merges states that differ in one column only, for states that are too fine for their data.

What is learned of merged states is a policy of the states as they are: it does the same in all that
were merged. A certificate that judges it still tells them apart, so that nothing is assumed of the
column that was left out.
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
    """Returns the problem of a log without one column of its states, and the new pair of each [K].

    π_b is weighed by visits. A merged pair is closed where one of its pairs is closed for another
    reason than few visits, which the caller leaves to the merged counts.
    """
    pairs = problem.counts.pairs
    codes = [column.code for place, column in enumerate(columns) if place != left_out]
    _, group = np.unique([*codes, problem.counts.terminal], axis=1, return_inverse=True)
    moved, pair = merged_log(log, group)
    merged = moved.pairs
    weight = arrays.run_sums(problem.counts.visits, pairs.offsets) + 1e-9  # some for unseen states
    taken = np.bincount(pair, weights=weight[pairs.state] * problem.behavior.probability)
    coarse = Problem(
        counts=moved.counts(),
        behavior=Policy(merged, taken / np.bincount(group, weights=weight)[merged.state]),
        discount=problem.single_discount,
        value_bounds=problem.value_bounds,
        unseen=problem.unseen,
        closed=np.bincount(pair, weights=~problem.open_pairs()) > 0,
    )
    return coarse, pair


def spread(policy: Policy, coarse: Problem, pair: arrays.IntArray, behavior: Policy) -> Policy:
    """Returns a policy of merged states as one of the states; they are as before where it is.

    Where it changes merged states, it must take one action; states without it are as before.
    """
    taken = ((policy.probability == 1.0) & (coarse.behavior.probability < 1.0))[pair]
    changed = np.isin(behavior.pairs.state, behavior.pairs.state[taken])
    return Policy(behavior.pairs, np.where(changed, taken, behavior.probability))
