"""Reads and writes models as UMB archives (unified Markov binary): tar files of flat arrays.

`index.json` says how many states, choices and branches (transitions) there are, and of what type
their values are. Runs are offsets into the next level, `state-to-choices.bin` and
`choice-to-branches.bin`. A file of runs that is missing means runs of one, a file of values that
is missing means 0. See https://github.com/pmc-tools/umb for the format.
"""

import json
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, field

import surestep._arrays as arrays
from surestep._files import Chunks, read_path, read_whole, write_together
from surestep._json import converted, read_json
from surestep._settings import check_setting
from surestep._version import __version__
from surestep.errors import InvalidModel, InvalidParameter, named_in_errors
from surestep.io.models.checker import (
    RESERVED,
    Actions,
    CheckerModel,
    from_checker,
    merged_branches,
    to_checker,
)
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Labels
from surestep.model.statements import is_unicode

UMB = ".umb"


def read_mdp(
    path: str | os.PathLike[str],
    discount: float,
    *,
    reward: str | None = None,
    initial: str | None = None,
) -> FiniteMDP:
    """Reads a model from a UMB archive (`.umb`), plain or compressed with gzip or xz.

    Parameters
    ----------
    path : str or Path
        The archive.
    discount : float
        The discount of every pair, from 0 to 1; files hold none.
    reward : str, optional
        The reward structure that counts; by default the only one, or the one called "reward".
    initial : str, optional
        Where episodes start, if the file marks several states as initial: "uniform" starts equally
        often in each of them, and a label in the states that carry it.

    Returns
    -------
    FiniteMDP
        The model. An absorbing state without rewards and with the label `end` becomes the end of
        episodes, and a state `start`, as `write_mdp` stores it, a distribution. All other labels
        of states stay.

    Raises
    ------
    FileFailure
        There is no such file, or it cannot be read.
    InvalidModel
        The archive is damaged, or holds another kind of model.

    Examples
    --------
    >>> surestep.io.read_mdp("model.umb", discount=0.9)
    Traceback (most recent call last):
        ...
    surestep.errors.FileFailure: model.umb cannot be read: No such file or directory
    """
    file = umb_path(path)
    number = arrays.read_discount(discount)
    check_setting("reward", reward, str | None)
    check_setting("initial", initial, str | None)
    with named_in_errors(file, InvalidModel):
        return from_checker(read_umb(file, reward), number, initial)


