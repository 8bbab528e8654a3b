"""Programs in the PRISM language, built into models by Storm."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surestep._files import read_path, read_whole, temporary_folder
from surestep.errors import InvalidModel, InvalidParameter, MissingExtra
from surestep.io.checker_model import DEADLOCK, END
from surestep.io.folding import opened
from surestep.io.model_files import read_choice, read_discount
from surestep.io.naming import naming
from surestep.io.umb_reader import read_contents
from surestep.model.mdp import FiniteMDP

Constants = Mapping[str, bool | int | float] | str
UNNAMED = "default"  # the identifier that Storm gives to a reward structure without a name
OUT_OF_BOUNDS = "out_of_bounds"  # Storm's label of the state in which variables leave their range
LOOP = b" [] true -> true; "
COMMENT_OR_END = re.compile(rb"//[^\n]*|\b(?P<end>endmodule)\b")


def from_prism(
    path: str | os.PathLike[str],
    discount: float,
    constants: Constants | None = None,
    *,
    reward: str | None = None,
    initial: str | None = None,
) -> FiniteMDP:
    """The model of a program in the PRISM language, an `mdp` or a `dtmc`; needs stormpy.

    `constants` are those that the program leaves open, as a dict or as text ("N=3,p=0.1").
    `reward` names the reward structure that counts ('' one without a name); it may be left out if
    there is only one, or none. `initial` is needed where a program has several initial states:
    'uniform', or a label. States are labelled with the values of their variables, actions with
    their names, and the labels of the program stay with the model. Absorbing states without reward
    that carry the label `end` end the episode. A deadlock earns its state rewards for ever, as in
    PRISM, which gives it a loop, and ends the episode where there are none.
    """
    place, number = read_path(path), read_discount(discount)
    read_choice("reward", reward)
    read_choice("initial", initial)
    text = read_whole(place)  # what cannot be read is refused in our own words
    storm, given = import_storm(), read_constants(constants)
    with naming(place), temporary_folder() as folder:
        program = parsed(storm, place, given)
        structure = chosen_structure(program, reward)
        with complaints(storm):
            built = build(storm, program)
            archive = folder / "model.umb"
            plain = storm.io.UmbExportOptions()
            plain.compression = storm.io.CompressionMode.NO_COMPRESSION
            storm.io.export_to_umb(built, archive, options=plain)
        model = read_contents(archive, UNNAMED if structure == "" else structure)
        over, rewards = model.marked(DEADLOCK), built.reward_models.get(structure)
        if over.any() and rewards is not None and rewards.has_state_rewards:
            copy = folder / "lively.prism"
            copy.write_bytes(lively(text))
            program = parsed(storm, copy, given)
            with complaints(storm):
                earned = build(storm, program).reward_models[structure].state_rewards
            model = replace(model, state_reward=np.array(earned))
        # As deadlocks, states with the label `end` stay, and all states are those of the program.
        labels = {**model.marks(), DEADLOCK: over | model.marked(END)}
        return opened(replace(model, labels=labels), number, initial)


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


def parsed(storm: Any, path: Path, constants: Constants) -> Any:
    """The program in a file, with a value for every constant."""
    with complaints(storm):
        program = storm.parse_prism_program(path)
        kind = program.model_type.name.lower()
        if constants:
            program, _ = storm.io.instantiate_constants(program, constants)
        undefined = [constant.name for constant in program.get_undefined_constants()]
    if kind not in ("mdp", "dtmc"):
        raise InvalidModel(f"the model is of type {kind!r}, expected 'mdp' or 'dtmc'")
    if undefined:
        raise InvalidModel(
            f"no value is given for the constants {', '.join(undefined)}, expected one for each, "
            f"such as constants={{{undefined[0]!r}: 1}}"
        )
    return program


def chosen_structure(program: Any, reward: str | None) -> str | None:
    """The name of the reward structure that counts; None in a program without any."""
    structures = [structure.name for structure in program.reward_models]
    if reward is None and len(structures) <= 1:
        return structures[0] if structures else None
    if reward not in structures:
        raise InvalidModel(
            f"reward is {reward!r}, expected one of the program's reward structures: "
            f"{', '.join(map(repr, structures)) or 'there are none'}"
        )
    return reward


def build(storm: Any, program: Any) -> Any:
    """Storm's model of a program, with all that its values, labels and rewards say.

    Storm can check what it builds, but allows sums of probabilities no rounding: 0.8 + 0.1 + 0.1
    is not 1 then. We check sums ourselves, so what is left to ask is whether a variable leaves its
    range, for which Storm has a state of its own.
    """
    options = build_options(storm)
    options.set_exploration_checks()
    try:
        return storm.build_model(program, options=options)
    except Exception:  # Storm's own errors come as RuntimeError and in other classes
        options = build_options(storm)
        options.set_add_out_of_bounds_state()
        if storm.build_model(program, options=options).labeling.contains_label(OUT_OF_BOUNDS):
            raise
        return storm.build_model(program, options=build_options(storm))


def build_options(storm: Any) -> Any:
    """What Storm is to build besides transitions."""
    options = storm.BuilderOptions()
    options.set_build_state_valuations()
    options.set_build_choice_labels()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    return options


def lively(text: bytes) -> bytes:
    """The program with one more command, which loops in every state, so that none is a deadlock.

    Storm forgets the state rewards of deadlocks. With a loop it keeps them, and since a loop leads
    to no new state, it numbers the states as before.
    """
    ends = (part.start() for part in COMMENT_OR_END.finditer(text) if part["end"])
    at = next(ends)  # a program without modules has no deadlocks
    return text[:at] + LOOP + text[at:]


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
