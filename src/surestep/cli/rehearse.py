"""`surestep rehearse`: a stress test of a whole improvement, in worlds where the truth is known."""

from __future__ import annotations

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
    from surestep.pipeline import Effort

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
@options.stress_test("Make the worlds")
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
    effort: Effort,
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
        from surestep.pipeline import Terms, open_source, rehearse_log
        from surestep.results.unfinished import check_can_begin

        if output is not None:
            check_can_begin(output)
        asked = Terms.of(description)
        worlds = USUAL_WORLDS if asked.method.worlds is None else asked.method.worlds
        source = open_source(description, memory_limit=memory_limit)

        def tell_plan(seconds: float) -> None:
            took = duration(seconds / effort.cores(seconds))
            say(f"{worlds:,} worlds of each kind, about {took}")

        rehearsed = rehearse_log(
            source,
            asked,
            worlds=worlds,
            sizes=sizes,
            seed=seed,
            effort=effort._replace(folder=output),
            progress=progress,
            on_start=tell_plan,
        )
    from surestep.report.stress_test import stress_test_section
    from surestep.report.terminal import print_sections

    section = stress_test_section(rehearsed.findings, folded=False)
    print_sections([section], terminal(highlight=False, markup=False, emoji=False))
    if output is not None:
        say("Open the page: ", nl=False)
        say(output / "rehearsal.html", bold=True)
