"""Files are written whole or not at all."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from surestep._files import (
    TEMPORARY,
    remove_leftovers,
    temporary_folder,
    write_folder,
    write_together,
)
from surestep.errors import SurestepError

HOLD = """
import sys, time
from surestep._files import temporary_folder
with temporary_folder() as folder:
    (folder / "spilt").mkdir()
    (folder / "spilt" / "rows").write_bytes(b"many")
    print(folder, flush=True)
    sys.stdin.read()
"""
FULL = OSError(28, "No space left on device")


def stopped(error):
    """Content of which only a half comes."""
    yield b"half"
    raise error


def test_all_files_are_written_with_ordinary_permissions(tmp_path):
    write_together({tmp_path / "a": [b"one"], tmp_path / "b": [b"two"]})
    assert contents_of(tmp_path) == {"a": b"one", "b": b"two"}
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def test_what_cannot_be_written_leaves_everything_as_it_was(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    for other in (tmp_path / "missing" / "b", tmp_path / "folder"):
        with pytest.raises(SurestepError, match="cannot be written"):
            write_together({tmp_path / "a": [b"new"], other: [b"new"]})

    with pytest.raises(SurestepError, match="No space left on device"):
        write_together({tmp_path / "a": stopped(FULL)})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "folder"]


@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_files_that_are_moved_in_vain_are_moved_back(tmp_path, monkeypatch, error):
    (tmp_path / "a").write_bytes(b"old a")
    (tmp_path / "b").write_bytes(b"old b")
    before = contents_of(tmp_path)
    move = os.replace
    for step in range(100):
        taken = iter(range(100))

        def replacing(source, target, taken=taken, step=step):
            if next(taken) == step:
                raise error
            move(source, target)

        monkeypatch.setattr(os, "replace", replacing)
        try:
            write_together({tmp_path / name: [f"new {name}".encode()] for name in "abc"})
            break
        except (SurestepError, KeyboardInterrupt):
            assert contents_of(tmp_path) == before
    assert step == 5  # two old files go aside, three new ones come
    assert contents_of(tmp_path) == {"a": b"new a", "b": b"new b", "c": b"new c"}


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "new" / "result"
    write_folder(target, {"a": b"one", "b": b"two"})
    assert contents_of(target) == {"a": b"one", "b": b"two"}
    assert [path.name for path in target.parent.iterdir()] == ["result"]

    def stopping(path, content):
        (error,) = stops
        if path.name == "b":
            raise error
        path.touch()

    monkeypatch.setattr(Path, "write_bytes", stopping)
    stops = [FULL]
    with pytest.raises(SurestepError, match=r"other.*No space left on device"):
        write_folder(tmp_path / "deep" / "er" / "other", {"a": b"one", "b": b"two"})
    stops = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "other", {"a": b"one", "b": b"two"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]


def test_an_empty_folder_is_filled_and_others_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", {"a": b"one"})
    assert (tmp_path / "empty" / "a").read_bytes() == b"one"
    with pytest.raises(SurestepError, match="is not empty"):
        write_folder(tmp_path / "empty", {"a": b"two"})
    with pytest.raises(SurestepError, match="is a file"):
        write_folder(tmp_path / "empty" / "a", {"a": b"two"})
    assert (tmp_path / "empty" / "a").read_bytes() == b"one"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder that temporary ones are made in."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def holder():
    """A process that holds a temporary folder until its input ends."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", HOLD], text=True, **pipes)
    assert process.stdout.readline().strip()
    return process


def test_a_temporary_folder_is_gone_afterwards_whatever_happens(place):
    with temporary_folder() as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").touch()
        (folder / "link").symlink_to(place)
    assert list(place.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), temporary_folder():
        raise KeyboardInterrupt
    assert list(place.iterdir()) == []


def test_folders_of_the_dead_are_removed_and_those_of_the_living_are_not(place):
    with holder() as dead, holder() as living:
        dead.kill()
        dead.wait()
        assert len(list(place.glob(f"{TEMPORARY}*/spilt/rows"))) == 2
        remove_leftovers.__wrapped__(place)
        (left,) = place.iterdir()
        assert (left / "spilt" / "rows").read_bytes() == b"many"
        living.communicate("")
    assert list(place.iterdir()) == []


def test_what_is_no_leftover_is_not_removed(place):
    for name in ("surestep-mine", f"{TEMPORARY}unknown"):
        (place / name).mkdir()
        (place / name / "file").touch()
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (place / f"{TEMPORARY}{16 * '0'}").symlink_to(elsewhere)
    before = sorted(place.rglob("*"))
    with temporary_folder() as own:
        remove_leftovers.__wrapped__(place)
        assert own.exists()
    assert sorted(place.rglob("*")) == before