def write_mdp(mdp: FiniteMDP, path: str | os.PathLike[str]) -> None:
    """Writes a model to a UMB archive (`.umb`), whole or not at all.

    Parameters
    ----------
    mdp : FiniteMDP
        The model, with one discount for all pairs, which is not stored.
    path : str or Path
        The file, which is replaced if it exists.

    Raises
    ------
    InvalidModel
        Discounts differ, or a label cannot be written.

    Notes
    -----
    Ends of episodes become one more state, which is absorbing and has the label `end`. A start in
    several states becomes one more state `start`, whose only action leads to them; that is a step,
    so checkers find γ·ρ there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp(), "model.umb")
    >>> mdp = surestep.FiniteMDP.from_dense([[[0.5, 0.5]], [[0, 0]]], [[1], [0]], discount=0.9)
    >>> surestep.io.write_mdp(mdp, file)
    >>> surestep.io.read_mdp(file, discount=0.9) == mdp
    True
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
    if file.suffix != UMB:
        raise InvalidParameter(
            f"{file} has the suffix {file.suffix!r}, expected {UMB} (the PRISM language is read by "
            "from_prism; docs/model.md says how to convert explicit files)"
        )
    return file


# ---- the index: untrusted JSON, read into declared types --------------------------------------


INDEX = "index.json"
VERSION = 1
REWARD = "reward"  # the default among several reward structures
TOOL = "surestep"  # the tool that our archives name; only its parameters are read
# Bytes that the index may have for each byte of a compressed archive, and in any: one of names
# grows by a factor of 10, and every byte of it may become 30 bytes of Python's lists.
INDEX_GROWTH = 16
INDEX_ALLOWANCE = 1 << 20

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class ValueType(Struct, frozen=True):
    """The type of the values in a file of the archive."""

    type: str
    size: Count = 0  # bits; 0: the usual number for the type


class System(Struct, frozen=True, rename="kebab"):
    """The kind of model, and its numbers of players, states, choices, branches and actions."""

    time: str
    branch_probability_type: ValueType
    players: Count = field(name="#players")
    states: Annotated[int, Meta(ge=1, le=arrays.LARGEST_INDEX)] = field(name="#states")
    choices: Count = field(name="#choices")
    branches: Count = field(name="#branches")
    actions: Count = field(name="#choice-actions", default=0)
    observations: Count = field(name="#observations", default=0)


class Annotation(Struct, frozen=True, rename="kebab"):
    """A reward structure, or a label."""

    applies_to: list[Any]
    type: ValueType = ValueType("")
    alias: str | None = None
    probability_type: Any = None


class Annotations(Struct, frozen=True):
    """The reward structures and labels, by their names in the archive."""

    rewards: dict[str, Annotation] = {}
    aps: dict[str, Annotation] = {}


class OurParameters(Struct, frozen=True, rename="kebab"):
    """The names of states in our archives; Storm refuses archives that declare them as strings."""

    state_labels: list[str] | None = None


class Index(Struct, frozen=True, rename="kebab"):
    """The entries of `index.json` that surestep reads."""

    format_version: Annotated[int, Meta(ge=0, le=VERSION)]
    transition_system: System
    annotations: Annotations = Annotations()
    file_data: dict[str, Any] = {}  # the program that wrote the archive, and its own parameters


# ---- reading ----------------------------------------------------------------------------------


Archive = Mapping[str, memoryview]  # the regular files by name
PROBABILITIES = "branch-to-probability.bin"


def read_umb(path: Path, reward: str | None) -> CheckerModel:
    """Reads the model in a UMB archive; `reward` names the reward structure that counts."""
    stored = read_whole(path)
    archive = members_of(unpacked(stored))
    index = read_index(archive, len(stored))
    system = index.transition_system
    check_double(PROBABILITIES, system.branch_probability_type)
    # What is missing is made of declared sizes. So these are first held against files, from the
    # branches, whose file must be there, to the states.
    expect_file(archive, PROBABILITIES)
    probability = column(archive, PROBABILITIES, system.branches, "<f8")
    offsets = runs(archive, "choice-to-branches.bin", system.choices, system.branches)
    choice_offsets = runs(archive, "state-to-choices.bin", system.states, system.choices)
    successor = column(archive, "branch-to-target.bin", system.branches, "<u8")
    rewards = read_reward_structure(archive, index, reward)
    arrays.check_within(
        "the probability", probability, (0, np.inf), InvalidModel, "branch {}".format
    )
    marks = {
        alias_of(identifier, label): f"annotations/aps/{identifier}/states/values.bin"
        for identifier, label in index.annotations.aps.items()
        if "states" in label.applies_to
    }
    branches = {
        "offsets": offsets,
        "successor": successor,
        "probability": probability,
        "reward": rewards["branches"],
    }
    if arrays.repeated_in_run(successor, offsets).any():
        branches = merged_branches(offsets, successor, probability, rewards["branches"])
    return CheckerModel(
        choice_offsets=choice_offsets,
        **branches,
        choice_reward=rewards["choices"],
        state_reward=rewards["states"],
        initial=bits(archive, "state-is-initial.bin", system.states),
        actions=read_actions(archive, index, system.choices),
        labels={
            label: bits(archive, place, system.states)
            for label, place in marks.items()
            if place in archive
        },
        state_labels=read_state_labels(index, system.states),
    )


def read_index(archive: Archive, stored: int) -> Index:
    """Reads the index of an archive of `stored` bytes; refuses other models than ours."""
    data = expect_file(archive, INDEX)
    most = INDEX_GROWTH * stored + INDEX_ALLOWANCE
    if len(data) > most:
        raise InvalidModel(
            f"{INDEX} has {len(data)} bytes, expected {most} at most in an archive of {stored} "
            "bytes"
        )
    try:
        content = read_json(bytes(data))
    except (ValueError, RecursionError) as problem:
        raise InvalidModel(f"{INDEX} is not valid JSON: {problem}") from None
    index: Index = converted(content, Index, INDEX, InvalidModel)
    system = index.transition_system
    if system.time != "discrete" or system.players > 1 or system.observations:
        raise InvalidModel(
            f"the model has {system.time} time, {system.players} players and "
            f"{system.observations} observations, expected discrete time, 0 or 1 player and no "
            "observations (an MDP or a Markov chain)"
        )
    return index


# ---- rewards ----------------------------------------------------------------------------------


def read_reward_structure(
    archive: Archive, index: Index, wanted: str | None
) -> dict[str, arrays.FloatArray]:
    """Reads the rewards of states, choices and branches; all are 0 in a model without rewards.

    The structure that counts is the one `wanted`, the only one, or the one called 'reward'.
    """
    rewards: dict[str, arrays.FloatArray] = {
        level: np.zeros(getattr(index.transition_system, level))
        for level in ("states", "choices", "branches")
    }
    structures = index.annotations.rewards
    names = {alias_of(identifier, given): identifier for identifier, given in structures.items()}
    chosen = [REWARD if wanted is None else wanted]
    if wanted is None and len(names) < 2:
        chosen = [*names]
    elif chosen[0] not in names:
        raise InvalidModel(
            f"reward is {wanted!r}, expected one of the reward structures: "
            f"{', '.join(map(repr, names)) or 'there are none'}"
        )
    for identifier in (names[name] for name in chosen):
        structure = structures[identifier]
        place = f"annotations/rewards/{identifier}"
        levels = structure.applies_to
        if structure.probability_type is not None or not set(map(str, levels)) <= set(rewards):
            raise InvalidModel(
                f"{place} applies to {levels} and may be random, expected fixed rewards of "
                f"{', '.join(rewards)}"
            )
        check_double(place, structure.type)
        for level in levels:
            rewards[level] = column(
                archive, f"{place}/{level}/values.bin", rewards[level].size, "<f8"
            )
    return rewards


# ---- names ------------------------------------------------------------------------------------


def alias_of(identifier: str, annotation: Annotation) -> str:
    """Returns the alias of an annotation; without one, its identifier."""
    return identifier if annotation.alias is None else annotation.alias


def read_actions(archive: Archive, index: Index, choices: int) -> Actions:
    """Reads the actions of the choices; a Markov chain has only one."""
    count = index.transition_system.actions
    if index.transition_system.players == 0 or count == 0:
        return Actions(
            np.zeros(choices, np.int64), 1, None if index.transition_system.players == 0 else [None]
        )
    number = column(archive, "actions/choices/values.bin", choices, "<u4").astype(np.int64)
    arrays.check_within("the action", number, (0, count - 1), InvalidModel, "choice {}".format)
    texts = strings(archive, "actions/choices", count)
    if texts is not None and index.file_data.get("tool") != TOOL:
        # Others write '' for a choice without a name.
        return Actions(number, count, [text or None for text in texts])
    return Actions(number, count, texts)


def read_state_labels(index: Index, states: int) -> Labels:
    """Reads the labels of states from a file that surestep wrote."""
    if index.file_data.get("tool") != TOOL or index.file_data.get("parameters") is None:
        return None
    labels = converted(
        index.file_data["parameters"], OurParameters, f"{INDEX}.file-data.parameters", InvalidModel
    ).state_labels
    if labels is None:
        return None
    added = states - len(labels)  # the states `end` and `start`
    if not 0 <= added <= 2:
        raise InvalidModel(
            f"state-labels has {len(labels)} entries for {states} states, expected a string each"
        )
    return (*labels, *[""] * added)


# ---- the arrays of a UMB archive: numbers, bits, runs and strings ------------------------------
#
# All are in little-endian order.


def check_double(name: str, kind: ValueType) -> None:
    """Refuses numbers of another type than doubles."""
    if kind.type != "double" or kind.size not in (0, 64):
        raise InvalidModel(f"{name}: values are of type {kind.type!r}, expected double, of 64 bits")


def column(archive: Archive, name: str, count: int, dtype: str) -> arrays.AnyArray:
    """Reads `count` values of a machine type; all are 0 without a file."""
    if name not in archive:
        return np.zeros(count, dtype)
    data = archive[name]
    width = np.dtype(dtype).itemsize
    if len(data) != count * width:
        raise InvalidModel(
            f"{name} has {len(data)} bytes, expected {count * width} ({count} × {width})"
        )
    return np.frombuffer(data, dtype)


def bits(archive: Archive, name: str, count: int) -> arrays.BoolArray:
    """Reads `count` bits in words of 64, the lowest first; none is set without a file."""
    words = column(archive, name, -(-count // 64), "<u8")
    return np.unpackbits(words.view(np.uint8), count=count, bitorder="little").astype(np.bool_)


def runs(archive: Archive, name: str, items: int, total: int) -> arrays.IntArray:
    """Reads the offsets of `items` runs over `total` elements; runs of one without a file."""
    if name in archive:
        offsets = column(archive, name, items + 1, "<u8")
        return arrays.read_offsets(name, offsets, items, total, InvalidModel)
    if items != total:
        raise InvalidModel(f"{name} is missing, but {items} runs over {total} elements need it")
    return np.arange(items + 1)


def strings(archive: Archive, folder: str, count: int) -> list[str] | None:
    """Reads `count` strings; None without a file."""
    if f"{folder}/string-mapping.bin" not in archive:
        return None
    data = expect_file(archive, f"{folder}/strings.bin")
    offsets = runs(archive, f"{folder}/string-mapping.bin", count, len(data))
    try:
        return [str(data[first:last], "utf-8") for first, last in pairwise(offsets.tolist())]
    except UnicodeDecodeError:
        raise InvalidModel(f"{folder}/strings.bin is not valid UTF-8") from None


# ---- writing: the arrays of a model in a tar file that is not compressed ----------------------


DOUBLE = {"type": "double", "size": 64}


def umb_chunks(mdp: FiniteMDP) -> Chunks:
    """Returns the bytes of a model's archive. The same model always makes the same bytes."""
    model = to_checker(mdp)
    level = "branches"
    reward = model.reward
    first = reward[model.offsets[:-1]]
    if np.array_equal(np.repeat(first, arrays.run_lengths(model.offsets)), reward):
        level = "choices"  # no choice has two different rewards
        reward = first
    # Names of files use the identifier of each label.
    identifiers = {
        label if label in RESERVED else f"label-{number}": label
        for number, label in enumerate(model.labels)
    }
    files: dict[str, arrays.AnyArray] = {
        "state-to-choices.bin": model.choice_offsets.astype("<u8"),
        "state-is-initial.bin": packed(model.initial),
        "choice-to-branches.bin": model.offsets.astype("<u8"),
        "branch-to-target.bin": model.successor.astype("<u8"),
        "branch-to-probability.bin": model.probability.astype("<f8"),
        "actions/choices/values.bin": model.actions.number.astype("<u4"),
        f"annotations/rewards/{REWARD}/{level}/values.bin": reward.astype("<f8"),
    }
    for identifier, label in identifiers.items():
        files[f"annotations/aps/{identifier}/states/values.bin"] = packed(model.labels[label])
    if mdp.pairs.action_labels is not None:
        texts = [label.encode("utf-8") for label in mdp.pairs.action_labels]
        mapping = arrays.offsets_of(np.array([len(text) for text in texts]))
        files["actions/choices/string-mapping.bin"] = mapping.astype("<u8")
        files["actions/choices/strings.bin"] = np.frombuffer(b"".join(texts), np.uint8)
    members = {n: array.data.cast("B") if array.size else b"" for n, array in files.items()}
    system = {
        "time": "discrete",
        "#players": 1,
        "#states": model.num_states,
        "#initial-states": 1,
        "#choices": model.offsets.size - 1,
        "#choice-actions": model.actions.num_actions,
        "#branches": model.successor.size,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": DOUBLE,
    }
    maker: dict[str, Any] = {"tool": TOOL, "tool-version": __version__}
    if mdp.pairs.state_labels is not None:
        maker["parameters"] = {"state-labels": [*mdp.pairs.state_labels]}
    marks = {
        identifier: {"alias": label, "applies-to": ["states"], "type": {"type": "bool", "size": 1}}
        for identifier, label in identifiers.items()
    }
    rewards = {REWARD: {"alias": REWARD, "applies-to": [level], "type": DOUBLE}}
    index = {
        "format-version": VERSION,
        "format-revision": 0,
        "file-data": maker,
        "transition-system": system,
        "annotations": {"rewards": rewards, **({"aps": marks} if marks else {})},
    }
    return tar_chunks({INDEX: json.dumps(index).encode("ascii"), **members})


