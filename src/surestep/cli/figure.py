"""`surestep figure`: the paper's figures, drawn anew, with the table behind each."""

from __future__ import annotations

from pathlib import Path

import click

from surestep.cli.terminal import say


@click.command("figure", short_help="Draw a figure of the paper, with its table as CSV.")
@click.argument("name")
@click.option(
    "--from",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="The run to draw.  [default: runs/NAME]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The picture: FILE.png, FILE.svg or FILE.pdf. The table goes to FILE.csv.",
)
def command(name: str, directory: Path | None, output: Path) -> None:
    """Draw a figure of the paper, with the numbers behind it as CSV beside the picture.

    \b
    n-wedge                 visits that a loss of 0.1 takes, over the number of states (Figure 3)
    paper/gridworld         what `surestep run paper/gridworld` reached (Figure 4)
    comparison/wet-chicken  heat maps of all algorithms, setting × data size
    coverage/gridworld      how often certificates are wrong, and how much they certify
    and so on for every experiment that has been run
    """
    from surestep.figures.registry import draw

    for path in draw(name, directory, output):
        say(f"wrote {path}")
