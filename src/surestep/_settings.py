"""Checks settings and arrays by the annotated types of their fields, in one wording.

A dataclass of settings says what each may be, `n_wedge: Annotated[int, Meta(ge=0, description=
"pairs seen less often keep π_b")]`, and is a `Settings`. Types may be `int`, `float` (finite),
`bool`, `Literal` of words, a class, a tuple of as many of them, and one of them or None.

A noun says what its arrays have, `reward: Annotated[FloatArray, Each("T")]`, and reads them with
`read_arrays`.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._names import unknown
from surestep.errors import InvalidParameter

LARGEST_WHOLE = 2**63 - 1
Delta = Annotated[
    float, Meta(gt=0, lt=1, description="it is the probability with which the claim may be wrong")
]


class Settings:
    """A base of frozen dataclasses: refuses values that the types of the fields do not allow."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_settings(self)


def check_settings(instance: Any, error: arrays.ErrorType = InvalidParameter) -> None:
    """Refuses values, except arrays, that their types do not allow; NumPy's become Python's."""
    for name, kind in types_of(instance.__class__).items():
        value = arrays.as_python(getattr(instance, name))
        check_setting(name, value, kind, error)
        object.__setattr__(instance, name, value)


@cache
def parts_of(kind: Any) -> tuple[Meta, tuple[Any, ...], list[str], list[Any], list[Any]]:
    """Splits a type into its bounds, its options, and the words, classes and tuples among them."""
    meta = next((part for part in getattr(kind, "__metadata__", ()) if type(part) is Meta), Meta())
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    options = get_args(bare) if get_origin(bare) in (UnionType, Union) else (bare,)
    words = [x for option in options if get_origin(option) is Literal for x in get_args(option)]
    tuples = [option for option in options if get_origin(option) is tuple]
    tuples = [get_args(option) for option in tuples if ... not in get_args(option)]
    classes = [option for option in options if option not in (int, float, NoneType)]
    classes = [x for x in classes if get_origin(x) is not Literal and get_args(x) not in tuples]
    return meta, options, words, classes, tuples


def check_setting(
    name: str, value: Any, kind: Any, error: arrays.ErrorType = InvalidParameter
) -> None:
    """Refuses a value that a type does not allow."""
    meta, options, words, classes, tuples = parts_of(kind)
    for kinds in tuples:
        if isinstance(value, tuple | list) and len(value) == len(kinds):
            for place, (part, own) in enumerate(zip(value, kinds, strict=True)):
                check_setting(f"{name}[{place}]", part, own, error)
            return
    whole = int in options
    number = whole or float in options
    if (
        (value is None and NoneType in options)
        or (isinstance(value, str) and value in words)
        or (number and arrays.is_number(value) and is_within(value, meta, whole))
        or isinstance(value, tuple(classes))
    ):
        return
    others = "".join(f" or {option.__name__}" for option in classes if option is not bool)
    others += "".join(f" or {len(kinds)} values" for kinds in tuples)
    others += " or True or False" * (bool in classes) + " or None" * (NoneType in options)
    why = f": {meta.description}" if meta.description else ""
    if words:
        raise error(str(unknown(f"{name} is {arrays.shown(value)}", value, words, others + why)))
    expected = f" or a {'whole ' * whole}number{span_of(meta)}" * number + others
    raise error(f"{name} is {arrays.shown(value)}, expected{expected[3:]}{why}")


def is_within(value: float, meta: Meta, whole: bool) -> bool:
    """Tells whether a number is finite and keeps the bounds; whole ones fit 64 bits."""
    return (
        math.isfinite(value)
        and (isinstance(value, int) or not whole)
        and (meta.ge is None or value >= meta.ge)
        and (meta.gt is None or value > meta.gt)
        and (meta.le is None or value <= meta.le)
        and (meta.lt is None or value < meta.lt)
        and (not whole or abs(value) <= LARGEST_WHOLE)
    )


def span_of(meta: Meta) -> str:
    """Returns the bounds in words: ' from 0 to 1', ' above 0 and below 1', ' of at least 3'."""
    if meta.ge is not None and meta.le is not None:
        return f" from {meta.ge:,} to {meta.le:,}"
    named = (("of at least", meta.ge), ("above", meta.gt), ("of at most", meta.le))
    parts = [f"{word} {end:,}" for word, end in (*named, ("below", meta.lt)) if end is not None]
    return f" {' and '.join(parts)}" if parts else ""


@cache
def types_of(settings: Any) -> dict[str, Any]:
    """Maps each field of a dataclass to its annotated type.

    Leaves out fields of arrays, of mappings, and of tuples of any length.
    """
    hints = get_type_hints(settings, include_extras=True)
    kinds = [(field.name, hints[field.name]) for field in dataclasses.fields(settings)]
    return {name: kind for name, kind in kinds if not any(map(get_origin, parts_of(kind)[3]))}


# ---- arrays -----------------------------------------------------------------------------------


class Each(NamedTuple):
    """An array with an entry for each item of its axes, `Each("BK")`, from `least` to `most`."""

    axes: str  # letters, as in the docs
    least: float = -arrays.LARGEST_DOUBLE
    most: float = arrays.LARGEST_DOUBLE
    below: str = ""  # the axis whose items the entries number, in 32 bits


def read_arrays(
    noun: Any,
    error: arrays.ErrorType,
    sizes: dict[str, int],
    names: Mapping[str, Callable[[int], str]],
) -> None:
    """Checks and freezes the arrays of a dataclass by the types of their fields.

    `sizes` has the size of each known axis; any other axis takes its size from the first array that
    begins with it. `names` names the items of an axis in messages. A None means zeros if the type
    does not allow None.
    """
    for name, options, each in arrays_of(noun.__class__):
        values = getattr(noun, name)
        axes = each.axes
        if values is None and NoneType in options:
            continue
        if axes[0] not in sizes:
            given = arrays.numbers(name, values, error).shape
            sizes[axes[0]] = max(1, given[0]) if len(given) == len(axes) else 1
        shape = tuple([sizes[axis] for axis in axes])
        if values is None:
            values = np.zeros(shape, np.bool_)
        describe = names.get(axes)
        if arrays.BoolArray in options:
            array: arrays.AnyArray = arrays.booleans(name, values, shape, error)
        elif arrays.FloatArray in options:
            array = arrays.floats(
                name, values, shape, error, describe, least=each.least, most=each.most
            )
        elif each.below:
            array = arrays.indices(
                name, values, sizes[each.below], error, describe, least=int(each.least)
            )
            arrays.shaped(name, array, shape, error)
        else:
            array = arrays.whole_numbers(name, values, shape, error, describe)
            arrays.check_within(name, array, (each.least, math.inf), error, describe)
        object.__setattr__(noun, name, arrays.freeze(array))


@cache
def arrays_of(noun: Any) -> list[tuple[str, tuple[Any, ...], Each]]:
    """Returns (name, options of its type, `Each`) of each array that a class declares."""
    hints = get_type_hints(noun, include_extras=True)
    return [
        (name, parts_of(kind)[1], part)
        for name, kind in hints.items()
        for part in getattr(kind, "__metadata__", ())
        if isinstance(part, Each)
    ]
