"""Computes Bellman backups of a model: values of pairs, of best actions, and under a policy."""

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.kernels.backup import (
    best_values,
    expected_values,
    greedy,
    largest_values,
    pair_values,
)
from surestep.kernels.devices import brought_home
from surestep.kernels.records import Model
from surestep.kernels.types import is_there
from surestep.model import FiniteMDP, Pairs
from surestep.planning.proof import TIE_TOLERANCE


class FixedRows(NamedTuple):
    """One model, taken out of a set or a batch, with the expected rewards of its pairs."""

    pairs: Pairs
    discount: arrays.FloatArray  # [K]
    offsets: arrays.IntArray  # [K+1]
    successor: arrays.IndexArray  # [T]
    probability: arrays.FloatArray  # [T]
    expected_reward: arrays.FloatArray  # [K]


RowModel = FiniteMDP | FixedRows


class Backup(Model):
    """The arrays that a Bellman backup reads."""

    @classmethod
    def of(cls, mdp: RowModel) -> "Backup":
        """Returns the arrays of the whole model."""
        return cls(
            mdp.pairs.offsets,
            mdp.offsets,
            mdp.successor,
            mdp.probability,
            mdp.discount,
            mdp.expected_reward,
        )

    def best(self, value: arrays.FloatArray, result: arrays.FloatArray) -> None:
        """Writes max_a q(s,a) for all states into `result` [S].

        A GPU goes pair by pair, then state by state: a thread that does all pairs of a state would
        read memory in steps that are too wide.
        """
        if is_there(result):
            largest_values(self.pair_offsets, self.q(value), result)
        else:
            best_values(self, value, result)

    def q(self, value: arrays.FloatArray) -> arrays.FloatArray:
        """Returns r(s,a) + Γ(s,a) Σ_s' P(s'|s,a) v(s') for all pairs [K]."""
        result = np.empty_like(self.reward)
        pair_values(self, value, result)
        return result


def averaged(
    pairs: Pairs, policy: arrays.FloatArray, values: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns Σ_a π(a|s) x(s,a) [S]."""
    result = np.empty(pairs.num_states)
    expected_values(pairs.offsets, policy, values, result)
    return result


def best_of(pairs: Pairs, q: arrays.FloatArray) -> arrays.FloatArray:
    """Returns the greedy policy for q [K]: the best action of each state, the lowest among ties."""
    probability = np.empty_like(q)
    greedy(pairs.offsets, q, TIE_TOLERANCE * float(np.abs(q).max()), probability)
    return arrays.own(brought_home(probability))
