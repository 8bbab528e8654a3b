"""Model files: PRISM's explicit files and UMB archives, chosen by their suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from surestep._arrays import expect, is_number
from surestep._files import read_path, write_together
from surestep.errors import InvalidModel, InvalidParameter
from surestep.io.checker_model import RESERVED
from surestep.io.folding import opened
from surestep.io.naming import naming
from surestep.io.prism_reader import read_explicit
from surestep.io.prism_writer import explicit_files
from surestep.io.umb_reader import read_umb
from surestep.io.umb_writer import umb_files
from surestep.model.mdp import FiniteMDP

READERS = {".tra": read_explicit, ".umb": read_umb}
WRITERS = {".tra": explicit_files, ".umb": umb_files}
Handler = TypeVar("Handler")


def read_mdp(
    path: str | os.PathLike[str],
    discount: float,
    *,
    reward: str | None = None,
    initial: str | None = None,
) -> FiniteMDP:
    """The model in a file: `.tra` (PRISM explicit files, siblings included) or `.umb`.

    Files hold no discount, so it is given here. An absorbing state without rewards that carries
    the label `end` is the end of episodes: pairs that lead to it get no successors. A start in
    several states, which `write_mdp` stores as a state `start`, becomes a distribution again. All
    other labels of states stay with the model. `reward` names the reward structure that counts; if
    left out, it is the only one, or the one called 'reward'. `initial` is needed where several
    states are initial: 'uniform' starts equally often in each, a label in the states that carry it.
    """
    place, number = read_path(path), read_discount(discount)
    read_choice("reward", reward)
    read_choice("initial", initial)
    model = handler(READERS, place)(place, reward)
    with naming(place):
        return opened(model, number, initial)


def write_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Writes a model to `.tra` (and its siblings) or `.umb`, whole or not at all.

    The model must have a single discount, which is not stored. Ends of episodes become one more
    state, which is absorbing and carries the label `end`. A start in several states becomes one
    more state `start`, whose only action leads to them; that is a step, so checkers find γ·ρ
    there. Labels of states are written too. Siblings that an earlier model left behind are replaced
    or removed.
    """
    expect("mdp", mdp, FiniteMDP)
    place = read_path(path)
    files = handler(WRITERS, place)
    for kind, labels in (
        ("label of state", mdp.pairs.state_labels),
        ("label of action", mdp.pairs.action_labels),
        ("mark", tuple(mdp.marks)),
    ):
        refuse_half_characters(kind, labels or ())
    for label in mdp.marks:
        if label in RESERVED:
            raise InvalidModel(
                f"states are marked as {label!r}, which says in model files where episodes start "
                "or end; expected another label"
            )
    write_together(files(mdp, place))


def read_choice(name: str, value: object) -> None:
    """Refuses a name that is none."""
    if not isinstance(value, str | None):
        raise InvalidParameter(f"{name} is of type {type(value).__name__}, expected a string")


def read_discount(discount: object) -> float:
    """One discount for all pairs."""
    if not (is_number(discount) and 0 <= discount <= 1):
        raise InvalidParameter(f"discount is {discount!r}, expected 0 to 1")
    return float(discount)


def handler(handlers: Mapping[str, Handler], path: Path) -> Handler:
    """What reads or writes files with this suffix."""
    if path.suffix not in handlers:
        raise InvalidParameter(
            f"{path} has the suffix {path.suffix!r}, expected one of {', '.join(handlers)} (the "
            "PRISM language is read by from_prism)"
        )
    return handlers[path.suffix]


def refuse_half_characters(kind: str, labels: tuple[str, ...]) -> None:
    """No file in UTF-8 can hold one half of a surrogate pair."""
    for index, label in enumerate(labels):
        try:
            label.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidModel(
                f"{kind} {index} is {label!r}, which holds half a character (a lone "
                "surrogate) that no file can hold; expected valid text"
            ) from None
