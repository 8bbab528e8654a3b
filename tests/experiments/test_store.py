"""The directory of a run: damaged files, a full disk, two runs at once, what killed ones left."""

import errno
import os
import resource
import shutil
import subprocess

import numpy as np
import pytest
from click.testing import CliRunner

from surestep._files import lock
from surestep.cli.main import main
from surestep.errors import SurestepError
from surestep.experiments import Store

EXPERIMENT = """
seed = 5
repetitions = 2
episodes = [3, 20, 30]

[[environments]]
name = "gridworld"

[[algorithms]]
name = "spibb"
n_wedge = 5
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run, and the experiment it is of."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.toml").write_text(EXPERIMENT)
    assert answer(folder / "small.toml", folder / "run").exit_code == 0
    return folder


@pytest.fixture
def store(whole, tmp_path):
    """A copy of the finished run."""
    shutil.copytree(whole / "run", tmp_path / "run")
    return Store(tmp_path / "run")


def answer(plan, directory):
    """What the command says to a run."""
    arguments = ["run", str(plan), "-o", str(directory), "--workers", "1"]
    return CliRunner().invoke(main, arguments, prog_name="surestep")


def blocks(store):
    return sorted((store.directory / "blocks").glob("*.npz"))


def rows(size=5_000):
    """Rows that do not compress."""
    values = np.random.default_rng(0).random(size)
    return {"n_wedge": np.ones(size), "n_wedge_used": np.ones(size), "performance": values}


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-9],
        lambda content: b"[" * 1000,
        lambda content: content[:300] + b"\xff" * 30 + content[330:],
        lambda content: content.replace(b"performance", b"performence"),
    ],
    ids=["emptied", "cut short", "overwritten", "rows damaged", "a name damaged"],
)
def test_a_block_that_cannot_be_read_is_made_again(whole, store, damage):
    table = store.table.read_bytes()
    store.table.unlink()
    for path in blocks(store)[1:]:
        path.write_bytes(damage(path.read_bytes()))
    kept = blocks(store)[0].stat().st_mtime_ns
    assert answer(whole / "small.toml", store.directory).exit_code == 0
    assert store.table.read_bytes() == table
    assert blocks(store)[0].stat().st_mtime_ns == kept


def test_a_damaged_table_is_named(store):
    store.table.write_bytes(b"")
    with pytest.raises(SurestepError, match=r"table\.parquet cannot be read: .*; delete it, and"):
        store.read_table()


def test_two_runs_do_not_work_in_one_directory(whole, store):
    with (store.directory / ".lock").open("ab") as file:
        assert lock(file)
        told = answer(whole / "small.toml", store.directory)
    assert told.exit_code == 2
    assert "another run is at work in" in told.stderr
    assert answer(whole / "small.toml", store.directory).exit_code == 0


def test_what_a_killed_run_left_is_removed(whole, store):
    for folder in (store.directory, store.directory / "blocks"):
        (folder / ".surestep-0123").write_bytes(b"half")
    assert answer(whole / "small.toml", store.directory).exit_code == 0
    assert not list(store.directory.rglob(".surestep-*"))


def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path):
    store = Store(tmp_path)
    (tmp_path / "blocks").mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(SurestepError) as told:
            store.blocks.write("key", "code", rows())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(told.value) == (
        f"{store.blocks.path_of('key')} cannot be written: {os.strerror(errno.EFBIG)}"
    )
    assert list((tmp_path / "blocks").iterdir()) == []
    store.blocks.write("key", "code", rows())
    assert store.blocks.read("key").made_by == "code"


@pytest.fixture
def small_disk(tmp_path):
    """A disk with room for a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can make a small disk, and only where it may mount one")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_told_in_one_line_and_the_run_goes_on_when_there_is_room(whole, small_disk):
    run, filler = small_disk / "run", small_disk / "filler"
    (run / "blocks").mkdir(parents=True)
    left = os.statvfs(small_disk)
    filler.write_bytes(b"\0" * (left.f_bavail - 1) * left.f_frsize)  # a page is for the manifest
    told = answer(whole / "small.toml", run)
    assert told.exit_code == 2
    assert told.stderr.startswith(f"Error: {run}")
    assert f"cannot be written: {os.strerror(errno.ENOSPC)}" in told.stderr
    assert told.stderr.count("\n") == 1
    assert not [*run.rglob("*.parquet"), *run.rglob("*.npz")]
    filler.unlink()
    assert answer(whole / "small.toml", run).exit_code == 0
    assert (run / "table.parquet").read_bytes() == (whole / "run" / "table.parquet").read_bytes()
