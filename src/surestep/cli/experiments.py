"""Defines the commands for experiments: `run`, `figure` and `compare`."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surestep._progress import task_progress
from surestep.cli import options
from surestep.cli.terminal import say, say_wrote

if TYPE_CHECKING:
    from surestep.experiments import Selection

METRICS = "mean, cvar10, cvar1 (any cvarP), better, worse"
PARTS = "environment, algorithm, setting, n-wedge or metric; of claims task, claim or metric"
metric = partial(click.option, "--metric", "metrics", multiple=True)
value_of_metrics = click.option(
    "--value",
    type=click.Choice(["performance", "gain", "normalised"]),
    help="Of ρ, ρ − ρ(π_b), or that as a share of what is possible.  [default: performance]",
)


@click.command("run", short_help="Run an experiment; killed runs go on where they stopped.")
@click.argument("name", required=False)
@click.option("-o", "--output", type=options.FOLDER, help="Where rows go.  [default: runs/NAME]")
@options.worker_processes
@click.option("--repetitions", type=options.COUNT, help="How many.  [default: the experiment's]")
@click.option("--seed", type=options.COUNT, help="Of all data.  [default: the experiment's]")
@options.cluster("Run the blocks")
@click.option("--keep", is_flag=True, help="Keep blocks that other code or versions made.")
@click.option("--list", "list_them", is_flag=True, help="List the experiments of the catalog.")
@options.device
def run_command(
    *,
    name: str | None,
    output: Path | None,
    workers: int | None,
    repetitions: int | None,
    seed: int | None,
    keep: bool,
    list_them: bool,
    **cluster: Any,
) -> None:
    """Run the experiment NAME: one of the catalog, a folder of it, or a .toml file.

    Rows are kept block by block: a run that was killed goes on where it stopped, and the table is
    the same as if it had not been. Blocks that other code or versions made are made again; in the
    table, the column `code` says what made a row.

    \b
    surestep run paper/gridworld
    surestep run paper --repetitions 100
    """
    from surestep.experiments import list_experiments, read_experiments, run_experiment
    from surestep.parallel import available_cores

    if list_them or name is None:
        say(*list_experiments())
        return

    def tell_outdated(old: int, total: int) -> None:
        fate = "are kept as they are" if keep else "are made again (--keep keeps them)"
        say(f"{old} of {total} blocks were made by other code or versions, and {fate}", err=True)

    experiments = read_experiments(name)
    for experiment in experiments:
        experiment = dataclasses.replace(
            experiment,
            repetitions=repetitions or experiment.repetitions,
            seed=seed or experiment.seed,
        )
        alone = output is not None and len(experiments) == 1
        directory = output if alone else (output or Path("runs")) / experiment.name
        with task_progress() as progress:
            table = run_experiment(
                experiment,
                directory,  # type: ignore[arg-type]
                workers=workers or available_cores(),
                keep=keep,
                progress=partial(progress, experiment.title),
                outdated=tell_outdated,
                **cluster,
            )
        say_wrote(table)


@click.command("figure", short_help="Draw any experiment, with its numbers as CSV.")
@options.run_choice
@options.output_file(
    "The picture: FILE.png, FILE.svg or FILE.pdf. The table goes to FILE.csv.", required=True
)
@metric(help=f"{METRICS}; of claims violation, positive, tightness.  [default: the first three]")
@value_of_metrics
@click.option("--columns", metavar="PART", help="What columns of panels are for.")
@click.option("--rows", metavar="PART", help=f"What rows are for: {PARTS}.")
@click.option("--bands/--no-bands", default=True, help="95 % intervals.")
def figure_command(name: str, directory: Path | None, output: Path, **request: Any) -> None:
    """Draw the runs of NAME, with the numbers behind each picture as CSV beside it.

    NAME is what `surestep run` takes (an experiment of the catalog, a folder of it, a .toml file),
    or the folder of a run. Of several runs each picture has the name of its run: -o fig.pdf makes
    fig-gridworld.pdf.

    \b
    surestep figure paper/gridworld -o figure-4.pdf
    surestep figure mine.toml -o mine.png --algorithm spibb --algorithm ramdp --metric mean
    """
    from surestep.figures.figure import Request, draw

    say_wrote(*draw(name, directory, output, Request(**request)))


@click.command("compare", short_help="Compare the methods of a run, as tables.")
@options.run_choice
@metric(help=f"{METRICS}; repeatable.  [default: all of these]")
@value_of_metrics
@click.option(
    "--intervals",
    type=click.Choice(["exact", "student"]),
    help="student adds Student's of means and differences (asymptotic).  [default: exact]",
)
@click.option("--against", metavar="METHOD", help="To compare with.  [default: the table's first]")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "csv"]),
    default="markdown",
    help="csv has all numbers.",
)
def compare_command(
    *,
    name: str,
    directory: Path | None,
    selection: "Selection",
    metrics: tuple[str, ...],
    value: str | None,
    intervals: str | None,
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
    surestep compare mine.toml --metric mean --metric cvar10
    surestep compare mine.toml --format csv > table.csv
    """
    from surestep.errors import InvalidParameter
    from surestep.experiments import compare_run, family_summaries, find_runs, read_run
    from surestep.experiments import tables as words
    from surestep.experiments.comparison import USUAL
    from surestep.experiments.runs import selected

    rows = []
    tables = []
    notes = []
    for run in (read_run(path) for path in find_runs(name, directory)):
        if run.holds_claims:
            if metrics or value or intervals or against:
                raise InvalidParameter(
                    f"{run.directory} holds claims of certifiers, which are compared by how often "
                    "they are wrong and how much they say, expected no --metric, --value, "
                    "--intervals, --against"
                )
            cells = family_summaries(selected(run, selection))
            rows += words.claim_rows(cells)
            tables += words.claim_tables(cells)
            notes.append(words.CLAIM_INTERVALS)
        else:
            of = value or "performance"
            more = ("student",) if intervals == "student" else ()
            compared = compare_run(
                run, selection, metrics=(*(metrics or USUAL), *more), value=of, against=against
            )
            rows += words.comparison_rows(compared)
            tables += [words.comparison_table(one, of) for one in compared]
            notes += [words.INTERVALS, *([words.STUDENT] if more else [])]
    if kind == "csv":
        say(words.as_csv(rows).rstrip("\n"))
    else:
        say(*(f"{words.as_markdown(table)}\n" for table in tables))
    say(*dict.fromkeys(notes), err=True)
