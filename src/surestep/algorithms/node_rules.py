"""Finds rules for worlds whose states nobody can enumerate: policy iteration by rollouts.

As in classification-based policy iteration (Lagoudakis and Parr 2003): from states of the log,
every action that a rule can take is tried in the model that the frequencies of nodes estimate, and
the current rules go on from there. The new list has the local situations in the order of what their
action gains over the default. Of a few such lists the one is taken of which the certificate expects
the most. Only the part of a log that may choose is looked at.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.certificates.node_law import LEFT_OVER, estimated_law, stepped
from surestep.certificates.nodes import NodeStitched, node_stacks
from surestep.model.factored import ColumnRules, FactoredProblem, Rule
from surestep.model.structure import HERE, LEFT, RIGHT, Structure

CLEARLY = 2.0  # standard errors by which an action has to gain


class FoundRules(NamedTuple):
    """Rules that were found, in words and as a policy, and the L that is expected of them."""

    policy: ColumnRules
    rules: tuple[Rule, ...]
    default: str
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRules:
    """Settings of the search for local rules in the estimated model of nodes.

    Parameters
    ----------
    group : str
        The group of columns that rules look at, such as `machine_*`.
    action : str
        The action of a rule, with an @ for the member, such as `reboot_@`.
    default : str
        The action if no rule holds.
    certifier : NodeStitched
        The certificate by which candidates are judged.
    rounds : int, default 4
        The rounds of policy iteration.
    states : int, default 150
        The states of the log from which actions are tried.
    tries : int, default 2
        The rollouts for each of them.
    seed : int, default 0
        The seed of states and rollouts.

    Examples
    --------
    >>> from surestep.algorithms.node_rules import NodeRules
    >>> from surestep.certificates import NodeStitched
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world, certifier = SysAdmin(5), NodeStitched()
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 200, rng=1))
    >>> search = NodeRules(
    ...     group="machine_*", action="reboot_@", default="nothing", certifier=certifier)
    >>> search.find(certifier.parts(problem)[0]).rules[0]
    ({'@': 'failed', '@left': 'works', '@right': 'works'}, 'reboot_@')
    """

    group: str
    action: str
    default: str
    certifier: NodeStitched
    rounds: int = 4
    states: int = 150
    tries: int = 2
    seed: int = 0

    def find(self, training: FactoredProblem) -> FoundRules:
        """Returns the rules of which the certificate expects the most.

        Parameters
        ----------
        training : FactoredProblem
            The part of a log that may choose.

        Returns
        -------
        FoundRules
            The rules, and the L that is expected of them.
        """
        structure = training.structure
        rng = np.random.default_rng(self.seed)
        law = estimated_law(structure, node_stacks(training.log))
        rules: tuple[Rule, ...] = ()
        found: dict[tuple[str, ...], tuple[Rule, ...]] = {}
        for _ in range(self.rounds):
            rules = better_rules(self, training, law, rules, rng)
            found.setdefault(tuple(map(str, rules)), rules)
        policies = [self.policy(structure, several) for several in found.values()]
        scores = [plan.score for plan in self.certifier.expected(training, policies)]
        best = int(np.argmax(scores))
        return FoundRules(policies[best], [*found.values()][best], self.default, scores[best])

    def policy(self, structure: Structure, rules: Sequence[Rule]) -> ColumnRules:
        """Returns rules as a policy.

        Parameters
        ----------
        structure : Structure
            The columns and actions.
        rules : sequence of tuples
            Conditions, each with the action.

        Returns
        -------
        ColumnRules
            The policy.
        """
        return ColumnRules.of(structure, rules, self.default, group=self.group)


def better_rules(
    search: NodeRules,
    training: FactoredProblem,
    law: arrays.FloatArray,
    rules: Sequence[Rule],
    rng: np.random.Generator,
) -> tuple[Rule, ...]:
    """Returns a rule for every local situation in which its action gains, the best first.

    Both its action and the default are tried with the same random numbers.
    """
    structure, log = training.structure, training.log
    labels = structure.values[structure.groups[search.group][0]]
    situations: list[Rule] = [
        (dict(zip((HERE, LEFT, RIGHT), values, strict=True)), search.action)
        for values in itertools.product(labels, repeat=3)
    ]
    whole = np.flatnonzero((log.state >= 0).all(axis=1))
    state = log.state[rng.choice(whole, search.states)].astype(np.int64)
    deciding = [search.policy(structure, [one]).deciding(state) for one in situations]
    rows = [np.flatnonzero(rule == 0) for rule, _ in deciding]
    _, idle = search.policy(structure, ()).deciding(state)
    taken = [action[there] for there, (_, action) in zip(rows, deciding, strict=True)]
    index, action = np.concatenate([np.arange(len(state)), *rows]), np.concatenate([idle, *taken])
    policy = search.policy(structure, rules)
    worth = np.zeros(index.size)
    for _ in range(search.tries):
        worth += returns_of(training, law, policy, (state[index], action, index), rng)
    gains = np.zeros(len(rows))
    ends = len(state) + np.cumsum([there.size for there in rows])
    for i, (there, end) in enumerate(zip(rows, ends, strict=True)):
        gain = worth[end - there.size : end] - worth[there]
        if gain.size > 1 and gain.mean() > CLEARLY * gain.std() / math.sqrt(gain.size):
            gains[i] = gain.mean()
    return tuple(situations[i] for i in np.argsort(-gains) if gains[i] > 0)


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
    while weight.max(initial=0.0) > LEFT_OVER:
        numbers = rng.random((index.max() + 1, structure.target.size))
        values = stepped(structure, law, state, action, numbers[index])
        total += weight * structure.reward_of(values, action)
        weight = weight * training.discount * (values[:, 2 * columns] == 0)
        state = values[:, columns : 2 * columns]
        action = policy.act(state)
    return total
