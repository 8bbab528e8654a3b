"""UMB archives, read: the unified Markov binary format, a tar file of flat arrays.

`index.json` says how many states, choices and branches (transitions) there are, and of what type
their values are. Runs are offsets into the next level, `state-to-choices.bin` and
`choice-to-branches.bin`. A file of runs that is missing means runs of one, a file of values that
is missing means 0. The format is described at https://github.com/pmc-tools/umb.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import (
    LARGEST_INDEX,
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
)
from surestep._json import converted
from surestep.errors import InvalidModel
from surestep.io.models.checker import Actions, CheckerModel
from surestep.io.models.umb_archive import Archive, open_archive
from surestep.io.models.umb_index import (
    INDEX,
    REWARD,
    TOOL,
    Annotation,
    Index,
    OurParameters,
    System,
    ValueType,
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
        offsets = runs(archive, BRANCHES, system.choices, system.branches)
        successor = column(archive, "branch-to-target.bin", system.branches, "<u8")
        probability = column(archive, PROBABILITIES, system.branches, "<f8")
        rewards = read_rewards(archive, index, reward)
        arrays.check_within(
            "the probability", probability, 0, np.inf, InvalidModel, "branch {}".format
        )
        return CheckerModel(
            choice_offsets=runs(archive, CHOICES, system.states, system.choices),
            **merged_branches(offsets, successor, probability, rewards["branches"]),
            choice_reward=rewards["choices"],
            state_reward=rewards["states"],
            initial=bits(archive, "state-is-initial.bin", system.states),
            actions=read_actions(archive, index, system.choices),
            labels=read_labels(archive, index, system.states),
            state_labels=read_state_labels(index, system.states),
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
    check_double(PROBABILITIES, system.branch_probability_type)
    if PROBABILITIES not in archive:
        raise InvalidModel(
            f"{PROBABILITIES} is missing, expected the probabilities of the branches"
        )
    expect_size(archive, PROBABILITIES, system.branches, 8)
    expect_runs(archive, BRANCHES, system.choices, system.branches)
    expect_runs(archive, CHOICES, system.states, system.choices)


# ---- branches and what they earn --------------------------------------------------------------


def merged_branches(
    offsets: IntArray, successor: IntArray, probability: FloatArray, reward: FloatArray
) -> dict[str, AnyArray]:
    """Puts the branches of a choice together that lead to the same state: there may be several.

    Their probabilities add up, and their rewards average.
    """
    if arrays.repeated_in_run(successor, offsets).any():
        choice = arrays.run_owners(offsets)
        order = np.lexsort((successor, choice))
        first = np.flatnonzero(arrays.first_of_equal(choice[order], successor[order]))
        kept, chances = order[first], probability[order]
        total = np.add.reduceat(chances, first)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            earned = np.add.reduceat(chances * reward[order], first)
            reward = np.where(total > 0, earned / total, 0.0)
        offsets = arrays.offsets_of(np.bincount(choice[kept], minlength=offsets.size - 1))
        successor, probability = successor[kept], total
    return {
        "offsets": offsets,
        "successor": successor,
        "probability": probability,
        "reward": reward,
    }


def read_rewards(archive: Archive, index: Index, wanted: str | None) -> dict[str, FloatArray]:
    """Reads what states, choices and branches earn: all 0 in a model without rewards.

    The structure that counts is the one that is wanted, the only one, or the one called 'reward'.
    """
    rewards: dict[str, FloatArray] = {
        level: np.zeros(getattr(index.transition_system, level))
        for level in ("states", "choices", "branches")
    }
    structures = index.annotations.rewards
    names = {called(identifier, given): identifier for identifier, given in structures.items()}
    if wanted is None and len(names) < 2:
        chosen = [*names.values()]
    else:
        name = REWARD if wanted is None else wanted
        chosen = [names[name]] if name in names else []
        if not chosen:
            raise InvalidModel(
                f"reward is {wanted!r}, expected one of the reward structures: "
                f"{', '.join(map(repr, names)) or 'there are none'}"
            )
    for identifier in chosen:
        structure, place = structures[identifier], f"annotations/rewards/{identifier}"
        levels = structure.applies_to
        if structure.probability_type is not None or not set(map(str, levels)) <= set(rewards):
            raise InvalidModel(
                f"{place} applies to {levels} and may be random, expected fixed rewards of "
                f"{', '.join(rewards)}"
            )
        check_double(place, structure.type)
        for level in levels:
            name = f"{place}/{level}/values.bin"
            rewards[level] = column(archive, name, rewards[level].size, "<f8")
    return rewards


# ---- names ------------------------------------------------------------------------------------


def called(identifier: str, annotation: Annotation) -> str:
    """Returns what an annotation is called."""
    return identifier if annotation.alias is None else annotation.alias


def read_labels(archive: Archive, index: Index, states: int) -> dict[str, BoolArray]:
    """Reads which states the labels mark; labels of choices, branches and nothing are left out."""
    places = {
        called(identifier, label): f"annotations/aps/{identifier}/states/values.bin"
        for identifier, label in index.annotations.aps.items()
        if "states" in label.applies_to
    }
    return {
        label: bits(archive, place, states) for label, place in places.items() if place in archive
    }


def read_actions(archive: Archive, index: Index, choices: int) -> Actions:
    """Reads the actions of the choices; a Markov chain has only one."""
    count = index.transition_system.actions
    if index.transition_system.players == 0 or count == 0:
        names = None if index.transition_system.players == 0 else [None]
        return Actions(np.zeros(choices, np.int64), 1, names)
    number = column(archive, "actions/choices/values.bin", choices, "<u4").astype(np.int64)
    arrays.check_within("the action", number, 0, count - 1, InvalidModel, "choice {}".format)
    texts = strings(archive, "actions/choices", count)
    if texts is not None and not is_ours(index):  # others write '' for a choice without a name
        return Actions(number, count, [text or None for text in texts])
    return Actions(number, count, texts)


def read_state_labels(index: Index, states: int) -> Labels:
    """Reads what the states are called in a file of our own."""
    if not is_ours(index):
        return None
    place, given = f"{INDEX}.file-data.parameters", index.file_data.parameters
    labels = converted({} if given is None else given, OurParameters, place, InvalidModel)
    if labels.state_labels is None:
        return None
    added = states - len(labels.state_labels)  # the states `end` and `start`
    if not 0 <= added <= 2:
        raise InvalidModel(
            f"state-labels has {len(labels.state_labels)} entries for {states} states, expected a "
            "string each"
        )
    return (*labels.state_labels, *[""] * added)


def is_ours(index: Index) -> bool:
    """Returns whether we have written the file."""
    return bool(index.file_data.tool == TOOL)


# ---- the arrays of a UMB archive: numbers, bits, runs and strings ------------------------------
#
# All are in little-endian order. What is declared is held against the size of a file before any of
# it is read.


def check_double(name: str, kind: ValueType) -> None:
    """Refuses numbers of another type than doubles."""
    if kind.type != "double" or kind.size not in (0, 64):
        raise InvalidModel(f"{name}: values are of type {kind.type!r}, expected double, of 64 bits")


def column(archive: Archive, name: str, count: int, dtype: str) -> AnyArray:
    """Reads `count` values of a machine type; all are 0 without a file."""
    if name not in archive:
        return np.zeros(count, dtype)
    expect_size(archive, name, count, np.dtype(dtype).itemsize)
    return np.frombuffer(archive.read(name), dtype)


def expect_size(archive: Archive, name: str, count: int, width: int) -> None:
    """Refuses a file that does not hold `count` values, before anything of it is read."""
    if archive.size(name) != count * width:
        raise InvalidModel(
            f"{name} has {archive.size(name)} bytes, expected {count * width} ({count} × {width})"
        )


def bits(archive: Archive, name: str, count: int) -> BoolArray:
    """Reads `count` bits in words of 64, the lowest first; none is set without a file."""
    words = column(archive, name, -(-count // 64), "<u8")
    return np.unpackbits(words.view(np.uint8), count=count, bitorder="little").astype(np.bool_)


def runs(archive: Archive, name: str, items: int, total: int) -> IntArray:
    """Reads the offsets of `items` runs over `total` elements; runs of one without a file."""
    expect_runs(archive, name, items, total)
    if name not in archive:
        return np.arange(items + 1)
    offsets = column(archive, name, items + 1, "<u8")
    return arrays.read_offsets(name, offsets, items, total, InvalidModel)


def expect_runs(archive: Archive, name: str, items: int, total: int) -> None:
    """Refuses a file that does not hold the offsets of `items` runs."""
    if name in archive:
        expect_size(archive, name, items + 1, 8)
    elif items != total:
        raise InvalidModel(f"{name} is missing, but {items} runs over {total} elements need it")


def strings(archive: Archive, folder: str, count: int) -> list[str] | None:
    """Reads `count` strings; None without a file."""
    if f"{folder}/string-mapping.bin" not in archive:
        return None
    size = archive.size(f"{folder}/strings.bin")
    offsets = runs(archive, f"{folder}/string-mapping.bin", count, size)
    data = archive.read(f"{folder}/strings.bin")
    try:
        return [data[first:last].decode("utf-8") for first, last in pairwise(offsets.tolist())]
    except UnicodeDecodeError:
        raise InvalidModel(f"{folder}/strings.bin is not valid UTF-8") from None
