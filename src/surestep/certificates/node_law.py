"""Draws steps, logs and rollouts from laws of nodes: estimated ones, or draws of a posterior.

A law [K, V] has the cumulative chances of the values of every node. Several laws lie one below the
other; `shift` then says where that of each row begins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

import surestep._arrays as arrays
from surestep.certificates.node_stacks import draw_counts
from surestep.kernels.nodes import NodeStacks
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem
from surestep.model.structure import Structure

PRIOR = 0.5  # draws of every value that the estimate adds to those seen
LEFT_OVER = 0.05  # of the discounted steps: what rollouts leave out, or go through by chance
LONGEST = 10_000  # steps of a rollout that nothing else ends


def seen_draws(
    structure: Structure, stacks: NodeStacks, prior: arrays.FloatArray | float
) -> arrays.FloatArray:
    """Counts how often each value of every node was seen [K, V], and adds the prior of each."""
    counts = draw_counts(structure, stacks, stacks.entry >= 0)
    return counts + prior * (np.arange(counts.shape[1]) < structure.node_sizes[:, np.newaxis])


def estimated_law(structure: Structure, stacks: NodeStacks) -> arrays.FloatArray:
    """Returns the cumulative chances [K, V] of the values of every node, by their frequencies."""
    counts = seen_draws(structure, stacks, PRIOR)
    chances: arrays.FloatArray = counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)
    return chances


def log_kt(counts: arrays.FloatArray) -> arrays.FloatArray:
    """Returns ln KT of counts [..., V]: each draw is predicted by those before it.

    The chance of the next value x is (n_x + ½) / (n + V/2) (Krichevsky and Trofimov 1981).
    """
    size = counts.shape[-1]
    terms = gammaln(counts + 0.5).sum(axis=-1) - gammaln(counts.sum(axis=-1) + size / 2)
    known: arrays.FloatArray = terms + gammaln(size / 2) - size * gammaln(0.5)
    return known


def drawn_laws(
    weights: arrays.FloatArray, number: int, rng: np.random.Generator
) -> arrays.FloatArray:
    """Draws so many laws [W, K, V] from Dirichlet distributions with these weights [K, V]."""
    gammas = rng.standard_gamma(weights, (number, *weights.shape))
    # Tiny weights may all draw 0; then the first value is certain, which is as good as any.
    gammas[..., 0] += gammas.sum(axis=2) == 0
    laws: arrays.FloatArray = gammas.cumsum(axis=2) / gammas.sum(axis=2, keepdims=True)
    return laws


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
        ended = values[:, 2 * columns] == 1
        earned = structure.reward_of(values, action)
        state = values[:, columns : 2 * columns]
        rows.append((episode, values[:, :columns], action, state, ended, earned))
        lasting = ~ended & (most[episode] > t + 1)
        episode, state = episode[lasting], state[lasting]
    episode, before, action, after, ended, earned = map(np.concatenate, zip(*rows, strict=True))
    order = np.argsort(episode, kind="stable")
    return FactoredLog(
        structure=structure,
        state=before[order],
        action=action[order],
        next_state=after[order],
        ended=ended[order],
        offsets=arrays.offsets_of(np.bincount(episode, minlength=len(starts))),
        reward=earned[order] if (structure.target == columns + 1).any() else None,
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
    draws = csr_array((len(starts), laws[0].size), dtype=np.int32)
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
        draws += csr_array((ones, (row[of_row], places)), shape=draws.shape)
        lasting = values[:, 2 * columns] == 0
        if weight * discount > LEFT_OVER:
            weight *= discount
        else:
            lasting &= numbers[:, -1] < discount
        row, state = row[lasting], values[lasting, columns : 2 * columns]
    total[row] += weight * rest * (horizon > LONGEST)
    return total, draws
