"""Arrays of several data sets in a line: those of the first, then those of the second, …"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from surestep._arrays import AnyArray, IntArray, offsets_of
from surestep.kernels._compile import inlined

Kind = TypeVar("Kind", bound=AnyArray)


def line(arrays: Iterable[AnyArray]) -> Any:
    """Returns the arrays as one."""
    return np.concatenate([*arrays])


def places(arrays: Iterable[AnyArray]) -> IntArray:
    """Returns where each array begins in the line of all, and where the last one ends."""
    return offsets_of(np.array([len(array) for array in arrays]))


@inlined
def part(array: Kind, member: int, number: int) -> Kind:
    """Returns what belongs to one of so many, all of which have the same share of the line.

    It is compiled into its callers, as all that returns parts of arrays: a GPU cannot hand them on.
    """
    size = array.size // number
    return array[member * size : (member + 1) * size]  # type: ignore[return-value]
