"""The options that several verbs have: how a log is read, and how much time and room they take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from surestep.cli.terms import term_option
from surestep.io.logs.columns import ROLE_OPTIONS, ROLES, option_of
from surestep.io.logs.reading import READING, Reading

memory_limit = click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Memory to use at most, such as 2GB; what needs more spills to disk.",
)
time_limit = click.option(
    "--time-limit",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Stop the stress test after this time, with as many worlds as were reached.",
)
worker_processes = click.option(
    "--workers", type=click.IntRange(min=1), help="The number of processes.  [default: all cores]"
)
json_instead = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


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
