"""The options that several verbs have: how a log is read, and how much time and room they take."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click

from surestep.declaring import (
    AlgorithmSettings,
    Bounds,
    Choice,
    Number,
    Shape,
    Term,
    Texts,
    Whole,
)
from surestep.io.logs.columns import ROLE_OPTIONS, ROLES, option_of
from surestep.io.logs.reading import READING, Reading
from surestep.terms import AUTO, SOURCES, TERMS

Command = Callable[..., None]


def refuse_nan(ctx: click.Context, option: click.Parameter, number: float | None) -> float | None:
    """Returns the number; one that is none is in no range, which click does not notice."""
    if number is not None and math.isnan(number):
        raise click.BadParameter("nan is no number.")
    return number


memory_limit = click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Memory to use at most, such as 2GB; what needs more spills to disk.",
)
time_limit = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    callback=refuse_nan,
    metavar="SECONDS",
    help="Stop the stress test after this time, with as many worlds as were reached.",
)
worker_processes = click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="The number of processes.  [default: all cores, where the work is long]",
)
json_instead = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


value_of_metrics = click.option(
    "--value",
    type=click.Choice(["performance", "gain", "normalised"]),
    help="What metrics are of: ρ, ρ − ρ(π_b), or that as a share of what is possible.  [default: "
    "performance, and normalised where profiles are drawn]",
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
    from surestep.io.logs.formats import has_format
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

    decorated: Command = with_selection
    for option in reversed(
        (
            click.argument("name"),
            click.option(
                "--from",
                "directory",
                type=click.Path(path_type=Path, file_okay=False),
                help="Where `surestep run -o` wrote it.  [default: runs/NAME]",
            ),
            click.option(
                "--algorithm",
                "algorithms",
                multiple=True,
                metavar="NAME[:SETTING=VALUE]",
                help="Only these, such as spibb:n_wedge=100; repeatable.",
            ),
            click.option(
                "--environment",
                "environments",
                multiple=True,
                metavar="NAME",
                help="Only these; repeatable.",
            ),
            click.option(
                "--episodes",
                multiple=True,
                type=int,
                metavar="SIZE",
                help="Only these data sizes; repeatable.",
            ),
        )
    ):
        decorated = option(decorated)
    return decorated


def cluster(work: str) -> Callable[[Command], Command]:
    """Adds --engine and --address, where the work may be done on a cluster."""

    def decorate(command: Command) -> Command:
        engine = click.option(
            "--engine",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help=f"{work} here, or on a Ray cluster.",
        )
        address = click.option(
            "--address",
            help="The Ray cluster, such as auto or head:6379.  [default: one on this machine]",
        )
        return engine(address(command))

    return decorate


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every role, for every way to read a log, and --memory-limit.

    The command gets the roles that were given as `columns`, and `reading` and `memory_limit`.
    """

    @wraps(command)
    def with_columns(**options: Any) -> None:
        given = {role: options.pop(f"column_{role}") for role in ROLE_OPTIONS}
        reading = Reading.of({name: options.pop(name) for name in READING})
        chosen = {role: names for role, names in given.items() if names}
        command(columns=chosen, reading=reading, **options)

    decorated: Callable[..., None] = memory_limit(with_columns)
    for name, way in reversed(READING.items()):
        decorated = term_option(name, way)(decorated)
    for role in reversed(ROLE_OPTIONS):
        decorated = click.option(
            option_of(role),
            f"column_{role}",
            multiple=True,
            metavar="COLUMN",
            help=ROLES[role].help,
        )(decorated)
    return decorated


# ---- the options that say what an improvement is made of, for all verbs that improve ------------
#
# They are those that `surestep.terms` declares.


class NWedge(click.ParamType[int | str]):
    """A whole number, or `auto`."""

    name = "integer|auto"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Reads a whole number, or `auto`."""
        if value == AUTO:
            return AUTO
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor 'auto'", param, ctx)


def term_options(*, but: str = "") -> Callable[[Command], Command]:
    """Adds the options, `but` one that the verb has of its own.

    The command is given `terms` and `sources`, ready for `Terms` and `gather`.
    """
    declared = {name: term for name, term in TERMS.items() if name != but}

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_terms(**options: Any) -> None:
            terms = {name: read(term.shape, options.pop(name)) for name, term in declared.items()}
            sources = {name: options.pop(name) for name in SOURCES}
            command(terms=terms, sources=sources, **options)

        decorated: Command = with_terms
        for name, term in reversed((SOURCES | declared).items()):
            decorated = term_option(name, term)(decorated)
        return decorated

    return decorate


def term_option(name: str, term: Term) -> Callable[[Command], Command]:
    """Returns the option of a term."""
    return click.option(
        term.option_for(name),
        name,
        type=click_type(term.shape),
        multiple=isinstance(term.shape, Texts | AlgorithmSettings),
        required=term.required,
        metavar="LOW HIGH" if isinstance(term.shape, Bounds) else term.metavar,
        help=term.full_help,
    )


def click_type(shape: Shape) -> Any:
    """Returns how click reads a value; limits are checked where all terms are."""
    match shape:
        case Number():
            return float
        case Whole(or_auto=or_auto):
            return NWedge() if or_auto else int
        case Bounds():
            return (float, float)
        case Choice(words):
            return click.Choice(words)
    return str


def read(shape: Shape, given: Any) -> Any:
    """Returns an option's value as a term has it: None, or no settings, where nobody gave one."""
    match shape:
        case AlgorithmSettings():
            return read_settings(given)
        case Texts():
            return list(given) or None
    return given


def read_settings(given: tuple[str, ...]) -> dict[str, object]:
    """Reads settings as numbers where they are some, else as words."""
    settings: dict[str, object] = {}
    for setting in given:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--setting is {setting!r}, expected NAME=VALUE")
        settings[name.strip().replace("-", "_")] = read_value(text.strip())
    return settings


def read_value(text: str) -> object:
    """Reads a whole number, a number, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
