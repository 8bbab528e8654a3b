"""The options that say how a log is read: which column means what, one a role, bins and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

ROLES = (
    *("state", "action", "reward", "next_state"),
    *("episode", "step", "terminated", "truncated"),
    *("is_last", "behavior_prob", "weight"),
)
WORDS = {
    "is_last": "mark of rows with a last observation only (RLDS)",
    "behavior_prob": "logged probability of the action",
    "weight": "number of identical rows that a row stands for",
}


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every role, --bin and --memory-limit.

    The command gets the roles that were given as `columns`, and `bins` and `memory_limit`.
    """

    @wraps(command)
    def with_columns(**options: Any) -> None:
        given = {role: options.pop(f"column_{role}") for role in ROLES}
        command(columns={role: names for role, names in given.items() if names}, **options)

    decorated: Callable[..., None] = click.option(
        "--memory-limit", metavar="SIZE", help="Such as 2GB; what needs more spills to disk."
    )(with_columns)
    decorated = click.option(
        "--bin",
        "bins",
        multiple=True,
        metavar="COLUMN:RULE",
        help="Bin a column of numbers: age:quantiles=10, pressure:width=5 or x:edges=0,1,5.",
    )(decorated)
    for role in reversed(ROLES):
        words = WORDS.get(role, role.replace("_", " "))
        decorated = click.option(
            f"--{role.replace('_', '-')}",
            f"column_{role}",
            multiple=True,
            metavar="COLUMN",
            help=f"The column of the {words}.",
        )(decorated)
    return decorated
