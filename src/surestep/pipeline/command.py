"""The command line that makes a result again, every setting spelled out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from surestep.results.record import InputFile

ROLE_OPTIONS = (
    *("state", "action", "reward", "next_state", "episode", "step"),
    *("terminated", "truncated", "is_last", "behavior_prob", "weight"),
)


def command_line(parameters: Mapping[str, Any], inputs: Sequence[InputFile]) -> str:
    """`surestep improve …`, with the names of the files as they were, without their folders."""
    names = {role: [each.name for each in inputs if each.role == role] for role in FILE_ROLES}
    words = ["surestep", "improve", *(names["log"] or ["LOG"])]
    for role in ROLE_OPTIONS if made_from_log(parameters) else ():
        for column in parameters["columns"].get(role, ()):
            words += [option(role), column]
    for rule in parameters["bins"]:
        words += ["--bin", rule]
    kind = parameters["behavior"]
    words += ["--behavior", *((names["behavior"] or ["POLICY"]) if kind == "table" else [kind])]
    for role in ("states", "actions"):
        if parameters[role] == "listed":
            words += [option(role), *(names[role] or [role.upper()])]
    words += ["--discount", repr(parameters["discount"])]
    algorithm = dict(parameters["algorithm"])
    words += ["--algorithm", algorithm.pop("algorithm")]
    for name, value in algorithm.items():
        words += ["--setting", f"{name}={value}"]
    words += ["--delta", repr(parameters["delta"])]
    words += ["--value-bounds", *map(repr, parameters["value_bounds"])]
    words += ["--unseen", parameters["unseen"], "-o", "OUT"]
    return shlex.join(words)


def made_from_log(parameters: Mapping[str, Any]) -> bool:
    """Whether a result was made from a log, whose rewards have a column, and not from counts."""
    return "reward" in parameters["columns"]


FILE_ROLES = ("log", "behavior", "states", "actions")


def option(role: str) -> str:
    """The option of a role: '--next-state'."""
    return f"--{role.replace('_', '-')}"
