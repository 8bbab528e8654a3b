"""The record of a result: what is written comes back, and nothing else is read."""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import fields

from support.findings import maintenance_findings
from surestep._json import typed
from surestep.checks import Check
from surestep.errors import FileFailure, InvalidResult
from surestep.results.record import Baseline, InputFile, Parameters, Record

DIGESTS = {"policy.csv": "abc"}


@pytest.fixture(scope="module")
def record():
    examples = {field.name: example(field.type) for field in fields(Parameters)}
    bounds = {"running": (0.0, 1.0), "ending": None, "returns": None}
    parameters = Parameters(**examples | bounds | {"algorithm": {"algorithm": "spibb"}})
    estimates = {"behavior": 1.0, "policy": 2.0}
    return replace(maintenance_findings().record, parameters=parameters, estimates=estimates)


def example(kind):
    """The first of a few values that is of the type."""
    for value in (0.5, 1, "x", True, {}, [], [0.0, 1.0]):
        with suppress(ValueError):
            typed(value, kind)
            return value
    raise AssertionError(kind)


def changed(record, **changes):
    """The text of the record with other values at its top."""
    return json.dumps(json.loads(record.to_json(DIGESTS)) | changes)


def test_a_record_comes_back(record):
    text = record.to_json(DIGESTS)
    assert text.startswith('{\n  "format": "surestep run",\n  "version": 11,\n  "')
    assert text.endswith("}\n")
    found, digests = Record.from_json(text)
    assert digests == DIGESTS
    assert found.to_json(DIGESTS) == text


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


def test_checks_and_what_episodes_earned_come_back(record):
    full = replace(record, checks=CHECKS, baseline=BASELINE)
    found, _ = Record.from_json(full.to_json(DIGESTS))
    assert found.checks == CHECKS
    assert found.baseline == BASELINE
    assert all(isinstance(each, Check) for each in found.checks)
    assert Record.from_json(record.to_json(DIGESTS))[0].checks == ()


@pytest.mark.parametrize(
    "check",
    [
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
        CLAIMED | {"figures": FIGURES | {"claim": "0.5"}},
        CLAIMED | {"figures": FIGURES | {"claim": True}},
        CLAIMED | {"figures": FIGURES | {"claim": None}},
        CLAIMED | {"figures": FIGURES | {"claim": float("nan")}},
        CLAIMED | {"figures": FIGURES | {"claim": float("inf")}},
    ],
)
def test_damaged_checks_are_refused(record, check):
    with pytest.raises(InvalidResult, match=r"checks\[0\]|other fields|no JSON|malformed|range"):
        Record.from_json(changed(record, checks=[check]))


@pytest.mark.parametrize(
    "changes",
    [{"mean": "2"}, {"episodes": 1.5}, {"low": None}, {"cut_off": True}, {"more": 1.0}],
)
def test_a_damaged_baseline_is_refused(record, changes):
    with pytest.raises(InvalidResult):
        Record.from_json(changed(record, baseline=asdict(BASELINE) | changes))
    with pytest.raises(InvalidResult):
        Record.from_json(changed(record, baseline={"mean": 1.0}))


def test_bounds_come_in_pairs(record):
    for name in ("running", "ending", "returns"):
        for bounds, message in (
            ([], f"parameters.{name}: expected array of length 2, got 0"),
            ([0.0], f"parameters.{name}: expected array of length 2, got 1"),
            ([0.0, 1.0, 2.0], f"parameters.{name}: expected array of length 2, got 3"),
            ([0.0, True], rf"parameters.{name}\[1\]: expected int \| float, got bool"),
        ):
            parameters = {**to_builtins(record.parameters), name: bounds}
            with pytest.raises(InvalidResult, match=message):
                Record.from_json(changed(record, parameters=parameters))


def test_another_format_or_version_is_refused(record):
    version = json.loads(record.to_json({}))["version"]
    for changes in ({"format": "surestep"}, {"version": version + 1}, {"version": version - 1}):
        with pytest.raises(InvalidResult, match="expected format 'surestep run' of version"):
            Record.from_json(changed(record, **changes))


FILE = {"role": "log", "name": "a", "size": 1, "sha256": ""}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": 3}, "command: expected str, got int"),
        ({"estimates": {"policy": 1.0}}, "estimates: object missing required field behavior"),
        ({"estimates": {"behavior": True, "policy": 1.0}}, "estimates.behavior: expected float"),
        ({"estimates": {"behavior": 1.0, "policy": 1.0, "other": 2.0}}, "other fields"),
        ({"parameters": {}}, "parameters: object missing required field discount"),
        ({"inputs": [FILE | {"size": 1.5}]}, r"inputs\[0\].size: expected int, got float"),
        ({"inputs": [FILE | {"folder": "x"}]}, "it has other fields than those expected"),
        ({"more": 1}, "it has other fields than those expected"),
        ({"outputs": {"policy.csv": 3}}, "outputs.*: expected str, got int"),
    ],
)
def test_what_nobody_could_have_recorded_is_refused(record, changes, message):
    with pytest.raises(InvalidResult, match=message):
        Record.from_json(changed(record, **changes))


def test_true_and_false_are_no_numbers(record):
    parameters = {**to_builtins(record.parameters), "worlds": True}
    with pytest.raises(InvalidResult, match=r"parameters\.worlds: expected int, got bool"):
        Record.from_json(changed(record, parameters=parameters))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_to_the_last_bit(record, number):
    estimates = {"behavior": number, "policy": -number}
    found, _ = Record.from_json(replace(record, estimates=estimates).to_json(DIGESTS))
    assert list(map(float.hex, found.estimates.values())) == [number.hex(), (-number).hex()]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", '"\\ud800"', "[" * 100_000])
def test_what_is_no_number_or_text_is_refused(record, text):
    whole = changed(record, data={"x": "here"}).replace('"here"', text)
    with pytest.raises(InvalidResult, match=r"run\.json is not what `surestep improve` writes"):
        Record.from_json(whole)


def test_a_file_is_known_by_its_name_size_and_digest(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"state,action\n")
    digest = hashlib.sha256(b"state,action\n").hexdigest()
    assert InputFile.of("log", path) == InputFile("log", "log.csv", 13, digest)
    with pytest.raises(FileFailure, match="No such file"):
        InputFile.of("log", tmp_path / "none.csv")
