"""What made a block: which sources count, and what becomes of blocks that others made."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from surestep import extensions
from surestep.algorithms import ALGORITHMS
from surestep.cli.main import main
from surestep.experiments import Store, read_experiments, run_experiment
from surestep.experiments import run as running
from surestep.experiments.experiment import AlgorithmSpec
from surestep.experiments.run import blocks_of, brought_to, code_of
from surestep.extensions import Extension

EXPERIMENT = """
seed = 5
repetitions = 2
episodes = [3, 20]

[[environments]]
name = "gridworld"

[[algorithms]]
name = "spibb"
n_wedge = 5

[[algorithms]]
name = "ramdp"
kappa = 0.1
"""


@pytest.fixture
def plan(tmp_path):
    """The path of a small experiment."""
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def edit(monkeypatch):
    """A function after which the sources are taken to be others."""
    return lambda: monkeypatch.setattr(running, "code_here", lambda: "others")


def blocks(plan):
    (experiment,) = read_experiments(str(plan))
    return blocks_of(experiment)


def run(plan, directory, **settings):
    """The blocks that a run had to make, and its table."""
    (experiment,) = read_experiments(str(plan))
    steps = []
    run_experiment(experiment, directory, progress=lambda *step: steps.append(step), **settings)
    return steps[-1][1] - steps[0][0], Store(directory).read_table()


def test_another_version_of_an_extension_makes_blocks_again(plan, monkeypatch):
    block = replace(blocks(plan)[0], algorithms=(AlgorithmSpec("mine"),))
    codes = []
    for version in ("1.0", "1.0", "1.1"):
        mine = Extension("algorithms", "mine", ALGORITHMS["basic-rl"], "my-pack", version)
        monkeypatch.setattr(extensions, "_registered", {("algorithms", "mine"): mine})
        codes.append(code_of(block))
        assert brought_to(block)["my-pack"] == version
    assert codes[0] == codes[1] != codes[2]


def test_blocks_of_other_code_are_made_again_or_kept_when_asked_to(plan, tmp_path, edit):
    directory = tmp_path / "run"
    made, first = run(plan, directory)
    assert made == 2
    assert run(plan, directory)[0] == 0
    edit()
    told = []
    made, kept = run(plan, directory, keep=True, outdated=lambda *told_of: told.append(told_of))
    assert (made, told) == (0, [(2, 2)])
    np.testing.assert_array_equal(kept["code"], first["code"])
    Store(directory).blocks.path_of(blocks(plan)[0].key).unlink()
    made, mixed = run(plan, directory, keep=True)
    assert made == 1
    old, new = first["code"][0], code_of(blocks(plan)[0])
    assert old != new
    of_first = np.isin(mixed["episodes"], blocks(plan)[0].episodes)
    assert set(mixed["code"][of_first]) == {new}
    assert set(mixed["code"][~of_first]) == {old}
    said = json.loads(Store(directory).manifest.read_text())
    assert said["made_by"] == {old: 1, new: 1}
    assert said["versions"]["numpy"] == np.__version__
    made, again = run(plan, directory, outdated=lambda *told_of: told.append(told_of))
    assert (made, told[1:]) == (1, [(1, 2)])
    assert set(again["code"]) == {new}
    np.testing.assert_array_equal(again["performance"], first["performance"])


def test_the_command_says_that_blocks_are_old(plan, tmp_path, edit):
    def answer(*more):
        arguments = ["run", str(plan), "-o", str(tmp_path / "run"), "--workers", "1", *more]
        return CliRunner().invoke(main, arguments, prog_name="surestep")

    assert answer().stderr == ""
    edit()
    told = "2 of 2 blocks were made by other code or versions, and are"
    assert answer("--keep").stderr == f"{told} kept as they are\n"
    assert answer().stderr == f"{told} made again (--keep keeps them)\n"
    assert answer().stderr == ""
