"""Policies: a distribution over the enabled actions of every state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import (
    FloatArray,
    RunWords,
    equal_fields,
    floats,
    freeze,
    is_number,
    normalised_runs,
    run_lengths,
    run_sums,
    whole_numbers,
)
from surestep.errors import InvalidParameter, InvalidPolicy
from surestep.model.pairs import HasPairs, Pairs, check_same_pairs, pairs_of


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A memoryless stochastic policy π(a|s), one probability an enabled pair."""

    pairs: Pairs
    probability: FloatArray  # [K]

    def __post_init__(self) -> None:
        """Checks that every state has a distribution, and freezes it."""
        pairs = self.pairs
        if not isinstance(pairs, Pairs):
            raise InvalidPolicy(f"pairs is of type {type(pairs).__name__}, expected Pairs")
        values = floats(
            "probability", self.probability, (pairs.num_pairs,), InvalidPolicy, pairs.pair_name
        )
        words = RunWords("action probabilities", "state", pairs.state_name, pairs.pair_name)
        probability = normalised_runs(values, pairs.offsets, words, InvalidPolicy)
        object.__setattr__(self, "probability", freeze(probability))

    @classmethod
    def from_dense(cls, source: Pairs | HasPairs, table: object) -> Policy:
        """The policy given by a table [S, A] (or [K]), for a model or its pairs."""
        pairs = pairs_of(source)
        return cls(pairs, pairs.flat("policy", table, InvalidPolicy, zero_elsewhere=True))

    @classmethod
    def uniform(cls, source: Pairs | HasPairs) -> Policy:
        """Every enabled action with the same probability."""
        pairs = pairs_of(source)
        lengths = run_lengths(pairs.offsets)
        return cls(pairs, np.repeat(1.0 / lengths, lengths))

    @classmethod
    def deterministic(cls, source: Pairs | HasPairs, actions: object) -> Policy:
        """The policy that takes action `actions[s]` in state s."""
        pairs = pairs_of(source)
        chosen = whole_numbers(
            "actions", actions, (pairs.num_states,), InvalidPolicy, pairs.state_name
        )
        hit = pairs.action == np.repeat(chosen, run_lengths(pairs.offsets))
        missing = run_sums(hit.astype(np.int64), pairs.offsets) == 0
        if missing.any():
            state = int(np.argmax(missing))
            enabled = pairs.action[pairs.offsets[state] : pairs.offsets[state + 1]]
            raise InvalidPolicy(
                f"actions gives {chosen[state]} to {pairs.state_name(state)}, expected one of its "
                f"enabled actions {[int(a) for a in enabled]}"
            )
        return cls(pairs, hit.astype(np.float64))

    @classmethod
    def softmax(cls, source: Pairs | HasPairs, q: object, temperature: float = 1.0) -> Policy:
        """π(a|s) ∝ exp(q(s,a) / temperature), for `q` [K] or [S, A]."""
        pairs = pairs_of(source)
        if not (is_number(temperature) and temperature > 0):
            raise InvalidParameter(f"temperature is {temperature!r}, expected a number above 0")
        values = pairs.flat("q", q, InvalidPolicy)
        lengths = run_lengths(pairs.offsets)
        best = np.maximum.reduceat(values, pairs.offsets[:-1])
        with np.errstate(over="ignore"):  # a gap that overflows is an action never taken
            weight = np.exp((values - np.repeat(best, lengths)) / temperature)
        return cls(pairs, weight / np.repeat(run_sums(weight, pairs.offsets), lengths))

    def mix(self, other: Policy, weight: float) -> Policy:
        """(1 − weight) · self + weight · other, state by state."""
        check_same_pairs("the first policy", self.pairs, "the second policy", other.pairs)
        if not (is_number(weight) and 0 <= weight <= 1):
            raise InvalidParameter(f"weight is {weight!r}, expected 0 to 1")
        return Policy(self.pairs, (1 - weight) * self.probability + weight * other.probability)

    def dense(self) -> FloatArray:
        """The table [S, A], 0 at disabled actions."""
        return self.pairs.dense(self.probability)

    def __eq__(self, other: object) -> bool:
        """Equal by value."""
        return isinstance(other, Policy) and (self is other or equal_fields(self, other))

    __hash__ = None  # type: ignore[assignment]
