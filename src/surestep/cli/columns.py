"""The options that say how a log is read: which column means what, one a role, bins and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

HELP = {  # of the option of each role
    "state": "The column with the state; repeat it where there are several.",
    "action": "The column with the action; repeat it where there are several.",
    "reward": "The column with the reward.",
    "next_state": "The column with the state that follows; repeat it where there are several.",
    "episode": "The column that says to which episode a row belongs.",
    "step": "The column with the number of the step in its episode.",
    "terminated": "The column that says whether the episode ended with this step.",
    "truncated": "The column that says whether the recording was cut after this step.",
    "is_last": "The column that marks rows with a last observation only (RLDS).",
    "behavior_prob": "The column with the probability that the action had when it was taken.",
    "weight": "The column with the number of identical rows that a row stands for.",
}


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds an option for every role, --bin and --memory-limit.

    The command gets the roles that were given as `columns`, and `bins` and `memory_limit`.
    """

    @wraps(command)
    def with_columns(**options: Any) -> None:
        given = {role: options.pop(f"column_{role}") for role in HELP}
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
    for role, words in reversed(HELP.items()):
        decorated = click.option(
            f"--{role.replace('_', '-')}",
            f"column_{role}",
            multiple=True,
            metavar="COLUMN",
            help=words,
        )(decorated)
    return decorated
