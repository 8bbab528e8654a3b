"""Whatever stands in a file, it is a valid model or it is refused: nothing else, and no warning.

NumPy's and Python's warnings are errors here (see pyproject.toml).
"""

import copy
import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_files import COMPRESSIONS, storable_mdps, umb, write_umb
from surestep import Policy, SurestepError, evaluate
from surestep.errors import NeverEnds
from surestep.io import read_mdp, write_mdp

BYTES = st.one_of(
    st.sampled_from(
        [b" ", b"\n", b"\t", b"0", b"1", b"9", b"-", b".", b"/", b"e", b":", b"#", b'"', b"=", b"("]
    ),
    st.sampled_from([b"nan", b"inf", b"1e999", b"99999999999", b"4294967296", b"a0", b"null"]),
    st.sampled_from([b"init", b"end", b"start", b"deadlock", b"ustar", b"path=", b"\xff" * 11]),
    st.binary(min_size=1, max_size=3),
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([2**31, 2**32, 2**63, 2**64, 10**30, 0.5, -1.0, float("nan"), float("inf")]),
    st.sampled_from(
        ["", "double", "rational", "bool", "states", "reward", "end", "surestep", "\ud800"]
    ),
    st.sampled_from([[], {}, [1], ["states"], [[]], {"type": "double"}, {"type": "rational"}]),
)


def attempt(path, discount=0.9, **options):
    """Reads a file and checks what comes out, or sees it refused."""
    try:
        mdp = read_mdp(path, discount, **options)
    except SurestepError:
        return None
    assert mdp.num_states >= 1
    assert (np.diff(mdp.pairs.offsets) >= 1).all()
    if np.abs(mdp.expected_reward).max() < 1e300:
        try:
            assert np.isfinite(evaluate(mdp, Policy.uniform(mdp))).all()
        except NeverEnds:
            assert discount == 1
    return mdp


@st.composite
def edited(draw, data):
    """The bytes after a few edits: pieces put in, taken out, moved or doubled."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 8)))
        middle = draw(
            st.one_of(BYTES, st.just(b""), st.just(data[start:stop] * 2), st.just(data[:stop]))
        )
        data = data[:start] + middle + data[stop:]
    return data


@given(data=st.binary(max_size=100), start=st.sampled_from([b"", b"\x1f\x8b\x08", b"\xfd7zXZ\x00"]))
def test_archives_of_any_bytes(folder, data, start):
    (folder / "any.umb").write_bytes(start + data)
    attempt(folder / "any.umb")


@given(data=st.data(), mdp=storable_mdps(max_states=3, max_actions=2))
def test_archives_with_a_few_changes(folder, data, mdp):
    path = folder / "m.umb"
    write_mdp(mdp, path)
    compress = COMPRESSIONS[data.draw(st.sampled_from(sorted(COMPRESSIONS)))]
    inside = data.draw(st.booleans())
    old = path.read_bytes()
    new = compress(data.draw(edited(old))) if inside else data.draw(edited(compress(old)))
    path.unlink()
    path.write_bytes(new)
    attempt(path)


def entry_paths(value, path=()):
    """The paths of all entries of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in items:
        yield (*path, key)
        if isinstance(entry, dict | list):
            yield from entry_paths(entry, (*path, key))


def full_archive(seed):
    """An archive with everything that is read: rewards, labels and actions."""
    rng = random.Random(seed)
    kind = {"type": "double"}
    index = {
        "annotations": {
            "rewards": {
                "r": {
                    "alias": "reward",
                    "applies-to": ["states", "choices", "branches"],
                    "type": kind,
                }
            },
            "aps": {
                name: {"applies-to": ["states"], "type": {"type": "bool"}}
                for name in ("end", "start")
            },
        },
        "file-data": {
            "tool": rng.choice(["surestep", "Storm"]),
            "parameters": {"state-labels": ["s", "t"]},
        },
    }
    folder = "annotations/rewards/r"
    files = {
        f"{folder}/states/values.bin": bytes(16),
        f"{folder}/choices/values.bin": bytes(24),
        f"{folder}/branches/values.bin": bytes(32),
        "annotations/aps/end/states/values.bin": bytes([2]) + bytes(7),
        "annotations/aps/start/states/values.bin": bytes([2]) + bytes(7),
        "actions/choices/values.bin": np.array([0, 1, 0], "<u4").tobytes(),
        "actions/choices/string-mapping.bin": np.array([0, 2, 4], "<u8").tobytes(),
        "actions/choices/strings.bin": b"gono",
    }
    branches = [[(0, 0.25), (1, 0.75)], [(1, 1.0)], [(1, 1.0)]]
    return umb([2, 1], branches, actions=2, more={"index": index, "files": files})


def test_the_archive_to_be_spoiled_is_good(folder):
    for seed in range(4):
        assert attempt(write_umb(folder / "good.umb", *full_archive(seed))).num_states == 2


@given(data=st.data())
def test_archives_with_another_index(folder, data):
    index, files = full_archive(data.draw(st.integers(0, 3)))
    index = json.loads(json.dumps(index))
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(list(entry_paths(index))))
        record = index
        for key in path:
            record = record[key]
        if data.draw(st.integers(0, 3)):
            record[last] = copy.deepcopy(data.draw(VALUES))
        else:
            del record[last]
    (folder / "index.umb").unlink(missing_ok=True)
    attempt(write_umb(folder / "index.umb", index, files))


