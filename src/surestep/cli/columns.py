"""The options that say how a log is read: which column means what, one a role, bins and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from surestep.io.logs.columns import ROLE_OPTIONS, ROLES, option_of


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every role, --bin and --memory-limit.

    The command gets the roles that were given as `columns`, and `bins` and `memory_limit`.
    """

    @wraps(command)
    def with_columns(**options: Any) -> None:
        given = {role: options.pop(f"column_{role}") for role in ROLE_OPTIONS}
        command(columns={role: names for role, names in given.items() if names}, **options)

    decorated: Callable[..., None] = click.option(
        "--memory-limit",
        metavar="SIZE",
        help="Memory to use at most, such as 2GB; what needs more spills to disk.",
    )(with_columns)
    decorated = click.option(
        "--bin",
        "bins",
        multiple=True,
        metavar="COLUMN:RULE",
        help="Bin a column of numbers: age:quantiles=10, pressure:width=5 or x:edges=0,1,5.",
    )(decorated)
    for role in reversed(ROLE_OPTIONS):
        decorated = click.option(
            option_of(role),
            f"column_{role}",
            multiple=True,
            metavar="COLUMN",
            help=ROLES[role].help,
        )(decorated)
    return decorated