def packed(mask: arrays.BoolArray) -> arrays.AnyArray:
    """Returns bits in whole words of 64, the lowest first."""
    return np.packbits(np.pad(mask, (0, -mask.size % 64)), bitorder="little")


# ---- the tar archive, plain or compressed with gzip or xz --------------------------------------
#
# Compressed data may not grow without bounds. Python's `tarfile` takes a damaged header or a
# cut-off file for the end of the archive. So only zeros may follow the last member.


GZIP = b"\x1f\x8b"
XZ = b"\xfd7zXZ\x00"
BLOCK = tarfile.BLOCKSIZE
# Bytes that a compressed byte, and any file, may become. Models grow by a factor of 3 to 50, since
# offsets and successors differ from each other; only a file of little but zeros grows by 1,000.
GROWTH = 200
ALLOWANCE = 1 << 24
XZ_MEMORY = 1 << 28  # bytes; the strongest setting of xz needs a quarter of it
MOST_MEMBERS = 1 << 12  # a model has a few files for each reward structure and label


def unpacked(stored: bytes) -> bytes:
    """Decompresses the bytes of a file if they are compressed; refuses any that grow too much."""
    if not stored.startswith((GZIP, XZ)):
        return stored
    xz = stored.startswith(XZ)
    decoder = (
        lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY) if xz else zlib.decompressobj(wbits=31)
    )
    limit = GROWTH * len(stored) + ALLOWANCE
    try:
        content = decoder.decompress(stored, limit)
    except (lzma.LZMAError, zlib.error) as problem:
        raise InvalidModel(f"the compressed data cannot be unpacked: {problem}") from None
    if len(content) == limit:
        raise InvalidModel(
            f"the file becomes more than {GROWTH} times as large, if unpacked; if that is "
            "meant, unpack it first"
        )
    if not decoder.eof:
        raise InvalidModel("the compressed data is cut off")
    expect_zeros("the compressed data", decoder.unused_data)
    return content


