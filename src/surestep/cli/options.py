"""The options that several verbs have: how a log is read, and how much time and room they take."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from surestep.description import (
    ASKING,
    HELP,
    IMPROVING,
    OPTIONS,
    READING,
    SUFFIX,
    Description,
    assignment,
    merged,
    put,
    read_toml,
    singled,
    with_folder,
)
from surestep.description import described as as_description
from surestep.errors import InvalidParameter

Command = Callable[..., None]
FOLDER = click.Path(path_type=Path, file_okay=False)


def refuse_nan(ctx: click.Context, option: click.Parameter, number: float | None) -> float | None:
    """Returns the number; one that is none is in no range, which click does not notice."""
    if number is not None and math.isnan(number):
        raise click.BadParameter("nan is no number.")
    return number


class Option(click.Option):
    """An option under a heading of the help."""

    def __init__(self, *words: Any, group: str = "Options", **settings: Any) -> None:
        super().__init__(*words, **settings)
        self.group = group


class Grouped(click.Command):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options of each heading."""
        groups = dict[str, list[tuple[str, str]]]()
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                groups.setdefault(getattr(option, "group", "Options"), []).append(record)
        for name in (*dict.fromkeys(GROUPS.values()), "Options"):
            if name in groups:
                with formatter.section(name):
                    formatter.write_dl(groups[name])


expert = partial(click.option, cls=Option, group="For experts")
memory_help = "Memory to use, such as 2GB; the rest spills to disk."
memory_limit = expert("--memory-limit", metavar="SIZE", help=memory_help)
time_limit = expert(
    "--time-limit",
    type=click.FloatRange(min=0),
    callback=refuse_nan,
    metavar="SECONDS",
    help="Stop the stress test with the worlds that were reached.",
)
worker_processes = expert(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes.  [default: all cores, where work is long]",
)
json_instead = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


value_of_metrics = click.option(
    "--value",
    type=click.Choice(["performance", "gain", "normalised"]),
    help="What metrics are of: ρ, ρ − ρ(π_b), or that as a share of what is possible.  [default: "
    "performance]",
)


def output_file(
    *names: str, words: str, required: bool = False, metavar: str | None = None
) -> Callable[[Command], Command]:
    """Adds the option of a file to write, which must not be one that the command line names."""
    kind = click.Path(path_type=Path)
    option = click.option(*names, type=kind, required=required, metavar=metavar, help=words)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def checked(**options: Any) -> None:
            from surestep._files import check_output

            output = options[names[-1].removeprefix("--")]
            if output is not None:
                check_output(output, named_files(but=output))
            command(**options)

        return option(checked)

    return decorate


def named_files(but: Path) -> Iterator[Path]:
    """Yields the files that the command line names, by patterns and folders too, `but` its output.

    Those of a folder are the tables of a log, and the files of a result.
    """
    from surestep.io.logs.tables import has_format
    from surestep.results.result import FILES
    from surestep.results.unfinished import REHEARSAL, RUN

    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.params.get(str(parameter.name))
        for word in given if isinstance(given, tuple) else (given,):
            if word is but or not isinstance(word, str | Path):
                continue
            yield Path(word)
            yield from map(Path, glob.iglob(str(word), recursive=True))
            if isinstance(parameter, click.Argument):
                inside = Path(word).rglob("*")
                results = (RUN, REHEARSAL, *FILES)
                yield from (file for file in inside if has_format(file) or file.name in results)


def run_choice(command: Command) -> Command:
    """Adds NAME, --from, --algorithm, --environment and --episodes: which part of which run.

    The command is given `name`, `directory` and `selection`.
    """

    @wraps(command)
    def with_selection(**options: Any) -> None:
        from surestep.experiments import Selection

        parts = [options.pop(part) for part in ("algorithms", "environments", "episodes")]
        command(selection=Selection(*parts), **options)

    only = partial(click.option, multiple=True)
    words = "Only these data sizes; repeatable."
    decorated: Command = only("--episodes", type=int, metavar="SIZE", help=words)(with_selection)
    words = "Only these; repeatable."
    decorated = only("--environment", "environments", metavar="NAME", help=words)(decorated)
    words = "Only these, such as spibb:n_wedge=100; repeatable."
    metavar = "NAME[:SETTING=VALUE]"
    decorated = only("--algorithm", "algorithms", metavar=metavar, help=words)(decorated)
    words = "Where `surestep run -o` wrote it.  [default: runs/NAME]"
    decorated = click.option("--from", "directory", type=FOLDER, help=words)(decorated)
    return click.argument("name")(decorated)


def cluster(work: str) -> Callable[[Command], Command]:
    """Adds --engine and --address, where the work may be done on a cluster."""
    engine = expert(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help=f"{work} here, or on a Ray cluster.",
    )
    address = expert("--address", help="The Ray cluster, such as auto or head:6379.")
    return lambda command: engine(address(command))


