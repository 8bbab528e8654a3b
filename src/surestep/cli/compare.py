"""`surestep compare`: the methods of a run held against each other, as tables or as a page."""

from __future__ import annotations

from pathlib import Path

import click

from surestep.cli import options
from surestep.cli.terminal import say


@click.command("compare", short_help="Compare the methods of a run: tables, or a page.")
@click.argument("name")
@options.run_choice
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="mean, cvar10, cvar1 (any cvarP), better, worse; repeatable.  [default: all of these]",
)
@click.option(
    "--value",
    type=click.Choice(["performance", "gain", "normalised"]),
    default="performance",
    show_default=True,
    help="What metrics are of: ρ, ρ − ρ(π_b), or that as a share of what is possible.",
)
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
@click.option(
    "--page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Write a page with curves, tables and settings instead, such as run.html.",
)
def command(
    name: str,
    directory: Path | None,
    algorithms: tuple[str, ...],
    environments: tuple[str, ...],
    episodes: tuple[int, ...],
    metrics: tuple[str, ...],
    value: str,
    against: str | None,
    kind: str,
    page: Path | None,
) -> None:
    """Compare the methods of the runs of NAME, in each environment at each data size.

    NAME is what `surestep run` takes (an experiment of the catalog, a folder of it, a .toml file),
    or the folder of a run. Tables have means and CVaR, the shares of repetitions that are better
    and worse than π_b, paired differences to one method, and which share of the repetitions reaches
    how much, all with intervals that hold.

    \b
    surestep compare paper/gridworld --episodes 100 --against spibb:n_wedge=100
    surestep compare mine.toml --format latex --metric mean --metric cvar10
    surestep compare mine.toml --page run.html
    """
    from surestep._files import write_together
    from surestep.experiments import Selection, find_runs, read_run
    from surestep.experiments.comparison import USUAL, compare_run
    from surestep.experiments.findings import findings_of
    from surestep.experiments.runs import output_for
    from surestep.report.run_page import run_page
    from surestep.report.text_tables import WRITERS
    from surestep.report.words.comparison import INTERVALS, comparison_tables

    selection = Selection(algorithms, environments, episodes)
    runs = [read_run(path) for path in find_runs(name, directory)]
    if page is not None:
        pages = {
            output_for(page, run, runs): run_page(
                findings_of(run, selection, metrics=metrics, value=value, against=against)
            )
            for run in runs
        }
        write_together({path: [text.encode()] for path, text in pages.items()})
        for path in pages:
            say(f"wrote {path}")
        return
    tables = [
        table
        for run in runs
        for comparison in compare_run(
            run, selection, metrics=metrics or USUAL, value=value, against=against
        )
        for table in comparison_tables(comparison, value)
    ]
    for table in tables:
        say(f"{WRITERS[kind](table)}\n")
    say(INTERVALS, err=True)
