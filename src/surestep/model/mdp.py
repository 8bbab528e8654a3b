"""Defines the finite MDP: known dynamics, rewards, discounts and start, in flat arrays."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Struct

import surestep._arrays as arrays
from surestep._files import failing_to_read, failing_to_write, new_folder, read_path, read_whole
from surestep._json import converted, read_json
from surestep._settings import Each
from surestep.errors import InvalidModel
from surestep.model.noun import noun
from surestep.model.pairs import Labels, Pairs, Transitions, index_of, places_of, read_noun


def read_matrices(name: str, matrices: Sequence[Any]) -> Any:
    """Stacks square sparse matrices [S, S] on top of each other [A·S, S], with sorted rows."""
    from scipy.sparse import csr_array, issparse, vstack

    if not isinstance(matrices, Sequence) or not matrices:
        raise InvalidModel(f"{name} is not a sequence of sparse matrices, one an action")
    for action, matrix in enumerate(matrices):
        if not issparse(matrix):
            raise InvalidModel(
                f"{name}[{action}] is of type {type(matrix).__name__}, expected a SciPy sparse "
                "matrix (tables go into FiniteMDP.from_dense)"
            )
        if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
            raise InvalidModel(f"{name}[{action}] holds {matrix.dtype} values, expected numbers")
        size = matrices[0].shape[0]
        if matrix.shape != (size, size) or size == 0:
            raise InvalidModel(
                f"{name}[{action}] has shape {matrix.shape}, expected {(size, size)}"
            )
    # Converted to doubles first: repeated entries would add up in, say, 8 bits.
    rows = csr_array(vstack([matrix.astype(np.float64) for matrix in matrices], format="csr"))
    rows.sum_duplicates()
    return rows


class DenseMDP(NamedTuple):
    """The tables of an MDP, in the order in which `FiniteMDP.from_dense` takes them.

    Parameters
    ----------
    P : array of float [S, A, S]
        The probabilities; a row of zeros ends the episode.
    R : array of float [S, A] or [S, A, S]
        The rewards; [S, A, S] if they differ between the successors of a pair.
    discount : array of float [S, A]
        The discounts.
    initial : array of float [S]
        The start distribution.
    enabled : array of bool [S, A]
        False for actions that do not exist.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[1.0], [1.0]]], [[0.0, 1.0]], discount=0.5)
    >>> mdp.dense().R
    array([[0., 1.]])
    """

    P: arrays.FloatArray  # [S, A, S]
    R: arrays.FloatArray  # [S, A] or [S, A, S]
    discount: arrays.FloatArray  # [S, A]
    initial: arrays.FloatArray  # [S]
    enabled: arrays.BoolArray  # [S, A]


FOLDER = "surestep model 1"  # the format of a folder that holds a model
WORDS = "model.json"  # the file of a folder for labels and settings
# The arrays of a model, each in a file of its name; the arrays of its pairs have files, too.
FILES = ("offsets", "successor", "probability", "reward", "discount", "initial", "ending_reward")
PAIRS_AT_A_TIME = 2**16


class FolderWords(Struct, kw_only=True):
    """The contents of `model.json`: all fields of a saved model but its arrays."""

    format: Literal["surestep model 1"]
    num_actions: int
    state_labels: list[str] | None = None
    action_labels: list[str] | None = None
    marks: dict[str, list[int]] = {}  # label → the states that carry it
    endless: Literal["0.0", "inf", "-inf"] | None = "0.0"


@noun("num_states", "num_pairs", "num_transitions", "discount")
@dataclass(frozen=True, slots=True, eq=False)
class FiniteMDP(Transitions, arrays.ByValue):
    """A finite MDP M = (S, A, ι, P, R, γ) with its own actions in each state and discounts by pair.

    V(s) = Σ_a π(a|s) Σ_s' P(s'|s,a) (R(s,a,s') + Γ(s,a) V(s')). A pair without successors earns
    its `ending_reward` and ends the episode.

    Parameters
    ----------
    pairs : Pairs
        The enabled actions of each state.
    offsets : array of int [K+1]
        Pair k owns the transitions `offsets[k]` … `offsets[k+1] − 1`.
    successor : array of int [T]
        The state s' that each transition leads to.
    probability : array of float [T]
        The probability P(s'|s,a) of each transition.
    reward : array of float [T]
        The reward R(s,a,s') of each transition.
    discount : array of float [K]
        The discount Γ(s,a) of each pair, from 0 to 1.
    initial : array of float [S]
        The start distribution ι.
    ending_reward : array of float [K], optional
        The reward of pairs without successors, 0 at others; by default 0 everywhere.
    marks : mapping from str to array of bool [S], optional
        Labels of states, such as `goal`; they mean nothing to planning.
    endless : {0.0, inf, -inf, None}, default 0.0
        The worth of an endless episode without rewards: 0; ∞, as for a model checker that asks for
        the reward until a label; or None, no value, as in estimates from logs.

    Attributes
    ----------
    expected_reward : array of float [K]
        The expected reward Σ_s' P(s'|s,a) R(s,a,s') of each pair.

    Raises
    ------
    InvalidModel
        If the numbers make no model; the message names the first wrong one.

    Notes
    -----
    The stored numbers *are* the model: rows that sum to 1 within rounding are kept as they are,
    rows within 1e-6 of it are rescaled. If pairs of discount 1 form a cycle, only policies that end
    for certain, or go on without rewards, have a value (`planning.ends`).

    Examples
    --------
    >>> P = [[[0.9, 0.1], [0.2, 0.8]], [[0.0, 0.0], [0.0, 0.0]]]  # the second state is an end
    >>> mdp = surestep.FiniteMDP.from_dense(P, [[1.0, 0.0], [0.0, 0.0]], discount=0.9)
    >>> mdp
    FiniteMDP(num_states=2, num_pairs=4, num_transitions=4, discount=0.9)
    >>> surestep.optimal(mdp.with_discount(0.5)).value.round(3)
    array([1.818, 0.   ])
    """

    probability: Annotated[arrays.FloatArray, Each("T", 0)]
    reward: Annotated[arrays.FloatArray, Each("T")]
    discount: Annotated[arrays.FloatArray, Each("K", 0, 1)]
    initial: arrays.FloatArray  # [S]
    ending_reward: Annotated[arrays.FloatArray, Each("K")] = field(default=None)  # type: ignore[arg-type]
    marks: Mapping[str, arrays.BoolArray] = field(default=None)  # type: ignore[arg-type]
    endless: float | None = 0.0
    expected_reward: arrays.FloatArray = field(init=False)  # [K]

    def __post_init__(self) -> None:
        read_noun(self, InvalidModel)
        pairs = self.pairs
        offsets = self.offsets
        ending = self.ending_reward
        if self.endless not in (0.0, np.inf, -np.inf, None):
            raise InvalidModel(f"endless is {self.endless!r}, expected 0, ∞, −∞ or None")
        for k, others in arrays.first_where((ending != 0) & (offsets[1:] > offsets[:-1]), "pair"):
            raise InvalidModel(
                f"ending_reward of {pairs.pair_name(k)} is {ending[k]}, but the pair has "
                f"successors; expected 0 (its rewards are those of its transitions){others}"
            )
        words = arrays.RunWords(
            "transition probabilities",
            "pair",
            pairs.pair_name,
            " (or no successor at all, to end the episode)",
        )
        probability = arrays.normalised_runs(self.probability, offsets, words, InvalidModel)
        arrays.keep(
            self,
            probability=probability,
            initial=read_initial(pairs, self.initial),
            marks=read_marks(self.marks, pairs.num_states),
            expected_reward=expected_rewards(pairs, offsets, probability, self.reward, ending),
        )

    @classmethod
    def from_dense(
        cls,
        P: object,
        R: object,
        discount: object,
        initial: object = 0,
        enabled: object = None,
        *,
        state_labels: Labels = None,
        action_labels: Labels = None,
    ) -> "FiniteMDP":
        """Makes the MDP of tables.

        Parameters
        ----------
        P : array of float [S, A, S]
            The probabilities; a row of zeros is a pair that ends the episode.
        R : array of float [S, A] or [S, A, S]
            The rewards; of shape [S, A, S], pairs that end the episode earn 0.
        discount : float or array of float [S, A]
            One discount for all pairs, or one for each.
        initial : int, str or array of float [S], default 0
            The number or label of the start state, or a distribution over states.
        enabled : array of bool [S, A], optional
            False for actions that do not exist; by default all exist.
        state_labels : sequence of str, optional
            Names of the states.
        action_labels : sequence of str, optional
            Names of the actions.

        Returns
        -------
        FiniteMDP
            The model.
        """
        cube = arrays.numbers("P", P, InvalidModel)
        if cube.ndim != 3 or cube.shape[0] != cube.shape[2] or 0 in cube.shape:
            raise InvalidModel(f"P has shape {cube.shape}, expected [states, actions, states]")
        pairs = dense_pairs(cube.shape[:2], enabled, state_labels, action_labels)
        rows = cube[pairs.state, pairs.action]  # [K, S]
        pair, successor = np.nonzero(rows)  # NaN is not zero and is refused below
        offsets = arrays.offsets_of(np.count_nonzero(rows, axis=1))
        reward, ending = spread_rewards(pairs, offsets, successor, R)
        return cls(
            pairs,
            offsets,
            successor,
            rows[pair, successor],
            reward,
            spread_discount(pairs, discount),
            spread_initial(pairs, initial),
            ending,
        )

    @classmethod
    def from_sparse(
        cls,
        P: Sequence[Any],
        R: object,
        discount: object,
        initial: object = 0,
        enabled: object = None,
        *,
        state_labels: Labels = None,
        action_labels: Labels = None,
    ) -> "FiniteMDP":
        """Makes the MDP of SciPy sparse matrices.

        Parameters
        ----------
        P : sequence of sparse matrix [S, S]
            The probabilities, one matrix an action.
        R : array of float [S, A] or sequence of sparse matrix [S, S]
            The rewards; entries that are not stored are 0.
        discount : float or array of float [S, A]
            One discount for all pairs, or one for each.
        initial : int, str or array of float [S], default 0
            The number or label of the start state, or a distribution over states.
        enabled : array of bool [S, A], optional
            False for actions that do not exist; by default all exist.
        state_labels : sequence of str, optional
            Names of the states.
        action_labels : sequence of str, optional
            Names of the actions.

        Returns
        -------
        FiniteMDP
            The model.
        """
        stacked = read_matrices("P", P)
        states = stacked.shape[1]
        pairs = dense_pairs((states, len(P)), enabled, state_labels, action_labels)
        row = pairs.action.astype(np.int64) * states + pairs.state
        chances = stacked[row]
        chances.eliminate_zeros()
        offsets = chances.indptr.astype(np.int64)
        successor = chances.indices
        if isinstance(R, Sequence) and len(R) > 0 and hasattr(R[0], "tocsr"):
            rewards = read_matrices("R", R)
            if rewards.shape != stacked.shape:
                raise InvalidModel(
                    f"R has {len(R)} matrices of {rewards.shape[1]} states, expected {len(P)} of "
                    f"{states}"
                )
            reward: arrays.FloatArray = np.zeros(successor.size)
            if successor.size:  # of no places, SciPy gives a matrix
                reward = rewards[row[arrays.run_owners(offsets)], successor]
            ending = None
        else:
            reward, ending = spread_rewards(pairs, offsets, successor, R)
        return cls(
            pairs,
            offsets,
            successor,
            chances.data,
            reward,
            spread_discount(pairs, discount),
            spread_initial(pairs, initial),
            ending,  # type: ignore[arg-type]
        )

    def dense(self) -> DenseMDP:
        """Makes the tables of the model.

        Returns
        -------
        DenseMDP
            `FiniteMDP.from_dense(*mdp.dense())` is the same model.
        """
        pairs = self.pairs
        lengths = arrays.run_lengths(self.offsets)
        per_pair = self.ending_reward.copy()
        per_pair[lengths > 0] = self.reward[self.offsets[:-1][lengths > 0]]
        if np.array_equal(np.repeat(per_pair, lengths), self.reward):
            rewards = pairs.dense(per_pair)
        else:
            for k, others in arrays.first_where((lengths == 0) & (per_pair != 0), "pair"):
                raise InvalidModel(
                    f"{pairs.pair_name(k)} ends the episode with reward {per_pair[k]} while other "
                    f"pairs have a reward per successor: no one table holds both{others}"
                )
            rewards = self.dense_cube(self.reward)
        return DenseMDP(
            self.dense_cube(self.probability),
            rewards,
            pairs.dense(self.discount),
            self.initial.copy(),
            pairs.enabled(),
        )

    def with_discount(self, discount: object) -> "FiniteMDP":
        """Replaces the discount.

        Parameters
        ----------
        discount : float or array of float [S, A] or [K]
            One discount for all pairs, or one for each.

        Returns
        -------
        FiniteMDP
            The same model with this discount.
        """
        return replace(self, discount=spread_discount(self.pairs, discount))

    def with_rewards(self, R: object) -> "FiniteMDP":
        """Replaces the rewards.

        Parameters
        ----------
        R : array of float [S, A], [K] or [S, A, S]
            The rewards; of shape [S, A, S], pairs that end the episode earn 0. Rewards of
            transitions [T] are given as `dataclasses.replace(mdp, reward=...)`.

        Returns
        -------
        FiniteMDP
            The same model with these rewards.
        """
        reward, ending = spread_rewards(self.pairs, self.offsets, self.successor, R)
        return replace(self, reward=reward, ending_reward=ending)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the model to a new folder, whole or not at all, with one .npy file for each array.

        Parameters
        ----------
        folder : str or path
            A folder that does not exist yet.
        """
        path = read_path(folder)
        pairs = self.pairs
        words = {
            "format": FOLDER,
            "num_actions": pairs.num_actions,
            "state_labels": None if pairs.state_labels is None else [*pairs.state_labels],
            "action_labels": pairs.action_labels,
            "marks": {label: np.flatnonzero(self.marks[label]).tolist() for label in self.marks},
            "endless": None if self.endless is None else str(self.endless),
        }
        with new_folder(path) as fresh, failing_to_write(path):
            np.save(fresh / "pair_offsets.npy", pairs.offsets)
            np.save(fresh / "action.npy", pairs.action)
            for name in FILES:
                np.save(fresh / f"{name}.npy", getattr(self, name))
            (fresh / WORDS).write_text(json.dumps(words), "utf-8")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "FiniteMDP":
        """Loads the model of a folder that `save` wrote, or that has the same files.

        Parameters
        ----------
        folder : str or path
            The folder.

        Returns
        -------
        FiniteMDP
            Its files are mapped into memory, not read, so a model may be larger than memory. They
            are checked, and must not be changed while the model is used.

        Raises
        ------
        InvalidModel
            If the folder holds no model.
        """
        path = read_path(folder)
        try:
            words = converted(read_json(read_whole(path / WORDS)), FolderWords)
            rest = {name: mapped_array(path / f"{name}.npy") for name in FILES}
            pairs = Pairs(
                mapped_array(path / "pair_offsets.npy"),
                mapped_array(path / "action.npy"),
                words.num_actions,
                words.state_labels,
                words.action_labels,
            )
            states = np.arange(pairs.num_states)
            return cls(
                pairs,
                **rest,
                marks={label: np.isin(states, marked) for label, marked in words.marks.items()},
                endless=None if words.endless is None else float(words.endless),
            )
        except ValueError as problem:
            raise InvalidModel(f"{path} holds no model: {WORDS}: {problem}") from None
        except InvalidModel as problem:
            raise InvalidModel(f"{path} holds no model: {problem}") from None

    @property
    def num_pairs(self) -> int:
        """Returns K, the number of enabled pairs."""
        return self.pairs.num_pairs

    @property
    def num_transitions(self) -> int:
        """Returns T, the number of stored transitions."""
        return self.successor.size


def mapped_array(file: Path) -> arrays.AnyArray:
    """Returns the array in an .npy file, mapped into memory."""
    try:
        with failing_to_read(file):
            return np.asarray(np.lib.format.open_memmap(file, mode="r"))
    except ValueError as problem:
        raise InvalidModel(f"{file.name} is cut short, or no .npy file ({problem})") from None


def dense_pairs(
    shape: tuple[int, ...], enabled: object, state_labels: Labels, action_labels: Labels
) -> Pairs:
    """Returns the pairs of a table [S, A]: all pairs, or the pairs that the mask enables."""
    return Pairs.from_enabled(
        arrays.booleans(
            "enabled", np.ones(shape, np.bool_) if enabled is None else enabled, shape, InvalidModel
        ),
        state_labels=state_labels,
        action_labels=action_labels,
    )


def spread_rewards(
    pairs: Pairs, offsets: arrays.IntArray, successor: arrays.AnyArray, R: object
) -> tuple[arrays.FloatArray, arrays.FloatArray]:
    """Returns rewards [S, A], [K] or [S, A, S] as rewards of transitions [T] and of ends [K]."""
    rewards = arrays.numbers("R", R, InvalidModel)
    owner = arrays.run_owners(offsets)
    if rewards.shape == (pairs.num_states, pairs.num_actions, pairs.num_states):
        return (
            rewards[pairs.state[owner], pairs.action[owner], successor],
            np.zeros(pairs.num_pairs),
        )
    per_pair = pairs.flat("R", rewards, InvalidModel)
    return per_pair[owner], np.where(arrays.run_lengths(offsets) == 0, per_pair, 0.0)


def spread_discount(pairs: Pairs, discount: object) -> arrays.FloatArray:
    """Returns one discount for all pairs, or one for each ([S, A] or [K]), as [K]."""
    values = arrays.numbers("discount", discount, InvalidModel)
    return (
        np.full(pairs.num_pairs, float(values))
        if values.ndim == 0
        else pairs.flat("discount", values, InvalidModel)
    )


def spread_initial(pairs: Pairs, initial: object) -> arrays.FloatArray:
    """Returns the start as a distribution [S]; it is given as such, or as a number or label."""
    if not isinstance(initial, str):
        values = arrays.numbers("initial", initial, InvalidModel)
        if values.ndim > 0:
            return values.astype(np.float64)
        initial = values.item()
    state = index_of(
        "initial state", initial, places_of(pairs.state_labels), pairs.num_states, InvalidModel
    )
    distribution: arrays.FloatArray = np.eye(1, pairs.num_states, state)[0]
    return distribution


def expected_rewards(
    pairs: Pairs,
    offsets: arrays.IntArray,
    probability: arrays.FloatArray,
    reward: arrays.FloatArray,
    ending: arrays.FloatArray,
) -> arrays.FloatArray:
    """Returns Σ_s' P(s'|s,a) R(s,a,s') [K], or the ending reward if there is no successor."""
    expected: arrays.FloatArray = np.empty(pairs.num_pairs)
    for first in range(0, pairs.num_pairs, PAIRS_AT_A_TIME):  # so that no array is as large as T
        part = slice(first, first + PAIRS_AT_A_TIME)
        starts = offsets[first : first + PAIRS_AT_A_TIME + 1]
        rows = slice(starts[0], starts[-1])
        with np.errstate(over="ignore"):
            expected[part] = (
                arrays.run_sums(probability[rows] * reward[rows], starts - rows.start)
                + ending[part]
            )
    for k, others in arrays.first_where(~np.isfinite(expected), "pair"):
        raise InvalidModel(
            f"the expected reward of {pairs.pair_name(k)} is too large for a double{others}"
        )
    return arrays.own(expected)


def read_initial(pairs: Pairs, initial: object) -> arrays.FloatArray:
    """Checks and returns the initial distribution [S]."""
    values = arrays.floats(
        "initial", initial, (pairs.num_states,), InvalidModel, pairs.state_name, least=0
    )
    return arrays.normalised_runs(
        values,
        np.array([0, values.size]),
        arrays.RunWords("probabilities", "distribution", lambda _: "the initial distribution"),
        InvalidModel,
    )


# ---- marks: the states that carry a label, such as `goal` or `unsafe` ---------------------------


@noun("labels")
@dataclass(frozen=True, slots=True, eq=False)
class Marks(arrays.ByValue, Mapping[str, arrays.BoolArray]):
    """A read-only mapping from labels to the states that carry them: `marks["goal"]` is [S]."""

    labels: tuple[str, ...]  # [L] in rising order
    states: arrays.BoolArray  # [L, S]

    def __getitem__(self, label: str) -> arrays.BoolArray:
        if label not in self.labels:
            raise KeyError(label)
        states: arrays.BoolArray = self.states[self.labels.index(label)]
        return states

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)


def read_marks(marks: object, num_states: int) -> Marks:
    """Checks and returns the marks of a model with `num_states` states; None stands for none."""
    if not isinstance(marks, Mapping | None):
        raise InvalidModel(
            f"marks is of type {type(marks).__name__}, expected a dict of labels and masks [S]"
        )
    given = dict(marks or {})
    for label in given:
        if not isinstance(label, str):
            raise InvalidModel(f"a label of marks is {label!r}, expected a string")
    labels = tuple(sorted(given))
    shape = (num_states,)
    rows = [
        arrays.booleans(f"mark {label!r}", given[label], shape, InvalidModel) for label in labels
    ]
    return Marks(labels, arrays.own(np.array(rows, np.bool_).reshape(len(labels), num_states)))
