"""Tables in memory: pandas, polars, Arrow, dictionaries of lists.

None of these libraries is imported: what a table can do says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surestep._arrays import AnyArray
from surestep.errors import InvalidParameter
from surestep.io.sql import columns_of, first_lines


def is_frame(given: object) -> bool:
    """Tells whether something is a table with named columns; a row or a dictionary is none."""
    return hasattr(given, "column_names") or (
        hasattr(given, "columns") and hasattr(given, "__getitem__")
    )


def column_names(frame: Any) -> list[Any]:
    """Returns the names of the columns; of pandas, they may be anything."""
    if isinstance(frame, Mapping):
        return list(frame)
    if hasattr(frame, "collect_schema"):  # polars: of a lazy table, columns have to be asked for
        return list(frame.collect_schema().names())
    return list(getattr(frame, "column_names", getattr(frame, "columns", ())))


def values_of(frame: Any, name: str) -> list[object]:
    """Returns the first column of that name as plain values."""
    column = frame[next(each for each in column_names(frame) if str(each) == name)]
    for method in ("to_pylist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(np.asarray(column).tolist())


def register(database: Any, frame: object) -> None:
    """Registers a table as the view `frame`."""
    import duckdb

    if isinstance(frame, Mapping):  # DuckDB wants arrays
        frame = {str(name): as_array(values) for name, values in frame.items()}
    try:
        database.register("frame", frame)
        columns_of(database, "frame")
    except (duckdb.Error, TypeError, ValueError, AttributeError) as problem:
        raise InvalidParameter(
            f"a log of type {type(frame).__name__} cannot be read ({first_lines(problem)}); "
            "expected a path, a pandas, polars or Arrow table, or a dictionary of lists or arrays, "
            "all of one length, with numbers, texts or times"
        ) from None


def as_array(values: Any) -> AnyArray:
    """Returns a column as an array; NumPy alone would make the text 'nan' of NaN beside texts."""
    array = np.asarray(values)
    is_text = array.dtype.kind == "U" and array is not values
    return np.array(values, object) if is_text else array
