"""UMB archives, read: the unified Markov binary format, a tar file of flat arrays.

`index.json` says how many states, choices and branches (transitions) there are, and of what type
their values are. Runs are offsets into the next level, `state-to-choices.bin` and
`choice-to-branches.bin`. A file of runs that is missing means runs of one, a file of values that
is missing means 0. The format is described at https://github.com/pmc-tools/umb.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    LARGEST_INDEX,
    BoolArray,
    FloatArray,
    IntArray,
    offsets_of,
    refuse_where,
    repeated_in_run,
    run_owners,
)
from surestep.errors import InvalidModel
from surestep.io.models.actions import Actions
from surestep.io.models.checker import CheckerModel
from surestep.io.models.umb_archive import Archive, open_archive
from surestep.io.models.umb_arrays import (
    bits,
    column,
    expect_runs,
    expect_size,
    number_width,
    numbers,
    runs,
    strings,
    valuation_labels,
)
from surestep.io.models.umb_index import REWARD, STATE_LABELS, TOOL, Record, read_index
from surestep.model.pairs import Labels

CHOICES, BRANCHES = "state-to-choices.bin", "choice-to-branches.bin"
PROBABILITIES = "branch-to-probability.bin"


class Sizes(NamedTuple):
    """The numbers of all things that can earn a reward."""

    states: int
    choices: int
    branches: int


def read_umb(path: Path, reward: str | None) -> CheckerModel:
    """Reads the model in a UMB archive; `reward` names the reward structure that counts."""
    with open_archive(path) as archive:
        index = read_index(archive)
        system = index.record("transition-system")
        sizes = read_sizes(system)
        kind = system.record("branch-probability-type")
        expect_sizes(archive, sizes, number_width(kind))
        # In the order in which they are stored, so that compressed files are unpacked once.
        choice_offsets = runs(archive, CHOICES, sizes.states, sizes.choices)
        initial = bits(archive, "state-is-initial.bin", sizes.states)
        offsets = runs(archive, BRANCHES, sizes.choices, sizes.branches)
        successor = column(archive, "branch-to-target.bin", sizes.branches, "<u8")
        probability = read_probabilities(archive, sizes, kind)
        actions = read_actions(archive, index, sizes.choices)
        labels = read_labels(archive, index, sizes.states)
        rewards = read_rewards(archive, index, sizes, reward)
        branches = Branches(offsets, successor, probability, rewards["branches"])
        return CheckerModel(
            choice_offsets=choice_offsets,
            **merge_branches(branches)._asdict(),
            choice_reward=rewards["choices"],
            state_reward=rewards["states"],
            initial=initial,
            actions=actions,
            labels=labels,
            state_labels=read_state_labels(archive, index, sizes.states),
        )


def read_sizes(system: Record) -> Sizes:
    """Returns the counts of a model that is an MDP, or a Markov chain: an MDP without a choice."""
    time = system.get("time", str)
    players, observations = system.count("#players"), system.count("#observations", 0)
    if time != "discrete" or players > 1 or observations:
        raise InvalidModel(
            f"the model has {time} time, {players} players and {observations} observations, "
            "expected discrete time, 0 or 1 player and no observations (an MDP or a Markov chain)"
        )
    sizes = Sizes(system.count("#states"), system.count("#choices"), system.count("#branches"))
    if not 1 <= sizes.states <= LARGEST_INDEX:
        raise InvalidModel(f"the model has {sizes.states} states, expected 1 to {LARGEST_INDEX}")
    return sizes


def expect_sizes(archive: Archive, sizes: Sizes, width: int) -> None:
    """Refuses counts that the files do not bear out, before memory is taken for them."""
    if PROBABILITIES not in archive:
        raise InvalidModel(
            f"{PROBABILITIES} is missing, expected the probabilities of the branches"
        )
    expect_size(archive, PROBABILITIES, sizes.branches, width)
    expect_runs(archive, BRANCHES, sizes.choices, sizes.branches)
    expect_runs(archive, CHOICES, sizes.states, sizes.choices)


# ---- branches and what they earn --------------------------------------------------------------


class Branches(NamedTuple):
    """The branches of all choices."""

    offsets: IntArray  # [K+1]
    successor: IntArray  # [T]
    probability: FloatArray  # [T]
    reward: FloatArray  # [T]


def read_probabilities(archive: Archive, sizes: Sizes, kind: Record) -> FloatArray:
    """Reads the probabilities of the branches [T]."""
    probability = numbers(archive, PROBABILITIES, sizes.branches, kind)
    refuse_where(
        ~(probability >= 0),
        lambda t: f"the probability of branch {t} is {probability[t]}, expected 0 to 1",
        "value",
        InvalidModel,
    )
    return probability


def merge_branches(branches: Branches) -> Branches:
    """Puts the branches of a choice together that lead to the same state: there may be several.

    Their probabilities add up, and their rewards average.
    """
    offsets, successor, probability, reward = branches
    if not repeated_in_run(successor, offsets).any():
        return branches
    choice = run_owners(offsets)
    order = np.lexsort((successor, choice))
    new = np.ones(order.size, np.bool_)
    new[1:] = (np.diff(choice[order]) != 0) | (successor[order][1:] != successor[order][:-1])
    first = np.flatnonzero(new)
    total = np.add.reduceat(probability[order], first)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        earned = np.add.reduceat((probability * reward)[order], first)
        mean = np.where(total > 0, earned / total, 0.0)
    kept = order[first]
    return Branches(
        offsets_of(np.bincount(choice[kept], minlength=offsets.size - 1)),
        successor[kept],
        total,
        mean,
    )


def read_rewards(
    archive: Archive, index: Record, sizes: Sizes, wanted: str | None
) -> dict[str, FloatArray]:
    """Reads what states, choices and branches earn: all 0 in a model without rewards."""
    rewards: dict[str, FloatArray] = {
        level: np.zeros(count) for level, count in sizes._asdict().items()
    }
    structures = dict(index.record("annotations", {}).record("rewards", {}).records())
    if not structures and wanted is None:
        return rewards
    identifier = choose_reward({name: called(name, r) for name, r in structures.items()}, wanted)
    structure = structures[identifier]
    levels = structure.get("applies-to", list)
    if "probability-type" in structure.values or not set(map(str, levels)) <= set(rewards):
        raise InvalidModel(
            f"{structure.place} applies to {levels} and may be random, expected fixed rewards of "
            f"{', '.join(rewards)}"
        )
    for level in levels:
        name = f"annotations/rewards/{identifier}/{level}/values.bin"
        rewards[level] = numbers(archive, name, rewards[level].size, structure.record("type"))
    return rewards


def choose_reward(names: Mapping[str, str], wanted: str | None) -> str:
    """Returns the identifier of the reward structure that is meant, of identifiers and names."""
    if wanted is None and len(names) == 1:
        return next(iter(names))
    name = REWARD if wanted is None else wanted
    matches = [identifier for identifier in names if names[identifier] == name]
    if not matches:
        raise InvalidModel(
            f"reward is {wanted!r}, expected one of the reward structures: "
            f"{', '.join(map(repr, names.values())) or 'there are none'}"
        )
    return matches[0]


# ---- names ------------------------------------------------------------------------------------


def called(identifier: str, annotation: Record) -> str:
    """Returns what an annotation is called."""
    name: str = annotation.get("alias", str, identifier)
    return name


def read_labels(archive: Archive, index: Record, states: int) -> dict[str, BoolArray]:
    """Reads which states the labels mark; labels of choices, branches and nothing are left out."""
    annotations = index.record("annotations", {}).record("aps", {}).records()
    return {
        called(identifier, label): bits(
            archive, f"annotations/aps/{identifier}/states/values.bin", states
        )
        for identifier, label in annotations
        if "states" in label.get("applies-to", list)
        and f"annotations/aps/{identifier}/states/values.bin" in archive
    }


def read_actions(archive: Archive, index: Record, choices: int) -> Actions:
    """Reads the actions of the choices; a Markov chain has only one."""
    system = index.record("transition-system")
    count = system.count("#choice-actions", 0)
    if system.count("#players") == 0:
        return Actions(np.zeros(choices, np.int64), 1)
    if count == 0:
        return Actions(np.zeros(choices, np.int64), 1, [None])
    number = column(archive, "actions/choices/values.bin", choices, "<u4").astype(np.int64)
    refuse_where(
        number >= count,
        lambda k: f"the action of choice {k} is {number[k]}, expected 0 to {count - 1}",
        "choice",
        InvalidModel,
    )
    names = strings(archive, "actions/choices", count)
    if names is not None and not is_ours(index):  # others write '' for a choice without a name
        return Actions(number, count, [name or None for name in names])
    return Actions(number, count, names)


def read_state_labels(archive: Archive, index: Record, states: int) -> Labels:
    """Reads what the states are called: labels in our own files, values of variables in others."""
    if not is_ours(index):
        return valuation_labels(archive, index.record("valuations", {}), states)
    labels = index.record("file-data").record("parameters", {}).get(STATE_LABELS, list, None)
    if labels is None:
        return None
    added = states - len(labels)  # the states `end` and `start`
    if not 0 <= added <= 2 or not all(isinstance(label, str) for label in labels):
        raise InvalidModel(
            f"{STATE_LABELS} has {len(labels)} entries for {states} states, expected a string each"
        )
    return (*labels, *[""] * added)


def is_ours(index: Record) -> bool:
    """Returns whether we have written the file."""
    return bool(index.record("file-data", {}).values.get("tool") == TOOL)
