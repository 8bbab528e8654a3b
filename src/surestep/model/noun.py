"""Decorates the data types of surestep: a short repr, a table in notebooks, frozen arrays."""

from collections.abc import Callable
from typing import TypeVar

from surestep._arrays import restore_frozen
from surestep._reprs import short_html, short_repr

Noun = TypeVar("Noun", bound=type)


def noun(*shown: str) -> Callable[[Noun], Noun]:
    """Decorates a frozen dataclass: its repr and notebook table show the attributes `shown`.

    Its copies and pickles have read-only arrays, like the original.
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
