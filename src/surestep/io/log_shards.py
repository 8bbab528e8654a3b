"""The files of a log counted apart, as tasks on a Ray cluster, and merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from surestep.errors import InvalidParameter, SurestepError
from surestep.io.labelled_counts import LabelledCounts, merge_counts
from surestep.io.log_columns import ROLES
from surestep.io.log_source import LogSource, read_log
from surestep.parallel import map_on_ray


class Shard(NamedTuple):
    """A file that a task counts."""

    file: str
    columns: dict[str, str | tuple[str, ...]]
    bins: tuple[str, ...]
    memory_limit: str | None


def count_on_ray(
    source: LogSource,
    *,
    address: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LabelledCounts:
    """The counts of a log of files, each counted by a task; every file holds whole episodes.

    Workers must see the files under the same names. `address` is an existing cluster.
    """
    if not source.table.files:
        raise InvalidParameter(f"{source.table.name} is in memory; a cluster counts files only")
    chosen = {role: getattr(source.columns, role) for role in ROLES}
    columns = {role: names for role, names in chosen.items() if names}
    shards = [
        Shard(str(file), columns, source.bins, source.memory_limit) for file in source.table.files
    ]
    parts = list[LabelledCounts]()
    try:
        for part in map_on_ray(count_shard, shards, address=address):
            parts.append(part)
            if progress is not None:
                progress(len(parts), len(shards))
    except SurestepError as problem:
        cause = getattr(problem, "cause", problem)  # without the worker's traceback
        raise cause from None
    return merge_counts(parts)


def count_shard(shard: Shard) -> LabelledCounts:
    """The counts of one file."""
    source = read_log(
        shard.file, columns=shard.columns, bins=shard.bins, memory_limit=shard.memory_limit
    )
    return source.counts()
