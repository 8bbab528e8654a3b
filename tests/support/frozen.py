"""What "frozen" means for a noun: its arrays are read-only, and nobody else holds them."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest


def arrays_of(noun, path=""):
    """Every array inside a noun, with the path of fields that leads to it."""
    for field in dataclasses.fields(noun):
        value = getattr(noun, field.name)
        if isinstance(value, np.ndarray):
            yield f"{path}{field.name}", value
        elif dataclasses.is_dataclass(value):
            yield from arrays_of(value, f"{path}{field.name}.")


def assert_frozen(noun):
    """No field can be set and no array written to, nor in a copy or an unpickled one."""
    for instance in (noun, copy.deepcopy(noun), pickle.loads(pickle.dumps(noun))):  # noqa: S301
        for name, array in arrays_of(instance):
            assert not array.flags.writeable, name
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        for field in dataclasses.fields(instance):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(instance, field.name, None)


def assert_independent(build, *arrays):
    """`build(*arrays)` leaves the arrays as they are, and does not change when they do."""
    given = [array.copy() for array in arrays]
    noun = build(*arrays)
    before = {name: array.copy() for name, array in arrays_of(noun)}
    for array, original in zip(arrays, given, strict=True):
        assert np.array_equal(array, original)
        assert array.flags.writeable
        array[...] = 1 - array
    for name, array in arrays_of(noun):
        assert np.array_equal(array, before[name]), name
