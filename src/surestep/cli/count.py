"""`surestep count`: a log of any size as a small file of counts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from surestep._words import counted
from surestep.cli import options
from surestep.cli.options import Grouped, described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say
from surestep.description import READING, Description, several


@click.command(
    "count", cls=Grouped, short_help="Count a log: tables of decisions to a small, mergeable file."
)
@described(*READING)
@options.output_file("The file of counts to write.", required=True)
@options.cluster("Count the files, a task each,")
def command(
    description: Description,
    output: Path,
    memory_limit: str | None,
    engine: str,
    address: str | None,
) -> None:
    """Count LOG, a description (TOML) or a log, into a file of counts.

    Columns with the usual names are found by themselves; say which is which for others. Repeat an
    option where a state, next state or action has several columns. On a cluster, each file must
    hold whole episodes.

    \b
    surestep count log.csv -o counts.parquet
    surestep count 'logs/*.parquet' --state ward --state severity --action decision -o c.parquet
    """
    from surestep.io import is_counts_file, write_counts
    from surestep.io.logs.source import count_on_ray, open_log
    from surestep.parallel import reach

    reach(engine, address)
    if any(map(is_counts_file, several(description.files))):
        raise click.UsageError("These are counts already; put them together with surestep merge.")
    source = open_log(description, memory_limit=memory_limit)
    say(source.columns)
    with task_progress() as progress:
        advance = partial(progress, f"counting {source.table.name}")
        if engine == "ray":
            counts = count_on_ray(source, address=address, progress=advance)
        else:
            counts = replace(source.counts(advance), edges=source.edges())
    write_counts(counts, output, memory_limit=memory_limit)
    say(
        f"read {counts.rows_read:,} rows: {len(counts.states):,} states, "
        f"{len(counts.actions):,} actions, {counts.transitions.times.size:,} transitions"
    )
    ended = counts.episodes
    if ended.recorded:
        say(
            f"{counted(ended.recorded, 'episode')}: {ended.terminated:,} terminated, "
            f"{ended.truncated:,} truncated, {ended.unflagged:,} without a word how they ended"
        )
    dropped = (f"dropped {counted(rows, 'row')}: {why}" for why, rows in counts.dropped.items())
    say(*dropped, f"wrote {output}")
