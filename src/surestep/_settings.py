"""Settings checked by the types of their fields, in one wording.

A dataclass of settings says what each may be, `n_wedge: Annotated[int, Meta(ge=0, description=
"pairs seen less often keep π_b")]`, and is a `Settings`. Types may be `int`, `float` (finite),
`bool`, `Literal` of words, a class, and one of them or None.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

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
        """Checks all fields."""
        check_settings(self)


def check_settings(instance: Any) -> None:
    """Refuses values that the types of their fields do not allow.

    Numbers of NumPy's become Python's own.
    """
    for name, kind in types_of(instance.__class__).items():
        value = arrays.plain(getattr(instance, name))
        check_setting(name, value, kind)
        object.__setattr__(instance, name, value)


@cache
def parts_of(kind: Any) -> tuple[Meta, tuple[Any, ...], list[str], list[Any]]:
    """Returns the bounds of a type, all that it allows, and of that the words and classes."""
    meta = next((part for part in getattr(kind, "__metadata__", ()) if type(part) is Meta), Meta())
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    options = get_args(bare) if get_origin(bare) in (UnionType, Union) else (bare,)
    words = [word for option in options for word in get_args(option)]
    classes = [option for option in options if option not in (int, float, NoneType)]
    classes = [option for option in classes if get_origin(option) is not Literal]
    return meta, options, words, classes


def check_setting(name: str, value: Any, kind: Any) -> None:
    """Refuses a value that a type does not allow."""
    meta, options, words, classes = parts_of(kind)
    whole, number = int in options, int in options or float in options
    if (
        (value is None and NoneType in options)
        or (isinstance(value, str) and value in words)
        or (number and arrays.is_number(value) and is_within(value, meta, whole))
        or isinstance(value, tuple(classes))
    ):
        return
    others = "".join(f" or {option.__name__}" for option in classes if option is not bool)
    others += " or True or False" * (bool in classes) + " or None" * (NoneType in options)
    why = f": {meta.description}" if meta.description else ""
    if words:
        raise unknown(f"{name} is {arrays.shown(value)}", value, words, f"{others}{why}")
    expected = f" or a {'whole ' * whole}number{span_of(meta)}" * number + others
    raise InvalidParameter(f"{name} is {arrays.shown(value)}, expected{expected[3:]}{why}")


def is_within(value: float, meta: Meta, whole: bool) -> bool:
    """Tells whether a number is finite and keeps the bounds; whole ones fit 64 bits."""
    return (
        math.isfinite(value)
        and (isinstance(value, int) or not whole)
        and (meta.ge is None or value >= meta.ge)
        and (meta.gt is None or value > meta.gt)
        and (meta.le is None or value <= meta.le)
        and (meta.lt is None or value < meta.lt)
        and (abs(value) <= LARGEST_WHOLE or not whole)
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
    """Returns the types of the fields of a dataclass, with what `Annotated` says of them."""
    hints = get_type_hints(settings, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}
