"""`surestep compare`: tables of any run, and slips told in one line."""

import csv
from functools import partial

import pytest

from support.coverage_runs import run_with_certifiers
from support.made_runs import METHODS, made_run
from support.pump_commands import run_surestep
from surestep.experiments import Selection, compare_run, read_run

compare = partial(run_surestep, "compare")


def test_tables_are_printed_with_what_their_intervals_are(tmp_path):
    run = made_run(tmp_path / "run")
    told = compare(run, "--against", "spibb", "--episodes", 100)
    assert told.exit_code == 0, told.output
    assert "**gridworld, 100 trajectories, 20 repetitions, π_b 0.4, π\\* 1: ρ**" in told.stdout
    lines = told.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("| method"))
    assert heading.endswith("| mean difference to SPIBB, N∧ = 100 | better than SPIBB, N∧ = 100 "
                            "| worse than SPIBB, N∧ = 100 |")  # fmt: skip
    assert sum(line.startswith("| β, N∧ = 100, δ = 0.1 |") for line in lines) == 1
    assert "95 % intervals" in told.stderr
    told = compare(run, "--metric", "mean", "--value", "normalised")
    assert told.stdout.count("| --- |") == 2


def test_names_are_neither_formulas_nor_orders(tmp_path):
    methods = (("=cmd|'/c calc'!A1", "", None), ("-a\x1b[31m\u202e\x00b", "", None))
    run = made_run(tmp_path / "run", methods, repetitions=4, episodes=(10,))
    rows = list(csv.DictReader(compare(run, "--format", "csv").stdout.splitlines()))
    assert [row["algorithm"][:6] for row in rows] == ["'=cmd|", "'-a\\x1"]
    assert {row["against"][:6] for row in rows} == {"'=cmd|"}
    assert "-a [31m b" in compare(run).stdout


def test_csv_is_one_table_of_all_numbers(tmp_path):
    made_run(tmp_path / "run")
    told = compare(tmp_path / "run", "--format", "csv", "--metric", "worse", "--against", "spibb")
    rows = list(csv.DictReader(told.stdout.splitlines()))
    assert [(row["episodes"], row["algorithm"]) for row in rows] == [
        (size, name) for size in ("10", "100") for name, *_ in METHODS
    ]
    run = read_run(tmp_path / "run")
    expected = [
        one
        for each in compare_run(run, Selection(), metrics=["worse"], against="spibb")
        for one in each.methods
    ]
    for row, one in zip(rows, expected, strict=True):
        found = [float(row[name]) for name in ("worse", "worse_low", "worse_high")]
        assert found == pytest.approx(list(one.summary.metrics["worse"]), rel=1e-8)
        assert (row["against"], "mean" in row) == ("spibb:n_wedge=100", False)
        if one.difference is None:
            assert row["difference"] == row["ahead_high"] == ""
        else:
            assert float(row["difference"]) == pytest.approx(one.difference.mean.value, rel=1e-8)
            assert float(row["behind"]) == pytest.approx(one.difference.behind.value, rel=1e-8)


def test_student_intervals_stand_beside_the_exact_ones_and_say_what_they_are(tmp_path):
    run = made_run(tmp_path / "run")
    plain = compare(run, "--metric", "mean", "--episodes", 100)
    assert "Student" not in plain.output
    told = compare(run, "--metric", "mean", "--episodes", 100, "--intervals", "student")
    assert told.exit_code == 0, told.output
    assert "they miss the truth in more than 5 %" in told.stderr
    heading = next(line for line in told.stdout.splitlines() if line.startswith("| method"))
    assert heading == (
        "| method | mean | Student (asymptotic): mean | mean difference to Basic RL "
        "| better than Basic RL | worse than Basic RL "
        "| Student (asymptotic): mean difference to Basic RL |"
    )
    for asked in ("exact", "student"):
        said = compare(run, "--metric", "mean", "--format", "csv", "--intervals", asked).stdout
        for row in csv.DictReader(said.splitlines()):
            assert ("student_low" in row, "difference_student_low" in row) == (
                (asked == "student",) * 2
            )
            if asked == "student" and row["difference"]:
                low, high = float(row["difference_low"]), float(row["difference_high"])
                assert low < float(row["difference_student_low"])
                assert float(row["difference_student_high"]) < high


def test_claims_are_compared_by_what_they_say(tmp_path):
    run = run_with_certifiers(tmp_path / "small")
    told = compare(run, "--algorithm", "spibb", "--episodes", 10)
    assert told.exit_code == 0, told.output
    assert "**wet-chicken: spibb, N∧ = 5, 10 trajectories, 3 repetitions**" in told.stdout
    assert sum(line.startswith("| posterior, c = 5 | posterior | 0.1 |")
               for line in told.stdout.splitlines()) == 1  # fmt: skip
    rows = list(csv.DictReader(compare(run, "--format", "csv").stdout.splitlines()))
    assert len(rows) == 2 * 2 * 2
    for words in (("--against", "x"), ("--intervals", "student")):
        assert "holds claims of certifiers" in compare(run, *words).stderr
