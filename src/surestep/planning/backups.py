"""Value iteration leaves out pairs that cannot be best any more.

If v + low ≤ V* ≤ v + high, then q*(s,a) ≤ q_v(s,a) + γ max(high, 0) and V*(s) ≥ max_a q_v(s,a) +
γ min(low, 0): a pair whose q_v is further than γ (max(high, 0) − min(low, 0)) below the best of its
state is never best (J. MacQueen, "A test for suboptimal actions", Operations Research 15, 1967).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IndexArray, IntArray
from surestep.kernels.backup import (
    KeptModel,
    best_values,
    copy_kept,
    count_kept,
    expected_values,
    greedy,
    largest_values,
    pair_values,
)
from surestep.kernels.devices import brought_home
from surestep.kernels.records import Model
from surestep.kernels.types import is_there
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.planning.proof import ROW_EXCESS, TIE_TOLERANCE, Bracket

WORTH_COPYING = 0.9  # the share of pairs that may at most remain for a copy to be worth it


class FixedRows(NamedTuple):
    """A model of which only what a policy makes of it counts, as one of a set or of a batch."""

    pairs: Pairs
    discount: FloatArray  # [K]
    offsets: IntArray  # [K+1]
    successor: IndexArray  # [T]
    probability: FloatArray  # [T]
    expected_reward: FloatArray  # [K]


RowModel = FiniteMDP | FixedRows


class Backup(Model):
    """The arrays that a Bellman backup reads."""

    @classmethod
    def of(cls, mdp: RowModel) -> Backup:
        """Returns the arrays of the whole model."""
        return cls(
            mdp.pairs.offsets,
            mdp.offsets,
            mdp.successor,
            mdp.probability,
            mdp.discount,
            mdp.expected_reward,
        )

    @property
    def num_states(self) -> int:
        """|S|."""
        return self.pair_offsets.size - 1

    def best(self, value: FloatArray, result: FloatArray) -> None:
        """max_a q(s,a) for all states, into `result` [S].

        On a GPU pair by pair, then state by state: a thread that has all pairs of a state to itself
        reads memory in steps that are too wide.
        """
        if is_there(result):
            largest_values(self.pair_offsets, self.q(value), result)
        else:
            best_values(self, value, result)

    def q(self, value: FloatArray) -> FloatArray:
        """r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for the pairs that are left."""
        result = np.empty_like(self.reward)
        pair_values(self, value, result)
        return result


def averaged(pairs: Pairs, policy: FloatArray, values: FloatArray) -> FloatArray:
    """Σ_a π(a|s) x(s,a) [S]."""
    result = np.empty(pairs.num_states)
    expected_values(pairs.offsets, policy, values, result)
    return result


def best_of(pairs: Pairs, q: FloatArray) -> FloatArray:
    """Returns all mass on the best action of each state, the lowest among ties [K]."""
    probability = np.empty_like(q)
    greedy(pairs.offsets, q, TIE_TOLERANCE * float(np.abs(q).max()), probability)
    return arrays.own(brought_home(probability))


def pruned(backup: Backup, value: FloatArray, bracket: Bracket) -> Backup:
    """Returns the backup without the pairs that the bracket of `value` proves not to be best."""
    reach = max(bracket.high, 0.0) - min(bracket.low, 0.0)
    width = reach * float(backup.discount.max()) * (1 + ROW_EXCESS) + 2 * bracket.floor
    q = backup.q(value)
    states = backup.num_states
    pairs, transitions = np.empty(states, np.int64), np.empty(states, np.int64)
    count_kept(backup, q, width, pairs, transitions)
    pair_offsets, starts = arrays.offsets_of(pairs), arrays.offsets_of(transitions)
    if pair_offsets[-1] > WORTH_COPYING * q.size:
        return backup
    left = KeptModel(
        pair_offsets,
        np.zeros(pair_offsets[-1] + 1, np.int64),
        np.empty(starts[-1], np.int32),
        np.empty(starts[-1]),
        np.empty(pair_offsets[-1]),
        np.empty(pair_offsets[-1]),
    )
    copy_kept(backup, q, width, starts[:-1], left)
    return Backup(*left)
