"""Trees of splits: how the successors of each pair hang below auxiliary states.

For a pair with m > k successors the tree has ⌈(m − 1)/(k − 1)⌉ inner nodes. The first is the pair
itself, each other one is an auxiliary state with the only action τ. A *chain* splits off k − 1
successors at a time, in their order (the paper's form for k = 2); a *balanced* tree has all its
leaves on two levels. A pair with at most k successors keeps its row.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import LARGEST_INDEX, FloatArray, IndexArray, IntArray, Kind
from surestep._names import unknown
from surestep._reprs import short_repr
from surestep.errors import InvalidModel, InvalidParameter
from surestep.kernels import splits
from surestep.model.pairs import Pairs, check_same_pairs
from surestep.model.policy import Policy

STRUCTURES = {"chain": splits.chain_rows, "balanced": splits.balanced_rows}


@dataclass(frozen=True, slots=True, eq=False)
class SplitTrees:
    """The trees of all pairs, and the map between transitions and their leaves.

    X auxiliary states are numbered after the S states, their pairs after the K pairs, tree by tree;
    a node comes after its parent. `origin` is the auxiliary map: it says which transition of the
    original model a child is the leaf of, and −1 where the child is an auxiliary state.
    """

    original: Pairs  # S states and K pairs
    pairs: Pairs  # S + X states and K + X pairs
    offsets: IntArray  # [K+X+1] the rows of the pairs, then those of the auxiliary states
    child: IndexArray  # [L+X] a state of the original model, or S + x for auxiliary state x
    origin: IntArray  # [L+X] a transition of the original model, or −1

    __repr__ = short_repr("original.num_states", "num_auxiliary")

    def __post_init__(self) -> None:
        """Freezes the arrays."""
        set_field = object.__setattr__
        set_field(self, "offsets", arrays.own(self.offsets))
        set_field(self, "child", arrays.own(self.child))
        set_field(self, "origin", arrays.freeze(self.origin))

    __setstate__ = arrays.restore_frozen

    @property
    def num_auxiliary(self) -> int:
        """X, the number of auxiliary states."""
        return self.pairs.num_states - self.original.num_states

    def lift(self, policy: Policy) -> Policy:
        """Returns the policy of the split model: the same in the states, τ in auxiliary ones."""
        check_same_pairs("the policy", policy.pairs, "the original model", self.original)
        probability = np.concatenate([policy.probability, np.ones(self.num_auxiliary)])
        return dataclasses.replace(policy, pairs=self.pairs, probability=probability)

    def lower(self, policy: Policy) -> Policy:
        """Returns the policy of the original model that `lift` makes this one of."""
        check_same_pairs("the policy", policy.pairs, "the split model", self.pairs)
        probability = policy.probability[: self.original.num_pairs]
        return dataclasses.replace(policy, pairs=self.original, probability=probability)

    def conditionals(self, probability: FloatArray) -> FloatArray:
        """For each child [L+X] its probability given its node, from probabilities [T]."""
        node, share = np.empty(self.num_auxiliary), np.empty(self.child.size)
        splits.node_sums(self._tree(), probability, node)
        splits.conditionals(self._tree(), probability, node, share)
        return share

    def products(self, share: FloatArray, num_transitions: int) -> FloatArray:
        """For each transition [T] the product of the conditionals [L+X] along its path."""
        leaf, reach = np.zeros(num_transitions), np.empty(self.num_auxiliary)
        splits.path_products(self._tree(), share, reach, leaf)
        return leaf

    def counts(self, times: IntArray) -> IntArray:
        """For each child [L+X] the counts [T] below it, added up."""
        node = np.empty(self.num_auxiliary, np.int64)
        splits.node_counts(self._tree(), times, node)
        return np.concatenate([times, node])[self._sources(times.size)]

    def means(self, share: FloatArray, values: FloatArray) -> FloatArray:
        """For each child of a pair the mean of values [T] below it; 0 below auxiliary states."""
        node = np.empty(self.num_auxiliary)
        splits.node_means(self._tree(), share, values, node)
        return self._below_pairs(values, node)

    def sums(self, values: FloatArray) -> FloatArray:
        """For each child of a pair the sum of values [T] below it; 0 below auxiliary states."""
        node = np.empty(self.num_auxiliary)
        splits.node_sums(self._tree(), values, node)
        return self._below_pairs(values, node)

    def extended(self, values: Kind, auxiliary: float) -> Kind:
        """Values per state [S] or pair [K], with `auxiliary` for every auxiliary one."""
        return np.append(values, np.full(self.num_auxiliary, auxiliary, values.dtype))  # type: ignore[return-value]

    def _tree(self) -> splits.SplitTree:
        """Returns the arrays that every kernel needs to walk the trees."""
        return splits.SplitTree(self.original.num_states, self.offsets, self.child, self.origin)

    def _sources(self, num_transitions: int) -> IntArray:
        """Returns the place of each child's value in the values of transitions, then of nodes."""
        node = num_transitions + self.child - self.original.num_states
        return np.where(self.origin >= 0, self.origin, node)

    def _below_pairs(self, values: FloatArray, node: FloatArray) -> FloatArray:
        """Returns the values at the children of pairs, and 0 at those of auxiliary states."""
        at_children: FloatArray = np.concatenate([values, node])[self._sources(values.size)]
        at_children[self.offsets[self.original.num_pairs] :] = 0.0
        return at_children


