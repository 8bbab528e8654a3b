"""Counts as a file: one Parquet table with a manifest inside, the same bytes for the same counts.

A row of kind 'state' counts the starts in a state, one of kind 'action' lists an action, and one of
kind 'transition' says how often a step led where. A next state of nothing is the end of an episode.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surestep._arrays import AnyArray
from surestep._files import read_path, write_together
from surestep.errors import FileFailure, InvalidCounts
from surestep.io.labelled_counts import (
    END,
    Label,
    LabelledCounts,
    Transitions,
    merge_counts,
)
from surestep.io.log_tables import first_lines, named, quoted

FORMAT = "surestep counts"
VERSION = 1
CHUNK = 1 << 20


def write_counts(counts: LabelledCounts, path: str | Path) -> None:
    """Writes the counts, whole or not at all; equal counts give equal bytes."""
    import duckdb

    target = read_path(path)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "labels": "text",
        "state_columns": counts.state_columns,
        "action_columns": counts.action_columns,
        "reward_scale": counts.scale,
        "rows_read": counts.rows_read,
        "rows_dropped": dict(sorted(counts.dropped.items())),
    }
    columns = ", ".join(map(named, label_columns(counts.state_columns, counts.action_columns)))
    # One thread, and rows in their one order: nothing about the bytes is left to chance.
    with (
        tempfile.TemporaryDirectory(prefix="surestep-") as folder,
        duckdb.connect(config={"threads": 1}) as database,
    ):
        database.register("rows", table_of(counts))
        written = Path(folder) / "counts.parquet"
        database.execute(
            f"COPY (SELECT kind, {columns}, terminated, times, "
            "CAST(reward_sum AS DECIMAL(38, 0)) AS reward_sum FROM rows) "
            f"TO {quoted(str(written))} (FORMAT parquet, "
            f"KV_METADATA {{surestep: {quoted(json.dumps(manifest, ensure_ascii=False))}}})"
        )
        write_together({target: chunks_of(written)})


def read_counts(path: str | Path) -> LabelledCounts:
    """Reads counts that `write_counts` wrote; anything else is refused."""
    import duckdb

    source = read_path(path)
    if not source.is_file():
        raise FileFailure(f"{source} is no file")
    with duckdb.connect(config={"threads": 1}) as database:
        try:
            manifest = read_manifest(database, source)
            return read_rows(database, source, manifest)
        except duckdb.Error as problem:
            raise InvalidCounts(f"{source} cannot be read: {first_lines(problem)}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise InvalidCounts(
                f"{source} is no file of counts as `surestep count` writes them ({problem})"
            ) from None


def label_columns(states: Sequence[str], actions: Sequence[str]) -> list[str]:
    """What the columns of labels are called in the file."""
    roles = (("state", states), ("action", actions), ("next_state", states))
    return [f"{role}.{name}" for role, columns in roles for name in columns]


def table_of(counts: LabelledCounts) -> Mapping[str, AnyArray]:
    """All rows of the file, column by column: states, actions, transitions."""
    rows = counts.transitions
    sizes = len(counts.states), len(counts.actions), rows.times.size
    nothing = [np.full(size, None, object) for size in sizes]
    parts: dict[str, list[AnyArray]] = {
        "kind": [
            np.full(size, kind, object)
            for kind, size in zip(("state", "action", "transition"), sizes, strict=True)
        ]
    }
    for i, name in enumerate(counts.state_columns):
        texts = np.array([*(label[i] for label in counts.states), None], object)  # END picks None
        parts[f"state.{name}"] = [texts[:-1], nothing[1], texts[rows.state]]
        parts[f"next_state.{name}"] = [nothing[0], nothing[1], texts[rows.next_state]]
    for i, name in enumerate(counts.action_columns):
        texts = np.array([label[i] for label in counts.actions], object)
        parts[f"action.{name}"] = [nothing[0], texts, texts[rows.action]]
    zeros = [np.zeros(size, np.int64) for size in sizes]
    parts["times"] = [counts.starts, zeros[1], rows.times]
    parts["terminated"] = [zeros[0] > 0, zeros[1] > 0, rows.terminated]
    sums = np.array([str(total) for total in rows.reward_sum], object)
    parts["reward_sum"] = [np.full(sizes[0], "0", object), np.full(sizes[1], "0", object), sums]
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def read_manifest(database: Any, path: Path) -> dict[str, Any]:
    """What the file says about itself."""
    found = database.execute(
        f"SELECT value FROM parquet_kv_metadata({quoted(escaped(path))}) WHERE key = 'surestep'"
    ).fetchall()
    if not found:
        raise ValueError("it has no manifest")
    manifest = json.loads(bytes(found[0][0]))
    if manifest["format"] != FORMAT or manifest["version"] != VERSION:
        raise ValueError(f"it is of version {manifest['version']!r}, expected {VERSION}")
    scale, read = manifest["reward_scale"], manifest["rows_read"]
    if not (isinstance(scale, int) and 0 <= scale <= 37 and isinstance(read, int) and read >= 0):
        raise ValueError(f"it has scale {scale!r} and {read!r} rows")
    return dict(manifest)


def read_rows(database: Any, path: Path, manifest: Mapping[str, Any]) -> LabelledCounts:
    """The rows of the file, which must fit together."""
    states, actions = tuple(manifest["state_columns"]), tuple(manifest["action_columns"])
    columns = [*label_columns(states, actions), "terminated", "times"]
    table = database.execute(
        f"SELECT kind, {', '.join(map(named, columns))}, CAST(reward_sum AS VARCHAR) "
        f"FROM read_parquet({quoted(escaped(path))})"
    ).fetchall()
    width, acting = len(states), len(actions)
    here, act = slice(1, 1 + width), slice(1 + width, 1 + width + acting)
    there = slice(act.stop, act.stop + width)
    kinds: dict[str, list[Any]] = {"state": [], "action": [], "transition": []}
    for row in table:
        kinds[row[0]].append(row)
    known: dict[Label, int] = {row[here]: i for i, row in enumerate(kinds["state"])}
    takable: dict[Label, int] = {row[act]: i for i, row in enumerate(kinds["action"])}
    if len(known) < len(kinds["state"]) or len(takable) < len(kinds["action"]):
        raise ValueError("a label is there twice")
    nowhere = (None,) * width
    rows = kinds["transition"]
    transitions = Transitions(
        np.array([known[row[here]] for row in rows], np.int64),
        np.array([takable[row[act]] for row in rows], np.int64),
        np.array([END if row[there] == nowhere else known[row[there]] for row in rows], np.int64),
        np.array([row[-3] for row in rows], np.bool_),
        np.array([row[-2] for row in rows], np.int64),
        np.array([int(row[-1]) for row in rows], object),
    )
    starts = np.array([row[-2] for row in kinds["state"]], np.int64)
    if (transitions.times < 1).any() or (starts < 0).any():
        raise ValueError("a count is negative, or 0 where there is a transition")
    if ((transitions.next_state == END) & ~transitions.terminated).any():
        raise ValueError("a step that did not terminate led nowhere")
    return merge_counts(
        [
            LabelledCounts(
                states,
                actions,
                tuple(known),
                tuple(takable),
                transitions,
                manifest["reward_scale"],
                starts,
                manifest["rows_read"],
                {str(why): int(many) for why, many in manifest["rows_dropped"].items()},
            )
        ]
    )


def escaped(path: Path) -> str:
    """A path that DuckDB does not take for a pattern."""
    import glob

    return glob.escape(str(path))


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, piece by piece."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
