"""`surestep compare`: the methods of a run held against each other, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep.cli import options
from surestep.cli.terminal import say

if TYPE_CHECKING:
    from surestep.experiments import Selection


@click.command("compare", short_help="Compare the methods of a run, as tables.")
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
    type=click.Choice(["markdown", "csv", "latex"]),
    default="markdown",
    show_default=True,
    help="Tables for people, or one table of all numbers (csv).",
)
def command(
    name: str,
    directory: Path | None,
    selection: Selection,
    metrics: tuple[str, ...],
    value: str | None,
    against: str | None,
    kind: str,
) -> None:
    """Compare the methods of the runs of NAME, in each environment at each data size.

    NAME is what `surestep run` takes (an experiment of the catalog, a folder of it, a .toml file),
    or the folder of a run. Tables have means and CVaR, the shares of repetitions that are better
    and worse than π_b, and paired differences to one method, all with intervals that hold. Of a run
    with certifiers, claims are compared: how often they are wrong, how often they certify a gain,
    and how much of it.

    \b
    surestep compare paper/gridworld --episodes 100 --against spibb:n_wedge=100
    surestep compare mine.toml --format latex --metric mean --metric cvar10
    surestep compare mine.toml --format csv > table.csv
    """
    from surestep.errors import InvalidParameter
    from surestep.experiments import compare_run, family_summaries, find_runs, read_run, selected
    from surestep.experiments.comparison import USUAL
    from surestep.experiments.tables import as_csv, claim_rows, compared_rows
    from surestep.report import text_tables as words

    write = words.as_latex if kind == "latex" else words.as_markdown
    rows, tables, notes = [], [], []
    for run in (read_run(path) for path in find_runs(name, directory)):
        if run.holds_claims:
            if metrics or value or against:
                raise InvalidParameter(
                    f"{run.directory} holds claims of certifiers, which are compared by how often "
                    "they are wrong and how much they say, expected no --metric, --value, --against"
                )
            cells = family_summaries(selected(run, selection))
            rows += claim_rows(cells)
            tables += words.claim_tables(cells)
            notes.append(words.CLAIM_INTERVALS)
        else:
            of = value or "performance"
            compared = compare_run(
                run, selection, metrics=metrics or USUAL, value=of, against=against
            )
            rows += compared_rows(compared)
            tables += [words.comparison_table(one, of) for one in compared]
            notes.append(words.INTERVALS)
    if kind == "csv":
        say(as_csv(rows).rstrip("\n"))
    else:
        say(*(f"{write(table)}\n" for table in tables))
    say(*dict.fromkeys(notes), err=True)
