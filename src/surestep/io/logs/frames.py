"""Tables in memory: pandas, polars, Arrow, dictionaries of lists; their columns, and what is odd.

None of these libraries is imported: what a table can do says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surestep._arrays import AnyArray
from surestep.errors import InvalidParameter
from surestep.io.sql import columns_of, first_lines, in_memory, sql_name


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


def pick(frame: Any, names: Sequence[Any]) -> Any:
    """Returns the table with these columns only."""
    if isinstance(frame, Mapping):
        return {name: frame[name] for name in names}
    return frame.select(names) if hasattr(frame, "select") else frame[list(names)]


def values_of(frame: Any, name: str) -> list[object]:
    """Returns the first column of that name as plain values."""
    column = frame[next(each for each in column_names(frame) if str(each) == name)]
    for method in ("to_pylist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(np.asarray(column).tolist())


def ungrouped(source: Any) -> tuple[object, str] | None:
    """Returns the table that was grouped, and the column of its groups; None where it was not.

    Groups by something else than one column are refused.
    """
    if not type(source).__name__.endswith("GroupBy"):
        return None
    keys = getattr(source, "keys", getattr(source, "by", None))  # of pandas, or of polars
    table = getattr(source, "obj", getattr(source, "df", None))
    only = keys[0] if isinstance(keys, list | tuple) and len(keys) == 1 else keys
    if isinstance(only, str) and is_frame(table) and only in column_names(table):
        return table, only
    raise InvalidParameter(
        f"the log is a {type(source).__name__}, a table in groups that are not those of one "
        "column; expected the table itself, with a column of episodes: columns={'episode': …}"
    )


def register(database: Any, frame: object) -> None:
    """Registers a table as the view `frame`, without columns that DuckDB has no type for."""
    import duckdb

    try:
        if isinstance(frame, Mapping):  # DuckDB wants arrays
            frame = {str(name): as_array(values) for name, values in frame.items()}
            first, *others = [(name, len(column)) for name, column in frame.items() if column.ndim]
            for name, length in others:
                if length != first[1]:
                    raise InvalidParameter(
                        f"the log is a dictionary in which {name!r} has {length:,} values and "
                        f"{first[0]!r} has {first[1]:,}, expected as many in each"
                    )
        if not is_readable(database, frame):
            parts = [
                name for name in column_names(frame) if is_readable(database, pick(frame, [name]))
            ]
            frame = pick(frame, parts) if parts else frame
        database.register("frame", frame)
        columns_of(database, "frame")
    except (duckdb.Error, TypeError, ValueError, AttributeError) as problem:
        raise InvalidParameter(
            f"a log of type {type(frame).__name__} cannot be read ({problem}), expected a "
            "path, a pandas, polars or Arrow table, or a dictionary of lists or arrays"
        ) from None


def as_array(values: Any) -> AnyArray:
    """Returns a column as an array; NumPy alone would make the text 'nan' of NaN beside texts."""
    array = np.asarray(values)
    is_text = array.dtype.kind == "U" and array is not values
    return np.array(values, object) if is_text else array


def is_readable(database: Any, frame: object) -> bool:
    """Tells whether DuckDB has types for all columns of a table."""
    import duckdb

    try:
        database.register("frame", frame)
        columns_of(database, "frame")
    except duckdb.Error:
        return False
    return True


def explain_frame(name: str, frame: Any) -> str | None:
    """Finds the first column that DuckDB fails to read, although it has a type for it."""
    import duckdb

    with in_memory() as database:
        register(database, frame)
        for column, kind in columns_of(database, "frame").items():
            try:
                database.execute(f"SELECT count({sql_name(column)}) FROM frame").fetchall()
            except duckdb.Error as problem:
                return (
                    f"{name}: column {column!r} begins with values of type {kind} and goes on with "
                    f"others ({first_lines(problem)}); make them of one type, such as text"
                )
    return None
