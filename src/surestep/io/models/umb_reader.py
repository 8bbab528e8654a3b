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
from surestep.io.models.umb_index import (
    REWARD,
    STATE_LABELS,
    TOOL,
    Annotation,
    Index,
    System,
    read_index,
)
from surestep.model.pairs import Labels

CHOICES, BRANCHES = "state-to-choices.bin", "choice-to-branches.bin"
PROBABILITIES = "branch-to-probability.bin"


def read_umb(path: Path, reward: str | None) -> CheckerModel:
    """Reads the model in a UMB archive; `reward` names the reward structure that counts."""
    with open_archive(path) as archive:
        index = read_index(archive)
        system = index.transition_system
        check_system(archive, system)
        # In the order in which they are stored, so that compressed files are unpacked once.
        choice_offsets = runs(archive, CHOICES, system.states, system.choices)
        initial = bits(archive, "state-is-initial.bin", system.states)
        offsets = runs(archive, BRANCHES, system.choices, system.branches)
        successor = column(archive, "branch-to-target.bin", system.branches, "<u8")
        probability = read_probabilities(archive, system)
        actions = read_actions(archive, index, system.choices)
        labels = read_labels(archive, index, system.states)
        rewards = read_rewards(archive, index, reward)
        branches = Branches(offsets, successor, probability, rewards["branches"])
        return CheckerModel(
            choice_offsets=choice_offsets,
            **merge_branches(branches)._asdict(),
            choice_reward=rewards["choices"],
            state_reward=rewards["states"],
            initial=initial,
            actions=actions,
            labels=labels,
            state_labels=read_state_labels(archive, index, system.states),
        )


def check_system(archive: Archive, system: System) -> None:
    """Refuses what is no MDP, nor a Markov chain, which is an MDP without a choice.

    Counts that the files do not bear out are refused before memory is taken for them.
    """
    if system.time != "discrete" or system.players > 1 or system.observations:
        raise InvalidModel(
            f"the model has {system.time} time, {system.players} players and "
            f"{system.observations} observations, expected discrete time, 0 or 1 player and no "
            "observations (an MDP or a Markov chain)"
        )
    if not 1 <= system.states <= LARGEST_INDEX:
        raise InvalidModel(f"the model has {system.states} states, expected 1 to {LARGEST_INDEX}")
    width = number_width(PROBABILITIES, system.branch_probability_type)
    if PROBABILITIES not in archive:
        raise InvalidModel(
            f"{PROBABILITIES} is missing, expected the probabilities of the branches"
        )
    expect_size(archive, PROBABILITIES, system.branches, width)
    expect_runs(archive, BRANCHES, system.choices, system.branches)
    expect_runs(archive, CHOICES, system.states, system.choices)


# ---- branches and what they earn --------------------------------------------------------------


class Branches(NamedTuple):
    """The branches of all choices."""

    offsets: IntArray  # [K+1]
    successor: IntArray  # [T]
    probability: FloatArray  # [T]
    reward: FloatArray  # [T]


def read_probabilities(archive: Archive, system: System) -> FloatArray:
    """Reads the probabilities of the branches [T]."""
    kind = system.branch_probability_type
    probability = numbers(archive, PROBABILITIES, system.branches, kind)
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


def read_rewards(archive: Archive, index: Index, wanted: str | None) -> dict[str, FloatArray]:
    """Reads what states, choices and branches earn: all 0 in a model without rewards."""
    rewards: dict[str, FloatArray] = {
        level: np.zeros(getattr(index.transition_system, level))
        for level in ("states", "choices", "branches")
    }
    structures = index.annotations.rewards
    if not structures and wanted is None:
        return rewards
    identifier = choose_reward({name: called(name, r) for name, r in structures.items()}, wanted)
    structure = structures[identifier]
    levels = structure.applies_to
    place = f"annotations/rewards/{identifier}"
    if structure.probability_type is not None or not set(map(str, levels)) <= set(rewards):
        raise InvalidModel(
            f"{place} applies to {levels} and may be random, expected fixed rewards of "
            f"{', '.join(rewards)}"
        )
    for level in levels:
        name = f"{place}/{level}/values.bin"
        rewards[level] = numbers(archive, name, rewards[level].size, structure.type)
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


def called(identifier: str, annotation: Annotation) -> str:
    """Returns what an annotation is called."""
    return identifier if annotation.alias is None else annotation.alias


def read_labels(archive: Archive, index: Index, states: int) -> dict[str, BoolArray]:
    """Reads which states the labels mark; labels of choices, branches and nothing are left out."""
    return {
        called(identifier, label): bits(
            archive, f"annotations/aps/{identifier}/states/values.bin", states
        )
        for identifier, label in index.annotations.aps.items()
        if "states" in label.applies_to
        and f"annotations/aps/{identifier}/states/values.bin" in archive
    }


def read_actions(archive: Archive, index: Index, choices: int) -> Actions:
    """Reads the actions of the choices; a Markov chain has only one."""
    count = index.transition_system.actions
    if index.transition_system.players == 0:
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


def read_state_labels(archive: Archive, index: Index, states: int) -> Labels:
    """Reads what the states are called: labels in our own files, values of variables in others."""
    if not is_ours(index):
        return valuation_labels(archive, index.valuations, states)
    labels = index.file_data.state_labels()
    if labels is None:
        return None
    added = states - len(labels)  # the states `end` and `start`
    if not 0 <= added <= 2:
        raise InvalidModel(
            f"{STATE_LABELS} has {len(labels)} entries for {states} states, expected a string each"
        )
    return (*labels, *[""] * added)


def is_ours(index: Index) -> bool:
    """Returns whether we have written the file."""
    return bool(index.file_data.tool == TOOL)
