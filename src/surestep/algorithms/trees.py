"""Grows rules that people can follow: small trees over the columns of the state.

Let n(s) be the visits of a state and A(s,a) the advantage of an action there over π_b, if a given
policy is followed afterwards. A leaf says one action, or as before, and is worth the sum over its
states of

    G(s,a) = n(s) A(s,a);  0 for as before.

Where a is closed, the state stays as before, and the rule has an exception: G(s,a) is then a small
price for each visit, so that leaves without exceptions are preferred to others with the same
policy.

A leaf is split by one column. If the column is ordered, the split is a threshold. Otherwise it is
two sets of values: for actions a and b of the two sides, the best sets are G(v,a) ≥ G(v,b) and the
rest, so that the best split is found by trying all pairs of actions. The leaf whose split adds the
most is split first. Purity (Gini) adds a little: where only two columns together tell what to do,
the split by one of them adds nothing else. It weighs a state by the regret of the second best
action. In the end, two leaves with the same action that differ in one column become one.

Each split is the best one there is; the tree as a whole need not be. Only the data of the problem
have a say, as in `provable`.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from operator import ne
from typing import NamedTuple

import numpy as np

from surestep._arrays import BoolArray, FloatArray, IntArray, run_sums
from surestep.algorithms.provable import free_pairs
from surestep.model import Policy, Problem
from surestep.planning import evaluate, q_values
from surestep.planning.ends import endless_circle

MOST_VALUES = 24  # of a column without an order that a leaf may be split by: more is no rule
MOST_LEAVES = 40  # before equal ones are joined
EXCEPTION = 0.01  # of the mean gain of a visit that actions without limits have: its price
PURITY = 1e-6  # of the regret: what purity adds


class StateColumn(NamedTuple):
    """The number of the value that each state [S] has in a column."""

    code: IntArray
    ordered: bool
    texts: tuple[str, ...] = ()  # by number


class Leaf(NamedTuple):
    """A leaf: its visited states [S], and the number of its action plus one; 0 keeps π_b."""

    states: BoolArray
    action: int
    values: list[set[int]]  # that its states have in each column


Tree = Sequence[Leaf]
Grown = tuple[Tree, Policy, int]


def grow(problem: Problem, table: Policy, columns: Sequence[StateColumn], most: int) -> list[Grown]:
    """Returns trees of up to `most` rules and exceptions for the advantages by a policy.

    None is π_b. Each has its policy and its size beside it: the rules, and visited states that are
    exceptions.
    """
    if not ends(problem, table):
        return []
    free = free_pairs(problem)
    made: dict[bytes, Grown] = {problem.behavior.probability.tobytes(): ((), problem.behavior, 0)}
    for tree in trees_of(gains(problem, table, free), columns, most):
        policy, exceptions = followed(problem, tree, free)
        size = number_of_rules(tree) + exceptions
        key = policy.probability.tobytes()
        smaller = key not in made or size < made[key][2]
        if size <= most and smaller and ends(problem, policy):
            made[key] = (tree, policy, size)
    return [grown for grown in made.values() if grown[0]]


def ends(problem: Problem, policy: Policy) -> bool:
    """Tells whether a policy has a value in the estimated MDP: it ends, or γ is below 1."""
    return bool(
        problem.discount != 1 or endless_circle(problem.estimate(), policy.probability).size == 0
    )


def number_of_rules(tree: Tree) -> int:
    """Counts the rules of a written tree; the last, "else", is for all leaves of one action."""
    return len(tree) - max(Counter(leaf.action for leaf in tree).values()) + 1


def gains(problem: Problem, table: Policy, free: BoolArray) -> FloatArray:
    """Returns the gains G [S, 1 + A] of each action; the first column is for keeping π_b."""
    pairs = problem.counts.pairs
    model = problem.estimate()
    q = q_values(model, evaluate(model, table))
    usual = run_sums(problem.behavior.probability * q, pairs.offsets)[pairs.state]
    visits = run_sums(problem.counts.visits, pairs.offsets)
    worth = np.where(free, visits[pairs.state] * (q - usual), 0.0)
    price = EXCEPTION * np.maximum.reduceat(worth, pairs.offsets[:-1]).sum() / visits.sum()
    gain = np.repeat(-price * visits[:, np.newaxis], 1 + pairs.num_actions, axis=1)
    gain[:, 0] = 0.0
    gain[pairs.state[free], 1 + pairs.action[free]] = worth[free]
    return gain


def trees_of(gain: FloatArray, columns: Sequence[StateColumn], most: int) -> list[Tree]:
    """Returns trees for gains [S, 1 + A], each grown from the one before."""
    splits = [best_split(gain, columns, leaf_of(gain, columns, np.asarray(gain.any(axis=1))))]
    trees = list[Tree]()
    while len(splits) < MOST_LEAVES:
        splits.sort(key=lambda split: split[0])
        _, _, sides = splits.pop()
        splits += [best_split(gain, columns, side) for side in sides]
        tree = merged([leaf for _, leaf, _ in splits])
        if len(sides) < 2 or number_of_rules(tree) > most:
            break
        trees.append(tree)
    return [tree for tree in trees if len(tree) > 1]


def best_split(
    gain: FloatArray, columns: Sequence[StateColumn], leaf: Leaf
) -> tuple[float, Leaf, list[Leaf]]:
    """Returns the gain of the best split of a leaf, the leaf, and both sides (none if no gain)."""
    own = gain[leaf.states]
    regret = np.maximum(own - np.sort(own, axis=1)[:, -2:-1], 0.0)
    best = (0.0, leaf, list[Leaf]())
    for column in columns:
        values, place = np.unique(column.code[leaf.states], return_inverse=True)
        if values.size < 2 or (not column.ordered and values.size > MOST_VALUES):
            continue
        worth = np.zeros((values.size, 2, *own.shape[1:]))
        np.add.at(worth, place, np.stack(np.broadcast_arrays(own, regret), axis=1))
        worth = worth.transpose(1, 0, 2)
        if column.ordered:
            sums = worth.cumsum(axis=1)[:, :-1], worth[:, ::-1].cumsum(axis=1)[:, -2::-1]
        else:
            sets = sets_of(worth[0])
            sums = sets @ worth, ~sets @ worth
        added = merit(sums[0]) + merit(sums[1]) - merit(worth.sum(axis=1))
        i = int(added.argmax())
        if added[i] > best[0]:
            first = np.arange(values.size) <= i if column.ordered else sets[i]
            sides = [leaf.states & np.isin(column.code, values[x]) for x in (first, ~first)]
            best = (float(added[i]), leaf, [leaf_of(gain, columns, side) for side in sides])
    return best


def leaf_of(gain: FloatArray, columns: Sequence[StateColumn], states: BoolArray) -> Leaf:
    """Returns the leaf of some states [S], with the action that gains the most there."""
    action = int(gain[states].sum(axis=0).argmax())
    return Leaf(states, action, [set(column.code[states].tolist()) for column in columns])


def merit(worth: FloatArray) -> FloatArray:
    """Returns the best action's gain, plus a little for purity, from gains and regrets [2, …]."""
    gain, regret = worth
    pure = (regret**2).sum(axis=-1) / np.maximum(regret.sum(axis=-1), np.finfo(float).tiny)
    return np.asarray(gain.max(axis=-1) + PURITY * pure)


