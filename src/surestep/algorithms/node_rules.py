"""Finds rules for worlds whose states nobody can enumerate: policy iteration by rollouts.

As in classification-based policy iteration (Lagoudakis and Parr 2003): from states of the log,
every action that a rule can take is tried in the model that the frequencies of nodes estimate, and
the current rules go on from there. Rules for a group of columns are local: the new list has the
situations of a member and its neighbours in the order of what their action gains over the default.
Where no group has actions for its members, rules are the leaves of a small tree over all columns,
grown on what each action gains (`algorithms.trees`). Of all lists the smallest is taken of which
the certificate expects at least nine tenths of the most. Only the part of a log that may choose
is looked at.
"""

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.trees import StateColumn, Tree, trees_of
from surestep.certificates.node_law import LEFT_OVER, estimated_law, stepped
from surestep.certificates.nodes import NodeStitched
from surestep.model.factored import ColumnRules, FactoredProblem, Rule
from surestep.model.structure import HERE, LEFT, RIGHT, Structure, star_of

CLEARLY = 2.0  # standard errors by which an action has to gain
LONGEST = 1_000  # steps of a rollout
ENOUGH = 0.9  # of what is expected of the best list: then the smallest is taken
MOST_DEFAULTS = 2  # actions that are tried as the default of local rules, the most frequent ones
MOST_ACTIONS = 64  # of which trees choose, the most frequent ones


class FoundRules(NamedTuple):
    """A list of rules, in words and as a policy, with the L expected of it (NaN if unknown)."""

    policy: ColumnRules
    rules: tuple[Rule, ...]
    default: str
    expected: float
    group: str | None = None


def find_rules(
    training: FactoredProblem,
    certifier: NodeStitched,
    templates: Mapping[str, Sequence[str]],
    *,
    most: int = 12,
) -> FoundRules:
    """Returns the best rules: local rules of groups, or trees over all columns if there are none.

    Parameters
    ----------
    training : FactoredProblem
        The part of a log that may choose.
    certifier : NodeStitched
        The certificate by which candidates are judged.
    templates : mapping from str to sequence of str
        The actions of each group, with an @ for the member, such as `reboot_@`.
    most : int, default 12
        The most rules, that for all other states included.

    Returns
    -------
    FoundRules
        The rules, and the L that is expected of them.

    Examples
    --------
    >>> from surestep.algorithms.node_rules import find_rules
    >>> from surestep.certificates import NodeStitched
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world, certifier = SysAdmin(5), NodeStitched()
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 200, rng=1))
    >>> first, _ = certifier.parts(problem)
    >>> find_rules(first, certifier, {"machine_*": ["reboot_@"]}).rules[0]
    ({'@': 'failed', '@left': 'works', '@right': 'works'}, 'reboot_@')
    """
    structure = training.structure
    law = estimated_law(training.log)
    often = np.bincount(training.log.action, minlength=structure.num_actions)
    frequent = [structure.actions[a] for a in np.argsort(-often, kind="stable")]
    lists: list[FoundRules] = []
    for group, actions in templates.items():
        stars = [star_of(group, structure.columns[c]) for c in structure.groups[group]]
        members = [[action.replace(HERE, star) for star in stars] for action in actions]
        idle = [action for action in frequent if not any(action in own for own in members)]
        for action, default in itertools.product(actions, (idle or frequent)[:MOST_DEFAULTS]):
            start = list_of(structure, (), default, group)
            lists += local_lists(training, law, start, action)
    if not lists:
        lists = tree_lists(training, law, frequent[:MOST_ACTIONS], most)
    lists = [one for one in lists if len(one.rules) < most] or [
        list_of(structure, one.rules[: most - 1], one.default, one.group) for one in lists
    ]
    plans = certifier.expected(training, [one.policy for one in lists])
    lists = [one._replace(expected=x.score) for one, x in zip(lists, plans, strict=True)]
    best = max(one.expected for one in lists)
    enough = ENOUGH * best if best > 0 else best
    return min(
        (one for one in lists if one.expected >= enough),
        key=lambda one: (len(one.rules), -one.expected),
    )


def local_lists(
    training: FactoredProblem,
    law: arrays.FloatArray,
    start: FoundRules,
    action: str,
    *,
    rounds: int = 4,
) -> list[FoundRules]:
    """Returns the different lists of local rules of all rounds of policy iteration.

    They take one action, such as `reboot_@`, where `start` does what it does by default.
    """
    rng = np.random.default_rng(0)
    found = [start]
    for _ in range(rounds):
        found.append(better_rules(training, law, found[-1], action, rng))
    return different(found[1:])


