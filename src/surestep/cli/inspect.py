"""`surestep inspect`: what a log holds, and which of its rows look wrong."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path

import click

from surestep.cli import options
from surestep.cli.options import term_option
from surestep.cli.terminal import say, say_json, terminal
from surestep.io.logs.columns import option_of
from surestep.io.logs.reading import Reading
from surestep.terms import DEFAULT_LEAST_VISITS, TERMS

# The first sign keeps the lines apart that follow it.
IN_USE = """\b
surestep inspect log.csv
surestep inspect log.csv --state ward --state severity --action decision -o log.html"""


@click.command(
    "inspect", short_help="Look at a log: coverage, overlap, suspicious rows.", epilog=IN_USE
)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@options.log_options
@click.option(
    "--n-wedge",
    type=click.IntRange(min=0),
    default=DEFAULT_LEAST_VISITS - 1,
    show_default=True,
    help="N∧: a pair with more visits is one that SPIBB would trust.",
)
@click.option(
    "--behavior",
    metavar="TABLE",
    help="A table of the policy that made the log: state, action, probability.",
)
@term_option("labels", TERMS["labels"])
@options.output_file("-o", "--output", words="Write a page (HTML) as well.")
@options.json_instead
def command(
    logs: tuple[str, ...],
    columns: dict[str, tuple[str, ...]],
    reading: Reading,
    memory_limit: str | None,
    n_wedge: int,
    behavior: str | None,
    labels: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Look at LOG (text, Parquet, JSON lines or XES: files, patterns, folders) before using it.

    Shows how often each action was tried in each state, what the log is too thin for, and rows
    that look wrong, with their places. It refuses only what cannot be read at all.
    """
    from surestep.io import is_counts_file
    from surestep.io.logs.source import open_log
    from surestep.pipeline.inspect import inspect

    if any(map(is_counts_file, logs)):
        raise click.UsageError("These are counts; inspect looks at the log that was counted.")
    source = open_log(list(logs), columns, reading, memory_limit)
    inspection = inspect(source, n_wedge=n_wedge, behavior=behavior, labels=labels or None)
    following = next_command(logs, columns, reading, behavior, labels)
    if not source.says_ends:  # which is not to be seen in the log
        following += " (--complete|--clock)"
    following += " --discount GAMMA -o result"
    if output is not None:
        from surestep._files import write_together
        from surestep.report.pages.inspection import inspection_page

        write_together({output: [inspection_page(inspection, following).encode()]})
    if as_json:
        from surestep.results.inspection import as_json as plain

        say_json(plain(inspection))
        return

    from surestep.cli.inspection_text import print_inspection

    # Names from the data may look like rich's markup.
    print_inspection(inspection, terminal(highlight=False, markup=False, emoji=False))
    if output is not None:
        say(f"wrote {output}")
    say("next, once the rows marked ✗ are mended:" if inspection.refused else "next:")
    say(f"  {following}")


def next_command(
    logs: tuple[str, ...],
    columns: dict[str, tuple[str, ...]],
    reading: Reading,
    behavior: str | None,
    labels: tuple[str, ...],
) -> str:
    """Returns a command that improves the behavior behind the log, but for what is to be chosen."""
    named = [(option_of(role), name) for role, names in columns.items() for name in names]
    named += [] if behavior is None else [("--behavior", behavior)]
    words = [*chain(*named), *reading.words(), *TERMS["labels"].words_for("labels", labels)]
    return shlex.join(["surestep", "improve", *logs, *words])
