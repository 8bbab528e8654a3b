"""Reads the draws of nodes from a log."""

from __future__ import annotations

import math

import numpy as np

import surestep._arrays as arrays
from surestep.kernels.nodes import NodeStacks
from surestep.model.factored import FactoredLog
from surestep.model.statements import Statement
from surestep.model.structure import Structure


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
        draws.append(np.array([(place, -1, row * len(drawn[0]) + d) for place in places]))
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
