"""The verbs of the day after: `watch`."""

from pathlib import Path
from typing import Any

import click

from surestep.cli import options
from surestep.cli.terminal import say_json, say_wrote, show
from surestep.description import Description


@click.command("watch", short_help="Watch an adopted policy: is it still as good?")
@click.argument("result", type=click.Path(path_type=Path))
@options.described()
@click.option("--within", type=options.COUNT, default=1_000, help="N episodes.")
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    help="The chance of a false alarm among N episodes, at most.",
)
@click.option(
    "--holdout",
    nargs=2,
    metavar="COLUMN VALUE",
    help="Episodes that go on as before; the others are compared with these.",
)
@click.option(
    "--seasons",
    type=options.COUNT,
    default=1,
    help="Take the lowest of so many parts of the old log.",
)
@click.option("--log", type=click.Path(path_type=Path), help="The log of RESULT.  [default: found]")
@click.option("--time", metavar="COLUMN", help="When episodes began, if RESULT does not know.")
@click.option("--pending", metavar="COLUMN", help="Marks episodes without an outcome yet.")
@options.allow_query
@options.output_file("The page to write.  [default: watch.html]")
@options.json_instead
def watch_command(
    *,
    result: Path,
    description: Description,
    output: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Watch the policy in the folder RESULT, by LOG, the rows since it was adopted.

    Is it followed, has the world changed, is it still as good? An alarm ends with exit code 1, so
    that a scheduler can call it every day. The same command on a longer file goes on to the same
    answer.

    \b
    surestep watch result new.csv
    surestep watch result new.csv --within 5000 --holdout arm before
    """
    from surestep._files import write_together
    from surestep.pipeline import watch
    from surestep.report.watch import watch_sections

    page = output or Path("watch.html")
    watched = watch(result, description, **how)
    write_together({page: [watched.report.encode()]})
    if as_json:
        say_json(watched.content())
    else:
        show(watch_sections(watched))
        say_wrote(page)
    raise SystemExit(int(watched.alarm))
