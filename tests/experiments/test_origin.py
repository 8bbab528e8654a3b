"""What made a block: which sources count, and what becomes of blocks that others made."""

import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

from surestep import extensions
from surestep.algorithms import ALGORITHMS
from surestep.cli.main import main
from surestep.experiments import Store, origin, read_experiments, run_experiment
from surestep.experiments.cell import run_block
from surestep.experiments.claims import run_claims
from surestep.experiments.experiment import AlgorithmSpec
from surestep.experiments.origin import (
    NOT_FOLLOWED,
    Origin,
    modules_of,
    origin_from_json,
    origin_of,
    sources_of,
)
from surestep.experiments.run import blocks_of
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
CERTIFIERS = """
[[certifiers]]
name = "posterior"
prior_weight = 1.0
draws = 9

[[certifiers]]
name = "a-priori"
bound = "beta"
"""


@pytest.fixture
def plan(tmp_path):
    """The path of a small experiment."""
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def edit(monkeypatch):
    """A function that changes what the source of a module is taken to be."""
    read, edited = origin.source, {}

    def change(module):
        assert read(module)
        edited[module] = b"\n# changed"  # imports nothing, so what is known of imports still holds
        origin.code_of.cache_clear()

    monkeypatch.setattr(origin, "source", lambda module: read(module) + edited.get(module, b""))
    origin.code_of.cache_clear()
    yield change
    origin.code_of.cache_clear()


def blocks(plan):
    (experiment,) = read_experiments(str(plan))
    return blocks_of(experiment)


def run(plan, directory, **settings):
    """The blocks that a run had to make, and its table."""
    (experiment,) = read_experiments(str(plan))
    steps = []
    run_experiment(experiment, directory, progress=lambda *step: steps.append(step), **settings)
    return steps[-1][1] - steps[0][0], Store(directory).read_table()


def executed(function, *arguments):
    """The modules of the package whose functions run in a call, as the interpreter sees them."""
    seen = set()
    sys.setprofile(lambda frame, *_: seen.add(frame.f_globals.get("__name__", "")))
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return {name for name in seen if name.startswith("surestep.")}


@pytest.mark.parametrize("more", ["", CERTIFIERS, '[[algorithms]]\nname = "hcpi"\n'])
def test_all_that_runs_is_among_the_sources(plan, more):
    plan.write_text(EXPERIMENT + more)
    block = blocks(plan)[0]
    runs = run_claims if "certifiers" in more else run_block
    runs(block)  # compiles the kernels, which under a profile would take minutes
    found = executed(runs, block)
    assert "surestep.algorithms.spibb" in found
    packages = {name for name in found if Path(sys.modules[name].__file__).stem == "__init__"}
    assert found - packages - NOT_FOLLOWED <= sources_of(modules_of(block))


def test_what_the_rows_do_not_depend_on_is_not_among_the_sources(plan):
    found = sources_of(modules_of(blocks(plan)[0]))
    assert "surestep.kernels.spibb_batch" in found
    assert "surestep.algorithms.hcpi" not in found
    folders = {name.split(".")[1] for name in found}
    assert not folders & {
        "figures",
        "report",
        "cli",
        "pipeline",
        "results",
        "rehearsal",
        "certificates",
        "io",
    }


@pytest.mark.parametrize(
    ("module", "counts"),
    [
        ("surestep.algorithms.spibb", True),
        ("surestep.kernels.spibb_batch", True),
        ("surestep.environments.gridworld", True),
        ("surestep.sampling", True),
        ("surestep.algorithms.hcpi", False),
        ("surestep.environments.wet_chicken", False),
        ("surestep.figures.curves", False),
        ("surestep.experiments.store", False),
    ],
)
def test_a_changed_source_makes_another_origin_if_the_block_uses_it(plan, edit, module, counts):
    block = blocks(plan)[0]
    before = origin_of(block)
    edit(module)
    assert before.agrees(origin_of(block)) is not counts


def test_a_version_and_a_setting_make_another_origin(plan, monkeypatch):
    first, second = blocks(plan)
    before = origin_of(first)
    assert before.code == origin_of(second).code
    assert not before.agrees(origin_of(second))
    other = {**origin.versions(), "surestep": "0.0.0"}
    monkeypatch.setattr(origin, "versions", lambda: other)
    origin.code_of.cache_clear()
    assert not before.agrees(origin_of(first))
    origin.code_of.cache_clear()


