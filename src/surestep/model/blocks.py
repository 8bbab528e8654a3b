"""Blocks of states: a model that is written piece by piece, as a folder of plain .npy files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from surestep._arrays import (
    LARGEST_INDEX,
    AnyArray,
    FloatArray,
    IndexArray,
    IntArray,
    expect,
    indices,
    largest_magnitude,
)
from surestep._files import failing_to_write, new_folder, read_path
from surestep.errors import InvalidModel
from surestep.model.mdp import (
    FiniteMDP,
    expected_rewards,
    read_discount,
    read_ending_reward,
    read_initial,
    read_probability,
    read_reward,
    spread_initial,
)
from surestep.model.pairs import Pairs, count
from surestep.model.transitions import read_successors

HEADER = "model.json"
FORMAT = "surestep mapped model 1"
# The type of each array, which is in a file of its name.
TYPES: dict[str, np.dtype[Any]] = {
    "pair_offsets": np.dtype("<i8"),
    "action": np.dtype("<i4"),
    "offsets": np.dtype("<i8"),
    "successor": np.dtype("<i4"),
    "probability": np.dtype("<f8"),
    "discount": np.dtype("<f8"),
    "reward": np.dtype("<f8"),
    "initial": np.dtype("<f8"),
}
BLOCK_STATES = 10_000  # of a model in memory, written at a time


class StateBlock(NamedTuple):
    """Some states in a row, with their pairs and transitions; the fields are those of a FiniteMDP.

    Offsets begin at 0 in each block; successors are states of the whole model.
    """

    pair_offsets: IntArray  # [s+1]
    action: IndexArray  # [k]
    offsets: IntArray  # [k+1]
    successor: IndexArray  # [t]
    probability: FloatArray  # [t]
    reward: FloatArray  # [t]
    discount: FloatArray  # [k]
    ending_reward: FloatArray | None = None  # [k]; None means 0 everywhere


@dataclass(frozen=True, slots=True)
class ModelHeader:
    """The content of the file that lies beside the arrays: their sizes."""

    format: str
    states: int
    pairs: int
    transitions: int
    largest_reward: float  # max |R| of all transitions and ends: `reward.npy` has only their means


@dataclass(frozen=True, slots=True)
class BlockPairs:
    """The pairs of a block, which go by their names in the whole model."""

    pairs: Pairs  # as if the block were all
    first: int  # the state that is the block's first
    num_states: int  # of the whole model

    @classmethod
    def read(
        cls, pair_offsets: IntArray, action: object, first: int, num_states: int
    ) -> BlockPairs:
        """Checks the actions of a block."""
        try:
            actions = indices("action", action, LARGEST_INDEX, InvalidModel)
            pairs = Pairs(pair_offsets, actions, int(actions.max(initial=0)) + 1)
        except InvalidModel as problem:
            raise InvalidModel(
                f"the block whose first state, here state 0, is state {first} of the model: "
                f"{problem}"
            ) from None
        if first + pairs.num_states > num_states:
            raise InvalidModel(
                f"blocks have {first + pairs.num_states} states or more, expected {num_states}"
            )
        return cls(pairs, first, num_states)

    @property
    def num_pairs(self) -> int:
        """Returns the number of pairs of the block."""
        return self.pairs.num_pairs

    @property
    def last(self) -> int:
        """Returns the state after the block's last."""
        return self.first + self.pairs.num_states

    def state_name(self, state: int) -> str:
        """'state 3', of the whole model."""
        return f"state {state}"

    def pair_name(self, pair: int) -> str:
        """'state 3, action 1', for a pair of the block."""
        state = int(np.searchsorted(self.pairs.offsets, pair, side="right")) - 1
        return f"state {self.first + state}, action {self.pairs.action[pair]}"


