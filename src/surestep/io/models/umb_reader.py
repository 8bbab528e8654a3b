"""UMB archives, read: the unified Markov binary format, a tar file of flat arrays.

`index.json` says how many states, choices and branches (transitions) there are, and of what type
their values are. Runs are offsets into the next level, `state-to-choices.bin` and
`choice-to-branches.bin`. A file of runs that is missing means runs of one, a file of values that
is missing means 0. The format is described at https://github.com/pmc-tools/umb.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import LARGEST_INDEX, AnyArray, BoolArray, FloatArray, IntArray
from surestep.errors import InvalidModel
from surestep.io.models.checker import Actions, CheckerModel
from surestep.io.models.umb_archive import Archive, open_archive
from surestep.io.models.umb_index import (
    REWARD,
    STATE_LABELS,
    TOOL,
    Annotation,
    Index,
    System,
    Valuations,
    ValueType,
    Variable,
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
    arrays.refuse_where(
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
    if not arrays.repeated_in_run(successor, offsets).any():
        return branches
    choice = arrays.run_owners(offsets)
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
        arrays.offsets_of(np.bincount(choice[kept], minlength=offsets.size - 1)),
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
    arrays.refuse_where(
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


# ---- the arrays of a UMB archive: numbers, bits, runs, strings and valuations of states ---------
#
# All are in little-endian order. What is declared is held against the size of a file before any of
# it is read.

WIDTH = {"double": 64, "rational": 128}  # bits, where the index does not say
VARIABLE_WIDTH = {"bool": 1, "int": 64, "uint": 64}  # bits, where the index does not say
DOUBLE = 8  # bytes


def column(archive: Archive, name: str, count: int, dtype: str) -> AnyArray:
    """Reads `count` values of a machine type; all are 0 without a file."""
    if name not in archive:
        return np.zeros(count, dtype)
    return np.frombuffer(values(archive, name, count, np.dtype(dtype).itemsize), dtype)


def values(archive: Archive, name: str, count: int, width: int) -> bytes:
    """Reads the bytes of `count` values of `width` bytes each, if that is what the file holds."""
    expect_size(archive, name, count, width)
    return archive.read(name)


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


def numbers(archive: Archive, name: str, count: int, kind: ValueType) -> FloatArray:
    """Reads `count` real numbers of a declared type; all are 0 without a file."""
    width = number_width(name, kind)
    if width == DOUBLE or name not in archive:
        doubles: FloatArray = column(archive, name, count, "<f8")
        return doubles
    data = values(archive, name, count, width)
    return np.fromiter(
        (rational(data[at : at + width]) for at in range(0, len(data), width)), np.float64, count
    )


def number_width(name: str, kind: ValueType) -> int:
    """Returns how many bytes a number of a declared type has: 8, of a fraction 16 or a multiple."""
    if kind.type not in WIDTH:
        raise InvalidModel(
            f"{name}: values are of type {kind.type!r}, expected {' or '.join(WIDTH)}"
        )
    usual = WIDTH[kind.type]
    width = kind.size or usual
    if width % usual or (kind.type == "double" and width != usual):
        raise InvalidModel(f"{name}: the size of a {kind.type} is {width} bits, which cannot be")
    return width // 8


def rational(data: bytes) -> float:
    """Returns the double nearest to a fraction: a signed numerator, an unsigned denominator."""
    half = len(data) // 2
    numerator = int.from_bytes(data[:half], "little", signed=True)
    denominator = int.from_bytes(data[half:], "little")
    try:
        return numerator / denominator
    except ArithmeticError:  # not a number of any use: refused where it is used
        return float("nan")


# ---- valuations of states: the values of variables, packed bit by bit ---------------------------


def valuation_labels(archive: Archive, valuations: Valuations, states: int) -> Labels:
    """Reads labels such as (x=1,b=true) [S].

    None where there are no valuations, where two states share one, or where there are variables
    other than whole numbers and truth values: the model is one without labels too.
    """
    classes = valuations.states.classes
    variables = classes[0].variables if len(classes) == 1 else []
    widths = [*map(variable_width, variables)]
    if 0 in widths or all(variable.padding for variable in variables):
        return None
    total = sum(widths)
    name = "valuations/states/valuations.bin"
    if total % 8:
        raise InvalidModel(f"{name}: a valuation has {total} bits, expected whole bytes")
    data = values(archive, name, states, total // 8)
    rows = np.frombuffer(data, np.uint8).reshape(states, -1)
    columns: list[Iterable[str]] = []
    at = 0
    for variable, width in zip(variables, widths, strict=True):
        if not variable.padding:
            first, last = at // 8, -(-(at + width) // 8)
            packed = np.unpackbits(rows[:, first:last], axis=1, bitorder="little")
            begin = at - 8 * first
            stored = decode(variable, packed[:, begin : begin + width].astype(np.bool_)).tolist()
            texts = {value: f"{variable.name}={text_of(variable, value)}" for value in {*stored}}
            columns.append(map(texts.__getitem__, stored))
        at += width
    labels = tuple(f"({','.join(row)})" for row in zip(*columns, strict=True))
    return labels if len(set(labels)) == states else None


def variable_width(variable: Variable) -> int:
    """Returns how many bits a variable has; 0 where it is of a type that is not read."""
    if variable.padding:
        return variable.padding
    usual = VARIABLE_WIDTH.get(variable.type.type, 0)
    width = variable.type.size or usual
    plain = variable.name and type(variable.offset) is int and not variable.is_optional
    return width if plain and usual and width <= 64 else 0


def text_of(variable: Variable, stored: int) -> str:
    """Returns a value of a variable as text: 'true', or '-3'."""
    if variable.type.type == "bool":
        return "true" if stored else "false"
    return str(stored + variable.offset)


def decode(variable: Variable, mask: BoolArray) -> IntArray:
    """Returns the values of a variable as they are stored [S], from its bits [S, width]."""
    kind = variable.type.type
    states, width = mask.shape
    word = np.zeros((states, 64), np.bool_)
    word[:, :width] = mask
    if kind == "int":  # the highest bit is the sign
        word[:, width:] = mask[:, -1:]
    signed = "<i8" if kind == "int" else "<u8"
    return np.packbits(word, axis=1, bitorder="little").view(signed).ravel()
