"""`surestep compare`: tables of any run, and slips told in one line."""

import pytest
from click.testing import CliRunner

from made_runs import made_run
from surestep.cli.main import main


def compare(*arguments):
    """What the verb answers."""
    return CliRunner().invoke(main, ["compare", *map(str, arguments)], prog_name="surestep")


def test_tables_are_printed_with_what_their_intervals_are(tmp_path):
    run = made_run(tmp_path / "run")
    told = compare(run, "--against", "spibb", "--episodes", 100)
    assert told.exit_code == 0, told.output
    assert "**gridworld, 100 trajectories, 20 repetitions, π_b 0.4, π\\* 1: ρ**" in told.stdout
    lines = told.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("| method"))
    assert heading.endswith("| mean difference to SPIBB, N∧ = 100 | better than SPIBB, N∧ = 100 "
                            "| worse than SPIBB, N∧ = 100 |")  # fmt: skip
    assert sum(line.startswith("| β, N∧ = 100, δ = 0.1 |") for line in lines) == 2
    assert "95 % intervals" in told.stderr
    latex = compare(run, "--format", "latex", "--metric", "mean", "--value", "normalised")
    assert latex.stdout.count(r"\begin{tabular}") == 4
    assert "<table>" in compare(run, "--format", "html", "--algorithm", "spibb").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metric", "maen"], "there is no metric 'maen'; did you mean mean?"),
        (["--algorithm", "ramdp"], "there is no algorithm 'ramdp' in this run, expected basic-rl"),
        (["--against", "ramdp"], "--against is 'ramdp', which names no method of this run"),
    ],
)
def test_slips_are_told_in_one_line(tmp_path, arguments, words):
    told = compare(made_run(tmp_path / "run"), *arguments)
    assert told.exit_code == 2
    assert words in told.stderr
    assert told.stdout == ""
    assert len(told.stderr.strip().splitlines()) == 1


def test_a_table_that_lacks_something_is_told(tmp_path):
    told = compare(made_run(tmp_path / "run", without=["performance"]))
    assert told.exit_code == 2
    assert "has no column 'performance'; expected environment" in told.stderr
    claims = made_run(tmp_path / "claims", identity='{"certifiers": []}', without=["setting"])
    assert "has no column 'family'" in compare(claims).stderr
