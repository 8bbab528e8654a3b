"""Defines options that several commands share: how a log is read, limits of time and memory."""

import glob
from collections.abc import Callable, Iterator
from functools import partial, reduce, wraps
from pathlib import Path
from typing import Any, cast

import click

import surestep.description as keys

Command = Callable[..., None]
Adding = Callable[[Command], Command]
FOLDER = click.Path(path_type=Path, file_okay=False)
COUNT = click.IntRange(min=1)
NATURAL = click.IntRange(min=0)


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
        for name in sorted(groups, key=[*GROUPS.values(), "Options"].index):
            with formatter.section(name):
                formatter.write_dl(groups[name])


expert = partial(click.option, cls=Option, group="For experts")
setting = partial(click.option, "--set", "assigned", cls=Option, multiple=True, metavar="KEY=VALUE")
memory_limit = expert(
    "--memory-limit", metavar="SIZE", help="Such as 2GB; the rest spills to disk."
)
time_limit = expert(
    "--time-limit", type=NATURAL, metavar="SECONDS", help="End the stress test early."
)
worker_processes = expert(
    "--workers", type=COUNT, metavar="N", help="Processes.  [default: all that pay]"
)
json_instead = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def choose_device(ctx: click.Context, option: click.Parameter, name: str | None) -> None:
    """Selects the device for the command; refuses a GPU that cannot be used."""
    if name is not None:
        from surestep.kernels.devices import device

        ctx.with_resource(device(cast(Any, name)))


device = expert(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    expose_value=False,
    callback=choose_device,
    help="Where to compute; or set SURESTEP_DEVICE.",
)


def in_this_order(*options: Adding) -> Adding:
    """Adds several options to a command; its help lists them in this order."""
    return lambda command: reduce(lambda made, add: add(made), reversed(options), command)


def output_file(words: str, *, required: bool = False) -> Adding:
    """Adds the option --output; refuses an output that is one of the input files.

    Input files are those that the command line or the description of the command names.
    """
    option = click.option(
        "-o", "--output", type=click.Path(path_type=Path), required=required, help=words
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def checked(output: Path | None, **options: Any) -> None:
            from surestep._files import check_output

            if output is not None:
                check_output(output, named_files(output, options.get("description")))
            command(output=output, **options)

        return option(checked)

    return decorate


def named_files(but: Path, description: keys.Description | None) -> Iterator[Path]:
    """Yields the files that the command line or a description names, except the output `but`.

    Expands patterns. A folder stands for its tables of logs and its files of results.
    """
    from surestep.io.logs.formats import has_format
    from surestep.results.result import FILES
    from surestep.results.unfinished import REHEARSAL, RUN

    context = click.get_current_context()
    folders = list[str]()
    if description is not None:
        keys.with_files(description.given(), folders.append)
        yield from map(Path, folders)  # as they are: names may look like patterns
    for parameter in context.command.params:
        given = context.params.get(str(parameter.name))
        for word in given if isinstance(given, tuple) else (given,):
            if word is but or not isinstance(word, str | Path):
                continue
            yield Path(word)
            if isinstance(parameter, click.Argument):
                folders.append(str(word))
    for name in folders:
        yield from map(Path, glob.iglob(name, recursive=True))
        yield from (
            file
            for file in Path(name).rglob("*")
            if has_format(file) or file.name in (RUN, REHEARSAL, *FILES)
        )


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
    return in_this_order(
        click.argument("name"),
        click.option(
            "--from",
            "directory",
            type=FOLDER,
            help="Where `surestep run -o` wrote it.  [default: runs/NAME]",
        ),
        only(
            "--algorithm",
            "algorithms",
            metavar="NAME[:SETTING=VALUE]",
            help="Only these, such as spibb:n_wedge=100; repeatable.",
        ),
        only("--environment", "environments", metavar="NAME", help="Only these; repeatable."),
        only("--episodes", type=int, metavar="SIZE", help="Only these data sizes; repeatable."),
    )(with_selection)


def cluster(work: str) -> Adding:
    """Adds --engine and --address, where the work may be done on a cluster."""
    return in_this_order(
        expert(
            "--engine",
            type=click.Choice(["local", "ray"]),
            default="local",
            help=f"{work} here, or on Ray.",
        ),
        expert("--address", metavar="HOST", help="The Ray cluster, such as auto or head:6379."),
    )


def stress_test(work: str) -> Adding:
    """Adds --time-limit, --workers, --engine and --address; the command is given an `Effort`."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_effort(**options: Any) -> None:
            from surestep.pipeline import Effort

            parts = {part: options.pop(part) for part in ("workers", "engine", "address")}
            command(effort=Effort(**parts, time_limit=options.pop("time_limit")), **options)

        return in_this_order(time_limit, worker_processes, cluster(work))(with_effort)

    return decorate


# ---- a log and what is to be done with it -----------------------------------------------------


GROUPS = {
    **dict.fromkeys(keys.ASKING, "The question"),
    **dict.fromkeys(keys.READING, "The log"),
    **dict.fromkeys(keys.IMPROVING, "For experts"),
}
EARNED: dict[str, Any] = {"metavar": "LOW HIGH", "type": float, "nargs": 2}
SETTINGS: dict[str, dict[str, Any]] = {
    **{path: {"metavar": "COLUMN", "multiple": True} for path in keys.READING},
    "ends": {"metavar": "complete|clock|random"},
    "behavior.policy": {"metavar": "POLICY"},
    "stakes.discount": {"metavar": "GAMMA", "type": float},
    "stakes.running": EARNED,
    "stakes.ending": EARNED,
    "method.algorithm": {"metavar": "NAME"},
    "method.certificates": {"metavar": "KIND", "multiple": True},
    "method.delta": {"metavar": "DELTA", "type": float},
    "method.worlds": {"metavar": "N", "type": int},
}


def key_option(path: str) -> Adding:
    """Returns the option of a key."""
    return click.option(
        keys.OPTIONS[path],
        *(["--kind"] if path == "method.certificates" else []),
        path.replace(".", "_"),
        cls=Option,
        group=GROUPS[path],
        help=keys.HELP[path],
        **SETTINGS[path],
    )


def described(*paths: str, required: bool = True) -> Adding:
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
                    keys.put(said, path, given)
            for text in assigned:
                said = keys.merged(said, keys.assignment(text))
            command(description=keys.description_of(logs, said), **rest)

        group = "The log" if paths == keys.READING else "The question"
        log = click.argument("logs", nargs=-1, required=required, metavar="LOG...")
        any_key = setting(
            group=group,
            help="Any key, such as bins.age.quantiles=10; `surestep describe --keys` lists them.",
        )
        return in_this_order(log, *map(key_option, paths), any_key, memory_limit)(with_description)

    return decorate


allow_query = click.option(
    "--allow-query",
    is_flag=True,
    help="Run the query that the result was made by, which is not in a description of yours.",
)


def declared_range(name: str) -> Adding:
    """Returns the option of a range of rewards or returns."""
    return click.option(f"--{name}", help=keys.HELP[f"stakes.{name}"], **EARNED)
