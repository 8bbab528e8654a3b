"""Reads and writes files of counts: Parquet with a manifest; equal counts give equal bytes.

A row of kind 'state' has the number of starts in a state and whether a row decides there; a row of
kind 'action' lists an action; a row of kind 'transition' has its count, its rewards and, if known,
the logged probability of its action. An empty next state is the end of an episode. From version 7
on, the manifest has the digest of the file, computed with zeros in place of the digest.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np

from surestep._arrays import AnyArray
from surestep._files import check_utf8, read_path, temporary_folder, write_together
from surestep._json import read_json, typed
from surestep.errors import FileFailure, InvalidCounts, InvalidParameter
from surestep.io.counts.labelled import (
    END,
    REWARDS,
    Ends,
    Episodes,
    LabelledCounts,
    Transitions,
    exact_type,
    integers,
    merge_counts,
)
from surestep.io.labels.binning import Binning
from surestep.io.labels.vocabulary import Label
from surestep.io.sql import (
    file_list,
    first_lines,
    in_memory,
    named,
    replacing,
    sql_name,
    sql_text,
)

FORMAT = "surestep counts"
VERSION = 7
READ = (6, VERSION)
UNSEALED = "0" * 64
FORM = "surestep_form"  # the first column of a table that a warehouse made
LARGEST_SCALE = 37  # decimal places that 38 digits leave room for


def write_counts(
    counts: LabelledCounts, path: str | Path, *, memory_limit: str | None = None
) -> None:
    """Writes counts to a Parquet file, whole or not at all; equal counts give equal bytes.

    Parameters
    ----------
    counts : LabelledCounts
        The counts.
    path : str or Path
        The file, which is replaced if it exists.
    memory_limit : str, optional
        A size such as "2GB", half of which may be used besides the counts themselves.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> log = surestep.read_log({"state": ["a"], "action": ["x"], "reward": [1.0]})
    >>> file = Path(tempfile.mkdtemp(), "counts.parquet")
    >>> surestep.io.write_counts(log.counts(), file)
    >>> surestep.io.read_counts(file).rows_read
    1
    """
    target = read_path(path)
    # One thread and sorted rows: DuckDB then writes the same bytes every time.
    with (
        temporary_folder() as folder,
        in_memory(memory_limit, share=0.5, threads=1) as database,
    ):
        written = folder / "counts.parquet"
        manifest = Manifest.of(counts)
        content = {
            **asdict(manifest),
            "bins": {name: binning.to_json() for name, binning in manifest.bins.items()},
            "digest": UNSEALED,
        }
        if not counts.signals:
            del content["signals"]
        metadata = sql_text(json.dumps(content, ensure_ascii=False))
        database.register("states", labels_table(counts.states, counts.starts, counts.decided))
        nothing = np.zeros(len(counts.actions), np.int64)
        database.register("actions", labels_table(counts.actions, nothing, nothing > 0))
        rows = counts.transitions._asdict()
        for place, further in enumerate(counts.signals.values()):
            rows |= {f"of_{place}_{n}": getattr(further.transitions, n) for n in REWARDS}
        wide = [name for name in manifest.earned if rows[name].dtype == object]
        rows |= {name: np.asarray(rows[name].astype(str), object) for name in wide}
        database.register("transitions", {n: v for n, v in rows.items() if v is not None})
        database.execute(
            f"COPY ({rows_sql(manifest)}) TO {sql_text(str(written))} "
            f"(FORMAT parquet, KV_METADATA {{surestep: {metadata}}})"
        )
        data = written.read_bytes()
        write_together({target: [resealed(data, UNSEALED, hashlib.sha256(data).hexdigest())]})


def read_counts(path: str | Path) -> LabelledCounts:
    """Reads a file of counts.

    Parameters
    ----------
    path : str or Path
        A file written by `write_counts` or `surestep count`.

    Returns
    -------
    LabelledCounts
        The counts.

    Raises
    ------
    FileFailure
        There is no such file.
    InvalidCounts
        The file is not a file of counts, or was damaged or changed.

    Examples
    --------
    >>> surestep.io.read_counts("counts.parquet")
    Traceback (most recent call last):
        ...
    surestep.errors.FileFailure: counts.parquet is no file
    """
    import duckdb

    source = read_path(path)
    if not source.is_file():
        raise FileFailure(f"{source} is no file")
    check_utf8(source)
    with in_memory(threads=1) as database:
        try:
            return read_rows(database, source, read_manifest(database, source))
        except duckdb.Error as problem:
            raise InvalidCounts(f"{source} cannot be read: {first_lines(problem)}") from None
        except (LookupError, TypeError, ValueError, RecursionError, InvalidParameter) as problem:
            raise InvalidCounts(
                f"{source} is no file of counts as `surestep count` writes them ({problem})"
            ) from None


def resealed(data: bytes, digest: str, other: str) -> bytes:
    """Replaces the digest in the manifest by `other`; returns the bytes of the file."""
    before, _, after = data.rpartition(f'"digest": "{digest}"'.encode())
    return b"".join([before, f'"digest": "{other}"'.encode(), after])


def kind_of_counts(path: str | Path) -> Literal["file", "table"] | None:
    """Returns what counts are in a file: those of `write_counts`, or a table of a warehouse."""
    import duckdb

    source = read_path(path)
    if source.suffix.lower() != ".parquet" or not source.is_file():
        return None
    with in_memory(threads=1) as database:
        try:
            if stored_manifest(database, source):
                return "file"
            schema = f"parquet_schema({file_list([source])}) WHERE name = '{FORM}'"
            return "table" if database.execute(f"SELECT 1 FROM {schema}").fetchall() else None
        except duckdb.Error:  # `read_log` will say what is wrong with it
            return None


# ---- the manifest -----------------------------------------------------------------------------


Whole = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalManifest:
    """The scale and the dropped rewards of a further signal, in the manifest."""

    reward_scale: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SCALE)]
    dropped: Mapping[str, Ends]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a file of counts."""

    format: str = FORMAT
    version: int = VERSION
    labels: str = "text"
    rewards: str = "whole multiples of 10^-reward_scale"
    state_columns: tuple[str, ...]
    action_columns: tuple[str, ...]
    bins: Mapping[str, Binning]
    reward_scale: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_SCALE)]
    behavior_prob: bool
    rows_read: Whole
    rows_dropped: Mapping[str, Whole]
    dropped_rewards: Mapping[str, Ends]  # reason → least and greatest reward
    episodes: Mapping[str, Whole]
    sources: tuple[str, ...]
    edges: tuple[str, ...]
    signals: Mapping[str, SignalManifest] = field(default_factory=dict)  # by name
    digest: str = ""

    @classmethod
    def of(cls, counts: LabelledCounts) -> Self:
        """Returns the manifest of counts."""
        return cls(
            state_columns=counts.state_columns,
            action_columns=counts.action_columns,
            bins=dict(sorted(counts.binnings.items())),
            reward_scale=counts.scale,
            behavior_prob=counts.transitions.lowest is not None,
            rows_read=counts.rows_read,
            rows_dropped=dict(sorted(counts.dropped.items())),
            dropped_rewards=counts.dropped_rewards,
            episodes={**counts.episodes._asdict(), "unflagged": counts.episodes.unflagged},
            sources=counts.sources,
            edges=counts.edges,
            signals={
                name: SignalManifest(reward_scale=further.scale, dropped=further.dropped_rewards)
                for name, further in counts.signals.items()
            },
        )

    @property
    def earned(self) -> dict[str, str]:
        """Returns the columns of rewards of all signals, by their names in SQL."""
        further = {
            f"of_{place}_{name}": f"{signal}.{name}"
            for place, signal in enumerate(self.signals)
            for name in REWARDS
        }
        return {name: name for name in REWARDS} | further

    def names(self, role: str) -> list[str]:
        """Returns the columns of a role's labels, such as 'state.ward'."""
        names = self.action_columns if role == "action" else self.state_columns
        return [f"{role}.{name}" for name in names]

    @property
    def columns(self) -> list[str]:
        """Returns all columns but the kind of a row."""
        texts = [name for role in ("state", "action", "next_state") for name in self.names(role)]
        seen = ["lowest", "highest"] if self.behavior_prob else []
        return [*texts, "terminated", "decided", "times", *self.earned.values(), *seen]


