"""Reads the draws of nodes from a log."""

from __future__ import annotations

import itertools

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
    structure = log.structure
    values = log.values()
    columns = structure.target.size
    node = np.empty((log.num_steps, columns), np.int64)
    drawn = np.empty((log.num_steps, columns), np.int32)
    more: list[tuple[int, int]] = []  # nodes that may have been drawn from, and where
    for d in range(columns):
        drawn[:, d] = log.drawn(d, values)
        whole = log.known_parents(d, values)
        node[:, d] = structure.nodes.at(d, values, log.action)
        there = drawn[:, d] >= -1
        node[~there | ~whole, d] = -1
        for row in np.flatnonzero(there & ~whole).tolist():
            places = nodes_at(structure, d, values[row], log.action[row : row + 1])
            more += [(place, row * columns + d) for place in places]
    flat = node.ravel()
    kept = np.flatnonzero((flat >= 0) & (structure.known[flat] < 0))
    which, entry, when = flat[kept], drawn.ravel()[kept], kept
    if more:
        extra = np.array([pair for pair in more if structure.known[pair[0]] < 0]).reshape(-1, 2)
        which = np.concatenate([which, extra[:, 0]])
        entry = np.concatenate([entry, np.full(len(extra), -1, np.int32)])
        when = np.concatenate([when, extra[:, 1]])
    # Numbers of 16 bits are sorted ten times as fast as others.
    small = which.astype(np.min_scalar_type(structure.num_nodes))
    order = np.lexsort((when, small)) if more else np.argsort(small, kind="stable")
    offsets = arrays.offsets_of(np.bincount(which, minlength=structure.num_nodes))
    entry = np.ascontiguousarray(entry[order])
    stops = offsets[1:].copy()
    unseen = np.flatnonzero(entry < 0)
    np.minimum.at(stops, np.searchsorted(offsets, unseen, side="right") - 1, unseen)
    starts = log.starts.astype(np.int64).ravel()
    return NodeStacks(offsets, stops, entry, starts), when[order]


def nodes_at(
    structure: Structure, d: int, values: arrays.IntArray, action: arrays.IntArray
) -> list[int]:
    """Returns all nodes that may have applied to a step with missing parents."""
    nodes = structure.nodes
    looked = nodes.place[nodes.offsets[d] : nodes.offsets[d + 1]]
    missing = [*dict.fromkeys(looked[values[looked] < 0].tolist())]
    columns = len(structure.columns)
    sizes = [
        len(structure.values[place - columns if place >= columns else place]) for place in missing
    ]
    places = set()
    for filled in itertools.product(*map(range, sizes)):
        row = values.copy()
        row[missing] = filled
        places.add(int(nodes.at(d, row[np.newaxis], action)[0]))
    return sorted(places)


def strides_of(sizes: arrays.IntArray) -> arrays.IntArray:
    """Returns the place value of each digit of a mixed-radix number with these sizes."""
    return np.append(np.cumprod(sizes[:0:-1])[::-1], 1)
