"""Draws steps, logs and rollouts from laws of nodes: estimated ones, or draws of a posterior.

A law [K, V] has the cumulative chances of the values of every node. Several laws lie one below the
other; `shift` then says where that of each row begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

import surestep._arrays as arrays
from surestep.kernels.nodes import NodeStacks
from surestep.model.factored import ColumnRules, FactoredLog, FactoredProblem
from surestep.model.structure import Structure

PRIOR = 0.5  # draws of every value that the estimate adds to those seen
LEFT_OVER = 0.05  # of the discounted steps: what rollouts leave out, or go through by chance
LONGEST = 10_000  # steps of a rollout that nothing else ends


def seen_draws(structure: Structure, stacks: NodeStacks) -> arrays.FloatArray:
    """Counts how often each value of every node was seen [K, V]."""
    counts = np.zeros((structure.num_nodes, structure.node_sizes.max()))
    seen = stacks.entry >= 0
    np.add.at(counts, (arrays.run_owners(stacks.offsets)[seen], stacks.entry[seen]), 1.0)
    return counts


def possible_values(structure: Structure) -> arrays.BoolArray:
    """Tells which numbers of values each node has [K, V]."""
    sizes: arrays.IntArray = structure.node_sizes
    return np.asarray(np.arange(sizes.max()) < sizes[:, np.newaxis])


def estimated_law(structure: Structure, stacks: NodeStacks) -> arrays.FloatArray:
    """Returns the cumulative chances [K, V] of the values of every node, by their frequencies."""
    counts = PRIOR * possible_values(structure) + seen_draws(structure, stacks)
    chances: arrays.FloatArray = counts.cumsum(axis=1) / counts.sum(axis=1, keepdims=True)
    return chances


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
        reward=earned[order],
    )


class Rollouts(NamedTuple):
    """Rollouts of several policies by the same random numbers."""

    returns: arrays.FloatArray  # [P, N]
    draws: list[Any]  # of each policy: how often a rollout drew each value of each node [N, K·V]


def rolled_out(
    problem: FactoredProblem,
    laws: arrays.FloatArray,
    policies: Sequence[ColumnRules],
    starts: arrays.IntArray,
    rng: np.random.Generator,
) -> Rollouts:
    """Returns rollouts of each policy from the same starts [N, C].

    The laws [W, K, V] have equal parts of the rollouts, one after the other. A rollout goes on
    until a step counts less than `LEFT_OVER`. From then on all steps count alike, and it goes on
    with the chance γ: in the mean nothing is left out. What `LONGEST` cuts counts as the least
    there is for the first policy, and as the most for others.
    """
    structure, discount = problem.structure, float(problem.discount)
    columns, number = starts.shape[1], len(starts)
    law = laws.reshape(-1, laws.shape[2])
    shift = np.repeat(np.arange(len(laws)) * laws.shape[1], number // len(laws))
    total = np.zeros((len(policies), number))
    draws = [csr_array((number, laws[0].size), dtype=np.int32) for _ in policies]
    row, state = np.arange(number), np.stack([starts.astype(np.int64)] * len(policies))
    going = np.ones(total.shape, np.bool_)
    seed = int(rng.integers(2**63))
    acting = [np.random.default_rng(seed) for _ in policies]  # alike for all
    weight, most = 1.0, LONGEST if problem.horizon is None else problem.horizon
    for _ in range(min(most, LONGEST)):
        numbers = rng.random((row.size, structure.target.size))
        for p, policy in enumerate(policies):
            action = policy.act(state[p], acting[p])
            values = stepped(structure, law, state[p], action, numbers, shift=shift)
            on = going[p]
            total[p, row[on]] += weight * structure.reward_of(values[on], action[on])
            draws[p] += draws_of(structure, values[on], action[on], row[on], draws[p].shape)
            going[p] = on & (values[:, 2 * columns] == 0)
            state[p] = values[:, columns : 2 * columns]
        lasting = going.any(axis=0)
        if weight * discount > LEFT_OVER:
            weight *= discount
        else:
            lasting &= rng.random(row.size) < discount
        row, state, going = row[lasting], state[:, lasting], going[:, lasting]
        shift = shift[lasting]
        if not row.size:
            break
    if problem.horizon is None or problem.horizon > LONGEST:
        least, greatest = problem.rest_bounds
        ends = np.array([least, *[greatest] * (len(policies) - 1)])
        total[:, row] += weight * going * ends[:, np.newaxis]
    return Rollouts(total, draws)


def draws_of(
    structure: Structure,
    values: arrays.IntArray,
    action: arrays.IntArray,
    row: arrays.IntArray,
    shape: tuple[int, int],
) -> Any:
    """Returns the draws of steps as counts [N, K·V]; `row` is the rollout of each step."""
    wide = shape[1] // structure.num_nodes
    rows, places = [], []
    for d, target in enumerate(structure.target):
        node = structure.nodes.at(d, values, action)
        drawn = structure.known[node] < 0
        rows.append(row[drawn])
        places.append((node * wide + values[:, len(structure.columns) + target])[drawn])
    both = np.concatenate(rows), np.concatenate(places)
    return csr_array((np.ones(both[0].size, np.int32), both), shape=shape)
