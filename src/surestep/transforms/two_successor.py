"""Transforms models and counts into forms with two successors a pair, and back.

**Construction** (paper, section 4.1 and appendix). The successors s_1 … s_m of a pair (s,a) with
m > 2 become the leaves of a chain, which splits off one at a time. Its inner nodes are (s,a) and
auxiliary states with the only action τ, reward 0 and discount 1. With w(v) = the sum of
P(s_i|s,a) over the leaves below v, the child c of a node v gets P(c|v) = w(c)/w(v), and w(s,a) = 1.
So w(x_i) = p_i + … + p_m, and P(s_i|x_i,τ) = p_i/(p_i + … + p_m). (The paper's P(s_m|x_{m−1}) is
misprinted; this gives p_m/(p_{m−1} + p_m).) Sums of the tail are added up, never subtracted from 1,
so nothing cancels. Where w(v) = 0, v is never reached and its first child gets 1.

**Theorem 1** (unique path, equal probability). A chain has one path from its root to each leaf, and
auxiliary states have no other way in. Along it, Π w(child)/w(parent) telescopes to
w(s_i)/w(s,a) = P(s_i|s,a). If some w on it is 0, so are P(s_i|s,a) and the factor into that node.

**Corollary 1** (equal performance). Auxiliary states earn 0 at discount 1, so by Theorem 1 for its
subtree the value of a node is V(v) = Σ_{leaves below v} w(s_i)/w(v) · V(s_i). For the root,
Γ(s,a) Σ_c P(c|s,a) V(c) = Γ(s,a) Σ_i P(s_i|s,a) V(s_i): the states of M have the same Bellman
equations under π and its lifted form, and those have one solution. A reward R(s,a,s_i) of a
transition is earned on leaving (s,a): the child c gets its mean over the leaves below c, so that
R(s,a) is what it was.

**Theorem 2, Corollary 2** (the same for estimates). Counts are added up over the same chains. The
estimate of a child is then #(below c)/#(below v), which is the w(c)/w(v) of the estimated MDP, so
the MLE of the split counts is the split form of the MLE, to which Theorem 1 and Corollary 1 apply.

**Sizes.** A pair with m > 2 successors has m − 2 auxiliary states; one with fewer keeps its row.
With the states, these are at most |S|²|A|, since |S| + |S||A|(|S| − 2) ≤ |S|²|A|.
"""

from dataclasses import dataclass, replace
from typing import Self, overload

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidModel
from surestep.kernels.runs import discounted_returns
from surestep.model import Counts, FiniteMDP, LoggedRewards, Policy
from surestep.model.noun import noun
from surestep.model.pairs import Pairs, check_same_pairs


