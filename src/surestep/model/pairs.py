"""Defines the pairs of states and enabled actions, and checks arrays that are built on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any, Protocol

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._names import twice
from surestep._settings import Each, check_setting, check_settings, read_arrays
from surestep.errors import InvalidModel, InvalidParameter, ShapeMismatch, SurestepError
from surestep.model.noun import noun

Labels = Sequence[str] | None
Number = Annotated[int, Meta(ge=1, le=arrays.LARGEST_INDEX)]


@noun("num_states", "num_actions", "num_pairs")
@dataclass(frozen=True, slots=True, eq=False)
class Pairs(arrays.ByValue):
    """The enabled state-action pairs, numbered state by state and action by action.

    Every state has at least one action; a state that ends an episode has a pair without successors.

    Parameters
    ----------
    offsets : array of int [S+1]
        State s owns the pairs `offsets[s]` … `offsets[s+1] − 1`.
    action : array of int [K]
        The action of each pair, rising within a state.
    num_actions : int
        Actions are numbered 0 … `num_actions` − 1; not all are enabled everywhere.
    state_labels : sequence of str [S], optional
        Distinct names of the states.
    action_labels : sequence of str [num_actions], optional
        Distinct names of the actions.

    Raises
    ------
    InvalidModel
        If numbers or labels do not fit together.

    Examples
    --------
    >>> pairs = surestep.Pairs.full(
    ...     2, 2, state_labels=("ward", "out"), action_labels=("wait", "treat")
    ... )
    >>> pairs.num_pairs, pairs.pair_name(1), pairs.dense([1, 2, 3, 4]).tolist()
    (4, "state 'ward', action 'treat'", [[1.0, 2.0], [3.0, 4.0]])
    """

    offsets: arrays.IntArray  # [S+1]
    action: Annotated[arrays.IndexArray, Each("K", 0, below="A")]
    num_actions: Number
    state_labels: Labels = None  # [S]
    action_labels: Labels = None  # [num_actions]

    def __post_init__(self) -> None:
        check_settings(self, InvalidModel)
        pairs = arrays.numbers("action", self.action, InvalidModel).size
        read_arrays(self, InvalidModel, {"A": self.num_actions, "K": pairs}, {})
        action = self.action
        size = arrays.numbers("pair offsets", self.offsets, InvalidModel).size
        arrays.keep(
            self,
            state_labels=checked_labels("state", self.state_labels, size - 1),
            action_labels=checked_labels("action", self.action_labels, self.num_actions),
        )
        offsets = arrays.read_full_offsets(
            "pair offsets",
            self.offsets,
            action.size,
            InvalidModel,
            (self.state_name, "action (a state that ends the episode has one without successors)"),
        )
        arrays.keep(self, offsets=offsets)
        for k, others in arrays.first_where(arrays.not_rising(action, offsets), "pair"):
            raise InvalidModel(
                f"the actions of {self.state_name(arrays.owner(offsets, k))} are not rising: "
                f"{action[k - 1]} is followed by {action[k]}{others}"
            )

    @classmethod
    def full(
        cls,
        num_states: int,
        num_actions: int,
        *,
        state_labels: Labels = None,
        action_labels: Labels = None,
    ) -> "Pairs":
        """Makes the pairs of states in which every action is enabled.

        Parameters
        ----------
        num_states : int
            |S|.
        num_actions : int
            |A|.
        state_labels : sequence of str, optional
            Names of the states.
        action_labels : sequence of str, optional
            Names of the actions.

        Returns
        -------
        Pairs
            |S|·|A| pairs.
        """
        for name, number in {"num_states": num_states, "num_actions": num_actions}.items():
            check_setting(name, arrays.as_python(number), Number, InvalidModel)
        return cls(
            arrays.own(np.arange(num_states + 1) * num_actions),
            np.tile(np.arange(num_actions), num_states),
            num_actions,
            state_labels,
            action_labels,
        )

    @classmethod
    def from_enabled(
        cls, enabled: arrays.BoolArray, *, state_labels: Labels = None, action_labels: Labels = None
    ) -> "Pairs":
        """Makes the pairs for which a mask is true.

        Parameters
        ----------
        enabled : array of bool [S, A]
            True for the actions that exist.
        state_labels : sequence of str, optional
            Names of the states.
        action_labels : sequence of str, optional
            Names of the actions.

        Returns
        -------
        Pairs
            The enabled pairs.
        """
        shape = arrays.numbers("enabled", enabled, InvalidModel).shape
        if len(shape) != 2 or 0 in shape:
            raise InvalidModel(f"enabled has shape {shape}, expected [states, actions]")
        mask = arrays.booleans("enabled", enabled, shape, InvalidModel)
        return cls(
            arrays.own(arrays.offsets_of(np.count_nonzero(mask, axis=1))),
            np.nonzero(mask)[1],
            shape[1],
            state_labels,
            action_labels,
        )

    @property
    def num_states(self) -> int:
        """Returns |S|."""
        return self.offsets.size - 1

    @property
    def num_pairs(self) -> int:
        """Returns K, the number of enabled pairs."""
        return self.action.size

    @property
    def state(self) -> arrays.IntArray:
        """Returns the state of each pair [K]."""
        return arrays.run_owners(self.offsets)

    def enabled(self) -> arrays.BoolArray:
        """Makes the mask of enabled actions.

        Returns
        -------
        array of bool [S, A]
            True for enabled actions.
        """
        mask = np.zeros((self.num_states, self.num_actions), np.bool_)
        mask[self.state, self.action] = True
        return mask

    def state_name(self, state: int) -> str:
        """Names a state in a message.

        Parameters
        ----------
        state : int
            Its number.

        Returns
        -------
        str
            Such as "state 3", or with labels "state 'ward'".
        """
        return f"state {state if self.state_labels is None else repr(self.state_labels[state])}"

    def action_name(self, action: int) -> str:
        """Names an action in a message.

        Parameters
        ----------
        action : int
            Its number.

        Returns
        -------
        str
            Such as "action 1", or with labels "action 'wait'".
        """
        return (
            f"action {action if self.action_labels is None else repr(self.action_labels[action])}"
        )

    def pair_name(self, pair: int) -> str:
        """Names a pair in a message.

        Parameters
        ----------
        pair : int
            Its number.

        Returns
        -------
        str
            Such as "state 3, action 1", or the same with labels.
        """
        state = self.state_name(arrays.owner(self.offsets, pair))
        return f"{state}, {self.action_name(int(self.action[pair]))}"

    def find(self, state: arrays.IndexArray, action: arrays.IndexArray) -> arrays.IntArray:
        """Finds the pair of each state and action.

        Parameters
        ----------
        state : array of int [N]
            Numbers of states.
        action : array of int [N]
            Numbers of actions.

        Returns
        -------
        array of int [N]
            Numbers of pairs; −1 if the action is not enabled in the state.
        """
        key = state.astype(np.int64) * self.num_actions + action
        if self.num_pairs == self.num_states * self.num_actions:
            return key
        keys = self.state * self.num_actions + self.action  # rising, as pairs are
        return arrays.places_among(keys, key)

    def flat(
        self, name: str, table: object, error: arrays.ErrorType, *, zero_elsewhere: bool = False
    ) -> arrays.FloatArray:
        """Reads a table or a flat array of finite numbers as a flat array.

        Parameters
        ----------
        name : str
            Its name, for messages.
        table : array of float [S, A] or [K]
            The numbers.
        error : type
            The class of error to raise.
        zero_elsewhere : bool, default False
            If True, entries of actions that are not enabled must be 0; otherwise they are ignored.

        Returns
        -------
        array of float [K]
            The number of each pair.
        """
        values: arrays.AnyArray = arrays.numbers(name, table, error)
        dense_shape = (self.num_states, self.num_actions)
        if values.ndim == 2 and values.shape == dense_shape:
            if zero_elsewhere:
                for i, others in arrays.first_where(~self.enabled() & (values != 0), "value"):
                    raise error(
                        f"{name} gives {values.flat[i]} to "
                        f"{self.state_name(i // self.num_actions)}, "
                        f"{self.action_name(i % self.num_actions)}, which is not enabled; "
                        f"expected 0{others}"
                    )
            values = values[self.state, self.action]
        elif values.shape != (self.num_pairs,):
            raise error(
                f"{name} has shape {values.shape}, expected {dense_shape} (states × actions) "
                f"or {(self.num_pairs,)} (enabled pairs)"
            )
        return arrays.floats(name, values, (self.num_pairs,), error, self.pair_name)

    def dense(self, values: arrays.FloatArray) -> arrays.FloatArray:
        """Spreads a flat array over a table.

        Parameters
        ----------
        values : array of float [K]
            The value of each pair.

        Returns
        -------
        array of float [S, A]
            It has 0 at actions that are not enabled.
        """
        table = np.zeros((self.num_states, self.num_actions))
        table[self.state, self.action] = values
        return table


class HasPairs(Protocol):
    """An object built on a set of pairs: a model, a policy, counts."""

    @property
    def pairs(self) -> Pairs:
        """Returns the pairs it is built on."""


def pairs_of(source: Pairs | HasPairs) -> Pairs:
    """Returns the given pairs, or the pairs of a model, a policy or counts."""
    pairs = source if isinstance(source, Pairs) else getattr(source, "pairs", None)
    if not isinstance(pairs, Pairs):
        raise SurestepError(f"expected a model or its pairs, found {type(source).__name__}")
    return pairs


def check_same_pairs(first_name: str, first: Pairs, second_name: str, second: Pairs) -> None:
    """Refuses pairs that differ in states, enabled actions or, if both have them, labels."""
    if first is second:
        return
    for what in ("states", "actions"):
        ours, theirs = (getattr(pairs, f"num_{what}") for pairs in (first, second))
        if ours != theirs:
            raise ShapeMismatch(f"{first_name} has {ours} {what}, {second_name} has {theirs}")
    if not np.array_equal(first.action, second.action) or (first.offsets != second.offsets).any():
        for s, others in arrays.first_where(
            np.any(first.enabled() != second.enabled(), axis=1), "state"
        ):
            raise ShapeMismatch(
                f"{first_name} and {second_name} enable different actions in "
                f"{first.state_name(s)}{others}"
            )
    for what in ("state", "action"):
        ours, theirs = (getattr(pairs, f"{what}_labels") for pairs in (first, second))
        if ours and theirs and ours != theirs:
            i = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
            raise ShapeMismatch(
                f"{what} {i} is {ours[i]!r} in {first_name} and {theirs[i]!r} in {second_name}"
            )


def checked_labels(kind: str, labels: Sequence[str] | None, expected: int) -> Labels:
    """Returns labels as a tuple of `expected` distinct strings, checked; lazy labels stay lazy."""
    if labels is None or isinstance(labels, LazyLabels):
        return labels
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise InvalidModel(f"{kind} labels are {labels!r}, expected a sequence of strings")
    result = tuple(labels)
    if len(result) != expected:
        raise InvalidModel(f"{len(result)} {kind} labels were given, expected {expected}")
    for index, name in enumerate(result):
        if not isinstance(name, str):
            raise InvalidModel(f"label of {kind} {index} is {name!r}, expected a string")
    for _, again in twice(result):
        raise InvalidModel(
            f"{kind} label {result[again]!r} is given twice, the second time at {again}"
        )
    return result


def places_of(labels: Labels) -> dict[str, int]:
    """Returns the number of each label; an empty dict without labels."""
    return {label: number for number, label in enumerate(labels or ())}


def index_of(
    what: str,
    given: object,
    places: Mapping[str, int],
    size: int,
    error: arrays.ErrorType = InvalidParameter,
) -> int:
    """Returns the number of one of `size` states or actions, given by its number or its label."""
    if isinstance(given, str) and given in places:
        return places[given]
    if arrays.is_number(given) and given in range(size):
        return int(given)
    labels = ", or a label" if places else ""
    raise error(f"{what} is {arrays.shown(given)}, expected 0 to {size - 1}{labels}")


def in_labels(labels: Labels, numbers: arrays.IntArray) -> arrays.AnyArray:
    """Returns the label of each number, None for −1; without labels, the numbers themselves."""
    return numbers if labels is None else np.array([*labels, None], object)[numbers]


@dataclass(eq=False)
class LazyLabels(Sequence[str]):
    """Distinct labels that a function makes when one of them is first used."""

    make: Callable[[], Sequence[str]]
    size: int  # the number of labels that `make` returns

    @cached_property
    def made(self) -> tuple[str, ...]:
        """Returns all labels."""
        return tuple(self.make())

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        return self.made[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.made == tuple(other)

    def __reduce__(self) -> Any:
        return tuple, (self.made,)


def picked_labels(labels: Labels, places: arrays.IntArray) -> Labels:
    """Returns the labels at these places; lazy labels give lazy labels."""
    if labels is None:
        return None

    def pick() -> tuple[str, ...]:
        return tuple(labels[place] for place in places.tolist())

    return LazyLabels(pick, places.size) if isinstance(labels, LazyLabels) else pick()


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """A base of data types that have numbers for the transitions of pairs.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    offsets : array of int [K+1]
        Pair k owns the transitions `offsets[k]` … `offsets[k+1] − 1`.
    successor : array of int [T]
        The state that each transition leads to.
    """

    pairs: Pairs
    offsets: arrays.IntArray  # [K+1]
    successor: arrays.IndexArray  # [T]

    @property
    def num_states(self) -> int:
        """Returns |S|."""
        return self.pairs.num_states

    def keys(self) -> arrays.IntArray:
        """Numbers the transitions by pair and successor, among all that are possible.

        Returns
        -------
        array of int [T]
            k · |S| + s' for the transition of pair k to state s'.
        """
        return arrays.run_owners(self.offsets) * np.int64(self.pairs.num_states) + self.successor

    def transition_name(self, index: int) -> str:
        """Names a transition in a message.

        Parameters
        ----------
        index : int
            Its place.

        Returns
        -------
        str
            Such as "state 3, action 1 → state 5", or the same with labels.
        """
        pair = self.pairs.pair_name(arrays.owner(self.offsets, index))
        return f"{pair} → {self.pairs.state_name(int(self.successor[index]))}"

    def dense_cube(self, values: arrays.Kind) -> arrays.Kind:
        """Spreads values of transitions over a table.

        Parameters
        ----------
        values : array [T]
            The value of each transition.

        Returns
        -------
        array [S, A, S]
            It has 0 elsewhere.
        """
        pairs = self.pairs
        cube = np.zeros((pairs.num_states, pairs.num_actions, pairs.num_states), values.dtype)
        pair = arrays.run_owners(self.offsets)
        cube[pairs.state[pair], pairs.action[pair], self.successor] = values
        return cube  # type: ignore[return-value]


def read_noun(
    noun: Any,
    error: arrays.ErrorType,
    sizes: Mapping[str, int] = MappingProxyType({}),
    names: Mapping[str, Callable[[int], str]] = MappingProxyType({}),
) -> None:
    """Checks and freezes the fields of a data type with pairs, by their annotations.

    Successors give T, the number of transitions. `sizes` has the sizes of axes other than S, A, K
    and T, and `names` the names of their entries for messages.
    """
    pairs = noun.pairs
    arrays.expect("pairs", pairs, Pairs, error)
    sizes = {"S": pairs.num_states, "A": pairs.num_actions, "K": pairs.num_pairs, **sizes}
    names = {"S": pairs.state_name, "K": pairs.pair_name, **names}
    if isinstance(noun, Transitions):
        offsets = arrays.read_offsets(
            "transition offsets",
            noun.offsets,
            pairs.num_pairs,
            arrays.numbers("successor", noun.successor, error).size,
            error,
        )
        successor = arrays.indices(
            "successor",
            noun.successor,
            pairs.num_states,
            error,
            lambda t: pairs.pair_name(arrays.owner(offsets, t)),
        )
        again = arrays.repeated_in_run(successor, offsets)
        for t, others in arrays.first_where(again, "transition"):
            raise error(
                f"successor {successor[t]} of {pairs.pair_name(arrays.owner(offsets, t))} is "
                "listed twice; expected each successor once (add the probabilities or counts "
                f"up){others}"
            )
        arrays.keep(noun, offsets=offsets, successor=successor)
        sizes["T"] = successor.size
        names["T"] = noun.transition_name
    read_arrays(noun, error, sizes, names)


def united(pairs: Pairs, parts: Sequence[Transitions]) -> tuple[Transitions, list[arrays.IntArray]]:
    """Returns the transitions of several models or counts together.

    The last value has, for each part, the places of its transitions among all transitions.
    """
    keys = [part.keys() for part in parts]
    union = np.concatenate(keys)
    if not (np.diff(union) > 0).all():  # the keys of a single model mostly rise
        union = np.unique(union)
    pair, successor = np.divmod(union, np.int64(pairs.num_states))
    offsets = arrays.offsets_of(np.bincount(pair, minlength=pairs.num_pairs))
    together = Transitions(pairs, offsets, successor.astype(np.int32))
    return together, [np.searchsorted(union, key) for key in keys]


def spread_rows(
    parts: Sequence[arrays.Kind], places: Sequence[arrays.IntArray], size: int, absent: float = 0
) -> arrays.Kind:
    """Returns a row [size] for each part: its values at its places, and `absent` elsewhere."""
    rows = np.full((len(parts), size), absent, parts[0].dtype)
    for row, place, values in zip(rows, places, parts, strict=True):
        row[place] = values
    return rows  # type: ignore[return-value]
