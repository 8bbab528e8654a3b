"""Counts as a file: one Parquet table with a manifest inside, the same bytes for the same counts.

A row of kind 'state' counts the starts in a state and says whether somebody decides there, one of
kind 'action' lists an action, and one of kind 'transition' says how often a step led where, what
that earned, and how likely the logged behavior was to take it, if that is known. A next state of
nothing is the end of an episode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surestep._arrays import AnyArray
from surestep._files import check_utf8, read_path, temporary_folder, write_together
from surestep.errors import FileFailure, InvalidCounts, InvalidParameter
from surestep.io.counts_rows import Layout, read_rows
from surestep.io.labelled_counts import Label, LabelledCounts
from surestep.io.log_tables import file_list, first_lines, limit_memory, named, quoted
from surestep.io.transitions import REWARDS

FORMAT = "surestep counts"
VERSION = 3
CHUNK = 1 << 20


def write_counts(
    counts: LabelledCounts, path: str | Path, *, memory_limit: str | None = None
) -> None:
    """Writes the counts, whole or not at all; equal counts of equal logs give equal bytes.

    Half of `memory_limit`, such as '2GB', is used besides the counts themselves.
    """
    import duckdb

    target = read_path(path)
    # One thread, and rows in their one order: nothing about the bytes is left to chance.
    with (
        temporary_folder() as folder,
        duckdb.connect(config={"threads": 1, "temp_directory": str(folder)}) as database,
    ):
        if memory_limit is not None:
            limit_memory(database, memory_limit, share=0.5)
        written = folder / "counts.parquet"
        metadata = quoted(json.dumps(manifest_of(counts), ensure_ascii=False))
        database.register("states", labels_table(counts.states, counts.starts, counts.decided))
        nothing = np.zeros(len(counts.actions), np.int64)
        database.register("actions", labels_table(counts.actions, nothing, nothing > 0))
        rows = counts.transitions._asdict()
        wide = [name for name in REWARDS if rows[name].dtype == object]
        rows |= {name: np.asarray(rows[name].astype(str), object) for name in wide}
        database.register("transitions", {n: v for n, v in rows.items() if v is not None})
        database.execute(
            f"COPY ({rows_sql(Layout.of(counts))}) TO {quoted(str(written))} "
            f"(FORMAT parquet, KV_METADATA {{surestep: {metadata}}})"
        )
        write_together({target: chunks_of(written)})


def read_counts(path: str | Path) -> LabelledCounts:
    """Reads counts that `write_counts` wrote; anything else is refused."""
    import duckdb

    source = read_path(path)
    if not source.is_file():
        raise FileFailure(f"{source} is no file")
    check_utf8(source)
    with (
        temporary_folder() as folder,
        duckdb.connect(config={"threads": 1, "temp_directory": str(folder)}) as database,
    ):
        try:
            return read_rows(database, source, read_manifest(database, source))
        except duckdb.Error as problem:
            raise InvalidCounts(f"{source} cannot be read: {first_lines(problem)}") from None
        except (
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,
            InvalidParameter,
        ) as problem:
            raise InvalidCounts(
                f"{source} is no file of counts as `surestep count` writes them ({problem})"
            ) from None


def is_counts_file(path: str | Path) -> bool:
    """Whether the file says of itself that it holds counts."""
    import duckdb

    source = read_path(path)
    if source.suffix.lower() != ".parquet" or not source.is_file():
        return False
    with duckdb.connect(config={"threads": 1}) as database:
        try:
            return bool(
                database.execute(
                    f"SELECT 1 FROM parquet_kv_metadata({file_list([source])}) "
                    "WHERE key = 'surestep'"
                ).fetchone()
            )
        except duckdb.Error:  # whoever reads it as a log says what is wrong with it
            return False


# ---- the manifest -----------------------------------------------------------------------------


def manifest_of(counts: LabelledCounts) -> dict[str, Any]:
    """What the file says about itself."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "labels": "text",
        "rewards": "whole multiples of 10^-reward_scale",
        "state_columns": counts.state_columns,
        "action_columns": counts.action_columns,
        "bins": {name: each.to_json() for name, each in sorted(counts.binnings.items())},
        "reward_scale": counts.scale,
        "behavior_prob": counts.transitions.lowest is not None,
        "rows_read": counts.rows_read,
        "rows_dropped": dict(sorted(counts.dropped.items())),
        "episodes": {**counts.episodes._asdict(), "unflagged": counts.episodes.unflagged},
        "sources": counts.sources,
    }


