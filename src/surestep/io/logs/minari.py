"""Episodes of Gymnasium environments, recorded by Minari or by hand, as the table of a log.

An observation of several numbers becomes several columns: `state_0`, `state_1` for an array or a
tuple, `state_position` for a dictionary. Nothing is rounded: numbers that are to be bins stay
numbers until the log is read with a rule for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from surestep._arrays import AnyArray
from surestep.errors import FileFailure, InvalidLog, InvalidParameter, MissingExtra, install
from surestep.io.logs.frames import as_array

MOST_COLUMNS = 64  # of one observation; more of them are an image, and no state of a table
FIELDS = ("observations", "actions", "rewards", "terminations", "truncations")
KINDS = {"O": "text", "b": "true or false"}  # of values, by NumPy's letter; all others are numbers
Columns = dict[str, AnyArray]
# What a broken data set makes Minari and h5py raise.
BROKEN = (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, RuntimeError)


def from_minari(dataset: Any) -> Columns:
    """The columns of a Minari data set, or of the local one that goes by this name.

    The names are those that `read_log` knows; see `from_rollouts`.
    """
    name = dataset if isinstance(dataset, str) else getattr(dataset, "spec", dataset)
    name = getattr(name, "dataset_id", name)
    try:
        recorded = load(dataset) if isinstance(dataset, str) else dataset
        if not callable(getattr(recorded, "iterate_episodes", None)):
            raise InvalidParameter(
                f"dataset is of type {type(dataset).__name__}, expected a Minari data set or the "
                "name of one"
            )
        return from_rollouts(recorded.iterate_episodes())
    except InvalidLog as refusal:
        raise InvalidLog(f"the Minari data set {name}: {refusal}") from None
    except BROKEN as problem:
        raise InvalidLog(f"the Minari data set {name} cannot be read: {problem}") from None


def load(name: str) -> Any:
    """A data set on this machine."""
    try:
        import minari

        return minari.load_dataset(name)
    except ImportError as problem:
        raise MissingExtra(
            f"Minari data sets are read with minari, h5py and pillow, and one is not installed "
            f"({problem}); {install('rl')}"
        ) from None
    except FileNotFoundError as problem:
        raise FileFailure(
            f"there is no Minari data set {name!r} on this machine ({problem})"
        ) from None


def from_rollouts(episodes: Iterable[Any]) -> Columns:
    """The columns of episodes as Gymnasium plays them, one row a step.

    An episode has, as attributes or keys, `observations` [n+1], `actions`, `rewards`,
    `terminations` and `truncations` [n]. A list holds one entry a step; a dictionary or a tuple
    holds the parts of an observation, each with one entry a step.
    """
    if not isinstance(episodes, Iterable) or isinstance(episodes, str | bytes | Mapping):
        raise InvalidParameter(
            f"episodes are of type {type(episodes).__name__}, expected an iterable of episodes"
        )
    parts, first = list[Columns](), list[tuple[str, str]]()
    for number, episode in enumerate(episodes):
        try:
            columns = episode_columns(number, episode)
        except (InvalidLog, ValueError, TypeError, OverflowError) as problem:
            raise InvalidLog(f"episode {number}: {problem}") from None
        if columns is None:
            continue
        kinds = [(name, KINDS.get(x.dtype.kind, "numbers")) for name, x in columns.items()]
        first = first or kinds
        if kinds != first:
            raise InvalidLog(
                f"episode {number} has {told(kinds)}, but an earlier one has {told(first)}; "
                "expected the same of all"
            )
        parts.append(columns)
    if not parts:
        raise InvalidLog("there is no episode with a step, expected at least one")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def role_columns(columns: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Returns the columns of the state and of the action, as `read_log` wants to be told."""
    return {
        role: tuple(name for name in columns if name == role or name.startswith(f"{role}_"))
        for role in ("state", "action")
    }


def told(kinds: Iterable[tuple[str, str]]) -> str:
    """Returns columns and what they hold, in words."""
    return ", ".join(f"{name} ({kind})" for name, kind in kinds)


def episode_columns(number: int, episode: Any) -> Columns | None:
    """The columns of one episode; None if nothing was decided in it."""
    given = episode
    if not isinstance(episode, Mapping):
        given = {name: getattr(episode, name) for name in FIELDS if hasattr(episode, name)}
    missing = [name for name in FIELDS if name not in given]
    if missing:
        raise InvalidLog(f"it has no {missing[0]}, expected {', '.join(FIELDS)}")
    rewards, *flags = (as_array(given[name]) for name in FIELDS[2:])
    steps = rewards.size
    if steps == 0:
        return None
    for name, column in zip(FIELDS[2:], (rewards, *flags), strict=True):
        usable = column.dtype.kind in "biuf" and (
            column is rewards or np.isin(column, (0, 1)).all()
        )
        if column.shape != (steps,) or not usable:
            raise InvalidLog(
                f"{name} are values of type {column.dtype} and shape {column.shape}, expected "
                f"{'a number' if column is rewards else 'true or false'} for each of {steps} steps"
            )
    state = spread("state", given["observations"], steps + 1)
    return {
        "episode": np.full(steps, number),
        "step": np.arange(steps),
        **{name: values[:-1] for name, values in state.items()},
        **spread("action", given["actions"], steps),
        "reward": rewards.astype(np.int64) if rewards.dtype == np.bool_ else rewards,
        **{f"next_{name}": values[1:] for name, values in state.items()},
        "terminated": flags[0].astype(np.bool_),
        "truncated": flags[1].astype(np.bool_),
    }


def spread(role: str, values: object, rows: int) -> Columns:
    """The columns of an observation or an action, named after the role."""
    columns = Columns()
    for name, column in leaves(role, values):
        if column.shape[:1] != (rows,):
            raise InvalidLog(f"{name} has the shape {column.shape}, expected {rows} rows")
        cells = column.reshape(rows, -1)
        for i in range(min(cells.shape[1], MOST_COLUMNS + 1)):
            part = name if cells.shape[1] == 1 else f"{name}_{i}"
            if part.lower() in map(str.lower, columns):
                raise InvalidLog(f"two parts of the {role} are both called {part!r}")
            columns[part] = cells[:, i]
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise InvalidLog(
            f"the {role} has {f'over {MOST_COLUMNS}' if columns else 'no'} parts, expected 1 to "
            f"{MOST_COLUMNS} numbers or texts; reduce it to what the policy looks at"
        )
    return columns


def leaves(name: str, values: Any) -> Iterator[tuple[str, AnyArray]]:
    """The parts of nested observations, each as an array with one entry a step."""
    if isinstance(values, list) and values and isinstance(values[0], Mapping | tuple):
        parts = [as_mapping(entry) for entry in values]
        if any(part.keys() != parts[0].keys() for part in parts):
            raise InvalidLog("observations have different parts, expected the same in each step")
        values = {key: [part[key] for part in parts] for key in parts[0]}
    if isinstance(values, Mapping | tuple):
        for key, part in as_mapping(values).items():
            yield from leaves(f"{name}_{key}", part)
    else:
        yield name, as_array(values)


def as_mapping(values: Any) -> Mapping[Any, Any]:
    """Returns the parts of a dictionary by their keys, and those of a tuple by their places."""
    if isinstance(values, Mapping):
        return values
    return dict(enumerate(values)) if isinstance(values, tuple) else {}
