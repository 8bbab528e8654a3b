"""`surestep verify`: what it confirms, what it does not, and what it refuses."""

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


@pytest.mark.thorough
def test_a_difference_is_named(home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    record = json.loads((out / "run.json").read_text())
    record["estimates"]["policy"] = 99.0
    (out / "run.json").write_text(json.dumps(record))
    result = run_surestep("verify", out, home / "log.csv", "--behavior", home / "policy.csv")
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("refuted\nrun.json: estimates: policy was 99.0, is ")


def test_what_was_compared_is_printed_and_another_word_is_no_refutation(home):
    (home / "mine.toml").write_text(
        'files = "log.csv"\nbehavior.policy = "policy.csv"\nstakes.discount = 0.95\n'
    )
    result = run_surestep("verify", home / "out", home / "mine.toml")
    assert result.exit_code == 0, result.output
    words = "what you gave agrees with it: files, behavior.policy, stakes.discount; all else is as "
    assert result.stdout == f"confirmed: the same bytes in every file\n{words}its run.json says\n"
    other = ("verify", home / "out", home / "mine.toml", "--set", "stakes.discount=0.9")
    result = run_surestep(*other)
    assert (result.exit_code, result.stdout) == (2, "")
    words = "stakes.discount: your description says 0.9, the result was made with 0.95"
    assert result.stderr.endswith(f"Error: {words}\n")


@pytest.mark.parametrize("name", ["policy.csv", "certificate.json", "report.html"])
def test_a_changed_file_is_refused(name, home, tmp_path):
    out = shutil.copytree(home / "out", tmp_path / "out")
    with (out / name).open("a") as file:
        file.write(" ")
    result = run_surestep("verify", out, home / "log.csv")
    assert result.exit_code == 2
    assert f"{out}: {name} was changed after it was written" in result.stderr
