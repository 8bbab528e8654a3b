"""`surestep improve`: what a user sees, and every mistake told in one line with nothing written."""

import csv
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surestep
from support.junk import damaged
from support.pump_commands import LINES, POLICY, PUMPS, UNTESTED, run_surestep, write_lines

FILES = [
    *("certificate.json", "certificates.json", "policy.csv", "policy.parquet"),
    *("report.html", "run.json"),
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log and the policy that made it."""
    folder = tmp_path_factory.mktemp("logs")
    write_lines(folder / "log.csv", LINES[:1509])  # whole episodes
    write_lines(folder / "policy.csv", POLICY)
    return folder


def test_it_prints_what_it_understood_took_for_granted_and_found(logs, tmp_path):
    out = tmp_path / "a long way" / "down to the result of this improvement, further than 80" / "o"
    result = run_surestep("improve", logs / "log.csv", *PUMPS, *UNTESTED, "-o", out)
    assert result.exit_code == 0, result.output
    for line in (
        "Columns: episode, step, condition, demand, decision, ",
        "Keep what you do\n",
        "By default: behavior and 11 more (“How to repeat it” in the report)",
        "Not stress tested: nothing changed",
        f" files into {out}. Open the report: {out / 'report.html'}\n",
    ):
        assert line in result.stdout, line
    assert sorted(file.name for file in out.iterdir()) == FILES
    assert surestep.load(out).record.defaults == (
        *("behavior", "algorithm", "n_wedge", "least_visits", "rules", "delta", "running"),
        *("ending", "unseen", "certificates", "train_share", "logger"),
    )


@pytest.mark.thorough
def test_programs_get_json_and_nothing_else(logs, tmp_path):
    terms = ("--kind", "robust", "--set", "method.n_wedge=20", *UNTESTED)
    result = run_surestep(
        "improve", logs / "log.csv", *PUMPS, *terms, "-o", tmp_path / "o", "--json"
    )
    assert result.exit_code == 0, result.output
    saved = surestep.load(tmp_path / "o")
    assert json.loads(result.stdout) == {
        "verdict": saved.verdict,
        "lower": saved.certificate.lower,
        "delta": 0.1,
        "standing": "proved",
        "estimated_gain": saved.estimated_gain,
        "unit": "per episode",
        "totals": [asdict(total) for total in saved.totals],
        "hidden_odds": saved.hidden_odds,
        "failed_checks": [each.code for each in saved.record.checks if each.outcome == "failed"],
        "awaits_stress_test": False,
        "groups": [],  # nothing judges apart
    }


def test_what_is_given_is_no_default_and_the_command_makes_it_again(logs, tmp_path, monkeypatch):
    given = ("--behavior", logs / "policy.csv", "--set", "method.n_wedge=3", "--delta", "0.05")
    given += ("--algorithm", "spibb", "--running", "-140", "160", "--set", "method.unseen=terminal")
    given += ("--kind", "a-priori", "--ending", "-400", "500", "--worlds", "0")
    result = run_surestep("improve", logs / "log.csv", *PUMPS, *given, "-o", tmp_path / "one")
    assert result.exit_code == 0, result.output
    assert "By default" not in result.stdout
    record = json.loads((tmp_path / "one" / "run.json").read_text())
    assert record["defaults"] == []
    assert [each["role"] for each in record["inputs"]] == ["log", "behavior"]
    monkeypatch.chdir(logs)
    words = shlex.split(record["command"])
    assert words[-1] == "OUT"
    assert run_surestep(*words[1:-1], tmp_path / "two").exit_code == 0
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_labels_are_data_wherever_they_go(tmp_path):
    """Neither a spreadsheet nor a browser takes a label for something to run."""
    link, script = '=HYPERLINK("http://x","y")', "<script>alert(1)</script>"
    evil = [link, script, "@SUM(1)", "-2+3", "[red]x[/]"]
    with (tmp_path / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["state", "action", "reward", "next_state"])
        writer.writerows([label, other, 1, label] for label in evil for other in evil)
    out = tmp_path / "out"
    given = ("--discount", "0.5", *UNTESTED, "-o", out)
    result = run_surestep("improve", tmp_path / "log.csv", *given)
    assert result.exit_code == 0, result.output
    assert "<script>alert" not in (out / "report.html").read_text()
    with (out / "policy.csv").open(newline="") as file:
        cells = {cell for row in csv.reader(file) for cell in row}
    assert not any(cell.startswith(("=", "@", "-2+")) for cell in cells)
    assert {f"'{link}", script} <= cells
    told = run_surestep("explain", out, "--state", evil[4])
    assert told.exit_code == 0, told.output
    assert "[red]x[/]" in told.stdout
    names = duckdb.execute(f"SELECT DISTINCT state FROM '{out / 'policy.parquet'}'").fetchall()
    assert sorted(name for (name,) in names) == sorted(evil)


# ---- mistakes ---------------------------------------------------------------------------------


def assert_refused(folder, arguments, parts, out=None):
    out = folder / "out" if out is None else out
    before = sorted(folder.rglob("*"))
    result = run_surestep("improve", *arguments, "-o", out)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    for part in parts:
        assert part in result.stderr, result.stderr
    assert "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) <= 5
    assert sorted(folder.rglob("*")) == before


@pytest.mark.thorough
def test_folders_that_cannot_be_written(logs, tmp_path, monkeypatch):
    arguments = (logs / "log.csv", *PUMPS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x")
    assert_refused(tmp_path, arguments, ["is not empty; name a new folder"], tmp_path / "full")
    assert_refused(tmp_path, arguments, ["is a file"], tmp_path / "full" / "precious")
    below = tmp_path / "full" / "precious" / "out"
    assert_refused(tmp_path, arguments, ["Not a directory"], below)
    write = Path.write_bytes

    def full(self, content):
        if self.name == "report.html":
            raise OSError(28, "No space left on device")
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    assert_refused(tmp_path, arguments, ["cannot be written: No space left on device"])
    monkeypatch.undo()

    def forbidden(*rest, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", forbidden)
    assert_refused(tmp_path, arguments, ["out cannot be written: Permission denied"])
    monkeypatch.undo()
    monkeypatch.setattr("tempfile.mkdtemp", forbidden)
    assert_refused(tmp_path, arguments, ["no temporary folder can be made: Permission denied"])


@pytest.mark.slow  # test_ending.py has the signals, tests/io/logs/test_orders.py the scan
def test_ctrl_c_during_a_long_scan(tmp_path):
    """DuckDB itself is interrupted, in the middle of a log that takes longer than anyone waits."""
    log = tmp_path / "log.parquet"
    rows = (
        "SELECT i AS state, i % 7 AS action, i / 3.0 AS reward, i + 1 AS next_state FROM range({})"
    )
    duckdb.execute(f"COPY ({rows.format(1_000_000)} AS t(i)) TO '{log}' (FORMAT parquet)")
    (tmp_path / "scratch").mkdir()
    arguments = ["improve", log, "--discount", "0.5", "-o", tmp_path / "out"]
    with subprocess.Popen(
        [sys.executable, "-m", "surestep", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "scratch")},
    ) as process:
        assert any(line.startswith("reading the log") for line in process.stderr)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.endswith("Error: interrupted\n")
    assert "Traceback" not in told
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.parquet", "scratch"]
    assert [*(tmp_path / "scratch").iterdir()] == []


@pytest.mark.thorough
def test_a_terminal_without_our_letters_is_no_reason_to_fail():
    """Where ζ cannot be printed, something else is."""
    size = ("--states", "9", "--actions", "2", "--discount", "0.9", "--value-bound", "1")
    done = subprocess.run(
        [sys.executable, "-m", "surestep", "bound", *size, "--zeta", "0.1"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert b"visits for ? = 0.1" in done.stdout


# ---- noise ------------------------------------------------------------------------------------

SMALL = "\n".join(LINES[:30]).encode() + b"\n"


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_any_bytes_are_improved_on_or_refused(data, logs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    (folder / "log.csv").write_bytes(damaged(data, SMALL))
    result = run_surestep("improve", folder / "log.csv", *PUMPS, *UNTESTED, "-o", folder / "out")
    assert result.exit_code in (0, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    there = sorted(file.name for file in folder.iterdir())
    assert there == (["log.csv", "out"] if result.exit_code == 0 else ["log.csv"])
    if result.exit_code == 0:
        assert surestep.load(folder / "out").files().keys() == {*FILES}
