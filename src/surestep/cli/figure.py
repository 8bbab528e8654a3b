"""`surestep figure`: figures of any experiment, with the table behind each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surestep.cli import options
from surestep.cli.terminal import say

if TYPE_CHECKING:
    from surestep.experiments import Selection


@click.command("figure", short_help="Draw any experiment, with its numbers as CSV.")
@options.run_choice
@options.output_file(
    "The picture: FILE.png, FILE.svg or FILE.pdf. The table goes to FILE.csv.", required=True
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="mean, cvar10, cvar1 (any cvarP), better, worse; of claims violation, positive, "
    "tightness; repeatable.  [default: mean, cvar10, cvar1]",
)
@options.value_of_metrics
@click.option("--columns", metavar="PART", help="What columns of panels are for.")
@click.option(
    "--rows",
    metavar="PART",
    help="What rows are for: environment, algorithm, setting, n-wedge or metric; of claims task, "
    "claim or metric.",
)
@click.option("--bands/--no-bands", default=True, show_default=True, help="95 % intervals.")
@click.option("--size", type=(float, float), metavar="W H", help="Width and height in inches.")
@click.option(
    "--font",
    default="sans",
    show_default=True,
    help="sans, serif, or the name of an installed family.",
)
@click.option("--font-size", type=float, default=10.0, show_default=True, help="Points.")
@click.option("--title", help="A title inside the picture.  [default: none]")
def command(
    name: str,
    directory: Path | None,
    selection: Selection,
    output: Path,
    size: tuple[float, float] | None,
    font: str,
    font_size: float,
    title: str | None,
    **request: Any,
) -> None:
    """Draw the runs of NAME, with the numbers behind each picture as CSV beside it.

    NAME is what `surestep run` takes (an experiment of the catalog, a folder of it, a .toml file),
    the folder of a run, or n-wedge, which is drawn from formulas (the paper's Figure 3). Of several
    runs each picture has the name of its run: -o fig.pdf makes fig-gridworld.pdf.

    \b
    surestep figure paper/gridworld -o figure-4.pdf --size 7 4 --font serif --font-size 8
    surestep figure mine.toml -o mine.png --algorithm spibb --algorithm ramdp --metric mean
    """
    from surestep._drawing import Look
    from surestep.figures.figure import Request, draw

    look = Look(size, font, font_size, title)
    wanted = Request(selection, look=look, **request)
    say(*(f"wrote {path}" for path in draw(name, directory, output, wanted)))