# ---- a log and what is to be done with it -----------------------------------------------------


GROUPS = {
    **dict.fromkeys(READING, "The log"),
    **dict.fromkeys(ASKING, "The question"),
    **dict.fromkeys(IMPROVING, "For experts"),
}
RANGES = ("stakes.running", "stakes.ending")
SEVERAL = (*READING[:-1], "method.certificates")  # columns of which there is one are checked later
METAVARS = {
    **dict.fromkeys(READING, "COLUMN"),
    **dict.fromkeys(RANGES, "LOW HIGH"),
    "ends": "complete|clock",
    "behavior.policy": "POLICY",
    "stakes.discount": "GAMMA",
    "method.algorithm": "NAME",
    "method.certificates": "KIND",
    "method.delta": "DELTA",
    "method.worlds": "N",
}


def key_option(path: str) -> Callable[[Command], Command]:
    """Returns the option of a key; its value is the text that is typed, one or several."""
    return click.option(
        OPTIONS[path],
        *(["--kind"] if path == "method.certificates" else []),
        path.replace(".", "_"),
        cls=Option,
        group=GROUPS[path],
        metavar=METAVARS[path],
        multiple=path in SEVERAL,
        nargs=2 if path in RANGES else 1,
        help=HELP[path],
    )


def described(*paths: str) -> Callable[[Command], Command]:
    """Adds LOG, options for keys of its description, --set and --memory-limit.

    The command is given a `Description`. LOG is one (TOML), or the files of a log. What options say
    stands above what it says, and --set above both.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_description(logs: tuple[str, ...], assigned: tuple[str, ...], **rest: Any) -> None:
            said = dict[str, Any]()
            for path in paths:
                given = rest.pop(path.replace(".", "_"))
                if given not in (None, ()):
                    put(said, path, value_of(path, given))
            command(description=description_of(logs, assigned, said), **rest)

        setting = click.option(
            "--set",
            "assigned",
            cls=Option,
            group="The log" if paths == READING else "The question",
            multiple=True,
            metavar="KEY=VALUE",
            help="Any key of a description, such as bins.age.quantiles=10; `surestep describe "
            "--keys` lists them.",
        )
        decorated: Command = setting(memory_limit(with_description))
        for path in reversed(paths):
            decorated = key_option(path)(decorated)
        return click.argument("logs", nargs=-1, required=True, metavar="LOG...")(decorated)

    return decorate


own_keys = click.option(
    "--set",
    "assigned",
    multiple=True,
    metavar="KEY=VALUE",
    help="A file that was given, such as limits.allowed=allowed.csv.",
)
allow_query = click.option(
    "--allow-query",
    is_flag=True,
    help="Run the query that the result was made by, which is not in a description of yours.",
)


def own_log(
    logs: tuple[str, ...], assigned: tuple[str, ...], behavior: str | None = None
) -> Description:
    """Returns the description of the log that a user names beside a result."""
    said = {} if behavior is None else {"behavior": {"policy": behavior}}
    return description_of(logs, assigned, said)


def declared_range(name: str) -> Callable[[Command], Command]:
    """Returns the option of what may be earned."""
    return click.option(
        f"--{name}", type=(float, float), metavar="LOW HIGH", help=HELP[f"stakes.{name}"]
    )


def value_of(path: str, given: Any) -> Any:
    """Returns what was typed for a key: names and words as they are, numbers as numbers."""
    if path in SEVERAL:
        return singled(list(given))
    if path.startswith(("stakes.", "method.delta", "method.worlds")):
        numbers = [number_of(path, text) for text in (given if path in RANGES else [given])]
        return numbers if path in RANGES else numbers[0]
    return given


def number_of(path: str, text: str) -> float:
    """Reads a number that was typed."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    raise InvalidParameter(f"{OPTIONS[path]} is {text!r}, expected a number")


def description_of(
    logs: tuple[str, ...], assigned: tuple[str, ...], said: Mapping[str, Any]
) -> Description:
    """Returns the description of a log that is one, or of the files of one, with what was said."""
    for text in assigned:
        said = merged(said, assignment(text))
    if not any(log.endswith(SUFFIX) for log in logs):
        return as_description({"files": list(logs), **said})
    if len(logs) > 1:
        raise InvalidParameter(
            f"{len(logs)} logs are given, and one of them is a description ({SUFFIX}); expected "
            "one description, or the files of a log"
        )
    below = with_folder(read_toml(logs[0]), Path(logs[0]).parent)
    if not below.get("files"):
        raise InvalidParameter(f"{logs[0]} names no files, expected the key `files`")
    return as_description(merged(below, said), logs[0])