def grow_trees(
    pairs: Pairs,
    offsets: IntArray,
    successor: IndexArray,
    leaves: IntArray,
    *,
    k: int,
    structure: str,
) -> SplitTrees:
    """Trees of at most `k` children a node, whose leaves are the transitions `leaves` [L].

    `leaves` lists transitions pair by pair, in the order in which the trees take them.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise InvalidParameter(f"k is {k!r}, expected a whole number of at least 2")
    if structure not in STRUCTURES:
        raise unknown(f"structure is {structure!r}", structure, STRUCTURES)
    owner = arrays.run_owners(offsets)[leaves]
    num_leaves = np.bincount(owner, minlength=pairs.num_pairs)
    auxiliary = np.maximum((num_leaves + k - 3) // (k - 1), 1) - 1  # [K] inner nodes but the first
    total = int(auxiliary.sum())
    if pairs.num_states + total > LARGEST_INDEX:
        raise InvalidModel(
            f"the split model has {pairs.num_states + total} states, expected at most "
            f"{LARGEST_INDEX}"
        )
    rows = np.full(pairs.num_pairs + total, k)
    last = np.where(
        auxiliary > 0, pairs.num_pairs + np.cumsum(auxiliary) - 1, np.arange(pairs.num_pairs)
    )
    rows[last] = num_leaves - (k - 1) * auxiliary
    row_offsets = arrays.offsets_of(rows)
    child = np.empty(leaves.size + total, np.int32)
    origin = np.empty(leaves.size + total, np.int64)
    STRUCTURES[structure](
        int(k),
        pairs.num_states,
        arrays.offsets_of(num_leaves),
        leaves,
        successor,
        row_offsets,
        child,
        origin,
    )
    return SplitTrees(pairs, split_pairs(pairs, auxiliary), row_offsets, child, origin)


def split_pairs(pairs: Pairs, auxiliary: IntArray) -> Pairs:
    """Returns the pairs of the split model: the old ones, then τ for each auxiliary state."""
    total = int(auxiliary.sum())
    state_labels, action_labels = pairs.state_labels, pairs.action_labels
    if state_labels is not None:
        state_labels = (*state_labels, *auxiliary_labels(pairs, auxiliary))
    if action_labels is not None:
        action_labels = (*action_labels, unused("τ", set(action_labels)))
    return Pairs(
        np.append(pairs.offsets, pairs.offsets[-1] + np.arange(1, total + 1)),
        np.append(pairs.action, np.full(total, pairs.num_actions, np.int32)),
        pairs.num_actions + 1,
        state_labels,
        action_labels,
    )


def auxiliary_labels(pairs: Pairs, auxiliary: IntArray) -> tuple[str, ...]:
    """Labels such as "x2 of state 'ward', action 'wait'", from x2 on as in the paper."""
    taken = set(pairs.state_labels or ())
    return tuple(
        unused(f"x{number + 2} of {pairs.pair_name(int(pair))}", taken)
        for pair in np.flatnonzero(auxiliary)
        for number in range(auxiliary[pair])
    )


def unused(label: str, taken: set[str]) -> str:
    """Returns the label, with as many primes as it takes to differ from those taken."""
    while label in taken:
        label += "'"
    return label
