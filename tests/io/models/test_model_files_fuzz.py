"""Whatever stands in a file, it is a valid model or it is refused: nothing else, and no warning.

NumPy's and Python's warnings are errors here (see pyproject.toml). The search is drawn without
shrinking: small here, large in `make test-all`.
"""

import copy
import json
import random

import numpy as np
import pytest

from support.model_files import BIT, COMPRESSIONS, DOUBLE, umb, write_umb
from support.umb_parts import BRANCHES, CHOICES
from surestep import Policy, SurestepError, evaluate
from surestep.errors import NeverEnds
from surestep.io import read_mdp

OPTIONS = {
    "reward": [None, "reward", "r", "end", "", "\ud800"],
    "initial": [None, "uniform", "end", "start", "goal", ""],
    "discount": [0.0, 0.9, 1.0],
}
COUNTS = ("#states", "#choices", "#branches", "#choice-actions", "#players", "#observations")
LIES = (-1, 0, 1, 2, 3, 4, 5, 63, 64, 65, 2**31 - 1, 2**31, 2**40, 2**64 - 1, 2**64, 10**30)
VALUES = [
    *(None, True, False, *LIES, 0.5, -1.0, float("nan"), float("inf"), [], {}, [1], [[]]),
    *("", "double", "rational", "bool", "states", "reward", "end", "surestep", "\ud800"),
    *(["states"], {"type": "double"}, {"type": "rational"}),
]
PIECES = [
    *(b" ", b"\n", b"\t", b"0", b"1", b"9", b"-", b".", b"/", b"e", b":", b"#", b'"', b"=", b"("),
    *(b"nan", b"inf", b"1e999", b"99999999999", b"4294967296", b"a0", b"null", b"\xff" * 11, b""),
    *(b"init", b"end", b"start", b"deadlock", b"ustar", b"path="),
]
NUMBERS = (np.nan, np.inf, -np.inf, -0.0, -1.0, 5e-324, 1e308)


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


def full_archive(rng):
    """An archive with everything that is read: rewards, labels and actions."""
    levels = {"states": bytes(16), "choices": bytes(24), "branches": bytes(32)}
    rewards = {"r": {"alias": "reward", "applies-to": [*levels], "type": DOUBLE}}
    marks = {name: {"applies-to": ["states"], "type": BIT} for name in ("end", "start")}
    told = {"tool": rng.choice(["surestep", "Storm"]), "parameters": {"state-labels": ["s", "t"]}}
    index = {"annotations": {"rewards": rewards, "aps": marks}, "file-data": told}
    files = {f"annotations/rewards/r/{level}/values.bin": data for level, data in levels.items()}
    files |= {f"annotations/aps/{name}/states/values.bin": bytes([2, *[0] * 7]) for name in marks}
    files["actions/choices/values.bin"] = np.array([0, 1, 0], "<u4").tobytes()
    files["actions/choices/string-mapping.bin"] = np.array([0, 2, 4], "<u8").tobytes()
    files["actions/choices/strings.bin"] = b"gono"
    index, files = umb(CHOICES, BRANCHES, actions=2, more={"index": index, "files": files})
    return json.loads(json.dumps(index)), files


# ---- changes of an index and its files ----------------------------------------------------------


def lying_index(rng, index, files):
    """Counts that the files do not bear out."""
    for name in rng.sample(COUNTS, rng.randint(1, 3)):
        index["transition-system"][name] = rng.choice(LIES)


def entry_paths(value, path=()):
    """The paths of all entries of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, entry in items:
        yield (*path, key)
        if isinstance(entry, dict | list):
            yield from entry_paths(entry, (*path, key))


def other_entries(rng, index, files):
    """Entries of the index that are something else, or not there."""
    for _ in range(rng.randint(1, 3)):
        *path, last = rng.choice([*entry_paths(index)])
        record = index
        for key in path:
            record = record[key]
        if rng.random() < 0.75:
            record[last] = copy.deepcopy(rng.choice(VALUES))
        else:
            del record[last]


def other_files(rng, index, files):
    """Files that are missing, cut off, longer or made of other words."""
    for name in rng.sample(sorted(files), rng.randint(1, 3)):
        data = files.pop(name)
        if rng.random() < 0.7:
            words = np.array([rng.choice([0, 1, 2, 3, 2**63, 2**64 - 1]) for _ in data], "<u8")
            odd = np.array([rng.choice(NUMBERS)], "<f8").tobytes()
            size = rng.choice([len(data), len(data) + 8, max(len(data) - 8, 0), 1])
            other = [data[:size], data + bytes(8), words.tobytes()[:size], odd + data[8:]]
            files[name] = rng.choice([*other, data[:-8] + odd, rng.randbytes(size)])


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


CHANGES = (lying_index, other_entries, other_files, many_labels)


# ---- changes of bytes ---------------------------------------------------------------------------


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


def edited(rng, data):
    """The bytes after a few edits: pieces put in, taken out, moved or doubled."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data) + 1)
        stop = start + rng.randint(0, 8)
        pieces = (rng.choice(PIECES), rng.randbytes(2), data[start:stop] * 2, data[:stop])
        data = data[:start] + rng.choice(pieces) + data[stop:]
    return data


def followed(rng, data):
    """Something behind the end."""
    return data + rng.choice([bytes(700), b"?", data[: rng.randrange(len(data))]])


def any_bytes(rng, data):
    """No archive, but for the first bytes."""
    return rng.choice([b"", b"\x1f\x8b\x08", b"\xfd7zXZ\x00"]) + rng.randbytes(rng.randrange(100))


def as_it_is(rng, data):
    """The bytes as they are."""
    return data


SPOIL = (lying_header, cut_off, edited, followed, any_bytes)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [200, pytest.param(30_000, marks=pytest.mark.slow)])
def test_archives_spoiled_in_every_way(tmp_path, count):
    rng = random.Random(count)
    path, models = tmp_path / "m.umb", 0
    for _ in range(count):
        index, files = full_archive(rng)
        if rng.random() < 0.6:
            rng.choice(CHANGES)(rng, index, files)
        write_umb(path, index, files)
        inside, outside = (rng.choice(SPOIL) if rng.random() < 0.25 else as_it_is for _ in range(2))
        compress = COMPRESSIONS[rng.choice(sorted(COMPRESSIONS))]
        path.write_bytes(outside(rng, compress(inside(rng, path.read_bytes()))))
        options = {name: rng.choice(OPTIONS[name]) for name in OPTIONS if rng.random() < 0.3}
        models += attempt(path, **options) is not None
    assert 0.05 < models / count < 0.8
