"""The record of a result: what is written comes back, and nothing else; no JSON is too deep."""

import hashlib
import json
import sys
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from operator import getitem

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from support.findings import maintenance_findings
from support.pump_commands import run_surestep
from surestep import Certificate
from surestep._json import typed
from surestep.checks import Check
from surestep.errors import FileFailure, InvalidResult, SurestepError
from surestep.io.counts.file import read_counts
from surestep.rehearsal.result import rehearsal_from_json
from surestep.results.record import Baseline, InputFile, Parameters, Record
from surestep.results.result import certificates_from_json

DIGESTS = {"policy.csv": "abc"}


@pytest.fixture(scope="module")
def record():
    examples = {field.name: example(field.type) for field in fields(Parameters)}
    bounds = {"running": (0.0, 1.0), "ending": None, "returns": None}
    parameters = Parameters(**examples | bounds | {"algorithm": {"algorithm": "spibb"}})
    estimates = {"behavior": 1.0, "policy": 2.0}
    given = {"estimates": estimates, "checks": CHECKS, "baseline": BASELINE}
    return replace(maintenance_findings().record, parameters=parameters, **given)


def example(kind):
    """The first of a few values that is of the type."""
    for value in (0.5, 1, "x", True, {}, [], [0.0, 1.0]):
        with suppress(ValueError):
            typed(value, kind)
            return value
    raise AssertionError(kind)


def changed(record, path, value):
    """The text of the record with another value at a place."""
    content = json.loads(record.to_json(DIGESTS))
    *above, last = path.split(".")
    reduce(getitem, above, content)[last] = value
    return json.dumps(content)


def test_a_record_comes_back(record):
    text = record.to_json(DIGESTS)
    assert text.startswith('{\n  "format": "surestep run",\n  "version": 11,\n  "')
    assert text.endswith("}\n")
    found, digests = Record.from_json(text)
    assert digests == DIGESTS
    assert found.to_json(DIGESTS) == text
    assert (found.checks, found.baseline) == (CHECKS, BASELINE)
    assert all(isinstance(each, Check) for each in found.checks)


FIGURES = {"claim": 0.5, "estimate": -1.25}
CLAIMED = {"code": "claim-above-estimate", "outcome": "failed"}
VARY = {"code": "rewards-vary", "outcome": "failed"}
CHECKS = (
    Check(**CLAIMED, figures=FIGURES),
    Check(**VARY),
    Check.unchecked("drift-reward", "too-small"),
)
BASELINE = Baseline(
    mean=2.0, low=1.5, high=2.5, episodes=100, cut_off=3, least=-1.0, greatest=3.0, model=2.0,
    model_episodes=30,
)  # fmt: skip


