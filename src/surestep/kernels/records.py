"""Records of arrays that travel together, and arrays of several data sets in a line."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from surestep._arrays import AnyArray, IntArray, offsets_of
from surestep.kernels._compile import helper, inlined
from surestep.kernels.types import BatchIn, BoolsIn, FloatsIn, IndicesIn, IntsIn

Kind = TypeVar("Kind", bound=AnyArray)


class Model(NamedTuple):
    """A model as a Bellman backup reads it."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: FloatsIn  # [T]
    discount: FloatsIn  # [K]
    reward: FloatsIn  # [K] expected


class Models(NamedTuple):
    """Models of one shape; what differs has one row each, or one row for all."""

    pair_offsets: IntsIn  # [S+1]
    offsets: IntsIn  # [K+1]
    successor: IndicesIn  # [T]
    probability: BatchIn  # [B, T]
    discount: FloatsIn  # [K]
    reward: BatchIn  # [B, K] expected


class EliminationPlan(NamedTuple):
    """The order of elimination, and the rows of L and U in it, for any policy of the shape."""

    order: IntsIn  # [S] the state eliminated i-th
    place: IntsIn  # [S] when each state is eliminated
    lower_offsets: IntsIn  # [S+1]
    lower: IntsIn  # the columns of each row of L, rising
    upper_offsets: IntsIn  # [S+1]
    upper: IntsIn  # the columns of each row of U without the diagonal, rising


class Process(NamedTuple):
    """A model under a policy, to draw episodes from.

    Each of the chances is given as kernels need it to draw: as a running sum of its run, or as a
    share of what is left of it.
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

    It is inlined, as is every function that returns part of an array: a GPU cannot return one.
    """
    size = array.size // number
    return array[member * size : (member + 1) * size]  # type: ignore[return-value]


@helper
def copy_into(target: AnyArray, source: AnyArray | tuple[int, ...]) -> None:
    """Copies a row; `target[:] = source` would take seconds to compile, for its messages."""
    for i in range(target.size):
        target[i] = source[i]


@helper
def fill(target: AnyArray, value: float) -> None:
    """Writes one value to all places of a row."""
    for i in range(target.size):
        target[i] = value
