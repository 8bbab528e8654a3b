"""Model files: UMB archives, read and written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import surestep._arrays as arrays
from surestep._files import read_path, write_together
from surestep.errors import InvalidModel, InvalidParameter
from surestep.io.models.checker import RESERVED, from_checker
from surestep.io.models.umb_reader import read_umb
from surestep.io.models.umb_writer import umb_chunks
from surestep.model.mdp import FiniteMDP
from surestep.model.statements import is_unicode

UMB, EXPLICIT = ".umb", ".tra"


def read_mdp(
    path: str | os.PathLike[str],
    discount: float,
    *,
    reward: str | None = None,
    initial: str | None = None,
) -> FiniteMDP:
    """Reads the model in a UMB archive (`.umb`), plain or compressed with gzip or xz.

    Files hold no discount, so it is given here. An absorbing state without rewards that carries
    the label `end` is the end of episodes: pairs that lead to it get no successors. A start in
    several states, which `write_mdp` stores as a state `start`, becomes a distribution again. All
    other labels of states stay with the model. `reward` names the reward structure that counts; if
    left out, it is the only one, or the one called 'reward'. `initial` is needed where several
    states are initial: 'uniform' starts equally often in each, a label in the states that carry it.
    """
    file, number = umb_path(path), arrays.read_discount(discount)
    check_names(reward=reward, initial=initial)
    with naming_file(file):
        return from_checker(read_umb(file, reward), number, initial)


def write_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Writes a model to a UMB archive (`.umb`), whole or not at all.

    The model must have a single discount, which is not stored. Ends of episodes become one more
    state, which is absorbing and carries the label `end`. A start in several states becomes one
    more state `start`, whose only action leads to them; that is a step, so checkers find γ·ρ
    there. Labels of states are written too.
    """
    arrays.expect("mdp", mdp, FiniteMDP)
    file = umb_path(path)
    for kind, labels in (
        ("label of state", mdp.pairs.state_labels),
        ("label of action", mdp.pairs.action_labels),
        ("mark", tuple(mdp.marks)),
    ):
        for index, label in enumerate(labels or ()):
            if not is_unicode(label):
                raise InvalidModel(
                    f"{kind} {index} is {label!r}, which holds half a character (a lone surrogate) "
                    "that no file can hold; expected valid text"
                )
    reserved = next((label for label in mdp.marks if label in RESERVED), None)
    if reserved is not None:
        raise InvalidModel(
            f"states are marked as {reserved!r}, which says in model files where episodes start or "
            "end; expected another label"
        )
    write_together({file: umb_chunks(mdp)})


def umb_path(path: object) -> Path:
    """Returns the path of a UMB archive; any other suffix is refused."""
    file = read_path(path)
    if file.suffix == EXPLICIT:
        model = file.with_suffix("")
        raise InvalidParameter(
            f"{file} has the suffix {EXPLICIT!r} of PRISM's explicit files, expected {UMB}; PRISM "
            f"from 4.10 on converts them: prism -importmodel {model}.all -exportmodel {model}{UMB} "
            "(for those in Storm's dialect see docs/model.md)"
        )
    if file.suffix != UMB:
        raise InvalidParameter(
            f"{file} has the suffix {file.suffix!r}, expected {UMB} (the PRISM language is read by "
            "from_prism)"
        )
    return file


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Puts the name of the file before whatever is refused inside."""
    try:
        yield
    except InvalidModel as refusal:
        raise InvalidModel(f"{path}: {refusal}") from None


def check_names(**names: object) -> None:
    """Refuses names that are none."""
    for name, value in names.items():
        if not isinstance(value, str | None):
            raise InvalidParameter(f"{name} is of type {type(value).__name__}, expected a string")
