"""Programs in the PRISM language, built into models by Storm."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surestep._files import read_path, read_whole
from surestep.errors import InvalidModel, InvalidParameter, MissingExtra
from surestep.io.checker_model import DEADLOCK, END
from surestep.io.folding import opened
from surestep.io.model_files import read_discount
from surestep.io.naming import naming
from surestep.io.umb_reader import read_contents
from surestep.model.mdp import FiniteMDP

Constants = Mapping[str, bool | int | float] | str
UNNAMED = "default"  # the identifier that Storm gives to a reward structure without a name


def from_prism(
    path: str | os.PathLike[str],
    discount: float,
    constants: Constants | None = None,
    reward: str | None = None,
) -> FiniteMDP:
    """The model of a program in the PRISM language, an `mdp` or a `dtmc`; needs stormpy.

    `constants` are those that the program leaves open, as a dict or as text ("N=3,p=0.1").
    `reward` names the reward structure that counts; it may be left out if there is only one, or
    none. States are labelled with the values of their variables, actions with their names.
    Deadlocks, and absorbing states without reward that carry the label `end`, end the episode.
    """
    place, number = read_path(path), read_discount(discount)
    read_whole(place)  # what cannot be read is refused in our own words
    storm, given = import_storm(), read_constants(constants)
    with naming(place), tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "model.umb"
        structure = build(storm, place, given, reward, archive)
        model = read_contents(archive, structure)
        # As deadlocks, states with the label `end` stay, and all states are those of the program.
        over = model.marked(END) | model.marked(DEADLOCK)
        return opened(replace(model, labels={DEADLOCK: over}), number)


def import_storm() -> Any:
    """The package stormpy, which is an extra."""
    try:
        import stormpy
        import stormpy.developer
    except ImportError:
        raise MissingExtra(
            "the PRISM language is read through stormpy, which is not installed; install it with: "
            "pip install 'surestep[storm]'"
        ) from None
    return stormpy


def read_constants(constants: object) -> dict[str, bool | int | float] | str:
    """The constants as Storm takes them."""
    if isinstance(constants, str):
        return constants
    if not isinstance(constants, Mapping | None):
        raise InvalidParameter(f"constants is {constants!r}, expected a dict or 'N=3,p=0.1'")
    result: dict[str, bool | int | float] = {}
    for name, value in (constants or {}).items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(name, str) or not isinstance(plain, bool | int | float):
            raise InvalidParameter(
                f"constants gives {value!r} to {name!r}, expected a number or a truth value"
            )
        result[name] = plain
    return result


def build(
    storm: Any, path: Path, constants: Constants, reward: str | None, archive: Path
) -> str | None:
    """Lets Storm build the model and write it down; returns the reward structure that counts."""
    with complaints(storm):
        program = storm.parse_prism_program(path)
        kind = program.model_type.name.lower()
        if constants:
            program, _ = storm.io.instantiate_constants(program, constants)
        undefined = [constant.name for constant in program.get_undefined_constants()]
        structures = [structure.name for structure in program.reward_models]
    if kind not in ("mdp", "dtmc"):
        raise InvalidModel(f"the model is of type {kind!r}, expected 'mdp' or 'dtmc'")
    if undefined:
        raise InvalidModel(
            f"no value is given for the constants {', '.join(undefined)}, expected one for each, "
            f"such as constants={{{undefined[0]!r}: 1}}"
        )
    known = len(structures) <= 1 if reward is None else reward in structures
    if not known:
        raise InvalidModel(
            f"reward is {reward!r}, expected one of the program's reward structures: "
            f"{', '.join(map(repr, structures)) or 'there are none'}"
        )
    with complaints(storm):
        options = storm.BuilderOptions()
        options.set_build_state_valuations()
        options.set_build_choice_labels()
        options.set_build_all_labels()
        options.set_build_all_reward_models()
        options.set_exploration_checks()
        plain = storm.io.UmbExportOptions()
        plain.compression = storm.io.CompressionMode.NO_COMPRESSION
        storm.io.export_to_umb(storm.build_model(program, options=options), archive, options=plain)
    return UNNAMED if reward == "" else reward


@contextmanager
def complaints(storm: Any) -> Iterator[None]:
    """Turns what Storm complains about into a refusal of ours, and keeps Storm from printing it."""
    level = storm.developer.get_log_level()
    storm.developer.set_log_level(storm.developer.LogLevel.OFF)
    try:
        yield
    except Exception as problem:  # Storm's own errors come as RuntimeError and in other classes
        raise InvalidModel(f"Storm says: {' '.join(str(problem).split())[:400]}") from None
    finally:
        storm.developer.set_log_level(level)
