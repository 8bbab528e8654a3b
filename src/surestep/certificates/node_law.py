"""Estimates the law of nodes from a log, and draws steps from it."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

import surestep._arrays as arrays
from surestep.kernels.nodes import NodeStacks
from surestep.model.structure import Structure

PRIOR = 0.5  # draws of every value that the estimate adds to those seen
LEFT_OVER = 0.05  # of the discounted steps, that rollouts leave out


def estimated_law(structure: Structure, stacks: NodeStacks) -> arrays.FloatArray:
    """Returns the cumulative chances [K, V] of the values of every node, by their frequencies."""
    possible = np.arange(structure.node_sizes.max()) < structure.node_sizes[:, np.newaxis]
    counts = PRIOR * possible
    node = np.repeat(np.arange(structure.num_nodes), np.diff(stacks.offsets))
    seen = stacks.entry >= 0
    np.add.at(counts, (node[seen], stacks.entry[seen]), 1.0)
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


def stepped(
    structure: Structure,
    law: arrays.FloatArray,
    state: arrays.IntArray,
    action: arrays.IntArray,
    numbers: arrays.FloatArray,
) -> arrays.IntArray:
    """Draws steps from the law of the nodes by random numbers [N, D]; returns all their values."""
    columns = state.shape[1]
    values = np.zeros((len(state), 2 * columns + 2), np.int64)
    values[:, :columns] = state
    for d, target in enumerate(structure.target):
        node = structure.nodes.at(d, values, action)
        drawn = (numbers[:, d, np.newaxis] >= law[node]).sum(axis=1)
        known = structure.known[node]
        values[:, columns + target] = np.where(known >= 0, known, drawn)
    return values
