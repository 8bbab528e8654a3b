"""Enumerates the states of a world of nodes, and makes the robust claim about all of it.

**Construction.** State s with action a leads to a tree that draws the columns of the next state, in
the order of decisions. An inner node of the tree has the row of the node (in the sense of
`Structure`) that applies there, and its leaves lead to the next state. What is known has a row with
one successor. Equal subtrees are one, also below different pairs. A path from a state to the next
one has L = D + 2 steps for D decided columns, each with the discount γ^(1/L); the last one earns
R/γ^((L−1)/L). So every state has the value that it has in the world, and the estimate of a row of
the world is the product of the nodes' frequencies along each path. The successors of a row differ,
as a leaf tells all that was drawn.

**The robust claim.** Rows of one node share its law and its count. By `uncertainty` each law has a
set that contains it with probability 1 − δ/M, whatever its number of visits: M counts the laws that
are not known, and the start if that is not known. If all hold, every true row lies in its set. In
`robust` nature may even take another law of the set in each row, so that its worst case is at most
the truth, and the proof there holds for the table. ∎
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._settings import Delta, Settings
from surestep.certificates.common import unless_refused, values_statement
from surestep.certificates.node_law import (
    before_stops,
    draw_counts,
    node_stacks,
    strides_of,
    structure_statements,
)
from surestep.certificates.robust import Case, Robust, claims_by_fixed_points
from surestep.certificates.stacks import tails_of_set
from surestep.certificates.uncertainty import Uncertainty, chance_interval, start_rows
from surestep.errors import InvalidParameter
from surestep.model import (
    Certificate,
    ColumnRules,
    Counts,
    FactoredProblem,
    LoggedRewards,
    Pairs,
    Policy,
    Problem,
    Statement,
    Structure,
    Successors,
)
from surestep.planning.rectangular import Earnings, RectangularSet, rows_in_intervals

MOST_ROWS = 2**21  # of one level of all trees, before equal subtrees are joined
MOST_TAILS = 2**12  # pairs of a world for which tails are computed beside rollouts
MOST_DRAWS = 2**31  # stands for a row that is known, and needs none
CERTAIN = -1  # in place of a node: a row with one successor
FIGURES = (
    "lowest_performance",
    "highest_behavior",
    "evaluation_error",
    "parts",
    "value_low",
    "value_high",
)


class Branches(NamedTuple):
    """Rows of the table, each with a successor for every value that may be drawn."""

    law: arrays.IntArray  # [n] their nodes, or CERTAIN
    successor: arrays.IntArray  # [n, V] −1 for values that there are not
    earned: arrays.FloatArray  # [n]
    scarcest: arrays.IntArray  # [n] the fewest draws of a node in the row or below it


class NodeTable(NamedTuple):
    """A world of nodes as a problem; its first states are those of the world, in their order."""

    problem: Problem
    states: arrays.IntArray  # [S, C] the columns of the world's states
    law: arrays.IntArray  # [K] the node of each row, or CERTAIN
    visits: arrays.IntArray  # [nodes] their draws

    @classmethod
    def of(cls, problem: FactoredProblem, grown: float = 1.0) -> NodeTable:
        """Enumerates the states of a problem, and counts the draws of its log `grown` times."""
        structure, behavior = problem.structure, problem.behavior
        if problem.discount == 0 or problem.horizon is not None or behavior is None:
            raise InvalidParameter(
                "a table of all states needs the current policy, a discount above 0, and no horizon"
            )
        check_rows(math.prod(structure.sizes.tolist()) * structure.num_actions)
        states = np.indices(structure.sizes.tolist()).reshape(structure.sizes.size, -1).T
        draws = np.rint(grown * node_counts(problem)).astype(np.int64)
        steps = structure.target.size + 2
        least = float(problem.discount) ** ((steps - 1) / steps)
        trees, root = joined_trees(structure, states, draws, least)

        number, actions = len(states), structure.num_actions
        # Rows are those of the pairs, of the end, and of the trees, with rising successors.
        order = np.argsort(trees.successor, axis=1)
        rising = np.take_along_axis(trees.successor, order, axis=1)
        drawn = np.where(trees.law[:, np.newaxis] < 0, 1, draws[trees.law])
        times = np.take_along_axis(drawn, order, axis=1)
        below = (rising >= 0).sum(axis=1)
        one_each = np.ones(number * actions, np.int64)
        offsets = arrays.offsets_of(np.concatenate([one_each, [0], below]))
        law = np.concatenate([np.full(one_each.size + 1, CERTAIN), trees.law])
        reward = np.concatenate([0.0 * one_each, np.repeat(trees.earned, below)])
        successor = np.concatenate([root, rising[rising >= 0]])
        one_action = np.ones(1 + trees.law.size, np.int64)
        pairs = Pairs(
            arrays.offsets_of(np.concatenate([np.full(number, actions), one_action])),
            np.concatenate([np.tile(np.arange(actions), number), 0 * one_action]),
            actions,
        )
        low, high = problem.rest_bounds
        return cls(
            Problem(
                counts=Counts(
                    pairs,
                    offsets,
                    successor,
                    np.concatenate([trees.scarcest[root - number - 1], times[rising >= 0]]),
                    LoggedRewards(reward, "transition", known=True),
                    np.bincount(
                        problem.starts @ strides_of(structure.sizes), minlength=pairs.num_states
                    ),
                    np.arange(pairs.num_states) == number,
                ),
                behavior=lifted(pairs, states, behavior),
                discount=float(problem.discount) ** (1 / steps),
                value_bounds=(min(low, low / least), max(high, high / least)),
                support=Successors(pairs, offsets, successor),
            ),
            states,
            law,
            draws.sum(axis=1),
        )

    def lift(self, policy: ColumnRules | Policy) -> Policy:
        """Returns a policy of the world as one of the table."""
        return lifted(self.problem.counts.pairs, self.states, policy)

    def lowered(self, policy: Policy) -> Policy:
        """Returns a policy of the table as one over all states of the world."""
        pairs = Pairs.full(len(self.states), self.problem.num_actions)
        return Policy(pairs, policy.probability[: pairs.num_pairs])


def check_rows(rows: int) -> None:
    """Refuses worlds with too many states and draws."""
    if rows > MOST_ROWS:
        raise InvalidParameter(
            f"a table of all states needs at least {rows:,.0f} rows, expected at most "
            f"{MOST_ROWS:,}; rules and NodeStitched need no table"
        )


def node_counts(problem: FactoredProblem) -> arrays.IntArray:
    """Returns the draws of each node [nodes, V], before the first one that nobody saw."""
    stacks = node_stacks(problem.log)
    return draw_counts(problem.structure, stacks, before_stops(stacks))


def joined_trees(
    structure: Structure, states: arrays.IntArray, draws: arrays.IntArray, least: float
) -> tuple[Branches, arrays.IntArray]:
    """Returns the rows of all trees, and the first row of each pair; equal subtrees are one.

    Rows are states of the table, numbered from the first one after the states and the end.
    """
    number, width, columns = len(states), draws.shape[1], len(structure.columns)
    levels, values, action = drawn_levels(structure, states)
    earned = structure.reward_of(values, action) / least
    drawn = values[:, columns:]
    strides = strides_of(structure.sizes)
    after = np.where(drawn[:, columns] == 1, number, drawn[:, :columns] @ strides)
    first, place = distinct(np.column_stack([drawn, earned]))
    leaves = Branches(
        np.full(first.size, CERTAIN),
        side_by_side(after[first], np.ones(first.size, np.int64), width),
        earned[first],
        np.full(first.size, MOST_DRAWS),
    )
    rows = [leaves]
    begin = number + 1
    visits = draws.sum(axis=1)
    for law, parts in reversed(levels):
        children = side_by_side(begin + place, parts, width)
        scarcest = np.minimum.reduceat(rows[-1].scarcest[place], arrays.offsets_of(parts)[:-1])
        own = np.where(law < 0, MOST_DRAWS, visits[law])
        first, place = distinct(np.column_stack([law, children]))
        begin += rows[-1].law.size
        rows.append(
            Branches(
                law[first],
                children[first],
                np.zeros(first.size),
                np.minimum(own, scarcest)[first],
            )
        )
    return Branches(*map(np.concatenate, zip(*rows, strict=True))), begin + place


def drawn_levels(
    structure: Structure, states: arrays.IntArray
) -> tuple[list[tuple[arrays.IntArray, arrays.IntArray]], arrays.IntArray, arrays.IntArray]:
    """Draws every value that is possible after each state and action.

    Returns the rows of each column: their nodes, or CERTAIN, and their numbers of children, which
    are rows of the next column. Then the values and the action of each path to the next state.
    """
    width, actions = states.shape[1], structure.num_actions
    values = np.zeros((len(states) * actions, 2 * width + 2), np.int64)
    values[:, :width] = np.repeat(states, actions, axis=0)
    action = np.tile(np.arange(actions), len(states))
    levels = []
    for d, target in enumerate(structure.target.tolist()):
        node = structure.nodes.at(d, values, action)
        over = (values[:, 2 * width] == 1) & (width in structure.target[:d])
        known = structure.known[node]
        certain = over | (known >= 0) | (structure.node_sizes[node] == 1)
        parts = np.where(certain, 1, structure.node_sizes[node])
        check_rows(int(parts.sum()))
        levels.append((np.where(certain, CERTAIN, node), parts))
        parent = np.repeat(np.arange(node.size), parts)
        drawn = np.where(certain, np.maximum(known, 0), 0)[parent] + arrays.ranges(0, parts)
        values, action = values[parent], action[parent]
        values[:, width + target] = np.where(over[parent], 0, drawn)
    return levels, values, action


def distinct(table: arrays.AnyArray) -> tuple[arrays.IntArray, arrays.IntArray]:
    """Returns the first of all equal rows of a table, and the number of each row among these."""
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, place.ravel()


def side_by_side(values: arrays.IntArray, lengths: arrays.IntArray, width: int) -> arrays.IntArray:
    """Writes runs of values into the rows of a table [n, width], with −1 after the last one."""
    table = np.full((lengths.size, width), -1)
    owner = arrays.run_owners(arrays.offsets_of(lengths))
    table[owner, arrays.ranges(0, lengths)] = values
    return table


def lifted(pairs: Pairs, states: arrays.IntArray, policy: ColumnRules | Policy) -> Policy:
    """Returns a policy over all states of the world as one over the states of the table."""
    chances = (
        policy.chances(states).ravel() if isinstance(policy, ColumnRules) else policy.probability
    )
    return Policy(pairs, np.concatenate([chances, np.ones(pairs.num_pairs - chances.size)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRobust(Settings):
    """The claim that holds for all laws of nodes that the data leaves possible.

    It needs states that can be enumerated. `NodeStitched` mostly proves more; this claim needs no
    part of the log for choosing, holds for all policies at once, and does not depend on a seed.

    Parameters
    ----------
    delta : float, default 0.1
        The chance δ that the claim is wrong.

    Notes
    -----
    `surestep.certificates.node_tables` has the proof.

    Examples
    --------
    >>> from surestep.certificates import NodeRobust
    >>> from surestep.environments.sysadmin import SysAdmin
    >>> world = SysAdmin(3)
    >>> problem = world.problem(world.sample(world.first_failed(0.3), 20_000, rng=1))
    >>> claim = NodeRobust().certify(problem, world.fewest_failed_neighbours())
    >>> str(claim.standing), claim.lower > 0
    ('proved', True)
    """

    delta: Delta = 0.1

    name: ClassVar = "node-robust"

    def certify(self, problem: FactoredProblem, policy: ColumnRules | Policy) -> Certificate:
        """Returns L by the worst laws of the nodes.

        Parameters
        ----------
        problem : FactoredProblem
            The log, with its structure.
        policy : ColumnRules or Policy
            The new policy, chosen from any part of the log.

        Returns
        -------
        Certificate
            The claim.

        Raises
        ------
        InvalidParameter
            The world has too many states for a table.
        CertificateRefused
            δ is too small.
        """
        table = NodeTable.of(problem)
        known_start = problem.start is not None
        certifier = Robust(delta=self.delta, known_start=known_start)
        models = possible_tables(table, certifier)
        case = Case(certifier, table.problem, table.lift(policy), models)
        (claim,) = claims_by_fixed_points([case])
        figures = {
            name: value for name, value in unless_refused(claim).figures.items() if name in FIGURES
        }
        return arrays.altered(
            unless_refused(claim),
            kind=self.name,
            standing="believed" if problem.structure.learnt else "proved",
            parameters={"delta": self.delta},
            figures=figures | {"world_states": len(table.states)},
            assumptions=(
                *structure_statements(problem.structure),
                Statement("no-hidden-causes"),
                *problem.about_behavior,
                Statement("nothing-left-out"),
                Statement("start-known") if known_start else Statement("starts-afresh"),
                values_statement(table.problem),
            ),
        )


def possible_tables(table: NodeTable, certifier: Robust) -> Uncertainty:
    """Returns all tables whose laws are possible at 1 − δ.

    With two successors, one interval is enough: the chance of one tells the other.
    """
    counts = table.problem.counts
    laws = np.unique(table.law[table.law >= 0]).size
    parts = laws + (not certifier.known_start)
    share = certifier.delta / max(parts, 1)
    lengths = arrays.run_lengths(counts.offsets)
    owner = arrays.run_owners(counts.offsets)
    level = (share / np.where(lengths > 2, lengths, 1))[owner]
    certain = table.law[owner] < 0
    visits = np.where(certain, 0, table.visits[table.law[owner]])
    times = np.where(certain, 0, counts.times)
    low, high = chance_interval(times, visits, level, strict=True)
    low[certain] = high[certain] = 1.0
    ends = counts.terminal[counts.pairs.state]
    rows = rows_in_intervals(
        counts.offsets,
        counts.successor,
        low,
        high,
        np.ones(lengths.size),
        ends=ends,
        support=lengths,
    )
    earnings = Earnings(counts.rewards.values, np.zeros(lengths.size), np.zeros(lengths.size))
    discount = np.full(lengths.size, table.problem.single_discount)
    return Uncertainty(
        RectangularSet(counts.pairs, discount, rows, earnings, earnings),
        start_rows(counts, len(table.states), share, certifier),
        counts.starts / counts.starts.sum(),
        parts,
    )


def node_tails(
    problem: FactoredProblem, policy: ColumnRules | Policy, delta: float, grown: float = 1.0
) -> arrays.FloatArray | None:
    """Returns the least values of π_I and the greatest of π_b [2, S] by a robust set at 1 − δ.

    `grown` foresees the set of as many times the counts. None where states are too many, or where
    there can be no such set.
    """
    behavior = policy if problem.behavior is None else problem.behavior
    whole = not isinstance(behavior, ColumnRules) or behavior.is_whole
    states = math.prod(problem.structure.sizes.tolist())
    few = states * problem.structure.num_actions <= MOST_TAILS
    if not (delta > 0 and 0 < problem.discount < 1 and problem.horizon is None and few and whole):
        return None
    table = NodeTable.of(replace(problem, behavior=behavior), grown)
    models = possible_tables(table, Robust(delta=delta, known_start=True)).models
    (tails,) = tails_of_set(table.problem, [table.lift(policy)], models)
    return tails.at_state[:, : len(table.states)]
