"""`surestep compare`: the methods of a run held against each other, as tables or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep.cli import options
from surestep.cli.terminal import say

if TYPE_CHECKING:
    from surestep.experiments import Selection


@click.command("compare", short_help="Compare the methods of a run: tables, or a page.")
@options.run_choice
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="mean, cvar10, cvar1 (any cvarP), better, worse; repeatable.  [default: all of these]",
)
@options.value_of_metrics
@click.option(
    "--against",
    metavar="NAME[:SETTING=VALUE]",
    help="The method that others are compared with.  [default: the first of the table]",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "latex", "html"]),
    default="markdown",
    show_default=True,
    help="How tables are printed.",
)
@options.output_file(
    "--page",
    metavar="FILE.html",
    words="Write a page with curves, tables and settings instead, such as run.html.",
)
def command(
    name: str,
    directory: Path | None,
    selection: Selection,
    metrics: tuple[str, ...],
    value: str | None,
    against: str | None,
    kind: str,
    page: Path | None,
) -> None:
    """Compare the methods of the runs of NAME, in each environment at each data size.

    NAME is what `surestep run` takes (an experiment of the catalog, a folder of it, a .toml file),
    or the folder of a run. Tables have means and CVaR, the shares of repetitions that are better
    and worse than π_b, paired differences to one method, and which share of the repetitions reaches
    how much, all with intervals that hold. Of a run with certifiers, claims are compared: how often
    they are wrong, how often they certify a gain, and how much of it.

    \b
    surestep compare paper/gridworld --episodes 100 --against spibb:n_wedge=100
    surestep compare mine.toml --format latex --metric mean --metric cvar10
    surestep compare mine.toml --page run.html
    """
    from surestep.experiments import find_runs, read_run
    from surestep.pipeline.compare import Question, intervals_of, tables_of, write_pages
    from surestep.report.text_tables import WRITERS

    question = Question(selection, metrics, value, against)
    runs = [read_run(path) for path in find_runs(name, directory)]
    if page is not None:
        say(*(f"wrote {path}" for path in write_pages(page, runs, question)))
        return
    tables = [table for run in runs for table in tables_of(run, question)]
    say(*(f"{WRITERS[kind](table)}\n" for table in tables))
    say(*dict.fromkeys(map(intervals_of, runs)), err=True)
