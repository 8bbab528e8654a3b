"""Transforms models and counts into forms with two, or k, successors a pair, and back.

**Construction** (paper, section 4.1 and appendix). The successors s_1 … s_m of a pair (s,a) with
m > k become the leaves of a tree whose inner nodes are (s,a) and auxiliary states with the only
action τ, reward 0 and discount 1. With w(v) = the sum of P(s_i|s,a) over the leaves below v, the
child c of a node v gets P(c|v) = w(c)/w(v), and w(s,a) = 1. For the chain of two-successor MDPs,
w(x_i) = p_i + … + p_m, so P(s_i|x_i,τ) = p_i/(p_i + … + p_m). (The paper's P(s_m|x_{m−1}) is
misprinted; this gives p_m/(p_{m−1} + p_m).) Sums of the tail are added up, never subtracted from 1,
so nothing cancels. Where w(v) = 0, v is never reached and its first child gets 1.

**Theorem 1** (unique path, equal probability). A tree has one path from its root to each leaf, and
auxiliary states have no other way in. Along it, Π w(child)/w(parent) telescopes to
w(s_i)/w(s,a) = P(s_i|s,a). If some w on it is 0, so are P(s_i|s,a) and the factor into that node.

**Corollary 1** (equal performance). Auxiliary states earn 0 at discount 1, so by Theorem 1 for its
subtree the value of a node is V(v) = Σ_{leaves below v} w(s_i)/w(v) · V(s_i). For the root,
Γ(s,a) Σ_c P(c|s,a) V(c) = Γ(s,a) Σ_i P(s_i|s,a) V(s_i): the states of M have the same Bellman
equations under π and its lifted form, and those have one solution. A reward R(s,a,s_i) of a
transition is earned on leaving (s,a): the child c gets its mean over the leaves below c, so that
R(s,a) is what it was.

**Theorem 2, Corollary 2** (the same for estimates). Counts are added up over the same trees. The
estimate of a child is then #(below c)/#(below v), which is the w(c)/w(v) of the estimated MDP, so
the MLE of the split counts is the split form of the MLE, to which Theorem 1 and Corollary 1 apply.

**Sizes.** Every node has at most k children. A tree with m leaves has ⌈(m−1)/(k−1)⌉ inner nodes:
each but the last takes k − 1 off the number of open ends. So there are Σ max(0, ⌈(m−1)/(k−1)⌉ − 1)
auxiliary states, which for k = 2 is Σ max(0, m − 2), and with the states at most |S|²|A|, since
|S| + |S||A|(|S| − 2) ≤ |S|²|A|.

**Trees of splits.** For a pair with m > k successors the tree has ⌈(m − 1)/(k − 1)⌉ inner nodes.
The first is the pair itself, each other one is an auxiliary state with the only action τ. It is a
chain, which splits off k − 1 successors at a time, in their order (the paper's form for k = 2). A
pair with at most k successors keeps its row.
"""

from dataclasses import dataclass, replace
from typing import overload

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidModel, InvalidParameter
from surestep.kernels import splits
from surestep.model import Counts, FiniteMDP, LoggedRewards, Policy
from surestep.model.noun import noun
from surestep.model.pairs import Pairs, check_same_pairs