def sets_of(worth: FloatArray) -> BoolArray:
    """Returns sets [P, V] of unordered values to split by: single ones, and by pairs of actions.

    Of actions a and b, these are the values whose worth [V, 1 + A] by a is at least that by b.
    """
    pairs = (worth[:, :, np.newaxis] >= worth[:, np.newaxis, :]).reshape(len(worth), -1).T
    sets = np.concatenate([np.eye(len(worth), dtype=np.bool_), pairs])
    return np.asarray(sets[sets.any(axis=1) & ~sets.all(axis=1)])


def merged(tree: Tree) -> Tree:
    """Joins leaves with the same action that differ in the values of one column."""
    for one, other in combinations(tree, 2):
        if one.action == other.action and sum(map(ne, one.values, other.values)) == 1:
            left = [leaf for leaf in tree if leaf is not one and leaf is not other]
            return merged([joined((one, other), one.action), *left])
    return tree


def joined(leaves: Sequence[Leaf], action: int) -> Leaf:
    """Returns one leaf of the states of all."""
    states, _, values = zip(*leaves, strict=True)
    several = [set[int]().union(*each) for each in zip(*values, strict=True)]
    return Leaf(np.any(states, axis=0), action, several)


def followed(problem: Problem, tree: Tree, free: BoolArray) -> tuple[Policy, int]:
    """Returns the policy of a tree, and the number of visited states that are exceptions.

    The policy is π_b in leaves that keep it, and in exceptions: states whose leaf has an action
    that is not free.
    """
    pairs = problem.counts.pairs
    probability = problem.behavior.probability.copy()
    exceptions = 0
    for leaf in (leaf for leaf in tree if leaf.action):
        taken = free & leaf.states[pairs.state] & (pairs.action == leaf.action - 1)
        probability[np.isin(pairs.state, pairs.state[taken])] = 0.0
        probability[taken] = 1.0
        exceptions += int(np.count_nonzero(leaf.states) - np.count_nonzero(taken))
    return Policy(pairs, probability), exceptions