def write_mapped(
    folder: str | os.PathLike[str],
    blocks: Iterable[StateBlock],
    *,
    num_states: int,
    initial: object = 0,
) -> None:
    """Writes a model to a new folder, block by block, whole or not at all; see `MappedMDP`.

    Blocks come in the order of their states and are checked as a FiniteMDP is; no more than one of
    them is in memory. `initial` is a state, or a distribution over all states.
    """
    path, states = read_path(folder), count("num_states", num_states)
    with new_folder(path) as fresh, ExitStack() as files:
        arrays = {}
        for name in TYPES:
            arrays[name] = ArrayFile(fresh, name)
            files.callback(arrays[name].file.close)
        largest_reward = written_blocks(arrays, blocks, states)
        everywhere = BlockPairs(Pairs.full(1, 1), 0, states)
        arrays["initial"].append(read_initial(everywhere, spread_initial(everywhere, initial)))
        for array in arrays.values():
            array.finish()
        header = ModelHeader(
            FORMAT, states, arrays["action"].size, arrays["successor"].size, largest_reward
        )
        with failing_to_write(path):
            (fresh / HEADER).write_text(f"{json.dumps(asdict(header), indent=2)}\n", "utf-8")


def written_blocks(
    arrays: dict[str, ArrayFile], blocks: Iterable[StateBlock], num_states: int
) -> float:
    """Appends all blocks; max |R|."""
    reached, largest_reward = 0, 0.0
    for name in ("pair_offsets", "offsets"):
        arrays[name].append(np.zeros(1, np.int64))
    for block in blocks:
        expect("a block", block, StateBlock)
        names = BlockPairs.read(block.pair_offsets, block.action, reached, num_states)
        offsets, successor = read_successors(names, block.offsets, block.successor, InvalidModel)
        probability = read_probability(names, offsets, successor, block.probability)
        reward = read_reward(names, offsets, successor, block.reward)
        ending = read_ending_reward(names, offsets, block.ending_reward)
        expected = expected_rewards(names, offsets, probability, reward, ending)
        arrays["pair_offsets"].append(names.pairs.offsets[1:] + arrays["action"].size)
        arrays["offsets"].append(offsets[1:] + arrays["successor"].size)
        arrays["action"].append(names.pairs.action)
        arrays["successor"].append(successor)
        arrays["probability"].append(probability)
        arrays["discount"].append(read_discount(names, block.discount))
        arrays["reward"].append(expected)
        largest_reward = max(largest_reward, *(largest_magnitude(r) for r in (reward, ending)))
        reached = names.last
    if reached < num_states:
        raise InvalidModel(f"blocks have {reached} states in all, expected {num_states}")
    return largest_reward


def map_mdp(folder: str | os.PathLike[str], mdp: FiniteMDP) -> None:
    """Writes a model that is in memory to a new folder; labels stay behind."""
    expect("mdp", mdp, FiniteMDP)
    write_mapped(folder, blocks_of(mdp), num_states=mdp.num_states, initial=mdp.initial)


def blocks_of(mdp: FiniteMDP) -> Iterator[StateBlock]:
    """Returns a model block by block, without copies of its largest arrays."""
    for first in range(0, mdp.num_states, BLOCK_STATES):
        pair_offsets = mdp.pairs.offsets[first : first + BLOCK_STATES + 1]
        pairs = slice(pair_offsets[0], pair_offsets[-1])
        offsets = mdp.offsets[pairs.start : pairs.stop + 1]
        transitions = slice(offsets[0], offsets[-1])
        yield StateBlock(
            pair_offsets - pairs.start,
            mdp.pairs.action[pairs],
            offsets - transitions.start,
            mdp.successor[transitions],
            mdp.probability[transitions],
            mdp.reward[transitions],
            mdp.discount[pairs],
            mdp.ending_reward[pairs],
        )


class ArrayFile:
    """A flat .npy file that grows until it is finished."""

    def __init__(self, folder: Path, name: str) -> None:
        """Begins the file; its header has room for any length."""
        self.path, self.type, self.size = folder / f"{name}.npy", TYPES[name], 0
        with failing_to_write(self.path):
            self.file: IO[bytes] = self.path.open("xb")
        self.finish()

    def append(self, values: AnyArray) -> None:
        """Writes some more entries."""
        with failing_to_write(self.path):
            self.file.write(np.ascontiguousarray(values, self.type).data)
        self.size += values.size

    def finish(self) -> None:
        """Writes the length so far into the header, and everything to the disk's cache."""
        facts = {"descr": self.type.str, "fortran_order": False, "shape": (self.size,)}
        with failing_to_write(self.path):
            self.file.seek(0)
            np.lib.format.write_array_header_1_0(self.file, facts)
            self.file.flush()