def better_rules(
    training: FactoredProblem,
    law: arrays.FloatArray,
    current: FoundRules,
    action: str,
    rng: np.random.Generator,
    *,
    states: int = 150,
    tries: int = 2,
) -> FoundRules:
    """Returns a rule for every local situation in which its action gains, the best first.

    Both its action and the default are tried with the same random numbers, and the policy goes on.
    """
    structure, log = training.structure, training.log
    labels = structure.values[current.policy.slots[0, 0]]
    situations: list[Rule] = [
        (dict(zip((HERE, LEFT, RIGHT), values, strict=True)), action)
        for values in itertools.product(labels, repeat=3)
    ]
    whole = np.flatnonzero((log.state >= 0).all(axis=1))
    state = log.state[rng.choice(whole, states)].astype(np.int64)
    single = [list_of(structure, [one], current.default, current.group) for one in situations]
    deciding = [one.policy.deciding(state) for one in single]
    rows = [np.flatnonzero(rule == 0) for rule, _ in deciding]
    idle = np.full(states, structure.actions.index(current.default))
    taken = [chosen[there] for there, (_, chosen) in zip(rows, deciding, strict=True)]
    index = np.concatenate([np.arange(states), *rows])
    first = state[index], np.concatenate([idle, *taken]), index
    worths = [returns_of(training, law, current.policy, first, rng) for _ in range(tries)]
    worth = np.sum(worths, axis=0)
    gains = np.zeros(len(rows))
    ends = states + np.cumsum([there.size for there in rows])
    for i, (there, end) in enumerate(zip(rows, ends, strict=True)):
        gain = worth[end - there.size : end] - worth[there]
        if gain.size > 1 and gain.mean() > CLEARLY * gain.std() / math.sqrt(gain.size):
            gains[i] = gain.mean()
    rules = [situations[i] for i in np.argsort(-gains) if gains[i] > 0]
    return list_of(structure, rules, current.default, current.group)


def returns_of(
    training: FactoredProblem,
    law: arrays.FloatArray,
    policy: ColumnRules,
    first: tuple[arrays.IntArray, arrays.IntArray, arrays.IntArray],
    rng: np.random.Generator,
) -> arrays.FloatArray:
    """Returns the returns of rollouts with given first states and actions.

    Rollouts with the same number, the last part of `first`, draw alike in every step and column.
    """
    structure = training.structure
    state, action, index = first
    columns, weight = state.shape[1], np.ones(len(state))
    total = np.zeros(len(state))
    for _ in range(min(training.horizon or LONGEST, LONGEST)):
        if weight.max(initial=0.0) <= LEFT_OVER:
            break
        numbers = rng.random((index.max() + 1, structure.target.size))
        values = stepped(structure, law, state, action, numbers[index])
        total += weight * structure.reward_of(values, action)
        weight = weight * training.discount * (values[:, 2 * columns] == 0)
        state = values[:, columns : 2 * columns]
        action = policy.act(state, rng if policy.chance.any() else None)
    return total


def tree_lists(
    training: FactoredProblem,
    law: arrays.FloatArray,
    actions: Sequence[str],
    most: int,
    *,
    rounds: int = 3,
    states: int = 200,
    tries: int = 4,
) -> list[FoundRules]:
    """Returns lists of rules that are the leaves of trees, of up to `most` leaves.

    In each round, every action is tried in some states of the log, and the largest tree goes on.
    """
    structure, log = training.structure, training.log
    rng = np.random.default_rng(0)
    whole = np.flatnonzero((log.state >= 0).all(axis=1))
    tried = np.array([structure.actions.index(action) for action in actions])
    lists = [list_of(training.structure, (), action) for action in actions]
    policy = lists[0].policy
    for _ in range(rounds):
        state = log.state[rng.choice(whole, states)].astype(np.int64)
        index = np.repeat(np.arange(states), tried.size)
        first = state[index], np.tile(tried, states), index
        worth = [returns_of(training, law, policy, first, rng) for _ in range(tries)]
        gain = np.sum(worth, axis=0).reshape(states, tried.size)
        gain = gain - gain.max(axis=1, keepdims=True)
        never = np.full((states, 1), 2 * gain.sum() - 1.0)  # nothing is known of as before
        columns = [StateColumn(code=code, ordered=True) for code in state.T]
        trees = trees_of(np.hstack([never, gain]), columns, most)
        lists += [tree_rules(structure, tree, state, actions) for tree in trees]
        policy = lists[-1].policy
    return different(lists)


def different(lists: Sequence[FoundRules]) -> list[FoundRules]:
    """Returns only one of lists that say the same."""
    return [*{str(one.rules) + one.default: one for one in lists}.values()]


def list_of(
    structure: Structure, rules: Sequence[Rule], default: str, group: str | None = None
) -> FoundRules:
    """Makes a list of rules over all columns, or of a group, without an expected L."""
    policy = ColumnRules.of(structure, rules, default, group=group)
    return FoundRules(policy, tuple(rules), default, math.nan, group)


def tree_rules(
    structure: Structure, tree: Tree, state: arrays.IntArray, actions: Sequence[str]
) -> FoundRules:
    """Turns the leaves of a tree over states [N, C] into rules; the default is the top action.

    A rule has the ranges of values that the leaf's states have in each column; a range extends over
    values that no state has, up to the next one.
    """
    often = Counter(leaf.action for leaf in tree)
    rest = max(tree, key=lambda leaf: (often[leaf.action], int(leaf.states.sum()))).action
    rules: list[Rule] = []
    for leaf in (leaf for leaf in tree if leaf.action != rest):
        spans = []
        for c, name in enumerate(structure.columns):
            known = np.unique(state[:, c])
            mine = np.isin(known, state[leaf.states, c])
            labels = structure.values[c]
            edges = np.flatnonzero(np.diff(np.r_[False, mine, False]))
            ends = np.r_[known, len(labels)]
            spans.append(
                [
                    {name: (labels[known[a] if a else 0], labels[ends[b] - 1])}
                    if not mine.all()
                    else {}
                    for a, b in edges.reshape(-1, 2)
                ]
            )
        rules += [
            ({key: span for part in parts for key, span in part.items()}, actions[leaf.action - 1])
            for parts in itertools.product(*spans)
        ]
    return list_of(structure, rules, actions[rest - 1])
