"""`surestep count`: a log of any size as a small file of counts."""

from __future__ import annotations

from pathlib import Path

import click

from surestep.cli.columns import column_options


@click.command("count", short_help="Count a log: tables of decisions to a small, mergeable file.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The file of counts."
)
@column_options
@click.option("--memory-limit", help="Such as 2GB; what needs more spills to disk.")
def command(
    logs: tuple[str, ...],
    output: Path,
    columns: dict[str, tuple[str, ...]],
    memory_limit: str | None,
) -> None:
    r"""Count LOG (CSV, Parquet or JSON lines: files, patterns or folders) into one file of counts.

    Columns with the usual names are found by themselves; say which is which for others. Repeat an
    option where a state, next state or action has several columns.

    \b
    surestep count log.csv -o counts.parquet
    surestep count 'logs/*.parquet' --state ward --state severity --action decision -o c.parquet
    """
    from surestep.io import read_log, write_counts

    source = read_log(list(logs), columns=columns, memory_limit=memory_limit)
    click.echo(source.columns)
    counts = source.counts()
    write_counts(counts, output)
    click.echo(
        f"read {counts.rows_read:,} rows: {len(counts.states):,} states, "
        f"{len(counts.actions):,} actions, {counts.transitions.times.size:,} transitions"
    )
    for reason, rows in counts.dropped.items():
        click.echo(f"dropped {rows:,} rows: {reason}")
    click.echo(f"wrote {output}")