@given(data=st.data())
def test_archives_with_other_arrays(folder, data):
    index, files = full_archive(data.draw(st.integers(0, 3)))
    for name in data.draw(st.lists(st.sampled_from(sorted(files)), min_size=1, max_size=3)):
        if name not in files:
            continue
        if data.draw(st.integers(0, 4)) == 0:
            del files[name]
            continue
        size = len(files[name]) + data.draw(st.sampled_from([0, 0, 0, 8, -8, 1]))
        edge = np.array(
            [data.draw(st.sampled_from([0, 1, 2, 5, 2**63, 2**64 - 1]))], "<u8"
        ).tobytes()
        odd = np.array([data.draw(st.floats())], "<f8").tobytes()
        contents = st.one_of(
            st.binary(min_size=max(size, 0), max_size=max(size, 0)),
            st.just((edge * 9)[: max(size, 0)]),
            st.just(odd + files[name][8:]),
            st.just(files[name][:-8] + edge),
        )
        files[name] = data.draw(contents)
    (folder / "arrays.umb").unlink(missing_ok=True)
    attempt(write_umb(folder / "arrays.umb", index, files))


# ---- many more, drawn without a search: small here, large in `make test-all` --------------------

OPTIONS = {
    "reward": [None, "reward", "r", "end", "", "\ud800"],
    "initial": [None, "uniform", "end", "start", "goal", ""],
    "discount": [0.0, 0.9, 1.0],
}
COUNTS = ("#states", "#choices", "#branches", "#choice-actions", "#players", "#observations")
LIES = (-1, 0, 1, 2, 3, 4, 5, 63, 64, 65, 2**31 - 1, 2**31, 2**40, 2**64 - 1, 2**64, 10**30)


def lying_index(rng, index, files):
    """Counts that the files do not bear out."""
    for name in rng.sample(COUNTS, rng.randint(1, 3)):
        index["transition-system"][name] = rng.choice(LIES)


def other_files(rng, index, files):
    """Files that are missing, cut off, longer or made of other words."""
    for name in rng.sample(sorted(files), rng.randint(1, 3)):
        data = files.pop(name)
        if rng.random() < 0.7:
            words = np.array([rng.choice([0, 1, 2, 3, 2**63, 2**64 - 1]) for _ in data], "<u8")
            size = rng.choice([len(data), len(data) + 8, max(len(data) - 8, 0), 1])
            files[name] = rng.choice([data[:size], data + bytes(8), words.tobytes()[:size]])


def many_labels(rng, index, files):
    """Labels and reward structures by the dozen, some without files, some under one name."""
    annotations = index["annotations"]
    for number in range(rng.randint(1, 30)):
        alias = rng.choice(["goal", "init", "deadlock", f"label {number}", ""])
        described = {"alias": alias, "applies-to": [rng.choice(["states", "choices", "x"])]}
        group = rng.choice(["aps", "rewards"])
        annotations[group][f"n{number}"] = described | {"type": {"type": "double"}}
        if rng.random() < 0.7:
            files[f"annotations/{group}/n{number}/states/values.bin"] = bytes([2]) + bytes(15)


def nothing(rng, index, files):
    """The archive as it is."""


def lying_header(rng, data):
    """A header with another size, perhaps another type, and the checksum that belongs to it."""
    at = 512 * rng.randrange(max(len(data) // 512, 1))
    block = bytearray(data[at : at + 512].ljust(512, b"\0"))
    block[124:136] = b"%011o\0" % rng.choice([0, 1, 511, 513, len(data), 8**11 - 1])
    if rng.random() < 0.5:
        block[156] = rng.choice(b"0125LSxg")
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    return data[:at] + bytes(block) + data[at + 512 :]


def cut_off(rng, data):
    """The first part of the bytes."""
    return data[: rng.randrange(len(data) + 1)]


def other_bytes(rng, data):
    """Single bytes changed."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def followed(rng, data):
    """Something behind the end."""
    return data + rng.choice([bytes(700), b"?", data[: rng.randrange(len(data))]])


def as_it_is(rng, data):
    """The bytes as they are."""
    return data


@pytest.mark.parametrize("count", [400, pytest.param(30_000, marks=pytest.mark.slow)])
def test_archives_spoiled_in_every_way(tmp_path, count):
    rng = random.Random(count)
    path, models = tmp_path / "m.umb", 0
    for _ in range(count):
        index, files = full_archive(rng.randrange(4))
        index = json.loads(json.dumps(index))
        rng.choice([nothing, nothing, lying_index, other_files, many_labels])(rng, index, files)
        write_umb(path, index, files)
        spoil = [as_it_is, as_it_is, lying_header, cut_off, other_bytes, followed]
        inside, outside = (rng.choice(spoil) if rng.random() < 0.4 else as_it_is for _ in range(2))
        compress = COMPRESSIONS[rng.choice(sorted(COMPRESSIONS))]
        path.write_bytes(outside(rng, compress(inside(rng, path.read_bytes()))))
        options = {name: rng.choice(OPTIONS[name]) for name in OPTIONS if rng.random() < 0.3}
        models += attempt(path, **options) is not None
    assert 0.05 < models / count < 0.8
