"""Runs: the same table however it came about, and nothing lost when killed."""

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from support.pump_commands import run_surestep
from surestep.errors import SurestepError
from surestep.experiments import read_experiments, read_run, run_experiment
from surestep.experiments import run as running
from surestep.experiments.cell import CellBlock
from surestep.experiments.experiment import AlgorithmSpec, EnvironmentSpec
from surestep.experiments.run import REPETITIONS, Store, plan_blocks
from surestep.experiments.runs import OF_VALUES

EXPERIMENT = """
seed = 5
repetitions = 60
episodes = [3, 40]
environments = [{name = "gridworld"}]
algorithms = [
    {name = "basic-rl"},
    {name = "spibb", n_wedge = [5, 10]},
    {name = "spibb-beta", spibb_n_wedge = 100},
]
"""


@pytest.fixture
def plan(tmp_path):
    """The path of a small experiment."""
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    return path


def run(plan, directory, **settings):
    """The bytes of the table of a run."""
    (experiment,) = read_experiments(str(plan))
    return run_experiment(experiment, directory, **settings).read_bytes()


def test_workers_are_ended_before_an_interrupt_goes_on(plan, tmp_path, monkeypatch):
    ended = []

    def one_after_the_other(function, tasks, **where):
        try:
            yield from enumerate(map(function, tasks))
        finally:
            ended.append(True)

    def interrupted(done, total):
        if done == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(running, "map_as_done", one_after_the_other)
    with pytest.raises(KeyboardInterrupt) as problem:  # whose traceback keeps what was not closed
        run(plan, tmp_path / "run", progress=interrupted)
    assert problem.tb is not None
    assert ended == [True]


@pytest.mark.slow  # test_extensions.py has a smaller run in two workers
def test_the_table_does_not_depend_on_workers(plan, tmp_path):
    assert run(plan, tmp_path / "two", workers=2) == run(plan, tmp_path / "alone")


def test_the_table_does_not_depend_on_interruptions(plan, tmp_path):
    alone = run(plan, str(tmp_path / "alone"))
    assert read_run(str(tmp_path / "alone")).directory == tmp_path / "alone"
    store = Store(tmp_path / "again")
    shutil.copytree(tmp_path / "alone", store.directory)
    for block in sorted((store.directory / "blocks").iterdir())[::2]:
        block.unlink()
    store.table.unlink()
    steps = []
    again = run(plan, store.directory, progress=lambda done, total: steps.append((done, total)))
    assert again == alone
    assert steps == [(2, 4), (3, 4), (4, 4)]


@pytest.mark.thorough
def test_a_killed_run_goes_on_where_it_stopped(plan, tmp_path):
    directory = tmp_path / "killed"
    plan.write_text(EXPERIMENT.replace("repetitions = 60", "repetitions = 250"))
    command = [sys.executable, "-m", "surestep", "run", str(plan), "-o", str(directory)]
    process = subprocess.Popen([*command, "--workers", "1"], stderr=subprocess.DEVNULL)
    blocks = directory / "blocks"
    for _ in range(600):
        if blocks.exists() and len(list(blocks.glob("*.npz"))) >= 2:
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = {path: path.stat().st_mtime_ns for path in blocks.glob("*.npz")}
    assert done
    killed = run(plan, directory)
    assert all(path.stat().st_mtime_ns == when for path, when in done.items())
    assert killed == run(plan, tmp_path / "whole")


def test_the_rows_are_all_there_and_paired(plan, tmp_path):
    run(plan, tmp_path / "run")
    columns = Store(tmp_path / "run").read_table()
    assert tuple(columns) == (*OF_VALUES, "code")
    assert sorted(columns["repetition"]) == sorted([*range(60)] * 2 * 4)
    used = {
        (name, None if np.ma.is_masked(given) else int(given)): n
        for name, given, n in zip(
            columns["algorithm"], columns["n_wedge"], columns["n_wedge_used"], strict=True
        )
    }
    assert used["spibb", 5] == 5
    assert used["spibb-beta", 100] == 27
    assert np.ma.is_masked(used["basic-rl", None])
    np.testing.assert_allclose(columns["behavior_performance"], 0.40225016191804486, atol=1e-9)
    np.testing.assert_allclose(columns["optimal_performance"], 0.5977416086682905, atol=1e-9)
    assert (columns["performance"] <= 0.5977416086682905 + 1e-9).all()


