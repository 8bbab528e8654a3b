"""The verb of methods: `algorithms`, with settings and promises."""

import click

from surestep.cli import options
from surestep.cli.terminal import say, say_json, terminal


@click.command("algorithms", short_help="List the algorithms: settings, promises, source.")
@click.argument("name", required=False)
@options.json_instead
def algorithms_command(name: str | None, as_json: bool) -> None:
    """List the algorithms with their settings, promises and source; or only the one called NAME."""
    from surestep.algorithms.registry import SHELF, describe_algorithms

    entries = describe_algorithms(name)
    say(*(SHELF.broken() if name is None else ()), err=True)
    if as_json:
        say_json([entry._asdict() for entry in entries])
        return
    from rich.padding import Padding

    console = terminal(highlight=False)
    for entry in entries:
        console.print(f"[bold]{entry.name}[/]  {', '.join(entry.settings) or 'no settings'}")
        lines = [entry.summary, f"[dim]{entry.source}[/]"]
        if SHELF.source_of(entry.name):
            lines[-1] = f"[dim]by extension {SHELF.source_of(entry.name)}: {entry.source}[/]"
        if entry.constraint:
            lines.insert(1, f"always: {entry.constraint}")
        lines[-1:-1] = [f"promises: {promise}" for promise in entry.promises]
        console.print(Padding("\n".join(lines), (0, 0, 1, 4)))
