"""`surestep verify`: what it confirms, what it does not, and what it refuses."""

import json
import shutil

import pytest

from pump_commands import EXAMPLES, LINES, PUMPS, run_surestep, write_lines


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("verify")
    write_lines(home / "log.csv", LINES[:1501])
    shutil.copy(EXAMPLES / "pumps_policy.csv", home / "policy.csv")
    given = ("--behavior", home / "policy.csv", "-o", home / "out")
    assert run_surestep("improve", home / "log.csv", *PUMPS, *given).exit_code == 0
    return home


def test_the_same_bytes_are_confirmed(home):
    result = run_surestep(
        "verify", home / "out", home / "log.csv", "--behavior", home / "policy.csv"
    )
    assert (result.exit_code, result.stdout) == (0, "confirmed: the same bytes in every file\n")


def test_what_was_not_given_again_is_told(home):
    result = run_surestep("verify", home / "out", home / "log.csv")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == [
        f"not checked: behavior, taken from {home / 'out'} itself; give it with --behavior"
    ]


def test_other_versions_confirm_the_values(home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    record = json.loads((out / "run.json").read_text())
    record["versions"]["duckdb"] = "0.1"
    (out / "run.json").write_text(json.dumps(record))
    result = run_surestep("verify", out, home / "log.csv", "--behavior", home / "policy.csv")
    assert result.exit_code == 0, result.output
    assert (
        "confirmed: equal counts, the same policy up to ties, values within 1e-9\n" in result.stdout
    )
    assert "bytes were not compared: it was made with duckdb 0.1, and this is" in result.stdout
    assert "report.html was not compared" in result.stdout


@pytest.mark.parametrize("name", ["policy.csv", "certificate.json", "report.html"])
def test_a_changed_file_is_refused(name, home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    with (out / name).open("a") as file:
        file.write(" ")
    result = run_surestep("verify", out, home / "log.csv")
    assert result.exit_code == 2
    assert f"{out}: {name} was changed after it was written" in result.stderr


def test_other_logs_and_folders_are_refused(home, tmp_path):
    write_lines(tmp_path / "log.csv", LINES[:1400])
    result = run_surestep("verify", home / "out", tmp_path / "log.csv")
    assert result.exit_code == 2
    assert "does not have the counts that the result was made from" in result.stderr
    result = run_surestep("verify", tmp_path, home / "log.csv")
    assert (result.exit_code, "holds no result" in result.stderr) == (2, True)
    result = run_surestep("verify", home / "out", tmp_path / "gone.csv")
    assert (result.exit_code, "gone.csv is no file" in result.stderr) == (2, True)
