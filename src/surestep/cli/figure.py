"""`surestep figure`: the paper's figures, drawn anew, with the table behind each."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("figure", short_help="Draw a figure of the paper, with its table as CSV.")
@click.argument("name", type=click.Choice(["n-wedge"]))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Where to draw: FILE.png, FILE.svg or FILE.pdf. The table goes to FILE.csv.",
)
def command(name: str, output: Path) -> None:
    r"""Draw a figure of the paper, with the numbers behind it as CSV beside the picture.

    \b
    n-wedge   visits of each pair that a loss of ζ = 0.1 takes, over the number of states
    """
    from surestep.report import draw_n_wedge

    for path in draw_n_wedge(output):
        click.echo(f"wrote {path}")
