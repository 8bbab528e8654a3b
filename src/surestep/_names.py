"""Refuses unknown names, and proposes those that may have been meant."""

import difflib
from collections.abc import Iterable

from surestep.errors import InvalidParameter


def unknown(what: str, name: object, known: Iterable[str], more: str = "") -> InvalidParameter:
    """Returns the refusal of a name that is none of those known.

    `what` says that there is no such thing, and `more` follows the names that would do.

    >>> str(unknown("there is no fruit 'aple'", "aple", ["apple", "fig"], ", or a nut"))
    "there is no fruit 'aple'; did you mean apple? expected one of apple, fig, or a nut"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 3, cutoff=0.5)
    hint = f"{did_you_mean(near)} " if near else ""
    expected = f"expected one of {', '.join(names)}{more}" if names else "there are none"
    return InvalidParameter(f"{what}; {hint}{expected}")


def twice(keys: Iterable[object]) -> list[tuple[int, int]]:
    """Returns, where a key is there again, the places of the first one that is.

    `for first, again in twice(…): raise …` refuses it.
    """
    seen: dict[object, int] = {}
    for place, key in enumerate(keys):
        if seen.setdefault(key, place) != place:
            return [(seen[key], place)]
    return []


def did_you_mean(names: Iterable[str]) -> str:
    """Returns the question whether one of these names was meant."""
    return f"did you mean {' or '.join(names)}?"
