"""`surestep verify`: a saved result made again from its log, and held against it."""

from __future__ import annotations

from pathlib import Path

import click

from surestep.cli import options
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say


@click.command("verify", short_help="Make a result again from its log, and compare.")
@click.argument("output", type=click.Path(path_type=Path))
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--behavior", metavar="POLICY", help="The table of the policy that was given.")
@options.own_keys
@options.allow_query
@options.memory_limit
def command(
    output: Path,
    logs: tuple[str, ...],
    behavior: str | None,
    assigned: tuple[str, ...],
    allow_query: bool,
    memory_limit: str | None,
) -> None:
    """Make the result in OUTPUT again from LOG, and refuse it where anything is different.

    LOG is the log, or your own description of it: files are read that you name, no others.

    It is confirmed where all bytes are the same. Where the record names other versions, another
    machine or other files, the counts must be the same, the policy up to ties, every number within
    1e-9 of itself and the words of the page: that is no confirmation, and the exit code is 1.

    \b
    surestep verify result log.toml
    surestep verify result log.csv --behavior policy.csv
    """
    from surestep.description import OPTIONS
    from surestep.pipeline import verify_result
    from surestep.pipeline.evidence import SOURCES

    with task_progress() as progress:
        verification = verify_result(
            output,
            options.own_log(logs, assigned, behavior),
            allow_query=allow_query,
            memory_limit=memory_limit,
            progress=progress,
        )
    if verification.confirmed:
        say("confirmed: the same bytes in every file", fg="green", bold=True)
        return
    found = "the same values, but bytes could not be demanded"
    if verification.level == "same bytes":
        found = "the same bytes, as far as they could be made again"
    say(f"not confirmed: {found}", fg="yellow", bold=True)
    say(verification.why_not_bytes or None)
    if not verification.page_compared:
        say("report.html was not compared: ties between actions fell otherwise here")
    for name in verification.taken_from_folder:
        say(
            f"not checked: {name}, taken from {output} itself; give it with "
            f"{OPTIONS.get(SOURCES[name], f'--set {SOURCES[name]}=FILE')}"
        )
    raise SystemExit(1)