DAMAGED = [
    {},
    "rewards-vary",
    {"code": "rewards-vary"},
    VARY | {"words": "All is well."},
    VARY | {"code": "all-is-well"},
    VARY | {"code": ["rewards-vary"]},
    VARY | {"code": None},
    VARY | {"outcome": "fine"},
    VARY | {"why": "too-small"},
    VARY | {"outcome": "unchecked", "why": "no-reason"},
    VARY | {"figures": None},
    VARY | {"figures": {"claim": 1.0}},
    CLAIMED,
    CLAIMED | {"figures": {"claim": 0.5}},
    CLAIMED | {"figures": FIGURES | {"more": 1.0}},
    *(
        CLAIMED | {"figures": FIGURES | {"claim": wrong}}
        for wrong in ("0.5", True, None, float("nan"), float("inf"))
    ),
]
FILE = {"role": "log", "name": "a", "size": 1, "sha256": ""}
OTHER_FORMAT, OTHER_FIELDS = "expected format 'surestep run' of version", "it has other fields than"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", "surestep", OTHER_FORMAT),
        ("version", 12, OTHER_FORMAT),
        ("version", 10, OTHER_FORMAT),
        ("more", 1, OTHER_FIELDS),
        ("command", 3, "command: expected str, got int"),
        ("estimates", {"policy": 1.0}, "estimates: object missing required field behavior"),
        ("estimates.behavior", True, "estimates.behavior: expected float"),
        ("estimates.other", 2.0, OTHER_FIELDS),
        ("parameters", {}, "parameters: object missing required field discount"),
        ("parameters.algorithm", {}, "algorithm"),
        ("parameters.worlds", True, r"parameters\.worlds: expected int, got bool"),
        ("parameters.running", [], "parameters.running: expected array of length 2, got 0"),
        ("parameters.ending", [0.0], "parameters.ending: expected array of length 2, got 1"),
        ("parameters.returns", [0.0, 1.0, 2.0], "parameters.returns: .* of length 2, got 3"),
        ("parameters.returns", [0.0, True], r"returns\[1\]: expected int \| float, got bool"),
        ("inputs", [FILE | {"size": 1.5}], r"inputs\[0\].size: expected int, got float"),
        ("inputs", [FILE | {"folder": "x"}], OTHER_FIELDS),
        ("outputs", {"policy.csv": 3}, "outputs.*: expected str, got int"),
        ("baseline", {"mean": 1.0}, "baseline: object missing required field"),
        ("baseline.mean", "2", "baseline.mean: expected"),
        ("baseline.episodes", 1.5, "baseline.episodes: expected"),
        ("baseline.low", None, "baseline.low: expected"),
        ("baseline.cut_off", True, "baseline.cut_off: expected"),
        ("baseline.more", 1.0, OTHER_FIELDS),
        *(
            ("checks", [check], r"checks\[0\]|other fields|no JSON|malformed|range")
            for check in DAMAGED
        ),
    ],
)
def test_what_nobody_could_have_recorded_is_refused(record, path, value, message):
    with pytest.raises(InvalidResult, match=message):
        Record.from_json(changed(record, path, value))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_to_the_last_bit(record, number):
    estimates = {"behavior": number, "policy": -number}
    found, _ = Record.from_json(replace(record, estimates=estimates).to_json(DIGESTS))
    assert list(map(float.hex, found.estimates.values())) == [number.hex(), (-number).hex()]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", '"\\ud800"'])
def test_what_is_no_number_or_text_is_refused(record, text):
    whole = changed(record, "data", {"x": "here"}).replace('"here"', text)
    with pytest.raises(InvalidResult, match=r"run\.json is not what `surestep improve` writes"):
        Record.from_json(whole)


def test_a_file_is_known_by_its_name_size_and_digest(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"state,action\n")
    digest = hashlib.sha256(b"state,action\n").hexdigest()
    assert InputFile.of("log", path) == InputFile("log", "log.csv", 13, digest)
    with pytest.raises(FileFailure, match="No such file"):
        InputFile.of("log", tmp_path / "none.csv")


READERS = [Certificate.from_json, certificates_from_json, Record.from_json, rehearsal_from_json]
LIMIT = sys.getrecursionlimit()
DEPTHS = (LIMIT - 100, LIMIT, 5 * LIMIT, 100_000)


def nested(depth):
    """Lists and objects, some of which end."""
    yield "[" * depth
    yield "[" * depth + "]" * depth
    yield '{"a":' * depth
    yield '{"kind":' * depth + "1" + "}" * depth
    yield '[{"algorithm": "spibb", "n_wedge": ' + "[" * depth + "]" * depth + "}]"
    yield '{"algorithm": "spibb", "n_wedge": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__qualname__)
@pytest.mark.parametrize("depth", DEPTHS)
def test_texts_of_any_depth_are_refused(reader, depth):
    for text in nested(depth):
        with pytest.raises(SurestepError) as refused:
            reader(text)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("depth", DEPTHS)
def test_manifests_of_counts_are_refused(depth, tmp_path):
    path = tmp_path / "counts.parquet"
    duckdb.execute(
        f"COPY (SELECT 1 AS x) TO '{path}' "
        f"(FORMAT parquet, KV_METADATA {{surestep: '{'[' * depth}'}})"
    )
    with pytest.raises(SurestepError, match="no file of counts"):
        read_counts(path)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("run.json", ("explain", ".", "--state", "a")),
    ],
)
def test_the_command_line_says_so_in_one_line(name, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("[" * 100_000)
    told = run_surestep(*given)
    assert told.exit_code == 2
    assert isinstance(told.exception, SystemExit)
    assert len(told.stderr.splitlines()) == 1
