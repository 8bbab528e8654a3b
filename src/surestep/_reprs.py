"""Short reprs: a noun of a million numbers is a line of text, and a small table in notebooks.

`frame_of` makes data frames of columns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Context
from enum import Enum
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
    attributes = {name.rpartition(".")[2]: attrgetter(name) for name in names}

    def __repr__(self: object) -> str:
        values = {
            name: rounded_down(name, attribute(self)) for name, attribute in attributes.items()
        }
        words = [f"{name}={brief(value)}" for name, value in values.items() if value is not None]
        return f"{type(self).__name__}({', '.join(words)})"

    return __repr__


def short_html(*names: str) -> Callable[[object], str]:
    """Returns a `_repr_html_`: the attributes of these names as a table, every text escaped.

    An attribute that is None, or an empty tuple, is left out.
    """
    attributes = {name.rpartition(".")[2]: attrgetter(name) for name in names}

    def _repr_html_(self: object) -> str:
        values = {
            name: rounded_down(name, attribute(self)) for name, attribute in attributes.items()
        }
        cells = {name.replace("_", " "): in_cell(value) for name, value in values.items()}
        return html_table(
            type(self).__name__, [(name, cell) for name, cell in cells.items() if cell]
        )

    return _repr_html_


def rounded_down(name: str, value: object) -> object:
    """Returns a lower bound rounded down, so that it stays one, and anything else as it is."""
    if name == "lower" and isinstance(value, float):
        value = float(DOWN.create_decimal_from_float(value))
    return value


def in_cell(value: object) -> str:
    """Returns a value as the text of a cell: a few texts in a row, nothing for None."""
    if value is None:
        return ""
    texts = value if isinstance(value, tuple) else (value,)
    in_words = all(isinstance(text, str) for text in texts)
    return ", ".join(map(str, texts)) if in_words else brief(value)


def html_table(caption: str, rows: Iterable[Sequence[str]], headings: Sequence[str] = ()) -> str:
    """Returns a table for a notebook, every text escaped; first cells are headings."""

    def cell(tag: str, text: str) -> str:
        cut = text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
        return f"<{tag}>{escape(cut)}</{tag}>"

    head = f"<tr>{''.join(cell('th', text) for text in headings)}</tr>" if headings else ""
    body = "".join(
        f"<tr>{cell('th', first)}{''.join(cell('td', text) for text in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<table><caption>{escape(caption)}</caption>{head}{body}</table>"


def brief(value: object) -> str:
    """Returns a value in a few characters: numbers in six digits, an array by its range."""
    if isinstance(value, np.ndarray) and value.size > 0 and value.dtype.kind in "biuf":
        low, high = brief(value.min()), brief(value.max())
        return low if low == high else f"{low}…{high}"
    if isinstance(value, np.ndarray):
        return f"[{value.size}]"
    if isinstance(value, float | np.floating):
        return f"{value:.{DIGITS}g}"
    if isinstance(value, Enum):
        return brief(value.value)
    if isinstance(value, tuple):
        return f"({', '.join(map(brief, value))})" if len(value) <= MOST else f"[{len(value)}]"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def frame_of(columns: Mapping[str, Any], libraries: Iterable[str] = LIBRARIES) -> Any:
    """Returns these columns as a table of the first of the libraries that is installed."""
    for library in libraries:
        if find_spec(library) is not None:
            return getattr(import_module(library), LIBRARIES[library])(
                {name: values.tolist() for name, values in columns.items()}
            )
    raise MissingExtra(
        f"a table in memory needs one of {', '.join(libraries)}, and none is installed; install "
        "one with: pip install pandas"
    )
