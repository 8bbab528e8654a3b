"""`surestep describe`: a look at a log, and a description of it to go on with."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from surestep.cli import options
from surestep.cli.terminal import say
from surestep.description import DEFAULTS, HELP, SUFFIX, assignment, described, merged


@click.command("describe", short_help="Look at a log, and write a description to go on with.")
@click.argument("logs", nargs=-1, metavar="LOG...")
@options.output_file("The file to write.  [default: LOG.toml beside LOG]")
@click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="KEY=VALUE",
    help="How the files are written, such as reader.delim=';'.",
)
@click.option("--keys", is_flag=True, help="List all keys of a description instead.")
def command(
    logs: tuple[str, ...], output: Path | None, assigned: tuple[str, ...], keys: bool
) -> None:
    """Look at LOG, guess what its columns are, and write that down with comments.

    Nothing is asked. Read the file, correct it where the guess is wrong, and go on with it.

    \b
    surestep describe log.csv
    surestep inspect log.toml
    surestep improve log.toml -o result
    """
    if keys:
        for path, words in HELP.items():
            name = path.rpartition(".")[2]
            usual = DEFAULTS.get(name)
            say(f"{path}: {words}{'' if usual is None else f'  [default: {usual}]'}")
        return
    if not logs:
        raise click.UsageError("Missing argument 'LOG...'.")
    from surestep._files import check_output, write_together
    from surestep.errors import FileFailure
    from surestep.pipeline.describe import describe

    said: dict[str, object] = {"files": list(logs)}
    for text in assigned:
        said = merged(said, assignment(text))
    if said.keys() - {"files", "reader"}:
        raise click.UsageError("--set says here how files are written, such as reader.delim=';'.")
    if output is None and not Path(logs[0]).exists():
        raise FileFailure(f"{logs[0]} is no file or folder; name the file to write with -o")
    target = Path(logs[0]).with_suffix(SUFFIX) if output is None else output
    check_output(target)
    if output is None and target.exists():
        raise FileFailure(f"{target} is there already; name another file with -o")
    write_together({target: [describe(described(said), target.parent).encode()]})
    say(f"wrote {target}")
    say(f"next: read it, then: surestep inspect {shlex.quote(str(target))}")
