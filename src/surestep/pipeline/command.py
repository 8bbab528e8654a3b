"""The command line that makes a result again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from surestep.algorithms import ALGORITHMS
from surestep.choosing import n_wedge_setting
from surestep.io.logs.columns import ROLE_OPTIONS, option_of
from surestep.results.record import InputFile

DECLARED = ("reward_bounds", "reward_at_end", "return_bounds")


def command_line(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> str:
    """`surestep improve …`, with the names of the files as they were, without their folders.

    What nobody gave is left out: it is taken by default again, and counts as such again.
    """
    names = {role: [each.name for each in inputs if each.role == role] for role in FILE_ROLES}
    words = ["surestep", "improve", *(names["log"] or ["LOG"])]
    for role in ROLE_OPTIONS if made_from_log(parameters) else ():
        for column in parameters["columns"].get(role, ()):
            words += [option_of(role), column]
    for rule in parameters["bins"]:
        words += ["--bin", rule]
    kind = parameters["behavior"]
    if "behavior" not in defaults:
        words += ["--behavior", *((names["behavior"] or ["POLICY"]) if kind == "table" else [kind])]
    for role in ("states", "actions"):
        if parameters[role] == "listed":
            words += [option_of(role), *(names[role] or [role.upper()])]
    words += ["--discount", repr(parameters["discount"]), *algorithm_words(parameters, defaults)]
    if parameters["least_visits"] is not None and "least_visits" not in defaults:
        words += ["--least-visits", str(parameters["least_visits"])]
    if "delta" not in defaults:
        words += ["--delta", repr(parameters["delta"])]
    said = [name for name in DECLARED if parameters[name] is not None]
    if "value_bounds" not in defaults and not {"reward_at_end", "return_bounds"} & set(said):
        words += ["--value-bounds", *map(repr, parameters["value_bounds"])]
    for name in said:
        words += [option_of(name), *map(repr, parameters[name])]
    if "unseen" not in defaults:
        words += ["--unseen", parameters["unseen"]]
    if "certificates" not in defaults:
        words += [word for kind in parameters["certificates"] for word in ("--kind", kind)]
    for name in ("train_share", "logger"):
        if parameters[name] is not None and name not in defaults:
            words += [option_of(name), str(parameters[name])]
    if "worlds" not in defaults:
        words += ["--worlds", str(parameters["worlds"])]
    return shlex.join([*words, "-o", "OUT"])


def rehearse_command(
    parameters: Mapping[str, Any], defaults: Sequence[str], inputs: Sequence[InputFile]
) -> str:
    """`surestep rehearse …`, with the same words, and its own."""
    _, _, *words, _, out = shlex.split(command_line(parameters, defaults, inputs))
    sizes = ",".join(f"{size:g}" for size in parameters["sizes"])
    more = ["--sizes", sizes, "--seed", str(parameters["seeds"]["rehearsal"])]
    return shlex.join(["surestep", "rehearse", *words, *more, "-o", out])


def algorithm_words(parameters: Mapping[str, Any], defaults: Sequence[str]) -> list[str]:
    """The algorithm and its settings; N∧ by way of ζ where that was given."""
    settings = dict(parameters["algorithm"])
    name = settings.pop("algorithm")
    words = [] if "algorithm" in defaults else ["--algorithm", name]
    wedge = n_wedge_setting(ALGORITHMS[name])
    if parameters["zeta"] is not None:
        words += ["--zeta", repr(parameters["zeta"])]
    chosen = parameters["n_wedge_chosen_by"] is not None
    if parameters["zeta"] is not None or chosen:
        settings.pop(str(wedge))
        words += ["--n-wedge", "auto"] if chosen and "n_wedge" not in defaults else []
    elif wedge is not None:
        words += ["--n-wedge", str(settings.pop(wedge))]
    if "delta" in settings and settings["delta"] == parameters["delta"]:
        del settings["delta"]  # it is that of --delta
    for setting, value in settings.items():
        words += ["--setting", f"{setting}={value}"]
    return words


def made_from_log(parameters: Mapping[str, Any]) -> bool:
    """Tells whether a result was made from a log, whose rewards have a column, not from counts."""
    return "reward" in parameters["columns"]


FILE_ROLES = ("log", "behavior", "states", "actions")