@noun("original.num_states", "num_auxiliary")
@dataclass(frozen=True, slots=True, eq=False)
class SplitTrees(arrays.Frozen):
    """The trees of all pairs, and the map between transitions and their leaves.

    X auxiliary states are numbered after the S states, their pairs after the K pairs, tree by tree;
    a node comes after its parent. `origin` maps each child to its transition in the original model,
    and an auxiliary state to −1.
    """

    original: Pairs  # S states and K pairs
    pairs: Pairs  # S + X states and K + X pairs
    offsets: arrays.IntArray  # [K+X+1] the rows of the pairs, then of the auxiliary states
    child: arrays.IndexArray  # [L+X] a state of the original model, or S + x for auxiliary state x
    origin: arrays.IntArray  # [L+X] a transition of the original model, or −1

    @property
    def num_auxiliary(self) -> int:
        """Returns X, the number of auxiliary states."""
        return self.pairs.num_states - self.original.num_states

    def conditionals(self, probability: arrays.FloatArray) -> arrays.FloatArray:
        """Returns the probability of each child [L+X] given its node, from probabilities [T]."""
        node = np.empty(self.num_auxiliary)
        share = np.empty(self.child.size)
        splits.node_sums(self._tree(), probability, node)
        splits.conditionals(self._tree(), probability, node, share)
        return share

    def counts(self, times: arrays.IntArray) -> arrays.IntArray:
        """Adds up the counts [T] below each child [L+X]."""
        node = np.empty(self.num_auxiliary, np.int64)
        splits.node_counts(self._tree(), times, node)
        return np.concatenate([times, node])[self._sources(times.size)]

    def means(self, share: arrays.FloatArray, values: arrays.FloatArray) -> arrays.FloatArray:
        """Returns the mean of values [T] below each child of a pair; 0 below auxiliary states."""
        node = np.empty(self.num_auxiliary)
        splits.node_means(self._tree(), share, values, node)
        return self._below_pairs(values, node)

    def sums(self, values: arrays.FloatArray) -> arrays.FloatArray:
        """Returns the sum of values [T] below each child of a pair; 0 below auxiliary states."""
        node = np.empty(self.num_auxiliary)
        splits.node_sums(self._tree(), values, node)
        return self._below_pairs(values, node)

    def extended(self, values: arrays.Kind, auxiliary: float) -> arrays.Kind:
        """Appends `auxiliary` to values of states [S] or pairs [K], once per auxiliary state."""
        return np.append(values, np.full(self.num_auxiliary, auxiliary, values.dtype))  # type: ignore[return-value]

    def _tree(self) -> splits.SplitTree:
        """Returns the arrays that every kernel needs to walk the trees."""
        return splits.SplitTree(self.original.num_states, self.offsets, self.child, self.origin)

    def _sources(self, num_transitions: int) -> arrays.IntArray:
        """Returns the place of each child's value in the values of transitions, then of nodes."""
        return np.where(
            self.origin >= 0, self.origin, num_transitions + self.child - self.original.num_states
        )

    def _below_pairs(self, values: arrays.FloatArray, node: arrays.FloatArray) -> arrays.FloatArray:
        """Returns the values at the children of pairs, and 0 at children of auxiliary states."""
        at_children: arrays.FloatArray = np.concatenate([values, node])[self._sources(values.size)]
        at_children[self.offsets[self.original.num_pairs] :] = 0.0
        return at_children


