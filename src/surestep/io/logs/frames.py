"""Reads tables in memory: pandas, polars, Arrow, dictionaries of lists, Gymnasium episodes.

No library of tables is imported: tables are known by their methods.

Of episodes, recorded by Minari or by hand, an observation of several numbers becomes several
columns: `state_0`, `state_1`. Nothing is rounded: numbers that are to be bins stay numbers until
the log is read with a rule for them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import numpy as np

from surestep._arrays import AnyArray
from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.sql import columns_of, first_lines

MOST_COLUMNS = 64  # of one observation; more are probably an image
FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")
Columns = dict[str, AnyArray]


def is_frame(given: object) -> bool:
    """Tells whether an object is a table with named columns; false for rows and dictionaries."""
    return hasattr(given, "column_names") or (
        hasattr(given, "columns") and hasattr(given, "__getitem__")
    )


def column_names(frame: Any) -> list[Any]:
    """Returns the names of the columns; with pandas, these may be objects other than text."""
    if isinstance(frame, Mapping):
        return list(frame)
    if hasattr(frame, "collect_schema"):  # a lazy table of polars
        return list(frame.collect_schema().names())
    return list(getattr(frame, "column_names", getattr(frame, "columns", ())))


def plain_values(frame: Any, name: str) -> list[object]:
    """Returns the first column of that name as plain values."""
    column = frame[next(own for own in column_names(frame) if str(own) == name)]
    for method in ("to_pylist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(np.asarray(column).tolist())


def register_frame(database: Any, frame: object) -> None:
    """Registers a table as the view `frame`."""
    if isinstance(frame, Mapping):  # DuckDB takes dictionaries of arrays only
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
    """Returns a column as an array; keeps NaN beside texts, which NumPy would turn into 'nan'."""
    array = np.asarray(values)
    is_text = array.dtype.kind == "U" and array is not values
    return np.array(values, object) if is_text else array


# ---- episodes of Gymnasium --------------------------------------------------------------------


def from_rollouts(episodes: Iterable[Any]) -> Columns:
    """Returns the columns of Gymnasium episodes, one row a step, as `read_log` takes them.

    Parameters
    ----------
    episodes : iterable of dict or objects
        Each has, as keys or attributes, `observations` [n+1] or [n+1, C], `actions` [n] or [n, C],
        and `rewards`, `terminations` and `truncations` [n].

    Returns
    -------
    dict of str to array [N]
        The columns; an observation of several numbers has several, "state_0", "state_1", ….

    Raises
    ------
    InvalidLog
        An episode lacks a field, or its fields do not fit together.

    Examples
    --------
    >>> episode = {
    ...     "observations": [0, 1, 1],
    ...     "actions": [1, 0],
    ...     "rewards": [0.0, 1.0],
    ...     "terminations": [False, True],
    ...     "truncations": [False, False],
    ... }
    >>> surestep.io.from_rollouts([episode])["next_state"].tolist()
    [1, 1]
    """
    if not isinstance(episodes, Iterable) or isinstance(episodes, str | bytes | Mapping):
        raise InvalidParameter(
            f"episodes are of type {type(episodes).__name__}, expected an iterable of episodes"
        )
    parts = list[Columns]()
    for number, episode in enumerate(episodes):
        is_mapping = isinstance(episode, Mapping)
        try:
            given = {x: episode[x] if is_mapping else getattr(episode, x) for x in FIELDS}
            steps = len(given["rewards"])
            state = spread("state", given["observations"], steps + 1)
            columns = {
                "episode": np.full(steps, number),
                "step": np.arange(steps),
                **{name: values[:-1] for name, values in state.items()},
                **spread("action", given["actions"], steps),
                "reward": as_array(given["rewards"]).reshape(steps),
                **{f"next_{name}": values[1:] for name, values in state.items()},
                "terminated": as_array(given["terminations"]).reshape(steps),
                "truncated": as_array(given["truncations"]).reshape(steps),
            }
        except (KeyError, AttributeError, ValueError, TypeError, OverflowError) as problem:
            raise InvalidLog(
                f"episode {number} cannot be read ({problem}), expected {', '.join(FIELDS)}, each "
                "with one entry a step"
            ) from None
        if parts and columns.keys() != parts[0].keys():
            raise InvalidLog(
                f"episode {number} has the columns {', '.join(columns)}, but an earlier one "
                f"{', '.join(parts[0])}; expected the same of all"
            )
        parts.append(columns)
    if not sum(part["step"].size for part in parts):
        raise InvalidLog("there is no episode with a step, expected at least one")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def spread(role: str, values: object, rows: int) -> Columns:
    """Splits observations or actions [rows, …] into one column a number, named after the role."""
    cells = as_array(values)
    if cells.shape[:1] != (rows,):
        raise ValueError(f"the {role} has the shape {cells.shape}, expected {rows} rows")
    cells = cells.reshape(rows, int(np.prod(cells.shape[1:])))
    if not 1 <= cells.shape[1] <= MOST_COLUMNS:
        raise ValueError(
            f"the {role} has {cells.shape[1]} parts, expected 1 to {MOST_COLUMNS} numbers or texts;"
            " reduce it to what the policy looks at"
        )
    if cells.shape[1] == 1:
        return {role: cells[:, 0]}
    return {f"{role}_{i}": cells[:, i] for i in range(cells.shape[1])}
