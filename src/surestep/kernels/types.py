"""Defines the annotations of kernels (arrays, numbers, records), and their Numba types.

A kernel reads an array or writes to it: `FloatsIn`, `FloatsOut`. An array that it reads may be
frozen or not. A batch has a row for each task, or one for all; on a GPU its rows lie side by side.
A record is a NamedTuple of these, for arrays that always travel together.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from numba import types
from numba.core.typeconv import Conversion
from numba.extending import models, register_model

from surestep._arrays import BoolArray, FloatArray, IndexArray, IntArray

FloatsIn: TypeAlias = Annotated[FloatArray, types.Array(types.float64, 1, "C", readonly=True)]
IntsIn: TypeAlias = Annotated[IntArray, types.Array(types.int64, 1, "C", readonly=True)]
IndicesIn: TypeAlias = Annotated[IndexArray, types.Array(types.int32, 1, "C", readonly=True)]
BoolsIn: TypeAlias = Annotated[BoolArray, types.Array(types.boolean, 1, "C", readonly=True)]
TableIn: TypeAlias = Annotated[FloatArray, types.Array(types.float64, 2, "C", readonly=True)]
FloatsOut: TypeAlias = Annotated[FloatArray, types.Array(types.float64, 1, "C")]
IntsOut: TypeAlias = Annotated[IntArray, types.Array(types.int64, 1, "C")]
IndicesOut: TypeAlias = Annotated[IndexArray, types.Array(types.int32, 1, "C")]
TableOut: TypeAlias = Annotated[FloatArray, types.Array(types.float64, 2, "C")]
CountTableIn: TypeAlias = Annotated[IntArray, types.Array(types.int64, 2, "C", readonly=True)]
CountTableOut: TypeAlias = Annotated[IntArray, types.Array(types.int64, 2, "C")]

BATCH = "a row a task"
BatchIn: TypeAlias = Annotated[FloatArray, types.Array(types.float64, 2, "C", readonly=True), BATCH]
CountBatchIn: TypeAlias = Annotated[
    IntArray, types.Array(types.int64, 2, "C", readonly=True), BATCH
]
BatchOut: TypeAlias = Annotated[FloatArray, types.Array(types.float64, 2, "C"), BATCH]
CountBatchOut: TypeAlias = Annotated[IntArray, types.Array(types.int64, 2, "C"), BATCH]
IndexBatchOut: TypeAlias = Annotated[IndexArray, types.Array(types.int32, 2, "C"), BATCH]


class Room(NamedTuple):
    """Memory for a task to work in; at first it holds the numbers of the task before."""

    floats: FloatsOut
    ints: IntsOut


class RoomSize(NamedTuple):
    """The size of the room that a task needs, in numbers."""

    floats: int = 0
    ints: int = 0

    def room(self) -> Room:
        """Makes room of this size."""
        return Room(np.empty(self.floats), np.empty(self.ints, np.int64))


PLAIN = {
    type(None): types.void,
    bool: types.boolean,
    int: types.int64,
    float: types.float64,
    np.random.Generator: types.npy_rng,
}


class Record(types.NamedTuple):  # type: ignore[misc]
    """The Numba type of a record; unlike in a NamedTuple, arrays it reads may be frozen or not.

    Numba allows both for single arrays, but not for the arrays of a NamedTuple.
    """

    def can_convert_from(self, context: Any, other: Any) -> Conversion | None:
        """Returns how a value of the type `other` becomes one of this type; None if it cannot."""
        if not issubclass(getattr(other, "instance_class", object), self.instance_class):
            return None
        ways = [context.can_convert(theirs, ours) for theirs, ours in zip(other, self, strict=True)]
        return None if None in ways else max(Conversion.safe, *ways)


register_model(Record)(models.TupleModel)


def signature_of(function: Callable[..., object]) -> Any:
    """Returns Numba's signature of a function: the types of its annotations."""
    hints = {name: type_of(hint) for name, hint in annotations_of(function).items()}
    return hints.pop("return")(*hints.values())


def annotations_of(annotated: object) -> dict[str, Any]:
    """Returns the annotations of a function or a record by name, evaluated."""
    return get_type_hints(annotated, include_extras=True)


def type_of(annotation: Any) -> Any:
    """Returns Numba's type of an annotation."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[1]
    if get_origin(annotation) is tuple:
        return types.Tuple([type_of(part) for part in get_args(annotation)])
    if hasattr(annotation, "_fields"):
        return Record([type_of(field) for field in annotations_of(annotation).values()], annotation)
    return PLAIN[annotation]


def is_there(array: object) -> bool:
    """Tells whether an array is on a GPU."""
    return hasattr(array, "__cuda_array_interface__")
