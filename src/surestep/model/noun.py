"""The decorator of all nouns: a short repr, a table in notebooks, arrays that stay frozen."""

from collections.abc import Callable
from typing import TypeVar

from surestep._arrays import restore_frozen
from surestep._reprs import short_html, short_repr

Noun = TypeVar("Noun", bound=type)


def noun(*shown: str) -> Callable[[Noun], Noun]:
    """Decorates a frozen dataclass whose repr and table in notebooks have the attributes `shown`.

    Copies and pickles of it have read-only arrays, as the original.
    """
    methods = {
        "__repr__": short_repr(*shown),
        "_repr_html_": short_html(*shown),
        "__setstate__": restore_frozen,
    }

    def decorate(cls: Noun) -> Noun:
        for name, method in methods.items():
            setattr(cls, name, method)
        return cls

    return decorate
