"""Model files: PRISM's explicit files and UMB archives, chosen by their suffix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from surestep._arrays import expect, is_number
from surestep._files import read_path, write_together
from surestep.errors import InvalidModel, InvalidParameter
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


def read_mdp(path: str | os.PathLike[str], discount: float) -> FiniteMDP:
    """The model in a file: `.tra` (PRISM explicit files, siblings included) or `.umb`.

    Files hold no discount, so it is given here. An absorbing state without rewards that carries
    the label `end` is the end of episodes: pairs that lead to it get no successors. A start in
    several states, which `write_mdp` stores as a state `start`, becomes a distribution again. If
    there are several reward structures, the one called `reward` counts.
    """
    place, number = read_path(path), read_discount(discount)
    model = handler(READERS, place)(place)
    with naming(place):
        return opened(model, number)


def write_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Writes a model to `.tra` (and its siblings) or `.umb`, whole or not at all.

    The model must have a single discount, which is not stored. Ends of episodes become one more
    state, which is absorbing and carries the label `end`. A start in several states becomes one
    more state `start`, whose only action leads to them; that is a step, so checkers find γ·ρ
    there. Siblings that an earlier model left behind are replaced or removed.
    """
    expect("mdp", mdp, FiniteMDP)
    place = read_path(path)
    files = handler(WRITERS, place)
    for kind, labels in (("state", mdp.pairs.state_labels), ("action", mdp.pairs.action_labels)):
        refuse_half_characters(kind, labels or ())
    write_together(files(mdp, place))


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
                f"label of {kind} {index} is {label!r}, which holds half a character (a lone "
                "surrogate) that no file can hold; expected valid text"
            ) from None
