"""Defines the commands to test and to watch an adopted policy: `pilot` and `watch`."""

import json
from pathlib import Path
from typing import Any

import click

from surestep._files import (
    check_new_folder,
    failing_to_write,
    read_whole,
    write_folder,
    write_together,
)
from surestep.cli import options
from surestep.cli.terminal import say_json, say_wrote, show
from surestep.description import Description


@click.command("pilot", short_help="Plan a pilot of a new policy, or judge one.")
@click.argument("result", type=click.Path(path_type=Path))
@options.described(required=False)
@click.option("--control", type=click.Choice(["concurrent", "past"]), help="What to compare with.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="[DATE=]CHANCE",
    help="With which chance an episode gets the new policy; repeat it for a ramp-up.",
)
@click.option("--episodes", type=options.COUNT, help="Episodes planned, of both arms.")
@click.option("--delta", type=float, help="The chance of a wrong claim.  [default: the result's]")
@click.option("--arm", metavar="COLUMN", help="The column of the arm.  [default: arm]")
@click.option("--new", metavar="VALUE", help="Its value for the new policy.  [default: new]")
@click.option("--old", metavar="VALUE", help="Its value for the control.  [default: old]")
@click.option("--time", metavar="COLUMN", help="When episodes began, if RESULT does not know.")
@click.option("--pending", metavar="COLUMN", help="Marks episodes without an outcome yet.")
@click.option("--deadline", type=float, metavar="DAYS", help="After which an outcome counts worst.")
@click.option("--until", metavar="DATE", help="Up to which a second round may read rows.")
@click.option("--draw", type=options.COUNT, metavar="LOTS", help="Draw so many lots (lots.csv).")
@click.option("--today", metavar="DATE", help="By which outcomes are overdue.  [default: today]")
@click.option("--log", type=click.Path(path_type=Path), help="The log of RESULT.  [default: found]")
@click.option("--another-log", type=click.Path(path_type=Path), help="An old log in its place.")
@click.option(
    "--plan", type=options.FOLDER, help="The folder of the plan.  [default: pilot, beside RESULT]"
)
@options.allow_query
@click.option("-o", "--output", type=options.FOLDER, help="The folder to write.  [default: --plan]")
@options.json_instead
def pilot_command(
    *,
    result: Path,
    description: Description,
    shares: tuple[str, ...],
    plan: Path | None,
    output: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Plan a pilot of the policy in the folder RESULT; with LOG, the rows of one, judge it.

    The plan (pilot.toml) fixes all that a proof needs before the first row; pilot.html is one page
    to hand to a committee. A plan is never overwritten. Judging writes answer.json and answer.html
    beside it. Exit code 1: nothing is claimed, or it is worse.

    \b
    surestep pilot result --share 0.5 --deadline 30
    surestep pilot result new.csv
    """
    from surestep.pipeline import pilot
    from surestep.report.followup import answer_sections, plan_sections
    from surestep.results import load

    folder = plan or result.parent / "pilot"
    place = output or folder
    check_free(
        {place / "answer.json": b'{\n  "verdict": "', place / "answer.html": b"<title>A pilot<"},
        "of a pilot",
    )
    rows = description if description.files else None
    if rows is None:
        check_new_folder(place)
    made = pilot(result, rows, plan=folder if rows else None, share=shares_of(shares), **how)
    answer = made.answer
    if answer is None:
        write_folder(place, made.files)
    else:
        with failing_to_write(place):
            place.mkdir(parents=True, exist_ok=True)
        write_together({place / name: [content] for name, content in made.files.items()})
    if as_json:
        say_json(json.loads(made.to_json()))
    else:
        record = load(result).record
        show(plan_sections(made, record) if answer is None else answer_sections(answer, record))
        say_wrote(*(place / name for name in made.files))
    raise SystemExit(
        int(answer is not None and answer.verdict in ("stop: it is worse", "no claim"))
    )


def shares_of(texts: tuple[str, ...]) -> float | list[tuple[str, float]] | None:
    """Reads the shares of a ramp-up; returns a single one as a number."""
    try:
        parts = [text.rpartition("=") for text in texts]
        if len(parts) == 1 and not parts[0][0]:
            return float(texts[0])
        return [(date, float(chance)) for date, _, chance in parts] or None
    except ValueError:
        raise click.UsageError(
            f"--share is {' '.join(texts)!r}, expected a chance such as 0.5, or DATE=CHANCE"
        ) from None


def check_free(files: dict[Path, bytes], of: str) -> None:
    """Refuses files in the folder of a result, or in the place of one without the given words."""
    from surestep.results.unfinished import RUN

    for path, words in files.items():
        if any((x / RUN).is_file() for x in path.resolve().parents):
            raise click.UsageError(f"{path} is in the folder of a result; name another place (-o)")
        if path.is_file() and words not in read_whole(path):
            raise click.UsageError(f"{path} exists and is not {of}; name another place (-o)")


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
@click.option("--another-log", type=click.Path(path_type=Path), help="An old log in its place.")
@click.option("--time", metavar="COLUMN", help="When episodes began, if RESULT does not know.")
@click.option("--pending", metavar="COLUMN", help="Marks episodes without an outcome yet.")
@options.allow_query
@options.output_file("The page to write (.html).  [default: watch.html]")
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
    that a scheduler can call it every day; without a level to compare with, the exit code is 2.
    The same command on a longer file goes on to the same answer.

    \b
    surestep watch result new.csv
    surestep watch result new.csv --within 5000 --holdout arm before
    """
    from surestep.pipeline.followup import WATCH_SETTINGS, watch, watch_json
    from surestep.report.followup import watch_sections

    page = output or Path("watch.html")
    kept = page.with_suffix(".json")
    if page.suffix != ".html":  # `verify` finds the page by the name of the answer
        raise click.UsageError(
            f"{page} does not end in .html; name the page, such as {page.with_suffix('.html')}"
        )
    check_free(
        {
            kept: b'{\n  "settings": {\n    "result": ',
            page: b"<title>Watching an adopted policy<",
        },
        "of a watch",
    )
    watched = watch(result, description, **how)
    settings = {"result": result.resolve().name} | {name: how[name] for name in WATCH_SETTINGS}
    if how["another_log"] is not None:
        settings["another_log"] = how["another_log"].name
    write_together({kept: [watch_json(watched, settings)], page: [watched.report.encode()]})
    if as_json:
        say_json(watched.content())
    else:
        show(watch_sections(watched))
        say_wrote(page, kept)
    if all(level.value is None for level in watched.levels):
        raise click.UsageError("Nothing is watched: there is no level; name the old log (--log).")
    raise SystemExit(int(watched.alarm))
