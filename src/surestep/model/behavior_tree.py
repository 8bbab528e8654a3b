"""Finds the current policy in a log by columns: its rules are the leaves of a tree.

Every row has a label x: its action, with the logged probability if there is one. Let p(x) be the
share of the label among all rows. Under a Dirichlet distribution of weight 1 around p, n rows with
n(x) of each label have the evidence

    ln Π_x Γ(n(x) + p(x)) / Γ(p(x))  −  ln Γ(n + 1).

A leaf is split by the column and threshold that raise the evidence most, if that is more than the
logarithm of the number of splits to choose from. An estimated law is the mean of the distribution,
(n(x) + p(x)) / (n + 1).
"""

import math
from operator import itemgetter

import numpy as np
from scipy.special import gammaln

import surestep._arrays as arrays
from surestep.model.factored import MOST_COMBINATIONS, ColumnRules, FactoredLog

DIGITS = 9  # of logged probabilities that tell labels apart
Leaf = tuple[dict[str, object], arrays.IntArray]  # when it holds, and its rows
Ends = tuple[int, int]  # the least and the greatest value of a column that was split


def estimated_behavior(log: FactoredLog) -> ColumnRules:
    """Returns an estimate of the current policy; what the log never does is never done."""
    leaves = leaves_of(log, log.action)
    share = np.bincount(log.action, minlength=log.structure.num_actions) / log.num_steps
    counts = [np.bincount(log.action[rows], minlength=share.size) for _, rows in leaves]
    law = [(count + share) / (count.sum() + 1) for count in counts]
    return ColumnRules.of_laws(log.structure, [when for when, _ in leaves[:-1]], law)


def logged_behavior(choosing: FactoredLog, log: FactoredLog) -> ColumnRules | None:
    """Returns the policy with the logged probabilities; of other actions nothing is known.

    The part that chooses makes the leaves. It is None if they do not tell the probabilities of the
    whole log: a leaf has several of an action, or more than 1 in all.
    """
    assert choosing.propensity is not None
    assert log.propensity is not None
    both = np.column_stack([choosing.action, choosing.propensity.round(DIGITS)])
    leaves = leaves_of(choosing, np.unique(both, axis=0, return_inverse=True)[1].ravel())
    law = np.zeros((len(leaves), log.structure.num_actions))
    for k, (_, rows) in enumerate(leaves):
        law[k, choosing.action[rows]] = choosing.propensity[rows]
    if (law.sum(axis=1) > 1 + arrays.SUM_TOLERANCE).any():
        return None
    rules = ColumnRules.of_laws(log.structure, [when for when, _ in leaves[:-1]], law)
    chances = rules.chances(log.state)
    taken = chances[np.arange(log.num_steps), log.action]
    unsaid = (taken == 0) & (chances.sum(axis=1) < 1 - arrays.SUM_TOLERANCE)
    agrees = unsaid | (np.abs(taken - log.propensity) <= arrays.SUM_TOLERANCE)
    return rules if agrees.all() else None


def leaves_of(log: FactoredLog, label: arrays.IntArray) -> list[Leaf]:
    """Returns the leaves of a tree that tells the labels of rows apart."""
    names, labels, sizes = log.structure.columns, log.structure.values, log.structure.sizes
    seen, number = np.unique(label, return_inverse=True)
    share = np.bincount(number) / number.size
    price = math.log(max(sizes.sum() - sizes.size, 1))
    waiting: list[tuple[arrays.IntArray, dict[int, Ends]]] = [(np.arange(number.size), {})]
    leaves, used = list[Leaf](), set[int]()
    while waiting:
        rows, ends = waiting.pop(0)
        best = (price, -1, 0)
        for c, size in enumerate(sizes):
            if math.prod(sizes[[*used | {c}]].tolist()) <= MOST_COMBINATIONS:
                place = log.state[rows, c].astype(np.int64) * seen.size + number[rows]
                table = np.bincount(place, minlength=size * seen.size).reshape(size, -1)
                below = table.cumsum(axis=0)
                parts = evidence(below, share) + evidence(below[-1] - below, share)
                gain = parts - evidence(below[-1], share)
                best = max(best, (float(gain.max()), c, int(gain.argmax())), key=itemgetter(0))
        _, c, value = best
        if c < 0:
            when: dict[str, object] = {
                names[x]: (labels[x][a], labels[x][b]) for x, (a, b) in ends.items()
            }
            leaves.append((when, rows))
            continue
        used.add(c)
        low, high = ends.get(c, (0, int(sizes[c]) - 1))
        left = log.state[rows, c] <= value
        waiting.append((rows[left], ends | {c: (low, value)}))
        waiting.append((rows[~left], ends | {c: (value + 1, high)}))
    return leaves


def evidence(counts: arrays.IntArray, share: arrays.FloatArray) -> arrays.FloatArray:
    """Returns the evidence of counts [..., X] of labels with these shares."""
    terms = gammaln(counts + share) - gammaln(share)
    return np.asarray(terms.sum(axis=-1) - gammaln(counts.sum(axis=-1) + 1))
