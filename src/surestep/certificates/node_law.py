"""Reads the draws of nodes from a log, and draws steps, logs and rollouts from laws of nodes.

A law [K, V] has the cumulative chances of the values of every node: an estimated one, or a draw of
a posterior. Several laws lie one below the other; `shift` then says where that of each row begins.
"""

import math
from typing import Any

import numpy as np
import scipy  # loads its parts when they are needed
from scipy.special import gammaln

import surestep._arrays as arrays
from surestep.kernels.nodes import NodeStacks
from surestep.model import ColumnRules, FactoredLog, FactoredProblem, Statement, Structure

PRIOR = 0.5  # draws of every value that the estimate adds to those seen
LEFT_OVER = 0.05  # of the discounted steps: what rollouts leave out, or go through by chance
LONGEST = 10_000  # steps of a rollout that nothing else ends


def structure_statements(structure: Structure) -> list[Statement]:
    """Returns what is assumed: the structure is true, also where it was learnt from the log."""
    learnt = (Statement("structure-learnt", {"table": name}) for name in structure.learnt)
    return [Statement("structure-true"), *learnt]


def node_stacks(log: FactoredLog) -> NodeStacks:
    """Returns the draws of every node in the order of decisions; a draw not recorded is below 0."""
    return node_draws(log)[0]


def node_draws(log: FactoredLog) -> tuple[NodeStacks, arrays.IntArray]:
    """Returns the stacks of nodes, and the place of each entry: its row times D plus its column."""
    structure, values = log.structure, log.values()
    node, drawn = log.draws()
    there = drawn >= -1
    when = np.flatnonzero(there & (node >= 0))
    draws = [np.column_stack([node.ravel()[when], drawn.ravel()[when], when])]
    for row, d in np.argwhere(there & (node < 0)):  # any of these nodes may have been drawn from
        places = nodes_at(structure, d, values[row], log.action[row])
        draws.append(np.array([(place, -1, row * node.shape[1] + d) for place in places]))
    table = np.concatenate(draws)
    which, entry, when = table[structure.known[table[:, 0]] < 0].T
    # Numbers of 16 bits are sorted ten times as fast as others.
    order = np.lexsort((when, which.astype(np.min_scalar_type(structure.num_nodes))))
    offsets = arrays.offsets_of(np.bincount(which, minlength=structure.num_nodes))
    entry = entry[order].astype(np.int32)
    stops = offsets[1:].copy()
    unseen = np.flatnonzero(entry < 0)
    np.minimum.at(stops, np.searchsorted(offsets, unseen, side="right") - 1, unseen)
    starts = log.starts.astype(np.int64).ravel()
    return NodeStacks(offsets, stops, entry, starts), when[order]


def nodes_at(structure: Structure, d: int, values: arrays.IntArray, action: int) -> arrays.IntArray:
    """Returns all nodes that may have applied to a step with missing parents."""
    looked = structure.nodes.looked_at(d)
    missing = np.unique(looked[values[looked] < 0])
    columns = len(structure.columns)
    labels = [structure.values[c - columns if c >= columns else c] for c in missing]
    filled = np.indices([len(several) for several in labels]).reshape(missing.size, -1).T
    rows = np.tile(values, (len(filled), 1))
    rows[:, missing] = filled
    return np.unique(structure.nodes.at(d, rows, np.full(len(rows), action)))


def before_stops(stacks: NodeStacks) -> arrays.BoolArray:
    """Tells which entries come before the first one of their stack that nobody saw."""
    stops = np.repeat(stacks.stops, arrays.run_lengths(stacks.offsets))
    return np.arange(stacks.entry.size) < stops


def draw_counts(
    structure: Structure, stacks: NodeStacks, counted: arrays.BoolArray
) -> arrays.IntArray:
    """Counts how often each value of every node [K, V] is among the entries that are counted."""
    shape = structure.num_nodes, int(structure.node_sizes.max())
    place = arrays.run_owners(stacks.offsets) * shape[1] + stacks.entry
    return np.bincount(place[counted], minlength=math.prod(shape)).reshape(shape)


def strides_of(sizes: arrays.IntArray) -> arrays.IntArray:
    """Returns the place value of each digit of a mixed-radix number with these sizes."""
    return np.append(np.cumprod(sizes[:0:-1])[::-1], 1)


def seen_draws(log: FactoredLog, prior: arrays.FloatArray | float) -> arrays.FloatArray:
    """Counts how often each value of every node was seen [K, V], and adds the prior of each."""
    stacks, sizes = node_stacks(log), log.structure.node_sizes
    counts = draw_counts(log.structure, stacks, stacks.entry >= 0)
    return counts + prior * (np.arange(counts.shape[1]) < sizes[:, np.newaxis])


def estimated_law(log: FactoredLog) -> arrays.FloatArray:
    """Returns the cumulative chances [K, V] of the values of every node, by their frequencies.

    A value that no column with these nodes ever drew has no chance, however possible it may be.
    """
    counts, firsts = seen_draws(log, 0.0), np.unique(log.structure.nodes.first)
    drawn = np.add.reduceat(counts, firsts) > 0
    likely = np.repeat(drawn, np.diff(firsts, append=len(counts)), axis=0)
    there = np.arange(counts.shape[1]) < log.structure.node_sizes[:, np.newaxis]
    counts += PRIOR * np.where(likely.any(axis=1, keepdims=True), likely, there)
    return np.asarray(counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True))


