"""Forged results: whatever is changed in a folder, it is never confirmed, and never a traceback."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from support.labelled_worlds import COLUMNS, NAMES, world
from support.log_tables import write_table
from surestep._blocks import BlockFolder
from surestep.errors import ResultMismatch, SurestepError
from surestep.pipeline import verify_result

FILES = ("policy.csv", "policy.parquet", "certificate.json", "certificates.json", "report.html")
LOG = world(2, states=3, episodes=30)


def home_of(factory, **terms):
    """A log, its policy, and a result of both."""
    home = factory.mktemp("forged")
    write_table(home / "log.csv", LOG.rows, NAMES)
    write_table(home / "policy.csv", LOG.table, tuple(LOG.table[0]))
    source = surestep.read_log(home / "log.csv", columns=COLUMNS)
    result = surestep.improve(
        source, behavior=home / "policy.csv", discount=0.9, n_wedge=3, **terms
    )
    result.save(home / "result")
    return home


@pytest.fixture(scope="module")
def light(tmp_path_factory):
    return home_of(tmp_path_factory, certificates=["a-priori"], worlds=0)


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    return home_of(tmp_path_factory, certificates=["robust", "posterior", "a-priori"], worlds=5)


# ---- edits ------------------------------------------------------------------------------------

TEXTS = st.sampled_from(
    ["", "0", "-1", "1e999", "nan", "Ω", "\u202e", "posterior", "table", "a" * 99]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([2**70, -1, 0.5, 1e308, 5e-324, -0.0])
    | TEXTS
)
ANYTHING = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(TEXTS, SCALARS, max_size=2)


def paths_of(value, path=()):
    """The way to every place in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_of(each, (*path, key))


def edited_json(draw, value):
    """The value with something else in one place: another thing, nothing, or a bit more or less."""
    *steps, last = draw(st.sampled_from([path for path in paths_of(value) if path]))
    place = value
    for step in steps:
        place = place[step]
    old, kind = place[last], draw(st.sampled_from(["other", "gone", "near", "like"]))
    if kind == "gone":
        del place[last]
    elif kind == "near" and isinstance(old, int | float) and not isinstance(old, bool):
        place[last] = old + draw(st.sampled_from([1, -1, 1e-6, -1e-6, 1e-12])) * (abs(old) or 1)
    elif kind == "like" and isinstance(old, str):
        place[last] = draw(st.sampled_from([f"{old} ", old.upper(), old[:-1], f"{old}0"]))
    else:
        place[last] = draw(ANYTHING)
    return value


def edited_bytes(draw, content):
    """The bytes with a few of them changed, put in, or left out."""
    at = draw(st.integers(0, len(content)))
    length = draw(st.sampled_from([0, 0, 1, 1, 3, 40]))
    new = draw(st.sampled_from([b"", b"0", b"9", b" ", b"\n", b",", b"\xff", b"\0", b"</p>", b"-"]))
    return content[:at] + new + content[at + length :]


def forge(draw, folder):
    """One to three edits, with digests that fit; sometimes by a machine that does not exist."""
    for _ in range(draw(st.integers(1, 3))):
        there = [name for name in (*FILES, "rehearsal.json") if (folder / name).exists()]
        name = draw(st.sampled_from([*there, *["run.json"] * 4]))
        content = (folder / name).read_bytes()
        if name.endswith(".json") and draw(st.booleans()):
            try:
                value = edited_json(draw, json.loads(content))
            except ValueError:  # an earlier edit left no JSON
                continue
            content = json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
        else:
            content = edited_bytes(draw, content)
        (folder / name).write_bytes(content)
    try:
        record = json.loads((folder / "run.json").read_text())
        if draw(st.booleans()):
            record["machine"]["processor"] = "abacus"
        for name in record["outputs"]:
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            record["outputs"][name] = digest
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return
    text = json.dumps(record, indent=2, ensure_ascii=False)
    (folder / "run.json").write_text(f"{text}\n", encoding="utf-8")


def is_refused_or_not_confirmed(home, folder):
    def contents(place):
        return {path.name: path.read_bytes() for path in place.iterdir()}

    try:
        found = verify_result(folder, home / "log.csv", behavior=home / "policy.csv")
    except SurestepError:
        return
    assert not found.confirmed or contents(folder) == contents(home / "result")


@settings(max_examples=25)
@given(data=st.data())
def test_no_edit_is_confirmed(data, light, tmp_path_factory):
    folder = shutil.copytree(light / "result", tmp_path_factory.mktemp("edited") / "out")
    forge(data.draw, folder)
    is_refused_or_not_confirmed(light, folder)


@pytest.mark.slow
@settings(max_examples=1000)
@given(data=st.data())
def test_no_edit_of_a_result_with_a_stress_test_is_confirmed(data, heavy, tmp_path_factory):
    folder = shutil.copytree(heavy / "result", tmp_path_factory.mktemp("edited") / "out")
    forge(data.draw, folder)
    is_refused_or_not_confirmed(heavy, folder)


def test_what_was_not_forged_is_confirmed(light):
    assert verify_result(
        light / "result", light / "log.csv", behavior=light / "policy.csv"
    ).confirmed


def honest_copies(folder):
    """Puts the files where a stress test leaves them on their way, and changes what people open."""
    files = {path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in folder.iterdir()}
    BlockFolder(folder / "stress-test").write("finished", "made by", files)
    for name in ("report.html", "policy.csv"):
        (folder / name).write_bytes((folder / name).read_bytes().replace(b"0", b"1"))


def added(name):
    def change(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (honest_copies, "left the folder stress-test behind"),
        (added("stress-test/report.html"), "left the folder stress-test behind"),
        (
            added("rehearsal.json"),
            r"holds \['rehearsal\.json'\], expected only files of the result",
        ),
        (added("notes/todo.txt"), r"holds \['notes'\], expected only files of the result"),
    ],
)
def test_what_the_result_did_not_write_is_refused(change, message, light, tmp_path):
    folder = shutil.copytree(light / "result", tmp_path / "out")
    change(folder)
    with pytest.raises(ResultMismatch, match=message):
        verify_result(folder, light / "log.csv", behavior=light / "policy.csv")
