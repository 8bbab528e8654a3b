"""Folders whose stress test is still to come: what they are, and how they are finished."""

import dataclasses
import json
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from support.findings import maintenance_findings, with_parameters
from surestep._blocks import BlockFolder
from surestep.errors import FileFailure
from surestep.results.result import Result
from surestep.results.unfinished import (
    begin,
    check_can_begin,
    finish,
    is_unfinished,
    read_file,
    settle,
)


def run_json(sizes, *outputs):
    content = {"parameters": {"sizes": sizes}, "outputs": dict.fromkeys(outputs, "digest")}
    return json.dumps(content).encode()


BEGINNING = {"run.json": run_json([1.0]), "policy.csv": b"old"}
END = {"run.json": run_json([1.0], "rehearsal.json"), "policy.csv": b"new", "rehearsal.json": b"{}"}


def on_their_way(folder, files):
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in files.items()}
    BlockFolder(folder / "stress-test").write("finished", "made by", arrays)


def inside(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("content", "unfinished"),
    [
        (run_json([1.0]), True),
        (run_json([]), False),  # none was planned
        (run_json([1.0], "policy.csv"), True),
        (run_json([1.0], "policy.csv", "rehearsal.json"), False),
        (b"[" * 100_000, False),
        (b"{}", False),
        (b"[]", False),
    ],
)
def test_a_folder_is_unfinished_where_a_planned_stress_test_is_missing(
    content, unfinished, tmp_path
):
    assert not is_unfinished(tmp_path)
    (tmp_path / "run.json").write_bytes(content)
    assert is_unfinished(tmp_path) == unfinished
    if unfinished:
        check_can_begin(tmp_path)
    else:
        with pytest.raises(FileFailure, match="is not empty; name a new folder"):
            check_can_begin(tmp_path)


def test_only_the_very_same_beginning_is_gone_on_with(tmp_path):
    folder = tmp_path / "out"
    begin(folder, BEGINNING)
    begin(folder, BEGINNING)
    assert inside(folder) == BEGINNING
    with pytest.raises(FileFailure, match=r"something else: its policy\.csv is not what"):
        begin(folder, BEGINNING | {"policy.csv": b"other"})
    (folder / "policy.csv").unlink()
    with pytest.raises(FileFailure, match=r"something else: its policy\.csv is not what"):
        begin(folder, BEGINNING)


def test_finished_files_take_the_place_of_the_others(tmp_path):
    folder = tmp_path / "out"
    begin(folder, BEGINNING)
    assert not settle(folder)
    (folder / "stress-test").mkdir()
    (folder / "stress-test" / "finished.npz").write_bytes(b"damaged")
    finish(folder, END)
    assert inside(folder) == END
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []
    assert not is_unfinished(folder)
    with pytest.raises(FileFailure, match="is not empty"):
        begin(folder, BEGINNING)


def test_the_same_work_again_finds_itself_finished(tmp_path):
    folder = tmp_path / "out"
    told = {"description": {"files": "log.csv"}, "parameters": {"sizes": [1.0]}}
    beginning = {"run.json": json.dumps(told | {"outputs": {}}).encode()}
    finished = {"run.json": json.dumps(told | {"outputs": {"rehearsal.json": ""}}).encode()}
    assert not begin(folder, beginning)
    on_their_way(folder, finished)  # a command that was killed before they were in their place
    assert begin(folder, beginning)
    (folder / "stress-test").mkdir()
    (folder / "stress-test" / "0-1.npz").write_bytes(b"")  # or on its way to put blocks away
    assert begin(folder, beginning)
    assert [path.name for path in folder.iterdir()] == ["run.json"]
    assert inside(folder) == finished
    check_can_begin(folder, told["description"])
    with pytest.raises(FileFailure, match="is not empty"):
        check_can_begin(folder, {"files": "other.csv"})
    other = told | {"counts_sha256": "of another log", "outputs": {}}
    with pytest.raises(FileFailure, match="is not empty"):
        begin(folder, {"run.json": json.dumps(other).encode()})


def packed(path, name, header, size):
    """Writes an archive of one array of zeros, with a header of its own."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive, archive.open(f"{name}.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"fortran_order": False, **header})
        file.write(bytes(size))


@pytest.mark.thorough
def test_a_block_unpacks_to_no_more_than_anybody_packed(tmp_path):
    blocks, size = BlockFolder(tmp_path), 2**26 + 1
    blocks.write("fine", "made by", {"x": np.zeros(2**22)})  # in some 33 kB
    assert blocks.read("fine").arrays["x"].size == 2**22
    packed(tmp_path / "large.npz", "x", {"descr": "|u1", "shape": (size,)}, size)
    packed(tmp_path / "texts.npz", "made by", {"descr": "<U0", "shape": (10**8,)}, 0)
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    for name in ("large", "texts", "damaged"):
        assert blocks.read(name) is None
        assert blocks.path_of(name).is_file()  # nobody asked to delete it


def test_files_on_their_way_are_read_where_they_are_and_stay_in_their_folder(tmp_path):
    folder = tmp_path / "out"
    begin(folder, BEGINNING)
    on_their_way(folder, {"run.json": END["run.json"], "../outside.csv": b"elsewhere"})
    assert read_file(folder, "run.json") == END["run.json"]
    assert read_file(folder, "policy.csv") == BEGINNING["policy.csv"]
    assert not is_unfinished(folder)
    with pytest.raises(FileFailure, match="is not empty"):  # of something else
        check_can_begin(folder)
    assert inside(folder)["run.json"] == END["run.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("sizes", "awaited"), [([], False), ([1.0], True), ([0.5, 1.0], True)])
def test_a_result_awaits_the_stress_test_that_was_planned(sizes, awaited):
    findings = with_parameters(maintenance_findings(), sizes=sizes)
    result = Result(findings.table, (), findings.record, "")
    assert result.awaits_stress_test == awaited
    assert not dataclasses.replace(result, rehearsal=object()).awaits_stress_test
