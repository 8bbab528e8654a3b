"""PRISM explicit files, written: `.tra` and `.lab`, with `.sta` and `.trew` where needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from surestep._arrays import AnyArray, run_owners
from surestep._files import Chunks
from surestep.errors import InvalidModel
from surestep.io.actions import WORD, places, word_of_label
from surestep.io.checker_model import INITIAL, CheckerModel, closed
from surestep.model.mdp import FiniteMDP

BLOCK = 1 << 16  # lines that are made at a time


def explicit_files(mdp: FiniteMDP, path: Path) -> Mapping[Path, Chunks | None]:
    """The files of a model; None for a sibling that an earlier model may have left there."""
    model, labels = closed(mdp), mdp.pairs.state_labels
    return {
        path.with_suffix(".srew"): None,
        path.with_suffix(".trew"): reward_lines(model) if model.reward.any() else None,
        path.with_suffix(".sta"): None if labels is None else state_lines(model, labels),
        path.with_suffix(".lab"): label_lines(model),
        path: transition_lines(model, own=mdp.num_pairs),
    }


def transition_lines(model: CheckerModel, own: int) -> Iterator[bytes]:
    """`.tra`, in which the choices of our own pairs have names, and those that we added none."""
    yield b"%d %d %d\n" % (model.num_states, model.num_choices, model.successor.size)
    choice = run_owners(model.offsets)
    columns = (*where(model, choice), model.probability)
    ours = model.offsets[own]
    name = model.actions.number[choice[:ours]]
    labels = model.actions.names
    if labels is not None:
        name = np.array([word_of_label(label or "") for label in labels], object)[name]
    form = "%d %d %d %r a%d\n" if labels is None else "%d %d %d %r %s\n"
    yield from formatted(form, *(column[:ours] for column in columns), name)
    yield from formatted("%d %d %d %r\n", *(column[ours:] for column in columns))


def reward_lines(model: CheckerModel) -> Iterator[bytes]:
    """`.trew`: the rewards that are not 0."""
    earning = np.flatnonzero(model.reward)
    yield b"%d %d %d\n" % (model.num_states, model.num_choices, earning.size)
    columns = where(model, run_owners(model.offsets))
    yield from formatted(
        "%d %d %d %r\n", *(column[earning] for column in columns), model.reward[earning]
    )


def where(model: CheckerModel, choice: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The state, the choice within it and the successor of each transition [T]."""
    state = run_owners(model.choice_offsets)
    return state[choice], places(model.choice_offsets)[choice], model.successor


def label_lines(model: CheckerModel) -> Iterator[bytes]:
    """`.lab`: where the model starts, and which states the labels mark."""
    labels = {INITIAL: model.initial, **model.labels}
    for label in labels:
        if not WORD.fullmatch(label):
            raise InvalidModel(
                f"states are marked as {label!r}, expected a word of letters, digits and _ (a "
                ".umb file holds any label)"
            )
    yield " ".join(f'{index}="{name}"' for index, name in enumerate(labels)).encode() + b"\n"
    marked = np.array(list(labels.values()))
    for state in np.flatnonzero(marked.any(axis=0)).tolist():
        numbers = " ".join(map(str, np.flatnonzero(marked[:, state])))
        yield f"{state}: {numbers}\n".encode()


def state_lines(model: CheckerModel, labels: tuple[str, ...]) -> Iterator[bytes]:
    """`.sta`: the number of each state, as PRISM wants it, and behind it our label."""
    yield b"(state)\n"
    for state, label in enumerate(labels):
        yield f"{state}:({state}) {json.dumps(label)}\n".encode("ascii")
    for state in range(len(labels), model.num_states):
        yield f"{state}:({state})\n".encode("ascii")


def formatted(form: str, *columns: AnyArray) -> Iterator[bytes]:
    """One line for each row of the columns, in blocks."""
    for begin in range(0, columns[0].size, BLOCK):
        rows = zip(*(column[begin : begin + BLOCK].tolist() for column in columns), strict=True)
        yield "".join(map(form.__mod__, rows)).encode("ascii")
