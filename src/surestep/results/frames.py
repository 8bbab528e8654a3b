"""A policy as a table in memory, of the first of pandas, polars and Arrow that is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from surestep.errors import MissingExtra

LIBRARIES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}  # and what makes one


def frame_of(columns: Mapping[str, Any]) -> Any:
    """Returns a table with these columns."""
    for library, maker in LIBRARIES.items():
        if find_spec(library) is not None:
            plain = {name: values.tolist() for name, values in columns.items()}
            return getattr(import_module(library), maker)(plain)
    raise MissingExtra(
        f"a table in memory needs one of {', '.join(LIBRARIES)}, and none is installed; install "
        "one with: pip install pandas"
    )