def read_manifest(database: Any, path: Path) -> dict[str, Any]:
    """What the file says about itself, if it is of our kind."""
    found = database.execute(
        f"SELECT value FROM parquet_kv_metadata({file_list([path])}) WHERE key = 'surestep'"
    ).fetchall()
    if not found:
        raise ValueError("it has no manifest")
    manifest = json.loads(bytes(found[0][0]))
    if manifest["format"] != FORMAT or manifest["version"] != VERSION:
        raise ValueError(
            f"it is of version {manifest['version']!r}, expected {VERSION}; count the log again"
        )
    numbers = {
        "reward_scale": manifest["reward_scale"],
        "rows_read": manifest["rows_read"],
        **manifest["rows_dropped"],
        **manifest["episodes"],
    }
    for name, number in numbers.items():
        if not (isinstance(number, int) and number >= 0):
            raise ValueError(f"{name} is {number!r}")
    sources = manifest["sources"]
    if sources != sorted({str(each) for each in sources}):
        raise ValueError("its sources are no rising texts")
    if manifest["reward_scale"] > 37:
        raise ValueError(f"reward_scale is {manifest['reward_scale']}")
    return dict(manifest)


# ---- the rows ---------------------------------------------------------------------------------


def labels_table(labels: tuple[Label, ...], times: AnyArray, decided: AnyArray) -> dict[str, Any]:
    """Labels by number, as a table that DuckDB can scan."""
    texts = zip(*labels, strict=True)
    columns = {f"text_{i}": np.array(column, object) for i, column in enumerate(texts)}
    return {"number": np.arange(len(labels)), "times": times, "decided": decided, **columns}


def rows_sql(layout: Layout) -> str:
    """All rows of the file: states, actions, transitions, each in their order."""
    width, acting = len(layout.state), len(layout.action)
    none, no_action = ["NULL::VARCHAR"] * width, ["NULL::VARCHAR"] * acting
    here, there = ([f"{t}.text_{i}" for i in range(width)] for t in ("here", "there"))
    act = [f"act.text_{i}" for i in range(acting)]
    seen = ["lowest", "highest"] if layout.behavior_prob else []
    unseen = ["NULL::DOUBLE"] * len(seen)
    nothing = ["0::DECIMAL(38, 0)"] * len(REWARDS)
    exact = [f"CAST({name} AS DECIMAL(38, 0))" for name in REWARDS]
    of_state = [*here, *no_action, *none, "false", "decided", "times", *nothing, *unseen]
    of_action = [*none, *act, *none, "false", "decided", "times", *nothing, *unseen]
    of_step = [*here, *act, *there, "terminated", "false", "rows.times", *exact, *seen]
    parts = (
        f"SELECT 0 AS part, number, 'state' AS kind, {', '.join(of_state)} FROM states AS here",
        f"SELECT 1, number, 'action', {', '.join(of_action)} FROM actions AS act",
        f"SELECT 2, place, 'transition', {', '.join(of_step)} FROM (SELECT *, row_number() OVER () "
        "AS place FROM transitions) AS rows JOIN states AS here ON here.number = state "
        "JOIN actions AS act ON act.number = action "
        "LEFT JOIN states AS there ON there.number = next_state",
    )
    names = ["part", "number", "kind", *map(named, layout.columns)]
    union = f"({' UNION ALL '.join(parts)}) AS rows({', '.join(names)})"
    return f"SELECT * EXCLUDE (part, number) FROM {union} ORDER BY part, number"


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, piece by piece."""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
