"""Defines policies (a distribution over the enabled actions of every state), and plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import numpy as np

import surestep._arrays as arrays
from surestep._reprs import frame_of
from surestep._settings import Each, check_settings
from surestep.errors import InvalidParameter, InvalidPolicy
from surestep.model.noun import noun
from surestep.model.pairs import (
    HasPairs,
    Pairs,
    check_same_pairs,
    in_labels,
    index_of,
    pairs_of,
    places_of,
    read_noun,
)


class HasPolicy(Protocol):
    """An object that has a policy: a Plan, an Improvement, a Result."""

    @property
    def policy(self) -> Policy:
        """Returns the policy."""


@noun("pairs.num_states", "pairs.num_pairs", "estimated")
@dataclass(frozen=True, slots=True, eq=False)
class Policy(arrays.ByValue):
    """A memoryless stochastic policy π(a|s): a probability for each enabled pair.

    `policy[state]` is the array [A] of the probabilities of all actions in a state, given by number
    or label; actions that are not enabled have 0.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    probability : array of float [K]
        The probabilities; in each state they add up to 1.
    estimated : bool, default False
        True if the policy was estimated from a log, or mixed with such a policy: claims then hold
        relative to that estimate.

    Raises
    ------
    InvalidPolicy
        If a state has no distribution.

    Examples
    --------
    >>> pairs = surestep.Pairs.full(
    ...     2, 2, state_labels=("ward", "out"), action_labels=("wait", "treat")
    ... )
    >>> habit = surestep.Policy.from_dense(pairs, [[0.8, 0.2], [0.5, 0.5]])
    >>> habit["ward"], habit.sample("ward", rng=1)
    (array([0.8, 0.2]), 0)
    >>> always = surestep.Policy.deterministic(pairs, {"ward": "treat", "out": "wait"})
    >>> habit.mix(always, 0.5).to_frame()
      state action  probability
    0  ward   wait         0.40
    1  ward  treat         0.60
    2   out   wait         0.75
    3   out  treat         0.25
    """

    pairs: Pairs
    probability: Annotated[arrays.FloatArray, Each("K", 0)]
    estimated: bool = False

    def __post_init__(self) -> None:
        check_settings(self, InvalidPolicy)
        read_noun(self, InvalidPolicy)
        values = arrays.normalised_runs(
            self.probability,
            self.pairs.offsets,
            arrays.RunWords("action probabilities", "state", self.pairs.state_name),
            InvalidPolicy,
        )
        object.__setattr__(self, "probability", arrays.own(values))

    @classmethod
    def from_dense(cls, source: Pairs | HasPairs, table: object) -> Policy:
        """Makes the policy of a table of probabilities.

        Parameters
        ----------
        source : Pairs, FiniteMDP, Counts or Policy
            The pairs, or an object that has them.
        table : array of float [S, A] or [K]
            The probabilities; 0 at actions that are not enabled.

        Returns
        -------
        Policy
            The policy.
        """
        pairs = pairs_of(source)
        return cls(pairs, pairs.flat("policy", table, InvalidPolicy, zero_elsewhere=True))

    @classmethod
    def uniform(cls, source: Pairs | HasPairs) -> Policy:
        """Makes the policy that takes every enabled action with the same probability.

        Parameters
        ----------
        source : Pairs, FiniteMDP, Counts or Policy
            The pairs, or an object that has them.

        Returns
        -------
        Policy
            The policy.
        """
        pairs = pairs_of(source)
        lengths = arrays.run_lengths(pairs.offsets)
        return cls(pairs, np.repeat(1.0 / lengths, lengths))

    @classmethod
    def deterministic(cls, source: Pairs | HasPairs, actions: object) -> Policy:
        """Makes the policy that takes one action in each state.

        Parameters
        ----------
        source : Pairs, FiniteMDP, Counts or Policy
            The pairs, or an object that has them.
        actions : array of int [S], dict or callable
            The action of each state. A dict has an action for every state. A function takes the
            label of a state, or its number if there are no labels, and returns an action. In both,
            states and actions are labels or numbers.

        Returns
        -------
        Policy
            The policy.

        Raises
        ------
        InvalidPolicy
            If a state has no action, or one that is not enabled.
        """
        pairs = pairs_of(source)
        if callable(actions) or isinstance(actions, Mapping):
            actions = action_of_each_state(pairs, actions)
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
        """Makes the policy π(a|s) ∝ exp(q(s,a) / temperature).

        Parameters
        ----------
        source : Pairs, FiniteMDP, Counts or Policy
            The pairs, or an object that has them.
        q : array of float [K] or [S, A]
            The values of pairs.
        temperature : float, default 1.0
            Above 0; the higher, the closer to uniform.

        Returns
        -------
        Policy
            The policy.
        """
        pairs = pairs_of(source)
        if not (arrays.is_number(temperature) and temperature > 0):
            raise InvalidParameter(f"temperature is {temperature!r}, expected a number above 0")
        values = pairs.flat("q", q, InvalidPolicy)
        lengths = arrays.run_lengths(pairs.offsets)
        best = np.maximum.reduceat(values, pairs.offsets[:-1])
        half_gap = values / 2 - np.repeat(best / 2, lengths)  # a whole gap might overflow
        with np.errstate(over="ignore"):  # an action whose exponent overflows is never taken
            weight = np.exp(half_gap / float(temperature) * 2)
        return cls(pairs, weight / np.repeat(arrays.run_sums(weight, pairs.offsets), lengths))

    def mix(self, other: Policy, weight: float) -> Policy:
        """Mixes two policies: (1 − weight) · self + weight · other, state by state.

        Parameters
        ----------
        other : Policy
            A policy over the same pairs.
        weight : float
            The weight of the other policy, from 0 to 1.

        Returns
        -------
        Policy
            The mixture; estimated if either is.
        """
        arrays.expect("other", other, Policy, InvalidPolicy)
        check_same_pairs("the first policy", self.pairs, "the second policy", other.pairs)
        if not (arrays.is_number(weight) and 0 <= weight <= 1):
            raise InvalidParameter(f"weight is {weight!r}, expected 0 to 1")
        share = float(weight)
        mixed = (1 - share) * self.probability + share * other.probability
        same = self.probability == other.probability  # and is the same once mixed, to the last bit
        return Policy(
            self.pairs,
            np.where(same, self.probability, mixed),
            self.estimated or other.estimated,
        )

    def __getitem__(self, state: int | str) -> arrays.FloatArray:
        """Returns the probabilities [A] of all actions in a state, given by number or label."""
        pairs = self.pairs
        number = index_of("state", state, places_of(pairs.state_labels), pairs.num_states)
        run = slice(*pairs.offsets[number : number + 2])
        row: arrays.FloatArray = np.zeros(pairs.num_actions)
        row[pairs.action[run]] = self.probability[run]
        return row

    def __iter__(self) -> Iterator[arrays.FloatArray]:
        """Iterates over the probabilities [A] of the states, in their order."""
        return iter(self.dense())

    def sample(self, state: int | str, rng: np.random.Generator | int) -> int:
        """Draws an action.

        Parameters
        ----------
        state : int or str
            The number or label of a state.
        rng : numpy.random.Generator or int
            The source of randomness, or a seed.

        Returns
        -------
        int
            The number of the action; `pairs.action_labels` has its label.
        """
        return int(arrays.generator(rng).choice(self.pairs.num_actions, p=self[state]))

    def dense(self) -> arrays.FloatArray:
        """Makes the table of probabilities.

        Returns
        -------
        array of float [S, A]
            It has 0 at actions that are not enabled.
        """
        return self.pairs.dense(self.probability)

    def to_frame(self) -> Any:
        """Makes a data frame of state, action and probability.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The first of these that is installed. It has a row for each pair, with labels if the
            pairs have them, else numbers.
        """
        return frame_of(
            {
                "state": in_labels(self.pairs.state_labels, self.pairs.state),
                "action": in_labels(self.pairs.action_labels, self.pairs.action),
                "probability": self.probability,
            }
        )


PolicyLike = Policy | HasPolicy | arrays.AnyArray | list[Any]


def policy_of(source: PolicyLike, owner: Pairs | HasPairs, name: str = "policy") -> Policy:
    """Returns the given policy, or the policy of a Plan, an Improvement, a Result or a table.

    A table is an array or a list of probabilities [S, A] (or [K]) for the pairs of `owner`.
    Messages call it `name`.
    """
    if isinstance(source, np.ndarray | list):
        return Policy.from_dense(owner, source)
    policy = source if isinstance(source, Policy) else getattr(source, "policy", None)
    if not isinstance(policy, Policy):
        raise InvalidParameter(
            f"{name} is of type {type(source).__name__}, expected Policy, what has one (Plan, "
            "Improvement or Result), or an array of probabilities [states, actions]"
        )
    return policy


def action_of_each_state(
    pairs: Pairs, actions: Mapping[Any, Any] | Callable[[Any], Any]
) -> list[int]:
    """Returns the number of the action that a dict or a function gives to each state."""
    states = range(pairs.num_states)
    if isinstance(actions, Mapping):
        places = places_of(pairs.state_labels)
        given = {
            index_of("a state of actions", state, places, pairs.num_states): action
            for state, action in actions.items()
        }
        for s, others in arrays.first_where(np.array([s not in given for s in states]), "state"):
            raise InvalidPolicy(
                f"actions gives none to {pairs.state_name(s)}, expected one for every state{others}"
            )
        chosen = [given[s] for s in states]
    else:
        chosen = [actions(state) for state in (pairs.state_labels or states)]
    places = places_of(pairs.action_labels)
    return [index_of("an action", action, places, pairs.num_actions) for action in chosen]


@noun("policy.pairs.num_states", "value", "iterations", "error_bound")
@dataclass(frozen=True, slots=True, eq=False)
class Plan(arrays.Frozen):
    """A policy, its value, and a proven bound on the error of that value.

    Parameters
    ----------
    policy : Policy
        The policy π; it is within 2·`error_bound` of the best policy of the searched class.
    value : array of float [S]
        V^π, and the best value of that class (V* for `optimal`), to within `error_bound`.
    iterations : int
        The rounds it took.
    residual : float
        The number max_s |(Tv)(s) − v(s)| for v = `value` and the operator T that was iterated.
    error_bound : float
        The bound. If policies may go round for ever without discount, the bound of
        `policy_iteration` holds for V^π only.
    q : array of float [K], optional
        The value r + ΓPv of each pair; None for a worst case over several models.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[1.0], [1.0]]], [[0.0, 1.0]], discount=0.5)
    >>> plan = surestep.optimal(mdp)
    >>> plan.value, plan.q, plan.error_bound < 1e-9
    (array([2.]), array([1., 2.]), True)
    """

    policy: Policy
    value: arrays.FloatArray  # [S]
    iterations: int
    residual: float
    error_bound: float
    q: arrays.FloatArray | None = None  # [K]


def negated(plan: Plan) -> Plan:
    """Returns the plan with negated values."""
    return replace(plan, value=-plan.value, q=None if plan.q is None else -plan.q)
