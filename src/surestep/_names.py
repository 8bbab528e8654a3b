"""Refuses unknown names, and proposes known names that are similar."""

import difflib
from collections.abc import Collection, Iterable

from surestep.errors import InvalidParameter


def unknown(what: str, name: object, known: Iterable[str], more: str = "") -> InvalidParameter:
    """Makes the error for a name that is not among the known names.

    `what` begins the message, and `more` follows the list of known names.

    >>> str(unknown("there is no fruit 'aple'", "aple", ["apple", "fig"], ", or a nut"))
    "there is no fruit 'aple'; did you mean apple? expected one of apple, fig, or a nut"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 3, cutoff=0.5)
    hint = f"{did_you_mean(near)} " if near else ""
    expected = f"expected one of {', '.join(names)}{more}" if names else "there are none"
    return InvalidParameter(f"{what}; {hint}{expected}")


def refuse_unknown(what: str, name: object, known: Collection[str]) -> None:
    """Refuses a name that is not among the known names; `what` begins the message."""
    if name not in known:
        raise unknown(what, name, known)


def twice(keys: Iterable[object]) -> list[tuple[int, int]]:
    """Returns a list with both places of the first repeated key, or an empty list.

    `for first, again in twice(…): raise …` refuses it.
    """
    seen: dict[object, int] = {}
    for place, key in enumerate(keys):
        if seen.setdefault(key, place) != place:
            return [(seen[key], place)]
    return []


def did_you_mean(names: Iterable[str]) -> str:
    """Returns the question 'did you mean …?' with these names."""
    return f"did you mean {' or '.join(names)}?"
