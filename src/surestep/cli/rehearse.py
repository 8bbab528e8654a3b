"""`surestep rehearse`: a stress test of a whole improvement, in worlds where the truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep._words import duration
from surestep.cli import options
from surestep.cli.options import Grouped, described
from surestep.cli.progress import task_progress
from surestep.cli.terminal import say, terminal
from surestep.description import ASKING, IMPROVING, READING, Description

if TYPE_CHECKING:
    from surestep.pipeline import RehearsedLog


USUAL_WORLDS = 100  # of each kind


def sizes_of(ctx: click.Context, option: click.Parameter, text: str) -> tuple[float, ...]:
    """Reads numbers that stand between commas."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers such as 0.5,1,2") from None


@click.command(
    "rehearse", cls=Grouped, short_help="Stress test an improvement, and see what more data brings."
)
@described(*READING, *ASKING, *IMPROVING)
@click.option(
    "--sizes",
    callback=sizes_of,
    metavar="NUMBERS",
    default="0.5,1,2,5,10",
    show_default=True,
    help="The amounts of data that are collected in a world, in multiples of LOG.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The seed of the random numbers.",
)
@options.time_limit
@options.worker_processes
@options.cluster("Make the worlds")
@click.option(
    "-o",
    "--output",
    type=options.FOLDER,
    help="A new folder for rehearsal.html, a page to look at, rehearsal.json, and run.json with "
    "the settings; or one to go on with.",
)
def command(
    description: Description,
    output: Path | None,
    memory_limit: str | None,
    sizes: tuple[float, ...],
    seed: int,
    workers: int | None,
    engine: str,
    address: str | None,
    time_limit: float | None,
) -> None:
    """Rehearse what `surestep improve` would do with LOG, given the same options.

    Worlds are made from the log in several ways, none of which the certificate assumes. In each,
    the behavior policy collects data, the policy is improved and certified, and all is held
    against the truth, which is known there. This is a stress test, not a confidence level. The
    certificate that is rehearsed is the first one, and there are 100 worlds of each kind unless
    --worlds says another number. What is finished is kept in OUTPUT, and the
    same command goes on after an interruption.

    \b
    surestep rehearse log.toml -o rehearsal
    surestep rehearse log.csv --discount 0.95 --kind robust --sizes 1,10,100
    """
    with task_progress() as progress:
        progress("reading the log", 0, 1)  # before anything that takes its time to be loaded
        from surestep.parallel import available_cores, reach
        from surestep.pipeline import Terms, open_source, rehearse_log
        from surestep.results.unfinished import check_can_begin

        if output is not None:
            check_can_begin(output)
        reach(engine, address)
        asked = Terms.of(description)
        worlds = USUAL_WORLDS if asked.worlds is None else asked.worlds
        asked = replace(asked, worlds=worlds)
        source = open_source(description, memory_limit=memory_limit)
        cores = workers or available_cores(engine)

        def tell_plan(seconds: float) -> None:
            say(f"{worlds:,} worlds of each kind, about {duration(seconds / cores)}")

        rehearsed = rehearse_log(
            source,
            asked,
            worlds=worlds,
            sizes=sizes,
            seed=seed,
            workers=cores,
            engine=engine,
            address=address,
            time_limit=time_limit,
            output=output,
            progress=progress,
            on_start=tell_plan,
        )
    print_rehearsal(rehearsed)
    if output is not None:
        say("\nOpen the page: ", nl=False)
        say(output / "rehearsal.html", bold=True)


def print_rehearsal(rehearsed: RehearsedLog) -> None:
    """Prints what was found, at every size and in every kind of world."""
    from rich.table import Table

    from surestep._words import percent, signed
    from surestep.report.words.rehearsal import (
        certified_rate,
        found_words,
        more_data_words,
        own_size,
    )

    rehearsal = rehearsed.rehearsal
    names = ("", "worlds", "worse", "claim wrong", "certified", "median gain")
    size = own_size(rehearsal)
    by_size = [
        (f"{summary.episodes:,} episodes (× {summary.size:g})", summary)
        for summary in map(rehearsal.summary, rehearsal.sizes)
    ]
    by_kind = [(kind, rehearsal.summary(size, kind)) for kind in rehearsal.family]
    for title, rows in (("by the amount of data", by_size), ("by kind of world", by_kind)):
        heading = f"Stress test of {rehearsal.kind}, {title}"
        table = Table(title=heading, title_justify="left", box=None)
        for name in names:
            table.add_column(name, justify="right" if name else "left", no_wrap=not name)
        for name, summary in rows:
            table.add_row(
                name,
                f"{summary.harmed.total:,}",
                percent(summary.harmed.share),
                percent(summary.violated.share),
                percent(certified_rate(summary).share),
                signed(summary.gain_quantiles[2]),
            )
        terminal(highlight=False, soft_wrap=True).print(table)
    say(*found_words(rehearsal))
    say(more_data_words(rehearsal, rehearsed.verdict), bold=True)
    say(*(f"  - {sentence}" for sentence in rehearsal.limits), dim=True)
