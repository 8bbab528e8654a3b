"""Commands that are killed at any moment leave nothing half done, and the next run makes it good.

All processes of a command hold the pipe that its output is read from, so the pipe ends when the
last of them has. Moments are drawn; none of the checks rests on which moment it was.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PLAN = """
seed = 5
repetitions = 200
episodes = [3, 40]
environments = [{name = "gridworld"}]
algorithms = [{name = "spibb", n_wedge = [5, 10]}]
"""
COMMANDS = {  # arguments, and what is compared
    "run": (["run", "plan.toml", "-o", "out"], "out/table.parquet"),
    "count": (
        ["count", "log.parquet", "--ends", "complete", "-o", "counts.parquet"],
        "counts.parquet",
    ),
    "improve": (
        [
            "improve", str(EXAMPLES / "pumps.csv"), "--state", "condition", "--state", "demand",
            "--action", "decision", "--behavior", str(EXAMPLES / "pumps_policy.csv"), "--discount",
            "0.95", "--set", "method.n_wedge=20", "--kind", "a-priori:bound=beta", "--worlds", "1",
            "-o", "out",
        ],
        "out/*",
    ),
}  # fmt: skip
# Signals count from the line on; before it, an interpreter ends in its own way.
START = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("ready", flush=True)
from surestep.cli.main import main
main(sys.argv[1:], prog_name="surestep")
"""
WORDS = {signal.SIGINT: "Error: interrupted\n", signal.SIGTERM: "Error: ended by SIGTERM\n"}


def prepared(folder):
    """The folder with all that the commands need, and a place of its own for temporary files."""
    (folder / "tmp").mkdir(parents=True)
    (folder / "plan.toml").write_text(PLAN)
    duckdb.sql(
        "SELECT range // 50 AS episode, range % 50 AS step, (hash(range) % 500)::INT AS state, "
        "(hash(range + 7) % 4)::INT AS action, (range % 3)::DOUBLE AS reward FROM range(400_000)"
    ).write_parquet(str(folder / "log.parquet"))
    return folder


def started(name, folder, workers=1):
    """The command at work in the folder, in a group of processes of its own."""
    more = [] if name == "count" else ["--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-c", START, *COMMANDS[name][0], *more],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def made(name, folder):
    """What the command has made so far, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob(COMMANDS[name][1])
        if not path.name.startswith(".")
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What a command makes that nobody kills, and how long it takes, by its name."""
    found = {}

    def of(name):
        if name not in found:
            folder, begun = prepared(tmp_path_factory.mktemp(name) / "whole"), time.monotonic()
            process = started(name, folder)
            _, said = process.communicate(timeout=500)
            assert process.returncode == 0, said
            found[name] = made(name, folder), time.monotonic() - begun
        return found[name]

    return of


def check_kill(name, number, share, whole, folder):
    """Kills the command after that share of its time, checks what is left, and runs it again."""
    expected, seconds = whole(name)
    process = started(name, folder, workers=2)  # which must end too, and change nothing
    time.sleep(share * seconds)
    if process.poll() is None:
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    _, said = process.communicate(timeout=500)  # ends with the last worker
    assert process.returncode in (0, -number, 128 + number), said
    if number in WORDS:
        assert "Traceback" not in said
        assert process.returncode != 128 + number or said.endswith(WORDS[number])
        assert list((folder / "tmp").iterdir()) == []
    if name != "improve":  # whose result is whole before its stress test, and then changes
        assert made(name, folder) in ({}, expected)
    again = started(name, folder)
    _, said = again.communicate(timeout=500)
    assert again.returncode == 0, said
    assert made(name, folder) == expected
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.thorough
def test_a_killed_command_leaves_nothing_half_done(whole, tmp_path):
    # tests/experiments kill a run, tests/cli interrupt an improvement; the rest is slow.
    check_kill("count", signal.SIGTERM, 0.5, whole, prepared(tmp_path / "killed"))


@pytest.mark.slow
@pytest.mark.parametrize("round_number", range(6))
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_killed_at_many_moments_leave_nothing_half_done(
    name, number, round_number, whole, tmp_path
):
    share = (round_number + np.random.default_rng().random()) / 6
    check_kill(name, number, share, whole, prepared(tmp_path / "killed"))
