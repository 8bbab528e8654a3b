"""Policies: a distribution over the enabled actions of every state; and plans, which have one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, FloatArray, RunWords
from surestep._reprs import frame_of, short_repr
from surestep._settings import Each, check_settings
from surestep.errors import InvalidParameter, InvalidPolicy
from surestep.model.pairs import HasPairs, Pairs, check_same_pairs, pairs_of, read_noun


class HasPolicy(Protocol):
    """Whatever was found for a problem and has a policy: a Plan, an Improvement, a Result."""

    @property
    def policy(self) -> Policy:
        """Returns the policy."""


@dataclass(frozen=True, slots=True, eq=False)
class Policy(arrays.ByValue):
    """A memoryless stochastic policy π(a|s), one probability an enabled pair.

    `estimated` marks a policy that was not known but estimated from a log, and every mixture with
    one: what follows from it holds relative to that estimate only.
    """

    pairs: Pairs
    probability: Annotated[FloatArray, Each("K", 0)]
    estimated: bool = False

    __repr__ = short_repr("pairs.num_states", "pairs.num_pairs", "estimated")

    def __post_init__(self) -> None:
        """Checks that every state has a distribution, and freezes it."""
        check_settings(self, InvalidPolicy)
        read_noun(self, InvalidPolicy)
        words = RunWords("action probabilities", "state", self.pairs.state_name)
        offsets, values = self.pairs.offsets, self.probability
        values = arrays.own(arrays.normalised_runs(values, offsets, words, InvalidPolicy))
        object.__setattr__(self, "probability", values)

    @classmethod
    def from_dense(cls, source: Pairs | HasPairs, table: object) -> Policy:
        """Returns the policy given by a table [S, A] (or [K]), for a model or its pairs."""
        pairs = pairs_of(source)
        return cls(pairs, pairs.flat("policy", table, InvalidPolicy, zero_elsewhere=True))

    @classmethod
    def uniform(cls, source: Pairs | HasPairs) -> Policy:
        """Every enabled action with the same probability."""
        pairs = pairs_of(source)
        lengths = arrays.run_lengths(pairs.offsets)
        return cls(pairs, np.repeat(1.0 / lengths, lengths))

    @classmethod
    def deterministic(cls, source: Pairs | HasPairs, actions: object) -> Policy:
        """Returns the policy that takes action `actions[s]` in state s."""
        pairs = pairs_of(source)
        chosen = arrays.whole_numbers(
            "actions", actions, (pairs.num_states,), InvalidPolicy, pairs.state_name
        )
        hit = pairs.action == np.repeat(chosen, arrays.run_lengths(pairs.offsets))
        for s, others in arrays.first_where(
            arrays.run_sums(hit.astype(np.int64), pairs.offsets) == 0, "state"
        ):
            raise InvalidPolicy(
                f"actions gives {chosen[s]} to {pairs.state_name(s)}, expected one of its enabled "
                f"actions {pairs.action[pairs.offsets[s] : pairs.offsets[s + 1]].tolist()}{others}"
            )
        return cls(pairs, hit.astype(np.float64))

    @classmethod
    def softmax(cls, source: Pairs | HasPairs, q: object, temperature: float = 1.0) -> Policy:
        """π(a|s) ∝ exp(q(s,a) / temperature), for `q` [K] or [S, A]."""
        pairs = pairs_of(source)
        if not (arrays.is_number(temperature) and temperature > 0):
            raise InvalidParameter(f"temperature is {temperature!r}, expected a number above 0")
        values = pairs.flat("q", q, InvalidPolicy)
        lengths = arrays.run_lengths(pairs.offsets)
        best = np.maximum.reduceat(values, pairs.offsets[:-1])
        half_gap = values / 2 - np.repeat(best / 2, lengths)  # a whole gap might overflow
        with np.errstate(over="ignore"):  # an exponent that overflows is an action never taken
            weight = np.exp(half_gap / float(temperature) * 2)
        return cls(pairs, weight / np.repeat(arrays.run_sums(weight, pairs.offsets), lengths))

    def mix(self, other: Policy, weight: float) -> Policy:
        """(1 − weight) · self + weight · other, state by state."""
        arrays.expect("other", other, Policy, InvalidPolicy)
        check_same_pairs("the first policy", self.pairs, "the second policy", other.pairs)
        if not (arrays.is_number(weight) and 0 <= weight <= 1):
            raise InvalidParameter(f"weight is {weight!r}, expected 0 to 1")
        share = float(weight)
        return Policy(
            self.pairs,
            (1 - share) * self.probability + share * other.probability,
            self.estimated or other.estimated,
        )

    def dense(self) -> FloatArray:
        """Returns the table [S, A], 0 at disabled actions."""
        return self.pairs.dense(self.probability)

    def to_frame(self) -> Any:
        """Returns a table of state, action, probability: of pandas, polars or Arrow, as installed.

        A row a pair; labels where the pairs have them, else numbers.
        """
        pairs = self.pairs
        state, action = (
            numbers if labels is None else np.array(labels, object)[numbers]
            for numbers, labels in (
                (pairs.state, pairs.state_labels),
                (pairs.action, pairs.action_labels),
            )
        )
        return frame_of({"state": state, "action": action, "probability": self.probability})

    __setstate__ = arrays.restore_frozen


PolicyLike = Policy | HasPolicy | AnyArray | list[Any]


def policy_of(source: PolicyLike, owner: Pairs | HasPairs) -> Policy:
    """Returns the policy itself, that of a Plan, an Improvement or a Result, or that of a table.

    A table is an array or a list of probabilities [S, A] (or [K]) for the pairs of `owner`.
    """
    if isinstance(source, np.ndarray | list):
        return Policy.from_dense(owner, source)
    policy = source if isinstance(source, Policy) else getattr(source, "policy", None)
    if not isinstance(policy, Policy):
        raise InvalidParameter(
            f"policy is of type {type(source).__name__}, expected Policy, what has one (Plan, "
            "Improvement or Result), or an array of probabilities [states, actions]"
        )
    return policy


@dataclass(frozen=True, slots=True, eq=False)
class Plan(arrays.Frozen):
    """A policy, its value, and how far that value can be off.

    Both V^π of the policy and the best value in the class that was searched (V* for `optimal`)
    lie within `error_bound` of `value` in every state; so the policy is within 2·`error_bound` of
    the best one. `q` is r + ΓPv for v = `value`: the value of each pair. `residual` is
    max_s |(Tv)(s) − v(s)| for the operator T that was iterated. Where policies may go round for
    ever without discount, the bound of `policy_iteration` is about V^π alone.
    """

    policy: Policy
    value: FloatArray  # [S]
    iterations: int
    residual: float
    error_bound: float
    q: FloatArray | None = None  # [K]; None of a worst case over several models

    __repr__ = short_repr("policy.pairs.num_states", "value", "iterations", "error_bound")

    __setstate__ = arrays.restore_frozen


def negated(plan: Plan) -> Plan:
    """Returns the plan with values of the other sign."""
    return replace(plan, value=-plan.value, q=None if plan.q is None else -plan.q)
