"""JSON as values of declared types: msgspec checks them, and what is otherwise is told in words."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
import numpy as np

Thing = TypeVar("Thing")


def read_json(text: str | bytes) -> Any:
    """Returns what a text of JSON says; ValueError for anything else, NaN and half characters."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError as problem:
        raise ValueError(str(problem)) from None


def typed(content: object, kind: type[Thing], name: str = "") -> Thing:
    """Returns what JSON said as a value of a type; ValueError names the place that does not fit.

    Nothing is converted but lists to tuples, objects to records and whole numbers to doubles, and a
    record has no other fields than it declares; those with a default may be missing, as an older
    release did not write them. `name` is what the content is called.
    """
    value: Thing = converted(content, kind, name)
    if not holds(msgspec.json.decode(msgspec.json.encode(value)), content):
        raise ValueError(f"{name or 'it'} has other fields than those expected")
    return value


def holds(whole: object, part: object) -> bool:
    """Tells whether values of JSON are the same, but for members that the part leaves out."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and holds(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return whole == part


def converted(
    content: object, kind: Any, name: str = "", error: type[Exception] = ValueError
) -> Any:
    """Returns the same, but more fields are passed over, and arrays are taken as they are."""
    try:
        return msgspec.convert(content, kind, dec_hook=as_it_is)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at `$")
        path = path.rstrip("`")
        place = f"{name}{path}".removeprefix(".") or "it"
        words = f"{reason[0].lower()}{reason[1:].replace('`', '')}{found_at(path, content)}"
        raise error(f"{place}: {words}") from None


def found_at(path: str, content: Any) -> str:
    """Returns ', found …' for a scalar at a path such as '.rows[2].size', if that says where."""
    try:
        for name, place in re.findall(r"\.([^.\[]+)|\[([^\]]*)\]", path):
            content = content[name or int(place)]
    except (LookupError, TypeError, ValueError):
        return ""
    return f", found {content!r:.40}" if isinstance(content, str | int | float | None) else ""


def as_it_is(kind: type, value: object) -> object:
    """Returns an array that was made already; refuses anything else that is no type of JSON."""
    if not isinstance(value, np.ndarray):
        raise ValueError(f"expected an array, got {type(value).__name__}")
    return value
