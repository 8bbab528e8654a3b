"""`surestep verify`: what it confirms, what it does not, and what it refuses."""

import hashlib
import json
import shutil

import pytest

from support.pump_commands import EXAMPLES, LINES, PUMPS, UNTESTED, run_surestep, write_lines


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("verify")
    write_lines(home / "log.csv", LINES[:1501])
    shutil.copy(EXAMPLES / "pumps_policy.csv", home / "policy.csv")
    given = ("--behavior", home / "policy.csv", *UNTESTED, "-o", home / "out")
    assert run_surestep("improve", home / "log.csv", *PUMPS, *given).exit_code == 0
    return home


def test_the_same_bytes_are_confirmed(home):
    result = run_surestep(
        "verify", home / "out", home / "log.csv", "--behavior", home / "policy.csv"
    )
    assert (result.exit_code, result.stdout) == (0, "confirmed: the same bytes in every file\n")


def test_a_difference_is_named(home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    record = json.loads((out / "run.json").read_text())
    record["estimates"]["policy"] = 99.0
    (out / "run.json").write_text(json.dumps(record))
    result = run_surestep("verify", out, home / "log.csv", "--behavior", home / "policy.csv")
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("refuted\nrun.json: estimates: policy was 99.0, is ")


def test_what_does_not_belong_there_is_refused(home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    (out / "policy (final).csv").write_text("state,action,probability\n")
    result = run_surestep("verify", out, home / "log.csv", "--behavior", home / "policy.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "holds 'policy (final).csv', expected only files of the result" in result.stderr


def test_other_versions_are_no_confirmation(home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    record = json.loads((out / "run.json").read_text())
    known, record["versions"]["duckdb"] = record["versions"]["duckdb"], "0.1"
    shown = f"<dt>duckdb</dt><dd>{known}</dd>"
    page = (out / "report.html").read_text().replace(shown, shown.replace(known, "0.1"))
    (out / "report.html").write_text(page, encoding="utf-8")
    record["outputs"]["report.html"] = hashlib.sha256(page.encode()).hexdigest()
    (out / "run.json").write_text(json.dumps(record))
    result = run_surestep("verify", out, home / "log.csv", "--behavior", home / "policy.csv")
    assert result.exit_code == 1, result.output
    words = "not confirmed: the same values, but not the same bytes\n"
    assert result.stdout.startswith(f"{words}run.json: versions: duckdb was '0.1', is '")


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
    result = run_surestep(
        "verify", home / "out", tmp_path / "log.csv", "--behavior", home / "policy.csv"
    )
    assert result.exit_code == 2
    assert "does not have the counts that the result was made from" in result.stderr
    result = run_surestep("verify", tmp_path, home / "log.csv")
    assert (result.exit_code, "holds no result" in result.stderr) == (2, True)
    result = run_surestep("verify", home / "out", tmp_path / "gone.csv")
    assert (result.exit_code, "gone.csv is no file" in result.stderr) == (2, True)
