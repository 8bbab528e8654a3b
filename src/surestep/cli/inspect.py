"""`surestep inspect`: what a log holds, and which of its rows look wrong."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from surestep.cli import options
from surestep.cli.options import Grouped, described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say, say_json, terminal
from surestep.description import DEFAULTS, READING, SUFFIX, Description, several
from surestep.description import command as command_of


@click.command(
    "inspect", cls=Grouped, short_help="Look at a log: coverage, overlap, suspicious rows."
)
@described(*READING, "behavior.policy")
@click.option(
    "--n-wedge",
    type=click.IntRange(min=0),
    default=DEFAULTS["least_visits"] - 1,
    show_default=True,
    help="N∧: a pair with more visits is one that SPIBB would trust.",
)
@options.output_file("Write a page (HTML) as well.")
@options.json_instead
def command(
    description: Description,
    memory_limit: str | None,
    n_wedge: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Look at LOG, a description (TOML) or a log, before using it.

    Shows how often each action was tried in each state, what the log is too thin for, and rows
    that look wrong, with their places. It refuses only what cannot be read at all.

    \b
    surestep inspect log.toml
    surestep inspect log.csv --state ward --state severity --action decision -o log.html
    """
    from surestep._files import write_together
    from surestep.io import is_counts_file
    from surestep.io.logs.source import open_log
    from surestep.pipeline.inspect import inspect
    from surestep.report.inspection import inspection_sections
    from surestep.report.page import page
    from surestep.report.terminal import print_sections
    from surestep.results.inspection import as_json as plain

    if any(map(is_counts_file, several(description.files))):
        raise click.UsageError("These are counts; inspect looks at the log that was counted.")
    with task_progress() as progress:
        progress("looking at the log", 0, 1)
        source = open_log(description, memory_limit=memory_limit)
        inspection = inspect(source, n_wedge=n_wedge)
    following = next_command(description, ends=source.says_ends)
    sections = inspection_sections(inspection, following)
    if output is not None:
        title = f"Inspection of {inspection.source}"
        write_together({output: [page(title, "A look at a log", sections).encode()]})
    if as_json:
        say_json(plain(inspection))
        return
    # Names from the data may look like rich's markup.
    print_sections(sections, terminal(highlight=False, markup=False, emoji=False))
    if output is not None:
        say(f"wrote {output}")


def next_command(description: Description, *, ends: bool) -> str:
    """Returns a command that improves the behavior behind the log; its discount is to be chosen.

    So is how episodes end where nobody says it, which is not to be seen in the log.
    """
    logs = click.get_current_context().params["logs"]
    said = [name for name, value in click.get_current_context().params.items() if value]
    alone = logs[0].endswith(SUFFIX) and not {*said} - {"logs", "n_wedge", "output", "as_json"}
    words = f"surestep improve {quote(logs[0])}" if alone else command_of("improve", description)
    discount = "" if description.stakes.discount is not None else " --discount GAMMA"
    return f"{words}{'' if ends else ' --ends (complete|clock)'}{discount} -o result"