def stored_manifest(database: Any, path: Path) -> bytes:
    """Returns the manifest in a Parquet file as JSON; empty bytes if the file has none."""
    source = f"parquet_kv_metadata({file_list([path])}) WHERE key = 'surestep'"
    entries = database.execute(f"SELECT value FROM {source}").fetchall()
    return bytes(entries[0][0]) if entries else b""


def read_manifest(database: Any, path: Path) -> Manifest:
    """Reads and checks the manifest of a file of counts."""
    stored = stored_manifest(database, path)
    if not stored:
        raise ValueError("it has no manifest")
    content = read_json(stored)
    if content["format"] != FORMAT or content["version"] not in READ:
        raise ValueError(
            f"it is of version {content['version']!r}, expected {VERSION}; count the log again"
        )
    manifest = typed({"signals": {}, "digest": "", **content}, Manifest)
    if manifest.version > 6:
        unsealed = resealed(path.read_bytes(), manifest.digest, UNSEALED)
        if hashlib.sha256(unsealed).hexdigest() != manifest.digest:
            raise ValueError("it was damaged or changed after it was written; count the log again")
    if [*manifest.sources] != sorted(set(manifest.sources)):
        raise ValueError("its sources are no rising texts")
    return manifest


# ---- the rows ---------------------------------------------------------------------------------


