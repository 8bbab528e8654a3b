"""The directory of a run: damaged files, a full disk, two runs at once, blocks that others made."""

import errno
import json
import os
import resource
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from support.pump_commands import run_surestep
from surestep import extensions
from surestep._files import lock
from surestep.algorithms import ALGORITHMS
from surestep.errors import SurestepError
from surestep.experiments import read_experiments, run_experiment
from surestep.experiments import run as running
from surestep.experiments.experiment import AlgorithmSpec
from surestep.experiments.run import Store, brought_to, code_of_block, plan_blocks
from surestep.extensions import Extension

EXPERIMENT = """
seed = 5
repetitions = 2
episodes = [3, 20, 30]
environments = [{name = "gridworld"}]
algorithms = [{name = "spibb", n_wedge = 5}]
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


def answer(plan, directory, *more):
    """What the command says to a run."""
    return run_surestep("run", plan, "-o", directory, "--workers", "1", *more)


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


@pytest.fixture
def edit(monkeypatch):
    """A function after which the sources are taken to be others."""
    return lambda: monkeypatch.setattr(running, "code_here", lambda: "others")


def blocks_in(plan):
    (experiment,) = read_experiments(str(plan))
    return plan_blocks(experiment)


def run(plan, directory, **settings):
    """The blocks that a run had to make, and its table."""
    (experiment,) = read_experiments(str(plan))
    steps = []
    run_experiment(experiment, directory, progress=lambda *step: steps.append(step), **settings)
    return steps[-1][1] - steps[0][0], Store(directory).read_table()


def test_another_version_of_an_extension_makes_blocks_again(whole, monkeypatch):
    block = replace(blocks_in(whole / "small.toml")[0], algorithms=(AlgorithmSpec("mine"),))
    codes = []
    for version in ("1.0", "1.0", "1.1"):
        mine = Extension("algorithms", "mine", ALGORITHMS["basic-rl"], "my-pack", version)
        monkeypatch.setattr(extensions, "_registered", {("algorithms", "mine"): mine})
        codes.append(code_of_block(block))
        assert brought_to(block)["my-pack"] == version
    assert codes[0] == codes[1] != codes[2]


def test_blocks_of_other_code_are_made_again_or_kept_when_asked_to(whole, store, edit):
    plan, directory, first = whole / "small.toml", store.directory, store.read_table()
    assert run(plan, directory)[0] == 0
    edit()
    told = []
    made, kept = run(plan, directory, keep=True, outdated=lambda *told_of: told.append(told_of))
    assert (made, told) == (0, [(3, 3)])
    np.testing.assert_array_equal(kept["code"], first["code"])
    store.blocks.path_of(blocks_in(plan)[0].key).unlink()
    made, mixed = run(plan, directory, keep=True)
    assert made == 1
    old, new = first["code"][0], code_of_block(blocks_in(plan)[0])
    assert old != new
    of_first = np.isin(mixed["episodes"], blocks_in(plan)[0].episodes)
    assert set(mixed["code"][of_first]) == {new}
    assert set(mixed["code"][~of_first]) == {old}
    said = json.loads(store.manifest.read_text())
    assert said["made_by"] == {old: 2, new: 1}
    assert said["versions"]["numpy"] == np.__version__
    made, again = run(plan, directory, outdated=lambda *told_of: told.append(told_of))
    assert (made, told[1:]) == (2, [(2, 3)])
    assert set(again["code"]) == {new}
    np.testing.assert_array_equal(again["performance"], first["performance"])


def test_the_command_says_that_blocks_are_old(whole, store, edit):
    asked = whole / "small.toml", store.directory
    assert answer(*asked).stderr == ""
    edit()
    told = "3 of 3 blocks were made by other code or versions, and are"
    assert answer(*asked, "--keep").stderr == f"{told} kept as they are\n"
    assert answer(*asked).stderr == f"{told} made again (--keep keeps them)\n"
    assert answer(*asked).stderr == ""
