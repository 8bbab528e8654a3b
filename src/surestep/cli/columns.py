"""The options that say which column of a log means what, one a role."""

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


def column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every role; the command gets those that were given, as `columns`."""

    @wraps(command)
    def with_columns(**options: Any) -> None:
        given = {role: options.pop(f"column_{role}") for role in ROLES}
        command(columns={role: names for role, names in given.items() if names}, **options)

    decorated: Callable[..., None] = with_columns
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