def labels_table(labels: tuple[Label, ...], times: AnyArray, decided: AnyArray) -> dict[str, Any]:
    """Returns labels by number, as a table that DuckDB can scan."""
    texts = zip(*labels, strict=True)
    columns = {f"text_{i}": np.array(column, object) for i, column in enumerate(texts)}
    return {"number": np.arange(len(labels)), "times": times, "decided": decided, **columns}


def rows_sql(manifest: Manifest) -> str:
    """Returns SQL for all rows of the file: states, actions, transitions, each in their order."""

    def labels(table: str, role: str) -> str:
        texts = enumerate(map(sql_name, manifest.names(role)))
        return ", ".join(f"{table}.text_{i} AS {name}" for i, name in texts)

    exact = (f"CAST({x} AS DECIMAL(38, 0)) AS {sql_name(n)}" for x, n in manifest.earned.items())
    seen = ", lowest, highest" if manifest.behavior_prob else ""
    parts = (
        f"SELECT 0 AS part, number, 'state' AS kind, {labels('here', 'state')}, decided, times "
        "FROM states AS here",
        f"SELECT 1 AS part, number, 'action' AS kind, {labels('act', 'action')}, decided, times "
        "FROM actions AS act",
        f"SELECT 2 AS part, place AS number, 'transition' AS kind, {labels('here', 'state')}, "
        f"{labels('act', 'action')}, {labels('there', 'next_state')}, terminated, rows.times, "
        f"{', '.join(exact)}{seen} FROM (SELECT *, row_number() OVER () AS place FROM transitions) "
        "AS rows JOIN states AS here ON here.number = state "
        "JOIN actions AS act ON act.number = action "
        "LEFT JOIN states AS there ON there.number = next_state",
    )
    filled = {"terminated": "false", "decided": "false"}
    filled |= dict.fromkeys(manifest.earned.values(), "0")
    values = [f"coalesce({sql_name(name)}, {x}) AS {sql_name(name)}" for name, x in filled.items()]
    rows = f"SELECT {replacing(values)} FROM ({' UNION ALL BY NAME '.join(parts)})"
    return f"SELECT {named(['kind', *manifest.columns])} FROM ({rows}) ORDER BY part, number"


SUM_SLACK = 1e-12  # relative; sums are compared as doubles, which round


def read_rows(database: Any, path: Path, manifest: Manifest) -> LabelledCounts:
    """Reads the rows of the file; raises `ValueError` if they contradict each other."""
    database.execute(
        f"CREATE TEMP TABLE rows AS SELECT kind, {', '.join(map(sql_name, manifest.columns))}, "
        f"file_row_number AS place FROM read_parquet({file_list([path])}, file_row_number=true)"
    )
    states = numbered_labels(database, manifest, "state")
    actions = numbered_labels(database, manifest, "action")
    begun = complete_columns(
        database.execute(
            "SELECT times::BIGINT AS times, decided::BOOLEAN AS decided FROM states ORDER BY number"
        )
    )
    transitions, *further = read_transitions(database, manifest)
    stuck = (transitions.next_state == END) & ~transitions.terminated
    uncounted = (transitions.times < 1).any() or (begun["times"] < 0).any()
    for fault, is_there in (
        ("a count is negative, or 0 where there is a transition", uncounted),
        ("a step that did not terminate led nowhere", stuck.any()),
        ("a transition begins where nobody decides", not begun["decided"][transitions.state].all()),
    ):
        if is_there:
            raise ValueError(fault)
    for rows in (transitions, *further):
        sums, least, greatest = (np.asarray(getattr(rows, name), float) for name in REWARDS)
        slack = SUM_SLACK * np.maximum(np.abs(least), np.abs(greatest)) * rows.times
        outside = (sums < least * rows.times - slack) | (sums > greatest * rows.times + slack)
        if (outside | (rows.least_reward > rows.greatest_reward)).any():
            raise ValueError(
                "a sum of rewards is not between the least and the greatest, times visits"
            )
    counts = LabelledCounts(
        manifest.state_columns,
        manifest.action_columns,
        states,
        actions,
        transitions,
        manifest.reward_scale,
        begun["times"],
        manifest.rows_read,
        manifest.rows_dropped,
        begun["decided"],
        Episodes(*(manifest.episodes[name] for name in Episodes._fields)),
        manifest.bins,
        manifest.sources,
        manifest.dropped_rewards,
        edges=manifest.edges,
    )
    signals = {
        name: replace(counts, transitions=rows, scale=one.reward_scale, dropped_rewards=one.dropped)
        for (name, one), rows in zip(manifest.signals.items(), further, strict=True)
    }
    return merge_counts([replace(counts, signals=signals)])