def test_what_is_registered_from_elsewhere_counts_too(plan, monkeypatch):
    mine = types.ModuleType("mine")
    monkeypatch.setitem(sys.modules, "mine", mine)
    monkeypatch.setitem(
        ALGORITHMS, "spibb", type("Mine", (ALGORITHMS["spibb"],), {"__module__": "mine"})
    )
    block, found = blocks(plan)[0], []
    for path in (None, plan.with_name("mine.py"), plan.with_name("other.py")):
        mine.__file__ = path and str(path)
        if path:
            path.write_text(f"from surestep.algorithms import HCPI  # as {path.name}")
        for cached in (origin.source, origin.imports_of, origin.code_of):
            cached.cache_clear()
        found.append(origin_of(block).code)
    assert "surestep.algorithms.hcpi" in sources_of(modules_of(block))
    assert len(set(found)) == 3
    for cached in (origin.source, origin.imports_of, origin.code_of):
        cached.cache_clear()


def test_another_version_of_an_extension_makes_blocks_again(plan, monkeypatch):
    block = replace(blocks(plan)[0], algorithms=(AlgorithmSpec("mine"),))
    codes = []
    for version in ("1.0", "1.0", "1.1"):
        mine = Extension("algorithms", "mine", ALGORITHMS["basic-rl"], "my-pack", version)
        monkeypatch.setattr(extensions, "_registered", {("algorithms", "mine"): mine})
        codes.append(origin_of(block).code)
        assert origin_of(block).versions["my-pack"] == version
    assert codes[0] == codes[1] != codes[2]


def test_an_origin_can_be_read_back_and_junk_is_none():
    made = Origin("a", "b", {"numpy": "2.0"})
    assert origin_from_json(made.to_json()) == made
    for junk in ("", "[", "[" * 100_000, "{}", '{"settings": 1}', "null"):
        assert origin_from_json(junk) is None


def test_blocks_of_other_code_are_made_again_or_kept_when_asked_to(plan, tmp_path, edit):
    directory = tmp_path / "run"
    made, first = run(plan, directory)
    assert made == 2
    assert run(plan, directory)[0] == 0
    edit("surestep.algorithms.spibb")
    told = []
    made, kept = run(plan, directory, keep_old=True, outdated=lambda *told_of: told.append(told_of))
    assert (made, told) == (0, [(2, 2)])
    np.testing.assert_array_equal(kept["code"], first["code"])
    Store(directory).block(blocks(plan)[0].key).unlink()
    made, mixed = run(plan, directory, keep_old=True)
    assert made == 1
    old, new = first["code"][0], origin_of(blocks(plan)[0]).code
    assert old != new
    of_first = mixed["episodes"] == blocks(plan)[0].episodes
    assert set(mixed["code"][of_first]) == {new}
    assert set(mixed["code"][~of_first]) == {old}
    said = json.loads(Store(directory).manifest.read_text())["made_by"]
    assert {code: each["blocks"] for code, each in said.items()} == {old: 1, new: 1}
    assert said[new]["versions"]["numpy"] == np.__version__
    made, again = run(plan, directory, outdated=lambda *told_of: told.append(told_of))
    assert (made, told[1:]) == (1, [(1, 2)])
    assert set(again["code"]) == {new}
    np.testing.assert_array_equal(again["performance"], first["performance"])


def test_the_command_says_that_blocks_are_old(plan, tmp_path, edit):
    def answer(*more):
        arguments = ["run", str(plan), "-o", str(tmp_path / "run"), "--workers", "1", *more]
        return CliRunner().invoke(main, arguments, prog_name="surestep")

    assert answer().stderr == ""
    edit("surestep.sampling")
    told = "2 of 2 blocks were made by other code or versions, and are"
    assert answer("--keep-old").stderr == f"{told} kept as they are\n"
    assert answer().stderr == f"{told} made again (--keep-old keeps them)\n"
    assert answer().stderr == ""


def test_blocks_that_do_not_say_what_made_them_are_made_again_or_kept(plan, tmp_path):
    directory = tmp_path / "run"
    _, first = run(plan, directory)
    for path in (directory / "blocks").glob("*.parquet"):
        rows = duckdb.read_parquet(str(path)).project("* EXCLUDE (code)").fetchnumpy()
        with duckdb.connect() as database:
            database.register("rows", rows)
            database.execute(f"COPY (SELECT * FROM rows) TO '{path}' (FORMAT parquet)")
    made, kept = run(plan, directory, keep_old=True)
    assert made == 0
    assert set(kept["code"]) == {"unknown"}
    made, again = run(plan, directory)
    assert made == 2
    np.testing.assert_array_equal(again["code"], first["code"])