def log_kt(counts: arrays.FloatArray) -> arrays.FloatArray:
    """Returns ln KT of counts [..., V]: each draw is predicted by those before it.

    The chance of the next value x is (n_x + ½) / (n + V/2) (Krichevsky and Trofimov 1981).
    """
    size = counts.shape[-1]
    terms = gammaln(counts + 0.5).sum(axis=-1) - gammaln(counts.sum(axis=-1) + size / 2)
    return np.asarray(terms + gammaln(size / 2) - size * gammaln(0.5))


def drawn_laws(
    weights: arrays.FloatArray, number: int, rng: np.random.Generator
) -> arrays.FloatArray:
    """Draws so many laws [W, K, V] from Dirichlet distributions with these weights [K, V]."""
    gammas = rng.standard_gamma(weights, (number, *weights.shape))
    # Tiny weights may all draw 0; then the first value is certain, which is as good as any.
    gammas[..., 0] += gammas.sum(axis=2) == 0
    return np.asarray(gammas.cumsum(axis=2) / gammas.sum(axis=2, keepdims=True))


def stepped(
    structure: Structure,
    law: arrays.FloatArray,
    state: arrays.IntArray,
    action: arrays.IntArray,
    numbers: arrays.FloatArray,
    *,
    shift: arrays.IntArray | int = 0,
) -> arrays.IntArray:
    """Draws steps from the law of the nodes by random numbers [N, D]; returns all their values."""
    columns = state.shape[1]
    values = np.zeros((len(state), 2 * columns + 2), np.int64, order="F")
    values[:, :columns] = state
    for d, target in enumerate(structure.target):
        node = structure.nodes.at(d, values, action)
        drawn = np.zeros(len(state), np.int64)
        for below in range(len(structure.values[target]) - 1):
            drawn += numbers[:, d] >= law[node + shift, below]
        known = structure.known[node]
        values[:, columns + target] = np.where(known >= 0, known, drawn)
    return values


def sampled_log(
    structure: Structure,
    law: arrays.FloatArray,
    policy: ColumnRules,
    starts: arrays.IntArray,
    *,
    steps: arrays.IntArray | int,
    rng: np.random.Generator,
) -> FactoredLog:
    """Draws a log of a policy: an episode from each of the starts [E, C], of at most `steps`."""
    columns, most = starts.shape[1], np.broadcast_to(steps, len(starts))
    rows: list[tuple[arrays.AnyArray, ...]] = []
    state: arrays.IntArray = starts.astype(np.int64)
    episode = np.arange(len(starts))
    for t in range(int(most.max())):
        action = policy.act(state, rng)
        # The greatest numbers draw the first value.
        numbers = np.nextafter(1 - rng.random((len(state), structure.target.size)), 0)
        values = stepped(structure, law, state, action, numbers)
        rows.append((episode, action, values))
        lasting = (values[:, 2 * columns] == 0) & (most[episode] > t + 1)
        episode, state = episode[lasting], values[lasting, columns : 2 * columns]
    episode, action, values = map(np.concatenate, zip(*rows, strict=True))
    order = np.argsort(episode, kind="stable")
    action, values = action[order], values[order]
    return FactoredLog(
        structure=structure,
        state=values[:, :columns],
        action=action,
        next_state=values[:, columns : 2 * columns],
        ended=values[:, 2 * columns] == 1,
        offsets=arrays.offsets_of(np.bincount(episode, minlength=len(starts))),
        reward=structure.reward_of(values, action) if structure.draws_reward else None,
    )


def rolled_out(
    problem: FactoredProblem,
    laws: arrays.FloatArray,
    policy: ColumnRules,
    starts: arrays.IntArray,
    *,
    seed: int,
    rest: float,
) -> tuple[arrays.FloatArray, Any]:
    """Returns the returns [N] of rollouts from these starts [N, C], and their draws [N, K·V].

    The laws [W, K, V] have equal parts of the rollouts, one after the other. Policies with the same
    seed draw by the same random numbers. A rollout goes on until a step counts less than
    `LEFT_OVER`. From then on all steps count alike, and it goes on with the chance γ: in the mean
    nothing is left out. What `LONGEST` cuts counts as `rest`.
    """
    structure, discount = problem.structure, float(problem.discount)
    law, columns = laws.reshape(-1, laws.shape[2]), starts.shape[1]
    decided = range(structure.target.size)
    shift = np.repeat(np.arange(len(laws)) * laws.shape[1], len(starts) // len(laws))
    rng, acting = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    draws = scipy.sparse.csr_array((len(starts), laws[0].size), dtype=np.int32)
    total, row = np.zeros(len(starts)), np.arange(len(starts))
    state: arrays.IntArray = starts.astype(np.int64)
    weight, horizon = 1.0, problem.horizon or math.inf
    for _ in range(int(min(horizon, LONGEST))):
        if not row.size:
            break
        numbers = rng.random((len(starts), structure.target.size + 1))[row]
        action = policy.act(state, acting)
        values = stepped(structure, law, state, action, numbers, shift=shift[row])
        nodes = np.array([structure.nodes.at(d, values, action) for d in decided])
        total[row] += weight * structure.reward_of(values, action)
        _, of_row = learnt = np.nonzero(structure.known[nodes] < 0)
        places = (nodes * laws.shape[2] + values.T[columns + structure.target])[learnt]
        ones = np.ones(places.size, np.int32)
        draws += scipy.sparse.csr_array((ones, (row[of_row], places)), shape=draws.shape)
        lasting = values[:, 2 * columns] == 0
        if weight * discount > LEFT_OVER:
            weight *= discount
        else:
            lasting &= numbers[:, -1] < discount
        row, state = row[lasting], values[lasting, columns : 2 * columns]
    total[row] += weight * rest * (horizon > LONGEST)
    return total, draws
