"""Short reprs: a noun of a million numbers prints in a line what it is."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from operator import attrgetter

import numpy as np

LONGEST = 40  # characters of one value
MOST = 4  # values of a tuple


def short_repr(*names: str) -> Callable[[object], str]:
    """Makes a `__repr__` that shows the attributes of these names, dots allowed, and no others.

    An attribute that is None is left out.
    """
    attributes = {name.rpartition(".")[2]: attrgetter(name) for name in names}

    def __repr__(self: object) -> str:
        values = {name: attribute(self) for name, attribute in attributes.items()}
        words = [f"{name}={brief(value)}" for name, value in values.items() if value is not None]
        return f"{type(self).__name__}({', '.join(words)})"

    return __repr__


def brief(value: object) -> str:
    """Returns a value in a few characters: numbers in six digits, an array by its range."""
    if isinstance(value, np.ndarray) and value.size > 0 and value.dtype.kind in "biuf":
        low, high = brief(value.min()), brief(value.max())
        return low if low == high else f"{low}…{high}"
    if isinstance(value, np.ndarray):
        return f"[{value.size}]"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, Enum):
        return brief(value.value)
    if isinstance(value, tuple):
        return f"({', '.join(map(brief, value))})" if len(value) <= MOST else f"[{len(value)}]"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