def members_of(content: bytes) -> Archive:
    """Returns the regular files of an archive."""
    members: dict[str, memoryview] = {}
    try:
        with tarfile.open(fileobj=BytesIO(content), mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                plain = (member.isreg() or member.isdir()) and not member.issparse()
                if not plain or member.size < 0 or name in members or len(members) == MOST_MEMBERS:
                    raise InvalidModel(
                        f"{name!r} is no plain file or folder, or stands twice in the archive, or "
                        f"after {MOST_MEMBERS} others; expected plain ones, each once"
                    )
                if member.isreg():
                    members[name] = memoryview(content)[member.offset_data :][: member.size]
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as problem:
        raise InvalidModel(
            f"the file is no archive, or damaged or cut off ({problem}), expected tar, or tar "
            "within gzip or xz"
        ) from None
    if archive.offset >= len(content):  # `tarfile` accepts a file without an end
        raise InvalidModel("the archive is cut off, expected zeros at its end")
    expect_zeros("the archive", content[archive.offset :])
    return members


def expect_zeros(what: str, rest: bytes) -> None:
    """Refuses anything but zeros in the rest of a file."""
    if rest.strip(b"\0"):
        raise InvalidModel(f"something follows {what}, expected nothing but zeros")


def expect_file(archive: Archive, name: str) -> memoryview:
    """Returns the bytes of a file; refuses an archive without it."""
    if name not in archive:
        raise InvalidModel(f"{name} is missing in the archive")
    return archive[name]


def tar_chunks(files: Mapping[str, bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Returns the bytes of an archive with the given files, piece by piece."""
    for name, data in files.items():
        header = tarfile.TarInfo(name)
        header.size = len(data)
        large = header.size >= 8**11  # too large for the size field of USTAR
        yield header.tobuf(tarfile.GNU_FORMAT if large else tarfile.USTAR_FORMAT)
        yield data
        yield bytes(-header.size % BLOCK)
    yield bytes(2 * BLOCK)
