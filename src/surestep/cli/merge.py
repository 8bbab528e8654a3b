"""`surestep merge`: files of counts as one."""

from __future__ import annotations

from pathlib import Path

import click

from surestep.cli import options
from surestep.cli.terminal import say


@click.command("merge", short_help="Merge files of counts into one.")
@click.argument("files", nargs=-1, required=True, metavar="COUNTS...")
@options.output_file("The file of counts to write.", required=True)
def command(files: tuple[str, ...], output: Path) -> None:
    """Merge files of counts that `surestep count` wrote, in any order.

    The result has the bytes that counting all their logs at once gives. Files that counted the same
    log are refused.

    \b
    surestep merge monday.parquet tuesday.parquet -o both.parquet
    """
    from surestep.io import merge_counts, read_counts, write_counts

    counts = merge_counts([read_counts(path) for path in files])
    write_counts(counts, output)
    say(
        f"merged {len(files):,} files: {counts.rows_read:,} rows, {len(counts.states):,} states, "
        f"{counts.transitions.times.size:,} transitions"
    )
    say(f"wrote {output}")
