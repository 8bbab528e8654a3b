"""The command line that makes a result again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from surestep.io.logs.columns import ROLE_OPTIONS, option_of
from surestep.pipeline.terms import terms_from
from surestep.results.record import InputFile
from surestep.terms import SOURCES, TERMS


def command_line(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> str:
    """`surestep improve …`, with the names of the files as they were, without their folders."""
    return shlex.join(["surestep", "improve", *words_of(parameters, defaults, inputs), "-o", "OUT"])


def rehearse_command(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> str:
    """`surestep rehearse …`, with the same words, and its own."""
    words = words_of(parameters, defaults, inputs)
    sizes = ",".join(f"{size:g}" for size in parameters["sizes"])
    words += ["--sizes", sizes, "--seed", str(parameters["seeds"]["rehearsal"])]
    return shlex.join(["surestep", "rehearse", *words, "-o", "OUT"])


def words_of(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> list[str]:
    """Returns the log, how it is read, what is known beside it, and all terms that were given.

    What nobody gave is left out: it is taken by default again, and counts as such again.
    """
    files = {role: [each.name for each in inputs if each.role == role] for role in FILE_ROLES}
    words = files["log"] or ["LOG"]
    for role in ROLE_OPTIONS if made_from_log(parameters) else ():
        for column in parameters["columns"].get(role, ()):
            words += [option_of(role), column]
    for rule in parameters["bins"]:
        words += ["--bin", rule]
    kind = parameters["behavior"]
    if "behavior" not in defaults:
        words += ["--behavior", *((files["behavior"] or ["POLICY"]) if kind == "table" else [kind])]
    for role in ("states", "actions"):
        if parameters[role] == "listed":
            words += [f"--{role}", *(files[role] or [role.upper()])]
    said = terms_from(parameters, defaults)
    for name, term in TERMS.items():
        words += term.words_for(name, getattr(said, name))
    return words


def made_from_log(parameters: Mapping[str, Any]) -> bool:
    """Tells whether a result was made from a log, whose rewards have a column, not from counts."""
    return "reward" in parameters["columns"]


FILE_ROLES = ("log", *SOURCES)
