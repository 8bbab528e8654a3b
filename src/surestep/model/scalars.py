"""Scalars: the values without parts that JSON has, as certificates carry them by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

import surestep._arrays as arrays
from surestep.errors import InvalidCertificate

Scalar = None | bool | int | float | str


def read_scalars(path: str, value: object) -> Mapping[str, Scalar]:
    """Returns a read-only mapping from names to scalars; numbers must be finite."""
    if not isinstance(value, Mapping):
        raise InvalidCertificate(
            f"{path} is {arrays.shown(value)}, expected names with their values"
        )
    scalars: dict[str, Scalar] = {}
    for name, given in value.items():
        if not (isinstance(name, str) and is_unicode(name)):
            raise InvalidCertificate(f"{path} has the name {arrays.shown(name)}, expected text")
        scalar = given.item() if isinstance(given, np.generic) else given
        plain = scalar is None or isinstance(scalar, bool)
        text = isinstance(scalar, str) and is_unicode(scalar)
        if not (plain or text or (arrays.is_number(scalar) and math.isfinite(scalar))):
            raise InvalidCertificate(
                f"{path}.{name} is {arrays.shown(given)}, expected a finite number, text, true, "
                "false or null"
            )
        scalars[name] = scalar
    return MappingProxyType(scalars)


def is_unicode(text: str) -> bool:
    """Tells whether a file can hold the text: half of a surrogate pair is no character."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
