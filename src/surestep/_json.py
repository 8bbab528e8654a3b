"""Reads JSON into values of declared types with msgspec; errors name the place and the value."""

import json
import re
from typing import Any, TypeVar

import msgspec
import numpy as np

from surestep._names import twice

Thing = TypeVar("Thing")


def read_json(text: str | bytes) -> Any:
    """Decodes JSON; raises `ValueError` for anything else, as NaN or an object with a key twice."""
    try:
        json.loads(text, object_pairs_hook=unique)
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise ValueError(str(problem)) from None


def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the members of an object; refuses two with the same key."""
    for _, again in twice(name for name, _ in members):
        raise ValueError(f"{members[again][0]!r:.60} stands twice in one object, expected once")
    return dict(members)


def typed(content: object, kind: type[Thing], name: str = "") -> Thing:
    """Converts decoded JSON to a type; raises `ValueError` with the place that does not fit.

    Only lists become tuples, objects records and whole numbers doubles. A record has no other
    fields than it declares; fields with a default may be missing, as in files of older releases.
    `name` names the content in errors.
    """
    value: Thing = converted(content, kind, name)
    if not holds(msgspec.json.decode(msgspec.json.encode(value)), content):
        raise ValueError(f"{name or 'it'} has other fields than those expected")
    return value


def holds(whole: object, part: object) -> bool:
    """Tells whether `whole` equals `part`, except for members that `part` lacks."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and holds(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(holds, whole, part))
    return whole == part


def converted(
    content: object, kind: Any, name: str = "", error: type[Exception] = ValueError
) -> Any:
    """Converts decoded JSON to a type; ignores further fields, and keeps arrays as they are."""
    try:
        return msgspec.convert(content, kind, dec_hook=as_it_is)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at `$")
        path = path.rstrip("`")
        place = f"{name}{path}".removeprefix(".") or "it"
        words = f"{reason[0].lower()}{reason[1:].replace('`', '')}{found_at(path, content)}"
        raise error(f"{place}: {words}") from None


def found_at(path: str, content: Any) -> str:
    """Returns ', found …' for the scalar at a path such as '.rows[2].size', else ''."""
    try:
        for name, place in re.findall(r"\.([^.\[]+)|\[([^\]]*)\]", path):
            content = content[name or int(place)]
    except (LookupError, TypeError, ValueError):
        return ""
    return f", found {content!r:.40}" if isinstance(content, str | int | float | None) else ""


def as_it_is(kind: type, value: object) -> object:
    """Returns an array unchanged; refuses a value of any other type unknown to JSON."""
    if not isinstance(value, np.ndarray):
        raise ValueError(f"expected an array, got {type(value).__name__}")
    return value
