"""Defines records of arrays that kernels take together, and small helpers on arrays."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from surestep._arrays import AnyArray, IntArray, offsets_of
from surestep.kernels._compile import helper, inlined
from surestep.kernels.types import BatchIn, BoolsIn, FloatsIn, IndicesIn, IntsIn

Kind = TypeVar("Kind", bound=AnyArray)


class Model(NamedTuple):
    """The arrays of a model that a Bellman backup reads."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: FloatsIn  # [T]
    discount: FloatsIn  # [K]
    reward: FloatsIn  # [K] expected


class Models(NamedTuple):
    """Models of one shape; probabilities and rewards have a row for each model, or one for all."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: BatchIn  # [B, T]
    discount: FloatsIn  # [K]
    reward: BatchIn  # [B, K] expected


class EliminationPlan(NamedTuple):
    """An order of elimination and its rows of L and U, for all models and policies of a shape."""

    order: IntsIn  # [S] the state that is eliminated i-th
    place: IntsIn  # [S] the place of each state in the order
    lower_offsets: IntsIn  # [S+1]
    lower: IntsIn  # the columns of each row of L, rising
    upper_offsets: IntsIn  # [S+1]
    upper: IntsIn  # the columns of each row of U without the diagonal, rising


class Process(NamedTuple):
    """A model under a policy, to draw episodes from.

    Chances are stored as kernels draw them: as running sums of their run (`simulate`), or as shares
    of the rest of their run (`population_counts`).
    """

    pair_offsets: IntsIn  # [S+1]
    policy: FloatsIn  # [K]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: FloatsIn  # [T]
    over: BoolsIn  # [S] states in which an episode is over
    initial: FloatsIn  # [S]


def line(arrays: Iterable[AnyArray]) -> Any:
    """Joins arrays end to end."""
    return np.concatenate([*arrays])


def places(arrays: Iterable[AnyArray]) -> IntArray:
    """Returns the offsets of the arrays in `line(arrays)`."""
    return offsets_of(np.array([len(array) for array in arrays]))


@inlined
def part(array: Kind, member: int, number: int) -> Kind:
    """Returns the part of a line that belongs to `member`, if `number` members have equal parts.

    Every function that returns part of an array is inlined: a GPU function cannot return one.
    """
    size = array.size // number
    return array[member * size : (member + 1) * size]  # type: ignore[return-value]


@helper
def copy_into(target: AnyArray, source: AnyArray | tuple[int, ...]) -> None:
    """Copies a row; `target[:] = source` takes seconds to compile, for its error messages."""
    for i in range(target.size):
        target[i] = source[i]


@helper
def fill(target: AnyArray, value: float) -> None:
    """Writes one value to all places of a row."""
    for i in range(target.size):
        target[i] = value
