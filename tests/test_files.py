"""Files are written whole or not at all."""

import stat

import pytest

from surestep._files import write_folder, write_together
from surestep.errors import SurestepError


def test_all_files_are_written_with_ordinary_permissions(tmp_path):
    write_together({tmp_path / "a": [b"one"], tmp_path / "b": [b"two"]})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"one",
        "b": b"two",
    }
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

    def full():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(SurestepError, match="No space left on device"):
        write_together({tmp_path / "a": full()})
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "folder"]


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "new" / "result"
    write_folder(target, {"a": [b"one"], "b": [b"t", b"wo"]})
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"a": b"one", "b": b"two"}
    assert [path.name for path in target.parent.iterdir()] == ["result"]

    def full():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(SurestepError, match=r"other.*No space left on device"):
        write_folder(tmp_path / "deep" / "er" / "other", {"a": [b"one"], "b": full()})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]


def test_an_interrupted_folder_leaves_nothing(tmp_path):
    def interrupted():
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "result", {"a": interrupted()})
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_filled_and_others_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    write_folder(tmp_path / "empty", {"a": [b"one"]})
    assert (tmp_path / "empty" / "a").read_bytes() == b"one"
    with pytest.raises(SurestepError, match="is not empty"):
        write_folder(tmp_path / "empty", {"a": [b"two"]})
    with pytest.raises(SurestepError, match="is a file"):
        write_folder(tmp_path / "empty" / "a", {"a": [b"two"]})
    assert (tmp_path / "empty" / "a").read_bytes() == b"one"