def test_another_number_of_repetitions_keeps_what_is_done(plan, tmp_path):
    run(plan, tmp_path / "run")
    before = Store(tmp_path / "run").read_table()
    plan.write_text(EXPERIMENT.replace("repetitions = 60", f"repetitions = {2 * REPETITIONS}"))
    run(plan, tmp_path / "run")
    after = Store(tmp_path / "run").read_table()
    kept = after["repetition"] < 60
    np.testing.assert_array_equal(after["performance"][kept], before["performance"])


def test_data_depend_on_the_cell_and_not_on_the_algorithm():
    spec = EnvironmentSpec("gridworld")

    def draw(**changed):
        settings = {"seed": 1, "environment": spec, "episodes": (5,), "first": 0, "last": 9}
        block = CellBlock(**{**settings, **changed}, algorithms=(AlgorithmSpec("basic-rl"),))
        return block.rngs(*block.episodes)[3 - block.first].random()

    assert draw() == draw(first=3, last=4)
    others = [draw(seed=2), draw(episodes=(6,)), draw(environment=EnvironmentSpec("wet-chicken"))]
    assert len({draw(), *others}) == 4


def test_a_store_of_another_experiment_is_refused(plan, tmp_path):
    run(plan, tmp_path / "run")
    plan.write_text(EXPERIMENT.replace("seed = 5", "seed = 6"))
    with pytest.raises(SurestepError, match="begun with other settings"):
        run(plan, tmp_path / "run")
    for junk in ("{", "[" * 100_000):
        (tmp_path / "run" / "manifest.json").write_text(junk)
        with pytest.raises(SurestepError, match=r"manifest\.json cannot be read"):
            run(plan, tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(SurestepError, match=r"has blocks but no manifest\.json"):
        run(plan, tmp_path / "run")
    with pytest.raises(SurestepError, match="the run is not complete"):
        Store(tmp_path / "nothing").read_table()


def test_a_gpu_gets_a_thousand_repetitions_at_a_time_unless_they_are_logs(plan, monkeypatch):
    (experiment,) = read_experiments(str(plan))
    experiment = replace(experiment, repetitions=1500)
    monkeypatch.setattr(running, "device_in_use", lambda: "a GPU")
    assert {(block.first, block.last) for block in plan_blocks(experiment)} == {
        (0, 1000),
        (1000, 1500),
    }
    monkeypatch.setattr(running, "needs_log", lambda _: True)
    assert {block.last - block.first for block in plan_blocks(experiment)} == {REPETITIONS}


def test_the_command_runs_lists_and_draws(plan, tmp_path):
    plan.write_text(EXPERIMENT.replace("repetitions = 60", "repetitions = 3"))
    listed = run_surestep("run", "--list")
    assert "paper/gridworld" in listed.stdout.split()
    result = run_surestep("run", plan, "-o", tmp_path / "run", "--workers", 1, "--repetitions", 2)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wrote {tmp_path / 'run' / 'table.parquet'}\n"
    other = tmp_path / "other"
    assert run_surestep("run", plan, "-o", other, "--workers", 1, "--seed", 7).exit_code == 0
    assert '"seed": 7' in Store(other).read_manifest().identity
    drawn = run_surestep("figure", "small", "--from", tmp_path / "run", "-o", tmp_path / "f.svg")
    assert drawn.exit_code == 0, drawn.output
    assert (tmp_path / "f.svg").read_bytes().startswith(b"<?xml")
    rows = list(csv.DictReader((tmp_path / "f.csv").read_text().splitlines()))
    assert len(rows) == 2 * 4
    assert all(row["mean"] and row["better_high"] and row["cvar1_high"] for row in rows)
    # Two repetitions bound neither a tail nor a mean, whatever the values may be.
    assert {row[end] for row in rows for end in ("mean_low", "mean_high", "cvar1_low")} == {""}
    for wrong, message in (
        (("run", "papers"), "there is no experiment 'papers'"),
        (("run", "paper/gridworld", "--address", "x"), "--address is for --engine ray"),
        (("figure", "paper/gridwrld", "-o", tmp_path / "g.png"), "did you mean paper/gridworld"),
        (("figure", "paper/gridworld", "-o", tmp_path / "g.png"), "surestep run paper/gridworld"),
        (
            ("figure", "paper/gridworld", "--from", tmp_path / "run", "-o", tmp_path / "g.png"),
            "holds the run 'small', expected 'paper/gridworld'",
        ),
    ):
        refused = run_surestep(*wrong)
        assert refused.exit_code == 2
        assert message in refused.stderr