def numbered_labels(database: Any, manifest: Manifest, role: str) -> tuple[Label, ...]:
    """Numbers the labels of a role in a table; raises `ValueError` if two are equal."""
    database.execute(
        f"CREATE TEMP TABLE {role}s AS SELECT row_number() OVER (ORDER BY place) - 1 AS "
        f"number, * FROM rows WHERE kind = '{role}'"
    )
    texts = ", ".join(sql_name(name) for name in manifest.names(role))
    rows = database.execute(f"SELECT {texts} FROM {role}s ORDER BY number").fetchall()
    if not all(isinstance(text, str) for row in rows for text in row):
        raise ValueError(f"a label of a {role} is no text")
    if len(set(rows)) < len(rows):
        raise ValueError("a label is there twice")
    return tuple(rows)


def read_transitions(database: Any, manifest: Manifest) -> list[Transitions]:
    """Reads the transitions with numbers of labels: of the rewards, then of each further signal."""
    joins = (
        ("here", "states", "state", "state"),
        ("act", "actions", "action", "action"),
        ("there", "states", "state", "next_state"),
    )
    joined = "".join(
        f" LEFT JOIN {table} AS {alias} ON "
        + " AND ".join(
            f"{alias}.{sql_name(known)} = rows.{sql_name(used)}"
            for known, used in zip(manifest.names(role), manifest.names(as_role), strict=True)
        )
        for alias, table, role, as_role in joins
    )
    nowhere = " AND ".join(
        f"rows.{sql_name(name)} IS NULL" for name in manifest.names("next_state")
    )
    kind = exact_type(database, "rows", map(sql_name, manifest.earned.values()))
    rewards = ", ".join(
        f"CAST(CAST(rows.{sql_name(column)} AS HUGEINT) AS {kind}) AS {name}"
        for name, column in manifest.earned.items()
    )
    seen = ", rows.lowest, rows.highest" if manifest.behavior_prob else ""
    columns = complete_columns(
        database.execute(
            "SELECT here.number AS state, act.number AS action, "
            f"CASE WHEN {nowhere} THEN {END} ELSE there.number END AS next_state, "
            "rows.terminated::BOOLEAN AS terminated, rows.times::BIGINT AS times, "
            f"{rewards}{seen} FROM rows{joined} "
            "WHERE rows.kind = 'transition' ORDER BY rows.place"
        )
    )
    values: dict[str, Any] = {name: columns.get(name) for name in Transitions._fields}
    low = columns.get("lowest", np.ones(1))
    high = columns.get("highest", np.ones(1))
    if not ((low > 0) & (low <= high) & (high <= 1)).all():
        raise ValueError("a propensity is not above 0 and at most 1")
    prefixes = ["", *(f"of_{place}_" for place in range(len(manifest.signals)))]
    return [
        Transitions(**values | {n: integers(columns[f"{prefix}{n}"]) for n in REWARDS})
        for prefix in prefixes
    ]


def complete_columns(answer: Any) -> dict[str, AnyArray]:
    """Returns the columns of an answer; raises `ValueError` where a value is missing."""
    columns = answer.fetchnumpy()
    for name, values in columns.items():
        if np.ma.is_masked(values):
            raise ValueError(f"a value of {name} is missing or unknown")
    return {name: np.asarray(values) for name, values in columns.items()}
