"""The model larger than memory: arrays in files, of which a block of states is looked at at a time.

The files are mapped, so that the system reads what is looked at, and the pages of a block are given
back before the next one: what a pass over all transitions holds is bounded by a limit in bytes.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from surestep._arrays import (
    ROUNDING_SLACK,
    AnyArray,
    FloatArray,
    IndexArray,
    IntArray,
    expect_count,
    floats,
    largest_magnitude,
    refuse_where,
    run_lengths,
    run_sums,
)
from surestep._files import read_path, read_whole
from surestep._json import read_json, typed
from surestep._reprs import short_repr
from surestep.errors import InvalidModel, InvalidParameter
from surestep.model.blocks import FORMAT, HEADER, TYPES, BlockPairs, ModelHeader
from surestep.model.mdp import read_discount, read_initial, read_probability
from surestep.model.pairs import Pairs
from surestep.model.transitions import read_successors

# What planning holds of each state all the time: values before and after a sweep, their magnitudes,
# a copy for the answer, and the actions chosen.
STATE_BYTES = 48
# What checking and planning hold of a block while they look at it, pages of the files included.
BLOCK_STATE_BYTES, BLOCK_PAIR_BYTES, BLOCK_TRANSITION_BYTES = 64, 128, 128
LARGEST_BLOCK = 2**28  # bytes: a larger one is no faster
OFFSETS_AT_A_TIME = 2**20
SLACK_OF_MEANS = 1e-9  # a mean of rewards may be larger than the largest of them, by rounding


OF_STATES, OF_TRANSITIONS = ("pair_offsets", "initial"), ("successor", "probability")


class MappedBlock(NamedTuple):
    """Some states in a row, as planning reads them; offsets begin at 0."""

    states: slice
    pairs: slice
    pair_offsets: IntArray  # [s+1]
    action: IndexArray  # [k]
    offsets: IntArray  # [k+1]
    successor: IndexArray  # [t] states of the whole model
    probability: FloatArray  # [t]
    discount: FloatArray  # [k]
    reward: FloatArray  # [k] expected


class MappedArray(NamedTuple):
    """A flat array in a file, and the map of the file."""

    values: AnyArray
    pages: mmap.mmap
    offset: int  # where the values begin in the file

    @classmethod
    def open(cls, path: Path) -> MappedArray:
        """Maps a .npy file; ValueError where it is none or too short."""
        array = np.lib.format.open_memmap(path, mode="r")
        return cls(np.asarray(array), cast(mmap.mmap, array.base), array.offset)

    def give_back(self, first: int, last: int) -> None:
        """Gives the pages of some entries back to the system, where it takes them."""
        begin = self.offset + first * self.values.itemsize
        begin -= begin % mmap.PAGESIZE
        size = self.offset + last * self.values.itemsize - begin
        if hasattr(mmap, "MADV_DONTNEED") and size > 0:
            self.pages.madvise(mmap.MADV_DONTNEED, begin, size)


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """Facts about some blocks, or all of them, that proofs rest on."""

    most_actions: int = 0
    most_successors: int = 0
    least_discount: float = 1.0
    most_discount: float = 0.0
    endless: bool = True  # every pair has successors

    def __or__(self, other: BlockFacts) -> BlockFacts:
        """Returns what is so of both."""
        return BlockFacts(
            max(self.most_actions, other.most_actions),
            max(self.most_successors, other.most_successors),
            min(self.least_discount, other.least_discount),
            max(self.most_discount, other.most_discount),
            self.endless and other.endless,
        )


@dataclass(frozen=True, slots=True, eq=False)
class MappedMDP:
    """A model in a folder of .npy files, for planning within a limit of memory.

    `write_mapped` and `map_mdp` write such folders. `memory` is how many bytes planning may hold of
    this model and of the values of its states, besides what Python and the package take. All
    arrays are checked when it is made, block by block, as those of a FiniteMDP are. The files must
    not be changed afterwards.
    """

    folder: Path
    memory: int
    arrays: dict[str, MappedArray] = field(init=False)
    largest_reward: float = field(init=False)  # max |R|
    starts: tuple[int, ...] = field(init=False)  # the first state of each block, and S
    facts: BlockFacts = field(init=False)

    __repr__ = short_repr("num_states", "num_pairs", "num_transitions", "memory")

    def __post_init__(self) -> None:
        """Opens the files and checks everything once."""
        folder = read_path(self.folder)
        expect_count("memory", self.memory)
        header = read_header(folder)
        set_field = object.__setattr__
        set_field(self, "folder", folder)
        set_field(self, "memory", int(self.memory))
        set_field(self, "arrays", {name: mapped_array(folder, name, header) for name in TYPES})
        set_field(self, "largest_reward", header.largest_reward)
        try:
            check_rising(self.arrays["pair_offsets"], "pair_offsets", header.pairs)
            check_rising(self.arrays["offsets"], "offsets", header.transitions)
            read_initial(BlockPairs(Pairs.full(1, 1), 0, header.states), self.initial)
            set_field(self, "starts", tuple(self.block_starts()))
            facts = BlockFacts()
            for block in self.blocks():
                facts |= self.checked(block)
        except InvalidModel as problem:
            raise InvalidModel(f"{folder}: {problem}") from None
        set_field(self, "facts", facts)

    @property
    def num_states(self) -> int:
        """|S|."""
        return self.arrays["initial"].values.size

    @property
    def num_pairs(self) -> int:
        """K, the number of enabled pairs."""
        return self.arrays["action"].values.size

    @property
    def num_transitions(self) -> int:
        """T, the number of stored transitions."""
        return self.arrays["successor"].values.size

    @property
    def initial(self) -> FloatArray:
        """Returns the distribution of the first state [S]."""
        return self.arrays["initial"].values

    def blocks(self) -> Iterator[MappedBlock]:
        """Returns the model block by block, in order; what was looked at is given back."""
        for first, last in pairwise(self.starts):
            yield self.block(first, last)
            self.give_back(first, last)

    def block(self, first: int, last: int) -> MappedBlock:
        """Returns the states first, …, last − 1."""
        pair_offsets = self.part("pair_offsets", first, last + 1)
        pairs = slice(int(pair_offsets[0]), int(pair_offsets[-1]))
        offsets = self.part("offsets", pairs.start, pairs.stop + 1)
        begin, end = int(offsets[0]), int(offsets[-1])
        return MappedBlock(
            slice(first, last),
            pairs,
            pair_offsets - pairs.start,
            self.part("action", pairs.start, pairs.stop),
            offsets - begin,
            self.part("successor", begin, end),
            self.part("probability", begin, end),
            self.part("discount", pairs.start, pairs.stop),
            self.part("reward", pairs.start, pairs.stop),
        )

    def part(self, name: str, first: int, last: int) -> AnyArray:
        """Returns some entries of an array, without reading them."""
        return self.arrays[name].values[first:last]

    def give_back(self, first: int, last: int) -> None:
        """Gives the pages of some states back to the system, which has them in its files."""
        pairs = self.arrays["pair_offsets"].values[[first, last]]
        transitions = self.arrays["offsets"].values[pairs]
        for name, array in self.arrays.items():
            begin, end = (first, last) if name in OF_STATES else pairs
            if name in OF_TRANSITIONS:
                begin, end = transitions
            array.give_back(int(begin), int(end))

    def cost(self, state: int) -> int:
        """Returns what a block of all states before this one would hold, in bytes."""
        pairs = int(self.arrays["pair_offsets"].values[state])
        transitions = int(self.arrays["offsets"].values[pairs])
        return (
            BLOCK_STATE_BYTES * state
            + BLOCK_PAIR_BYTES * pairs
            + BLOCK_TRANSITION_BYTES * transitions
        )

    def block_starts(self) -> Iterator[int]:
        """Cuts the states into blocks, each as large as the limit allows; refuses a low limit."""
        states = self.num_states
        held = STATE_BYTES * states
        first = 0
        while first < states:
            yield first
            before = self.cost(first)
            size = max(min(self.memory - held, LARGEST_BLOCK), self.cost(first + 1) - before)
            last = bisect_right(range(states + 1), before + size, lo=first, key=self.cost) - 1
            if size > self.memory - held:
                largest = self.largest_state()
                raise InvalidParameter(
                    f"memory is {self.memory} bytes, expected {held + largest} or more: {held} for "
                    f"the values of {states} states, {largest} for the state with the most "
                    "transitions"
                )
            first = last
        yield states

    def largest_state(self) -> int:
        """Returns what the largest block of a single state would hold, in bytes."""
        largest = 0
        for first in range(0, self.num_states, OFFSETS_AT_A_TIME):
            pairs = self.part("pair_offsets", first, first + OFFSETS_AT_A_TIME + 1)
            transitions = self.arrays["offsets"].values[pairs]
            sizes = BLOCK_PAIR_BYTES * pairs + BLOCK_TRANSITION_BYTES * transitions
            largest = max(largest, int(run_lengths(sizes).max()))
        return BLOCK_STATE_BYTES + largest

    def checked(self, block: MappedBlock) -> BlockFacts:
        """Checks a block as a FiniteMDP is checked, and returns what proofs have to know of it."""
        names = BlockPairs.read(
            block.pair_offsets, block.action, block.states.start, self.num_states
        )
        read_successors(names, block.offsets, block.successor, InvalidModel)
        read_probability(names, block.offsets, block.successor, block.probability)
        sums = run_sums(block.probability, block.offsets)
        lengths = run_lengths(block.offsets)
        refuse_where(
            (lengths > 0) & (np.abs(sums - 1.0) > ROUNDING_SLACK),
            lambda k: (
                f"transition probabilities of {names.pair_name(k)} sum to {sums[k]:.14g}, expected "
                "1 within rounding, as write_mapped makes them"
            ),
            "pair",
            InvalidModel,
        )
        discount = read_discount(names, block.discount)
        reward = floats("reward", block.reward, None, InvalidModel, names.pair_name)
        if largest_magnitude(reward) > self.largest_reward * (1 + SLACK_OF_MEANS):
            raise InvalidModel(
                f"a reward is {largest_magnitude(reward)!r}, but {HEADER} says that none is larger "
                f"than {self.largest_reward!r}; write the folder again with write_mapped"
            )
        return BlockFacts(
            int(run_lengths(block.pair_offsets).max()),
            int(lengths.max()),
            float(discount.min()),
            float(discount.max()),
            bool((lengths > 0).all()),
        )


def read_header(folder: Path) -> ModelHeader:
    """Returns what the folder says of its arrays; refuses a folder that is no model."""
    path = folder / HEADER
    if not path.exists():
        raise InvalidModel(
            f"{folder} holds no model: there is no {HEADER} in it; write_mapped and map_mdp write "
            "such folders, whole or not at all"
        )
    try:
        header = typed(read_json(read_whole(path)), ModelHeader)
    except ValueError as problem:
        raise InvalidModel(f"{path} is no header of a model: {problem}") from None
    if header.format != FORMAT:
        raise InvalidModel(f"{path} says format {header.format!r:.60}, expected {FORMAT!r}")
    if (
        min(header.states, header.pairs) < 1
        or header.transitions < 0
        or not 0 <= header.largest_reward < np.inf
    ):
        raise InvalidModel(f"{path} is no header of a model: {header}")
    return header


def mapped_array(folder: Path, name: str, header: ModelHeader) -> MappedArray:
    """Maps the file of one array, and checks its type and length."""
    sizes = {
        "pair_offsets": header.states + 1,
        "offsets": header.pairs + 1,
        "initial": header.states,
        "successor": header.transitions,
        "probability": header.transitions,
    }
    size, path = sizes.get(name, header.pairs), folder / f"{name}.npy"
    again = "write the folder again with write_mapped"
    try:
        array = MappedArray.open(path)
    except FileNotFoundError:
        raise InvalidModel(f"{path} is missing; {again}") from None
    except (OSError, ValueError) as problem:
        raise InvalidModel(f"{path} is cut short or no .npy file ({problem}); {again}") from None
    values = array.values
    if values.dtype != TYPES[name]:
        raise InvalidModel(f"{path} holds {values.dtype}, expected {TYPES[name]}; {again}")
    if values.shape != (size,):
        raise InvalidModel(f"{path} has shape {values.shape}, expected ({size},); {again}")
    return array


def check_rising(array: MappedArray, name: str, last: int) -> None:
    """Refuses offsets that fall, or do not run from 0 to `last`; reads some of them at a time."""
    offsets = array.values
    if offsets[0] != 0 or offsets[-1] != last:
        raise InvalidModel(f"{name} runs from {offsets[0]} to {offsets[-1]}, expected 0 to {last}")
    for first in range(0, offsets.size - 1, OFFSETS_AT_A_TIME):
        part = offsets[first : first + OFFSETS_AT_A_TIME + 1]
        falls = np.flatnonzero(part[1:] < part[:-1])
        if falls.size:
            i = int(falls[0])
            raise InvalidModel(
                f"{name} falls from {part[i]} to {part[i + 1]} at position {first + i + 1}"
            )
        array.give_back(first, first + part.size)
