"""Marks: which states carry a label, such as `goal` or `unsafe`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from surestep._arrays import BoolArray, booleans, equal_by_value, own, restore_frozen
from surestep._reprs import short_repr
from surestep.errors import InvalidModel


@dataclass(frozen=True, slots=True, eq=False)
class Marks(Mapping[str, BoolArray]):
    """A read-only mapping from labels to the states that carry them: `marks["goal"]` is [S]."""

    labels: tuple[str, ...]  # [L] in rising order
    states: BoolArray  # [L, S]

    __repr__ = short_repr("labels")

    def __getitem__(self, label: str) -> BoolArray:
        if label not in self.labels:
            raise KeyError(label)
        states: BoolArray = self.states[self.labels.index(label)]
        return states

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    __eq__ = equal_by_value
    __hash__ = None  # type: ignore[assignment]
    __setstate__ = restore_frozen


def read_marks(marks: object, num_states: int) -> Marks:
    """Returns the marks of a model with so many states; None for no labels at all."""
    if not isinstance(marks, Mapping | None):
        raise InvalidModel(
            f"marks is of type {type(marks).__name__}, expected a dict of labels and masks [S]"
        )
    given = dict(marks or {})
    for label in given:
        if not isinstance(label, str):
            raise InvalidModel(f"a label of marks is {label!r}, expected a string")
    labels = tuple(sorted(given))
    states = np.zeros((len(labels), num_states), np.bool_)
    for row, label in enumerate(labels):
        states[row] = booleans(f"mark {label!r}", given[label], (num_states,), InvalidModel)
    return Marks(labels, own(states))