@noun("original.num_states", "num_auxiliary")
@dataclass(frozen=True, slots=True, eq=False)
class SplitChains(arrays.Frozen):
    """The chains of all pairs: a node has the next successor, and the node after it.

    X auxiliary states are numbered after the S states, their pairs after the K pairs, chain by
    chain. Each has two children; that of the last node of a chain are the last two successors.
    """

    original: Pairs  # S states and K pairs
    pairs: Pairs  # S + X states and K + X pairs
    offsets: arrays.IntArray  # [K+X+1] the rows of the pairs, then of the auxiliary states
    child: arrays.IndexArray  # [T+X] a state of the original model, or S + x for auxiliary state x
    first: arrays.IntArray  # [T+X] the first of the transitions below each child

    @classmethod
    def of(cls, pairs: Pairs, offsets: arrays.IntArray, successor: arrays.IndexArray) -> Self:
        """Makes the chains of all pairs; successors are split off in their order."""
        lengths = arrays.run_lengths(offsets)
        auxiliary = np.maximum(lengths - 2, 0)
        states = pairs.num_states + int(auxiliary.sum())
        if states > arrays.LARGEST_INDEX:
            raise InvalidModel(
                f"the split model has {states} states, expected at most {arrays.LARGEST_INDEX}"
            )
        place = arrays.ranges(0, lengths)
        depth = np.minimum(place, np.repeat(auxiliary, lengths))  # of the node it hangs from
        before = pairs.num_pairs - 1 + arrays.offsets_of(auxiliary)[:-1]
        row = np.where(depth == 0, arrays.run_owners(offsets), np.repeat(before, lengths) + depth)
        below = np.flatnonzero((depth > 0) & (depth == place))  # the first below each node
        rows = np.append(row, row[below - 1])
        order = np.argsort(rows, kind="stable")
        return cls(
            pairs,
            split_pairs(pairs, auxiliary),
            arrays.offsets_of(np.bincount(rows, minlength=pairs.num_pairs + below.size)),
            np.append(successor, np.arange(pairs.num_states, states, dtype=np.int32))[order],
            np.append(np.arange(successor.size), below)[order],
        )

    @property
    def num_auxiliary(self) -> int:
        """Returns X, the number of auxiliary states."""
        return self.pairs.num_states - self.original.num_states

    def children(self, own: arrays.Kind, below: arrays.Kind) -> arrays.Kind:
        """Returns values of children [T+X]: `own` [T] of states, `below` [T] of auxiliary ones."""
        is_state = self.child < self.original.num_states
        return np.where(is_state, own[self.first], below[self.first])  # type: ignore[return-value]

    def of_pairs(self, own: arrays.FloatArray, below: arrays.FloatArray) -> arrays.FloatArray:
        """Returns `children` of pairs, and 0 for the children of auxiliary states."""
        values = self.children(own, below)
        values[self.offsets[self.original.num_pairs] :] = 0.0
        return values

    def conditionals(
        self, probability: arrays.FloatArray, below: arrays.FloatArray
    ) -> arrays.FloatArray:
        """Returns the chance of each child given its node; of a node never reached, of its first.

        Rows of pairs are not divided, since they sum to 1.
        """
        share = self.children(probability, below)
        begin = self.offsets[self.original.num_pairs]
        whole = below[self.first[begin::2]][:, np.newaxis]
        certain = np.tile([1.0, 0.0], (whole.size, 1))
        of_nodes = np.divide(share[begin:].reshape(-1, 2), whole, out=certain, where=whole > 0)
        share[begin:] = of_nodes.ravel()
        return share

    def extended(self, values: arrays.Kind, auxiliary: float) -> arrays.Kind:
        """Appends `auxiliary` to values of states [S] or pairs [K], once per auxiliary state."""
        return np.append(values, np.full(self.num_auxiliary, auxiliary, values.dtype))  # type: ignore[return-value]


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
    """A form of a model in which successors hang in chains, and the map back to the original.

    States and pairs of the original keep their numbers; auxiliary states and pairs follow.
    """

    chains: SplitChains

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
        check_same_pairs("the policy", policy.pairs, "the original model", self.chains.original)
        return replace(
            policy,
            pairs=self.chains.pairs,
            probability=np.concatenate([policy.probability, np.ones(self.chains.num_auxiliary)]),
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
        original = self.chains.original
        check_same_pairs("the policy", policy.pairs, "the split model", self.chains.pairs)
        return replace(policy, pairs=original, probability=policy.probability[: original.num_pairs])


@noun("mdp.num_states", "mdp.num_pairs", "chains.num_auxiliary")
@dataclass(frozen=True, slots=True, eq=False)
class SplitMDP(SplitForm):
    """An MDP in two-successor form, and the map back to the original.

    `lift(policy)` maps a policy of the original to the split form, and `lower(policy)` maps it
    back. States and pairs of the original keep their numbers.

    Parameters
    ----------
    chains : SplitChains
        The chains of successors.
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


@noun("counts.pairs.num_states", "counts.pairs.num_pairs", "chains.num_auxiliary")
@dataclass(frozen=True, slots=True, eq=False)
class SplitCounts(SplitForm):
    """Counts in two-successor form, and the map back to the original.

    Only transitions that were seen have a leaf. Rewards per transition become sums per child of a
    pair, since the mean reward of a pair below a child is only estimated.

    Parameters
    ----------
    chains : SplitChains
        The chains of successors.
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
        return self.chains.extended(np.full(self.chains.original.num_pairs, discount), 1.0)


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
    arrays.expect("model", model, (FiniteMDP, Counts))
    return split_mdp(model) if isinstance(model, FiniteMDP) else split_counts(model)


def split_mdp(model: FiniteMDP) -> SplitMDP:
    """Returns M^2s; the reward of a child of a pair is the mean over all below it."""
    chains = SplitChains.of(model.pairs, model.offsets, model.successor)
    # The sum of each value and all that follow it in its run.
    below = discounted_returns(model.offsets, model.probability, 1.0)
    # Off the last reward of its row, the mean of rewards that are all equal is exact.
    last = model.reward[np.repeat(model.offsets[1:] - 1, arrays.run_lengths(model.offsets))]
    off = discounted_returns(model.offsets, model.probability * (model.reward - last), 1.0)
    mean = last + np.divide(off, below, out=np.zeros_like(off), where=below > 0)
    mdp = FiniteMDP(
        chains.pairs,
        chains.offsets,
        chains.child,
        chains.conditionals(model.probability, below),
        chains.of_pairs(model.reward, mean),
        chains.extended(model.discount, 1.0),
        chains.extended(model.initial, 0.0),
        chains.extended(model.ending_reward, 0.0),
        marks={label: chains.extended(states, False) for label, states in model.marks.items()},
        endless=model.endless,
    )
    return SplitMDP(chains, mdp, model)


def split_counts(model: Counts) -> SplitCounts:
    """Returns D^2s, in which rewards of transitions are summed over all below a child of a pair."""
    seen = model.times > 0
    offsets = arrays.offsets_of(arrays.run_sums(seen.astype(np.int64), model.offsets))
    times = model.times[seen]
    before = arrays.offsets_of(times)
    below = np.repeat(before[offsets[1:]], arrays.run_lengths(offsets)) - before[:-1]
    chains = SplitChains.of(model.pairs, offsets, model.successor[seen])
    rewards = model.rewards
    if rewards.per == "pair":
        rewards = rewards.changed(lambda values: chains.extended(values, 0.0))
    else:
        earned = rewards.values[seen]
        with np.errstate(over="ignore"):  # `Counts` refuses an infinite sum by name
            earned = earned * times if rewards.known else earned
        sums = chains.of_pairs(earned, discounted_returns(offsets, earned, 1.0))
        rewards = LoggedRewards(sums, "transition", False)
    counts = Counts(
        chains.pairs,
        chains.offsets,
        chains.child,
        chains.children(times, below),
        rewards,
        chains.extended(model.starts, 0),
        chains.extended(model.terminal, False),
    )
    return SplitCounts(chains, counts, model)
