"""`surestep verify`: a saved result made again from its log, and held against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from surestep.cli import options
from surestep.cli.options import described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say
from surestep.description import Description


@click.command("verify", short_help="Make a result again from its log, and compare.")
@click.argument("output", type=click.Path(path_type=Path))
@described("behavior.policy")
@options.allow_query
def command(output: Path, description: Description, **how: Any) -> None:
    """Make the result in OUTPUT again from LOG, and refuse it where anything is different.

    LOG is the log, or your own description of it: files are read that you name, no others.

    It is confirmed, with exit code 0, where all bytes are the same. Where all numbers are within
    1e-9 and all words are the same, or a difference refutes it, that is said, and the exit code
    is 1.

    \b
    surestep verify result log.toml
    surestep verify result log.csv --behavior policy.csv
    """
    from surestep.pipeline import verify_result

    with task_progress() as progress:
        verification = verify_result(output, description, progress=progress, **how)
    if verification.confirmed:
        say("confirmed: the same bytes in every file", fg="green", bold=True)
        return
    values = verification.level == "same values"
    found = "not confirmed: the same values, but not the same bytes" if values else "refuted"
    say(found, fg="yellow" if values else "red", bold=True)
    say(verification.difference)
    raise SystemExit(1)