def grow_trees(
    pairs: Pairs,
    offsets: arrays.IntArray,
    successor: arrays.IndexArray,
    leaves: arrays.IntArray,
    k: int,
) -> SplitTrees:
    """Makes chains of at most `k` children a node, with the transitions `leaves` [L] as leaves."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
        raise InvalidParameter(f"k is {k!r}, expected a whole number of at least 2")
    num_leaves = np.bincount(arrays.run_owners(offsets)[leaves], minlength=pairs.num_pairs)
    auxiliary = np.maximum((num_leaves + k - 3) // (k - 1), 1) - 1  # [K] inner nodes but the first
    total = int(auxiliary.sum())
    if pairs.num_states + total > arrays.LARGEST_INDEX:
        raise InvalidModel(
            f"the split model has {pairs.num_states + total} states, expected at most "
            f"{arrays.LARGEST_INDEX}"
        )
    rows = np.full(pairs.num_pairs + total, k)
    rows[
        np.where(
            auxiliary > 0, pairs.num_pairs + np.cumsum(auxiliary) - 1, np.arange(pairs.num_pairs)
        )
    ] = num_leaves - (k - 1) * auxiliary
    row_offsets = arrays.offsets_of(rows)
    child = np.empty(leaves.size + total, np.int32)
    origin = np.empty(leaves.size + total, np.int64)
    splits.write_chains(
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


def split_pairs(pairs: Pairs, auxiliary: arrays.IntArray) -> Pairs:
    """Returns the pairs of the split model: the original pairs, then τ for each auxiliary state."""
    total = int(auxiliary.sum())
    state_labels, action_labels = pairs.state_labels, pairs.action_labels
    if state_labels is not None:
        # Labels are like "x2 of state 'ward', action 'wait'"; numbers begin at 2 as in the paper.
        taken = set(state_labels)
        added = [
            unused(f"x{number + 2} of {pairs.pair_name(int(pair))}", taken)
            for pair in np.flatnonzero(auxiliary)
            for number in range(auxiliary[pair])
        ]
        state_labels = (*state_labels, *added)
    if action_labels is not None:
        action_labels = (*action_labels, unused("τ", set(action_labels)))
    return Pairs(
        np.append(pairs.offsets, pairs.offsets[-1] + np.arange(1, total + 1)),
        np.append(pairs.action, np.full(total, pairs.num_actions, np.int32)),
        pairs.num_actions + 1,
        state_labels,
        action_labels,
    )


def unused(label: str, taken: set[str]) -> str:
    """Appends primes to a label until it differs from all taken labels."""
    while label in taken:
        label += "'"
    return label


@dataclass(frozen=True, slots=True, eq=False)
class SplitForm:
    """A form of a model in which successors hang in trees, and the map back to the original.

    States and pairs of the original keep their numbers; auxiliary states and pairs follow.
    """

    trees: SplitTrees

    def lift(self, policy: Policy) -> Policy:
        """Lifts a policy to the split form: unchanged in original states, τ in auxiliary ones.

        Parameters
        ----------
        policy : Policy
            A policy of the original.

        Returns
        -------
        Policy
            The policy of the split form.
        """
        check_same_pairs("the policy", policy.pairs, "the original model", self.trees.original)
        return replace(
            policy,
            pairs=self.trees.pairs,
            probability=np.concatenate([policy.probability, np.ones(self.trees.num_auxiliary)]),
        )

    def lower(self, policy: Policy) -> Policy:
        """Takes a policy of the split form back to the original.

        Parameters
        ----------
        policy : Policy
            A policy of the split form.

        Returns
        -------
        Policy
            The policy of the original; `lift` maps it to the given one.
        """
        trees = self.trees
        check_same_pairs("the policy", policy.pairs, "the split model", trees.pairs)
        return replace(
            policy, pairs=trees.original, probability=policy.probability[: trees.original.num_pairs]
        )


@noun("mdp.num_states", "mdp.num_pairs", "trees.num_auxiliary")
@dataclass(frozen=True, slots=True, eq=False)
class SplitMDP(SplitForm):
    """An MDP in two-successor (k-successor) form, and the map back to the original.

    `lift(policy)` maps a policy of the original to the split form, and `lower(policy)` maps it
    back. States and pairs of the original keep their numbers.

    Parameters
    ----------
    trees : SplitTrees
        The trees of successors.
    mdp : FiniteMDP
        The split form.
    original : FiniteMDP
        The original model; split rows could not restore it exactly.

    Examples
    --------
    >>> row = [0.5, 0.3, 0.2]
    >>> mdp = surestep.FiniteMDP.from_dense([[row]] * 3, [[1.0], [2.0], [3.0]], discount=0.9)
    >>> split = surestep.two_successor(mdp)
    >>> policy = surestep.Policy.uniform(mdp)
    >>> value = surestep.evaluate(split.mdp, split.lift(policy))[:3]  # as in the original
    >>> bool(np.allclose(value, surestep.evaluate(mdp, policy)))
    True
    """

    mdp: FiniteMDP
    original: FiniteMDP


@noun("counts.pairs.num_states", "counts.pairs.num_pairs", "trees.num_auxiliary")
@dataclass(frozen=True, slots=True, eq=False)
class SplitCounts(SplitForm):
    """Counts in two-successor (k-successor) form, and the map back to the original.

    Only transitions that were seen have a leaf. Rewards per transition become sums per child of a
    pair, since the mean reward of a pair below a child is only estimated.

    Parameters
    ----------
    trees : SplitTrees
        The trees of successors.
    counts : Counts
        The split form.
    original : Counts
        The original counts.

    Examples
    --------
    >>> counts = surestep.Counts.from_dense([[[5, 3, 2]]] * 3, rewards=[[1.0], [2.0], [3.0]])
    >>> surestep.two_successor(counts).counts.visits  # D^2s of the paper
    array([10, 10, 10,  5,  5,  5])
    """

    counts: Counts
    original: Counts

    def discounts(self, discount: float) -> arrays.FloatArray:
        """Makes the discounts of the split form.

        Parameters
        ----------
        discount : float
            The discount γ.

        Returns
        -------
        array of float [K+X]
            The discount γ for every pair of the original, 1 for every auxiliary pair:
            `estimate_mdp(split.counts, split.discounts(γ))` is the two-successor MLE-MDP.
        """
        return self.trees.extended(np.full(self.trees.original.num_pairs, discount), 1.0)


@overload
def two_successor(model: FiniteMDP) -> SplitMDP: ...
@overload
def two_successor(model: Counts) -> SplitCounts: ...
def two_successor(model: FiniteMDP | Counts) -> SplitMDP | SplitCounts:
    """Returns the two-successor form M^2s of an MDP, or D^2s of counts.

    Parameters
    ----------
    model : FiniteMDP or Counts
        The original.

    Returns
    -------
    SplitMDP or SplitCounts
        The form in which every pair has at most two successors; values do not change.

    References
    ----------
    The paper, section 4.1; the module docstring has the proofs.

    Examples
    --------
    >>> row = [0.5, 0.3, 0.2]
    >>> mdp = surestep.FiniteMDP.from_dense([[row]] * 3, [[1.0], [2.0], [3.0]], discount=0.9)
    >>> split = surestep.two_successor(mdp)
    >>> split.mdp.num_states, int(np.diff(split.mdp.offsets).max())  # one auxiliary state a row
    (6, 2)
    """
    return k_successor(model, 2)


@overload
def k_successor(model: FiniteMDP, k: int) -> SplitMDP: ...
@overload
def k_successor(model: Counts, k: int) -> SplitCounts: ...
def k_successor(model: FiniteMDP | Counts, k: int) -> SplitMDP | SplitCounts:
    """Returns the form of an MDP or of counts in which every pair has at most k successors.

    Parameters
    ----------
    model : FiniteMDP or Counts
        The original.
    k : int
        At least 2.

    Returns
    -------
    SplitMDP or SplitCounts
        The split form; values do not change. A pair's successors are split off in the order in
        which they are stored.

    Raises
    ------
    InvalidParameter
        If `k` is below 2.

    Examples
    --------
    >>> from surestep.transforms import k_successor
    >>> row = [0.5, 0.3, 0.2]
    >>> mdp = surestep.FiniteMDP.from_dense([[row]] * 3, [[1.0], [2.0], [3.0]], discount=0.9)
    >>> k_successor(mdp, 3).mdp.num_states  # three successors are no more than three
    3
    """
    arrays.expect("model", model, (FiniteMDP, Counts))
    if isinstance(model, FiniteMDP):
        trees = grow_trees(
            model.pairs, model.offsets, model.successor, np.arange(model.successor.size), k
        )
        share = trees.conditionals(model.probability)
        mdp = FiniteMDP(
            trees.pairs,
            trees.offsets,
            trees.child,
            share,
            trees.means(share, model.reward),
            trees.extended(model.discount, 1.0),
            trees.extended(model.initial, 0.0),
            trees.extended(model.ending_reward, 0.0),
            marks={label: trees.extended(states, False) for label, states in model.marks.items()},
            endless=model.endless,
        )
        return SplitMDP(trees, mdp, model)
    trees = grow_trees(model.pairs, model.offsets, model.successor, np.flatnonzero(model.times), k)
    counts = Counts(
        trees.pairs,
        trees.offsets,
        trees.child,
        trees.counts(model.times),
        split_rewards(model, trees),
        trees.extended(model.starts, 0),
        trees.extended(model.terminal, False),
    )
    return SplitCounts(trees, counts, model)


def split_rewards(counts: Counts, trees: SplitTrees) -> LoggedRewards:
    """Returns rewards per pair unchanged, or the sum of rewards below each child of a pair."""
    logged = counts.rewards
    if logged.per == "pair":
        return logged.changed(lambda values: trees.extended(values, 0.0))
    with np.errstate(over="ignore"):  # `Counts` refuses an infinite sum by name
        earned = logged.values * counts.times if logged.known else logged.values
    return LoggedRewards(trees.sums(earned), "transition", False)
