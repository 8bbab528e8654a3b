"""UMB archives, written: the arrays of a model in a tar file that is not compressed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from surestep._arrays import AnyArray, BoolArray, offsets_of, run_lengths
from surestep._files import Chunks
from surestep._version import __version__
from surestep.io.models.checker import RESERVED, CheckerModel, to_checker
from surestep.io.models.umb_archive import tar_chunks
from surestep.io.models.umb_index import INDEX, REWARD, TOOL, VERSION
from surestep.model.mdp import FiniteMDP

DOUBLE, BIT = {"type": "double", "size": 64}, {"type": "bool", "size": 1}


def umb_chunks(mdp: FiniteMDP) -> Chunks:
    """Returns the bytes of a model's archive. The same model always makes the same bytes."""
    model = to_checker(mdp)
    level, reward = choice_or_branch_rewards(model)
    arrays: dict[str, AnyArray] = {
        "state-to-choices.bin": model.choice_offsets.astype("<u8"),
        "state-is-initial.bin": packed(model.initial),
        "choice-to-branches.bin": model.offsets.astype("<u8"),
        "branch-to-target.bin": model.successor.astype("<u8"),
        "branch-to-probability.bin": model.probability.astype("<f8"),
        "actions/choices/values.bin": model.actions.number.astype("<u4"),
        f"annotations/rewards/{REWARD}/{level}/values.bin": reward.astype("<f8"),
    }
    for identifier, label in identifiers(model).items():
        arrays[f"annotations/aps/{identifier}/states/values.bin"] = packed(model.labels[label])
    if mdp.pairs.action_labels is not None:
        texts = [label.encode("utf-8") for label in mdp.pairs.action_labels]
        mapping = offsets_of(np.array([len(text) for text in texts]))
        arrays["actions/choices/string-mapping.bin"] = mapping.astype("<u8")
        arrays["actions/choices/strings.bin"] = np.frombuffer(b"".join(texts), np.uint8)
    index = json.dumps(describe(mdp, model, level)).encode("ascii")
    members = {n: array.data.cast("B") if array.size else b"" for n, array in arrays.items()}
    return tar_chunks({INDEX: index, **members})


def describe(mdp: FiniteMDP, model: CheckerModel, level: str) -> dict[str, Any]:
    """Returns the index, with rewards on the given level."""
    system = {
        "time": "discrete",
        "#players": 1,
        "#states": model.num_states,
        "#initial-states": 1,
        "#choices": model.num_choices,
        "#choice-actions": model.actions.num_actions,
        "#branches": model.successor.size,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": DOUBLE,
    }
    labels = mdp.pairs.state_labels
    maker: dict[str, Any] = {"tool": TOOL, "tool-version": __version__}
    if labels is not None:
        maker["parameters"] = {"state-labels": [*labels]}
    marks = {
        identifier: {"alias": label, "applies-to": ["states"], "type": BIT}
        for identifier, label in identifiers(model).items()
    }
    rewards = {REWARD: {"alias": REWARD, "applies-to": [level], "type": DOUBLE}}
    return {
        "format-version": VERSION,
        "format-revision": 0,
        "file-data": maker,
        "transition-system": system,
        "annotations": {"rewards": rewards, **({"aps": marks} if marks else {})},
    }


def identifiers(model: CheckerModel) -> dict[str, str]:
    """Returns what labels go by in names of files: ours by their names, others by numbers."""
    return {
        label if label in RESERVED else f"label-{number}": label
        for number, label in enumerate(model.labels)
    }


def choice_or_branch_rewards(model: CheckerModel) -> tuple[str, AnyArray]:
    """Returns rewards per choice, if no choice has two different ones, and else per branch."""
    first = model.reward[model.offsets[:-1]]
    if np.array_equal(np.repeat(first, run_lengths(model.offsets)), model.reward):
        return "choices", first
    return "branches", model.reward


def packed(mask: BoolArray) -> AnyArray:
    """Returns bits in whole words of 64, the lowest first."""
    padded = np.zeros(-(-mask.size // 64) * 64, np.bool_)
    padded[: mask.size] = mask
    return np.packbits(padded, bitorder="little")
