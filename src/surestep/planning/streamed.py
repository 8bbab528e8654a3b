"""Sweeps over a model larger than memory: block by block in order, and nothing kept of a block.

A state is backed up by the kernels that do it in memory, and its sums are added up in the same
order: the answers are those of the same model in memory, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IndexArray
from surestep.errors import InvalidModel, InvalidPolicy, ShapeMismatch
from surestep.kernels.chain import chain_sizes, chain_step
from surestep.kernels.greedy import greedy
from surestep.model.mapped import MappedBlock, MappedMDP
from surestep.model.policy import Policy, PolicyLike
from surestep.planning.chain import chain_of
from surestep.planning.horizons import discounted_horizon
from surestep.planning.proof import TIE_TOLERANCE, StoppingRule, check_tolerance, terms_of
from surestep.planning.pruning import Backup

BlockPolicy = Callable[
    [MappedBlock], FloatArray
]  # to the probabilities [k] of the pairs of a block


def backup_of(block: MappedBlock) -> Backup:
    """Returns the arrays that a Bellman backup of a block reads."""
    return Backup(
        block.pair_offsets,
        block.offsets,
        block.successor,
        block.probability,
        block.discount,
        block.reward,
    )


def streamed_rule(mdp: MappedMDP, tolerance: float | None) -> StoppingRule:
    """Returns when to stop, whatever the policy; discounts must be below 1."""
    check_tolerance(tolerance)
    facts = mdp.facts
    if facts.most_discount == 1.0:
        raise InvalidModel(
            f"{mdp.folder} has pairs of discount 1, for which a proof needs the whole model in "
            "memory; expected discounts below 1, or a FiniteMDP"
        )
    return StoppingRule(
        discounted_horizon(facts.least_discount, facts.most_discount, facts.endless),
        mdp.largest_reward,
        terms_of(facts.most_successors, facts.most_actions),
        tolerance,
    )


@dataclass(frozen=True, slots=True)
class StreamedBackup:
    """Bellman backups of all states, from files."""

    mdp: MappedMDP

    @property
    def num_states(self) -> int:
        """|S|."""
        return self.mdp.num_states

    def best(self, value: FloatArray, result: FloatArray) -> None:
        """max_a q(s,a) for all states, into `result` [S]."""
        for block in self.mdp.blocks():
            backup_of(block).best(value, result[block.states])

    def q_blocks(self, value: FloatArray) -> Iterator[tuple[MappedBlock, FloatArray]]:
        """r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for the pairs of one block after the other."""
        for block in self.mdp.blocks():
            yield block, backup_of(block).q(value)

    def best_actions(self, value: FloatArray) -> IndexArray:
        """Returns the best action [S] of each state, the lowest among ties.

        What counts as a tie depends on the largest |q| of all: this takes two passes.
        """
        tie = TIE_TOLERANCE * max(arrays.largest_magnitude(q) for _, q in self.q_blocks(value))
        action = np.empty(self.num_states, np.int32)
        for block, q in self.q_blocks(value):
            probability = np.empty_like(q)
            greedy(block.pair_offsets, q, tie, probability)
            action[block.states] = block.action[probability > 0]
        return action


@dataclass(frozen=True, slots=True)
class StreamedChain:
    """The chain of a policy, made block by block whenever it is needed."""

    mdp: MappedMDP
    policy: BlockPolicy

    def step(self, value: FloatArray) -> FloatArray:
        """r_π + W v."""
        result = np.empty_like(value)
        for block in self.mdp.blocks():
            rows = chain_of(backup_of(block), self.policy(block))
            after = result[block.states]
            chain_step(rows.offsets, rows.successor, rows.weight, rows.reward, value, after)
        return result

    def longest_row(self) -> int:
        """Returns the most weights of a row."""
        most = 0
        for block in self.mdp.blocks():
            states = block.pair_offsets.size - 1
            lengths, reward = np.empty(states, np.int64), np.empty(states)
            chain_sizes(backup_of(block), self.policy(block), lengths, reward)
            most = max(most, int(lengths.max()))
        return most


def block_policy(mdp: MappedMDP, source: PolicyLike) -> BlockPolicy:
    """Returns the probabilities of pairs, block by block, of a policy or of one action a state."""
    policy = getattr(source, "policy", source)
    if not isinstance(policy, Policy):
        actions = arrays.whole_numbers("policy", policy, (mdp.num_states,), InvalidPolicy)
        return lambda block: taken(block, actions[block.states])
    pairs = policy.pairs
    if (pairs.num_states, pairs.num_pairs) != (mdp.num_states, mdp.num_pairs):
        raise ShapeMismatch(
            f"the model has {mdp.num_states} states and {mdp.num_pairs} pairs, the policy has "
            f"{pairs.num_states} and {pairs.num_pairs}"
        )

    def probability(block: MappedBlock) -> FloatArray:
        offsets = pairs.offsets[block.states.start : block.states.stop + 1] - block.pairs.start
        if not (
            np.array_equal(offsets, block.pair_offsets)
            and np.array_equal(pairs.action[block.pairs], block.action)
        ):
            raise ShapeMismatch(
                "the model and the policy enable different actions in states "
                f"{block.states.start} to {block.states.stop - 1}"
            )
        chances: FloatArray = policy.probability[block.pairs]
        return chances

    return probability


def taken(block: MappedBlock, actions: IndexArray) -> FloatArray:
    """Returns the probabilities of the pairs of a block for one action a state [s]."""
    hit = block.action == np.repeat(actions, arrays.run_lengths(block.pair_offsets))
    arrays.refuse_where(
        arrays.run_sums(hit.astype(np.int64), block.pair_offsets) == 0,
        lambda s: (
            f"policy gives action {actions[s]} to state {block.states.start + s}, expected one of "
            f"{block.action[block.pair_offsets[s] : block.pair_offsets[s + 1]].tolist()}"
        ),
        "state",
        InvalidPolicy,
    )
    chances: FloatArray = hit.astype(np.float64)
    return chances
