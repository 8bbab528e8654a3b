"""`surestep run`: an experiment of the catalog, or your own, resumable."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import click

from surestep.cli import options
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say


@click.command("run", short_help="Run an experiment; killed runs go on where they stopped.")
@click.argument("name", required=False)
@click.option(
    "-o", "--output", type=options.FOLDER, help="The folder for the rows.  [default: runs/NAME]"
)
@options.worker_processes
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    help="The number of repetitions.  [default: as the experiment says]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=1),
    help="The seed of all data.  [default: as the experiment says]",
)
@options.cluster("Run the blocks")
@click.option("--keep", is_flag=True, help="Keep blocks that other code or versions made.")
@click.option("--list", "list_them", is_flag=True, help="List the experiments of the catalog.")
def command(
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
    from surestep.experiments import catalog, read_experiments, run_experiment
    from surestep.parallel import available_cores

    if list_them or name is None:
        say(*catalog())
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
        say(f"wrote {table}")
