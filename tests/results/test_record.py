"""The record of a result: what is written comes back, and nothing else is read."""

import hashlib
import json
from dataclasses import replace

import pytest

from findings import maintenance_findings
from surestep.errors import FileFailure, InvalidResult
from surestep.results.record import PARAMETERS, InputFile, Record

DIGESTS = {"policy.csv": "abc"}


@pytest.fixture(scope="module")
def record():
    values = (0.5, 1, "x", {}, [])
    parameters = {
        name: next(value for value in values if isinstance(value, kind))
        for name, kind in PARAMETERS.items()
    }
    bounds = {"value_bounds": [0.0, 1.0], "reward_bounds": None}
    bounds |= {"reward_at_end": None, "return_bounds": None}
    estimates = {"behavior": 1.0, "policy": 2.0}
    usual = maintenance_findings().record
    return replace(usual, parameters=parameters | bounds, estimates=estimates)


def changed(record, **changes):
    """The text of the record with other values at its top."""
    return json.dumps(json.loads(record.to_json(DIGESTS)) | changes)


def test_a_record_comes_back(record):
    text = record.to_json(DIGESTS)
    assert text.startswith('{\n  "format": "surestep run",\n  "version": 4,\n  "')
    assert text.endswith("}\n")
    found, digests = Record.from_json(text)
    assert digests == DIGESTS
    assert found.to_json(DIGESTS) == text


def test_bounds_come_in_pairs(record):
    for name in ("value_bounds", "reward_bounds", "reward_at_end", "return_bounds"):
        for bounds, message in (
            ([], "there are 0 bounds, expected two"),
            ([0.0], "there are 1 bounds, expected two"),
            ([0.0, 1.0, 2.0], "there are 3 bounds, expected two"),
            ([0.0, True], "a bound is True"),
        ):
            parameters = {**record.parameters, name: bounds}
            with pytest.raises(InvalidResult, match=message):
                Record.from_json(changed(record, parameters=parameters))


def test_another_format_or_version_is_refused(record):
    version = json.loads(record.to_json({}))["version"]
    for changes in ({"format": "surestep"}, {"version": version + 1}, {"version": version - 1}):
        with pytest.raises(InvalidResult, match="expected format 'surestep run' of version"):
            Record.from_json(changed(record, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": 3}, "command is 3"),
        ({"estimates": {"policy": 1.0}}, "expected estimates of behavior and policy"),
        ({"estimates": {"behavior": True, "policy": 1.0}}, "an estimate is True"),
        ({"defaults": [1]}, "an item is 1"),
        ({"parameters": {}}, "its parameters are"),
        ({"inputs": [{"role": "log", "name": "a", "size": 1.5, "sha256": ""}]}, "size is 1.5"),
        ({"inputs": [{"role": "log", "name": 2, "size": 1, "sha256": ""}]}, "an input is 2"),
    ],
)
def test_what_nobody_could_have_recorded_is_refused(record, changes, message):
    with pytest.raises(InvalidResult, match=message):
        Record.from_json(changed(record, **changes))


def test_true_and_false_are_no_numbers(record):
    parameters = {**record.parameters, "worlds": True}
    with pytest.raises(ValueError, match="worlds is True"):
        replace(record, parameters=parameters).check()


def test_a_file_is_known_by_its_name_size_and_digest(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"state,action\n")
    digest = hashlib.sha256(b"state,action\n").hexdigest()
    assert InputFile.of("log", path) == InputFile("log", "log.csv", 13, digest)
    with pytest.raises(FileFailure, match="No such file"):
        InputFile.of("log", tmp_path / "none.csv")
