"""The record of a result: what is written comes back, and nothing else is read."""

import hashlib
import json
from dataclasses import replace

import pytest

from findings import maintenance_findings
from surestep.errors import FileFailure, InvalidResult
from surestep.results.alarms import Alarm
from surestep.results.baseline import Baseline
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


ALARMS = (
    Alarm("claim-above-estimate", {"claim": 0.5, "estimate": -1.25}),
    Alarm("first-on-few", {"situations": 1, "visits": 2, "decisions": 86}),
    Alarm("rewards-vary", {}),
)
BASELINE = Baseline(
    mean=2.0, low=1.5, high=2.5, episodes=100, cut_off=3, least=-1.0, greatest=3.0, model=2.0,
    model_episodes=30,
)  # fmt: skip


def test_alarms_and_what_episodes_earned_come_back(record):
    full = replace(record, alarms=ALARMS, baseline=BASELINE)
    found, _ = Record.from_json(full.to_json(DIGESTS))
    assert found.alarms == ALARMS
    assert found.baseline == BASELINE
    assert all(isinstance(each, Alarm) for each in found.alarms)
    assert Record.from_json(record.to_json(DIGESTS))[0].alarms == ()


FIGURES = {"claim": 0.5, "estimate": -1.25}


@pytest.mark.parametrize(
    "alarm",
    [
        {},
        "rewards-vary",
        ["rewards-vary", {}],
        {"code": "rewards-vary"},
        {"code": "rewards-vary", "figures": {}, "words": "All is well."},
        {"code": "all-is-well", "figures": {}},
        {"code": ["rewards-vary"], "figures": {}},
        {"code": {}, "figures": {}},
        {"code": None, "figures": {}},
        {"code": "rewards-vary", "figures": None},
        {"code": "rewards-vary", "figures": {"claim": 1.0}},
        {"code": "claim-above-estimate", "figures": {}},
        {"code": "claim-above-estimate", "figures": {"claim": 0.5}},
        {"code": "claim-above-estimate", "figures": FIGURES | {"more": 1.0}},
        {"code": "claim-above-estimate", "figures": FIGURES | {"claim": "0.5"}},
        {"code": "claim-above-estimate", "figures": FIGURES | {"claim": True}},
        {"code": "claim-above-estimate", "figures": FIGURES | {"claim": None}},
        {"code": "claim-above-estimate", "figures": FIGURES | {"claim": float("nan")}},
        {"code": "claim-above-estimate", "figures": FIGURES | {"claim": float("inf")}},
    ],
)
def test_damaged_alarms_are_refused(record, alarm):
    with pytest.raises(InvalidResult, match="an alarm is "):
        Record.from_json(changed(record, alarms=[alarm]))


@pytest.mark.parametrize("alarms", [None, 3, {"code": "rewards-vary", "figures": {}}, "x"])
def test_alarms_are_a_list(record, alarms):
    with pytest.raises(InvalidResult):
        Record.from_json(changed(record, alarms=alarms))


@pytest.mark.parametrize(
    "changes",
    [{"mean": "2"}, {"episodes": 1.5}, {"low": None}, {"cut_off": True}, {"more": 1.0}],
)
def test_a_damaged_baseline_is_refused(record, changes):
    with pytest.raises(InvalidResult):
        Record.from_json(changed(record, baseline=BASELINE._asdict() | changes))
    with pytest.raises(InvalidResult):
        Record.from_json(changed(record, baseline={"mean": 1.0}))


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
