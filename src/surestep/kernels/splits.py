"""Splits pairs with many successors into trees of auxiliary states with at most k children each.

The tree of a pair with m successors has I = max(1, ⌈(m − 1)/(k − 1)⌉) inner nodes; node 0 is the
pair itself and the others are auxiliary states. Every node but the last has k children, and a
child has a higher number than its parent, so one pass backward adds up from the leaves and one
pass forward multiplies along the paths. Rows list their leaves first, then their inner nodes.
"""

from typing import Any, NamedTuple

from surestep._arrays import AnyArray
from surestep.kernels._compile import helper, kernel
from surestep.kernels.types import FloatsIn, FloatsOut, IndicesIn, IndicesOut, IntsIn, IntsOut


class SplitTree(NamedTuple):
    """The children of all nodes, row by row."""

    num_states: int
    row_offsets: IntsIn  # [K+X+1]
    child: IndicesIn  # [L+X] the state of a child
    origin: IntsIn  # [L+X] the transition of a child that is a leaf, or −1 for a node


@kernel()
def write_chains(
    k: int,
    num_states: int,
    leaf_offsets: IntsIn,
    leaf_transition: IntsIn,
    successor: IndicesIn,
    row_offsets: IntsIn,
    child: IndicesOut,
    origin: IntsOut,
) -> None:
    """Writes chains: node i has leaves i(k−1) … i(k−1)+k−2, then node i+1; the last has the rest.

    `leaf_transition` [L] lists the transitions pair by pair in the order of the leaves; `child`
    and `origin` [L+X] get, for each child, its state, and its transition or −1 for a node.
    """
    num_pairs = leaf_offsets.size - 1
    row = num_pairs  # the next auxiliary row
    for pair in range(num_pairs):
        leaf, last = leaf_offsets[pair], leaf_offsets[pair + 1]
        to = row_offsets[pair]
        while last - leaf > k:
            for j in range(k - 1):
                origin[to + j] = leaf_transition[leaf + j]
                child[to + j] = successor[leaf_transition[leaf + j]]
            leaf += k - 1
            origin[to + k - 1] = -1
            child[to + k - 1] = num_states + row - num_pairs
            to = row_offsets[row]
            row += 1
        while leaf < last:
            origin[to] = leaf_transition[leaf]
            child[to] = successor[leaf_transition[leaf]]
            to += 1
            leaf += 1


@helper
def weight_of(t: int, tree: SplitTree, leaf: AnyArray, node: AnyArray) -> Any:
    """Returns the weight of a child: of its leaf, or of all leaves below its node."""
    origin = tree.origin[t]
    return leaf[origin] if origin >= 0 else node[tree.child[t] - tree.num_states]


@helper
def add_up(
    tree: SplitTree,
    leaf: AnyArray,
    node: AnyArray,
) -> None:
    """Writes the sum of the leaves [T] below each auxiliary node, into `node` [X]."""
    row_offsets = tree.row_offsets
    num_pairs = row_offsets.size - 1 - node.size
    for row in range(row_offsets.size - 2, num_pairs - 1, -1):
        first = row_offsets[row]
        total = weight_of(first, tree, leaf, node)
        for t in range(first + 1, row_offsets[row + 1]):
            total += weight_of(t, tree, leaf, node)
        node[row - num_pairs] = total


@kernel()
def node_sums(
    tree: SplitTree,
    leaf: FloatsIn,
    node: FloatsOut,
) -> None:
    """Writes the sum of numbers [T] below each auxiliary node, into `node` [X]."""
    add_up(tree, leaf, node)


@kernel()
def node_counts(
    tree: SplitTree,
    leaf: IntsIn,
    node: IntsOut,
) -> None:
    """Writes the sum of counts [T] below each auxiliary node, into `node` [X], without rounding."""
    add_up(tree, leaf, node)


@kernel()
def conditionals(
    tree: SplitTree,
    leaf: FloatsIn,
    node: FloatsIn,
    share: FloatsOut,
) -> None:
    """Writes the chance of each child [L+X] given its node: weight below child / below node.

    Rows of pairs are not divided, since their leaves sum to 1. A node of weight 0 is never reached;
    its first child gets 1.
    """
    row_offsets = tree.row_offsets
    num_pairs = row_offsets.size - 1 - node.size
    for row in range(row_offsets.size - 1):
        for t in range(row_offsets[row], row_offsets[row + 1]):
            weight = weight_of(t, tree, leaf, node)
            if row < num_pairs:
                share[t] = weight
            elif node[row - num_pairs] > 0:
                share[t] = weight / node[row - num_pairs]
            else:
                share[t] = 1.0 if t == row_offsets[row] else 0.0


@kernel()
def node_means(
    tree: SplitTree,
    share: FloatsIn,
    leaf: FloatsIn,
    node: FloatsOut,
) -> None:
    """Writes the mean of the leaves [T] below each auxiliary node under the shares [L+X], into [X].

    If all leaves below a node are equal, the mean is that number, bit for bit.
    """
    row_offsets = tree.row_offsets
    num_pairs = row_offsets.size - 1 - node.size
    for row in range(row_offsets.size - 2, num_pairs - 1, -1):
        first = row_offsets[row]
        common = weight_of(first, tree, leaf, node)
        total, equal = common - common, True
        for t in range(first, row_offsets[row + 1]):
            value = weight_of(t, tree, leaf, node)
            equal = equal and value == common
            total += share[t] * value
        node[row - num_pairs] = common if equal else total
