"""Stress tests that are killed: the folder stays whole, and the same command goes on."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

import surestep
from support.pump_commands import LINES, PUMPS, run_surestep, write_lines

TERMS = shlex.split("--set method.n_wedge=2 --kind posterior:draws=99 --worlds 30 --workers 1")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def killed_during_the_stress_test(arguments, number, blocks, told=None):
    """Runs the command until it told so, and that many blocks are kept; then it is killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "surestep", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        if told is not None:
            assert any(told in line for line in iter(process.stdout.readline, ""))
        while blocks() < number and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 9])
def test_a_killed_improvement_is_whole_and_goes_on(number, tmp_path):
    log, out = write_lines(tmp_path / "log.csv", LINES[:401]), tmp_path / "out"
    arguments = ("improve", log, *PUMPS, *TERMS)
    assert run_surestep(*arguments, "-o", tmp_path / "whole").exit_code == 0

    def blocks():
        return len([*(out / "stress-test").glob("*.npz")])

    killed_during_the_stress_test((*arguments, "-o", out), number, blocks, "not yet stress tested")
    assert surestep.load(out).awaits_stress_test
    assert "its stress test is still to come" in run_surestep("verify", out, log).stderr
    assert run_surestep("explain", out, "--state", "fair", "--state", "low").exit_code == 0
    kept = blocks()
    assert kept >= number
    result = run_surestep(*arguments, "-o", out)
    assert result.exit_code == 0, result.output
    assert contents(out) == contents(tmp_path / "whole")
    assert sorted(path.name for path in out.iterdir()) == sorted(contents(out))


@pytest.mark.slow
def test_a_killed_rehearsal_goes_on(tmp_path):
    log, out = write_lines(tmp_path / "log.csv", LINES[:401]), tmp_path / "out"
    arguments = ("rehearse", log, *PUMPS, *TERMS, "--sizes", "1,2")
    assert run_surestep(*arguments, "-o", tmp_path / "whole").exit_code == 0

    def blocks():
        return len([*(out / "stress-test").glob("*.npz")])

    killed_during_the_stress_test((*arguments, "-o", out), 3, blocks)
    assert sorted(contents(out)) == ["run.json"]
    other = run_surestep(*arguments, "--seed", "7", "-o", out)
    assert (other.exit_code, "beginning of something else" in other.stderr) == (2, True)
    result = run_surestep(*arguments, "-o", out)
    assert result.exit_code == 0, result.output
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.thorough
def test_a_time_limit_that_leaves_nothing_is_told(tmp_path):
    """The result is there, says that it is not stress tested, and the same command goes on."""
    log, out = write_lines(tmp_path / "log.csv", LINES[:101]), tmp_path / "out"
    terms = ("--set", "method.n_wedge=1", "--kind", "robust", "--worlds", "2", "--workers", "1")
    arguments = ("improve", log, *PUMPS, *terms, "-o", out)
    result = run_surestep(*arguments, "--time-limit", "0")
    assert result.exit_code == 0, result.output
    assert f"saved {out}, not yet stress tested; next: 2 worlds of each kind" in result.stdout
    assert "NOT YET STRESS TESTED" in result.stdout
    assert surestep.load(out).awaits_stress_test
    result = run_surestep(*arguments)
    assert result.exit_code == 0, result.output
    assert surestep.load(out).rehearsal.worlds == 2
    assert run_surestep("verify", out, log).exit_code == 0
    before = contents(out)
    (out / "stress-test").mkdir()  # as a command leaves it that is killed after its last file
    result = run_surestep(*arguments)
    words = f"{out} holds the finished result of this command; nothing is left to do\n"
    assert (result.exit_code, result.stdout) == (0, words)
    result = run_surestep(*arguments, "--json")
    assert json.loads(result.stdout)["verdict"] == surestep.load(out).verdict
    assert contents(out) == before
    assert not (out / "stress-test").exists()
    write_lines(log, LINES[:113])
    result = run_surestep(*arguments)
    assert (result.exit_code, "is not empty; name a new folder" in result.stderr) == (2, True)
    assert contents(out) == before
