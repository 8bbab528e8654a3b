"""Makes short reprs: an object of a million numbers is one line, or a small table in notebooks.

`frame_of` makes data frames of columns.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_FLOOR, Context
from html import escape
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import numpy as np

from surestep.errors import MissingExtra

DIGITS = 6  # of numbers
DOWN = Context(DIGITS, ROUND_FLOOR)
LONGEST = 40  # characters of one value
LONGEST_CELL = 200  # characters of a text in a notebook
MOST = 4  # values of a tuple
LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # and makers


def short_repr(*names: str) -> Callable[[object], str]:
    """Makes a `__repr__` that shows the attributes of these names, dots allowed, and no others.

    An attribute that is None is left out.
    """

    def __repr__(self: object) -> str:
        values = shown_values(self, names)
        words = [f"{name}={brief(value)}" for name, value in values.items() if value is not None]
        return f"{type(self).__name__}({', '.join(words)})"

    return __repr__


def short_html(*names: str) -> Callable[[object], str]:
    """Makes a `_repr_html_`: the attributes of these names as a table, every text escaped.

    An attribute that is None, or an empty tuple, is left out.
    """

    def _repr_html_(self: object) -> str:
        values = shown_values(self, names)
        cells = [(name.replace("_", " "), in_cell(value)) for name, value in values.items()]
        rows = [
            f"<tr><th>{escape(name)}</th><td>{escape(cell)}</td></tr>"
            for name, cell in cells
            if cell
        ]
        return f"<table><caption>{type(self).__name__}</caption>{''.join(rows)}</table>"

    return _repr_html_


def shown_values(thing: object, names: Iterable[str]) -> dict[str, object]:
    """Maps the part of each name after its last dot to the attribute's value.

    A lower bound is rounded down, so that it stays one.
    """
    values = {name.rpartition(".")[2]: attrgetter(name)(thing) for name in names}
    if isinstance(values.get("lower"), float):
        values["lower"] = float(DOWN.create_decimal_from_float(values["lower"]))
    return values


def in_cell(value: object) -> str:
    """Returns a value as the text of a cell, shortened if it is long; '' for None."""
    if value is None:
        return ""
    texts = value if isinstance(value, tuple) else (value,)
    in_words = all(isinstance(text, str) for text in texts)
    text = ", ".join(map(str, texts)) if in_words else brief(value)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def brief(value: object) -> str:
    """Returns a value in a few characters: numbers in six digits, an array by its range."""
    if isinstance(value, np.ndarray) and value.size > 0 and value.dtype.kind in "biuf":
        low, high = brief(value.min()), brief(value.max())
        return low if low == high else f"{low}…{high}"
    if isinstance(value, np.ndarray):
        return f"[{value.size}]"
    if isinstance(value, float | np.floating):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, tuple):
        return f"({', '.join(map(brief, value))})" if len(value) <= MOST else f"[{len(value)}]"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def frame_of(columns: Mapping[str, Any], libraries: Iterable[str] = LIBRARIES) -> Any:
    """Returns these columns as a data frame of the first library that is installed."""
    for library in libraries:
        if find_spec(library) is not None:
            return getattr(import_module(library), LIBRARIES[library])(
                {name: values.tolist() for name, values in columns.items()}
            )
    raise MissingExtra(
        f"a table in memory needs one of {', '.join(libraries)}, and none is installed; install "
        "one with: pip install pandas"
    )
