"""Figures and pages about claims: what is drawn, what is written, what is kept."""

import csv
from pathlib import Path

import pytest

from surestep.errors import SurestepError
from surestep.experiments import read_experiments, run_experiment
from surestep.report.coverage_page import NOT_JUDGED, from_size, rate, write_coverage_page
from surestep.report.figures import draw

BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
PLAN = """
title = "Coverage: a small one"
seed = 5
repetitions = 3
episodes = [10, 300]

[[environments]]
name = "wet-chicken"

[[algorithms]]
name = "spibb"
n_wedge = 5

[[algorithms]]
name = "basic-rl"

[[certifiers]]
name = "a-priori"
bound = "beta"

[[certifiers]]
name = "posterior"
prior_weight = 5
draws = 19
starts = "known"
"""


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """The directory of a small run with certifiers."""
    directory = tmp_path_factory.mktemp("runs") / "small"
    plan = directory.with_name("small.toml")
    plan.write_text(PLAN)
    (experiment,) = read_experiments(str(plan))
    run_experiment(experiment, directory)
    return directory


def test_a_run_with_certifiers_is_drawn_with_its_table(small_run, tmp_path):
    picture, beside = draw("small", small_run, tmp_path / "f.svg")
    assert picture.read_bytes().startswith(b"<?xml")
    rows = list(csv.DictReader(beside.read_text().splitlines()))
    assert len(rows) == 2 * 2 * 2
    refused = [row for row in rows if row["algorithm"] == "basic-rl" and not row["standing"]]
    assert {row["certifier"] for row in refused} == {"a-priori"}
    assert {row["refused"] for row in refused} == {"1.0"}
    assert {row["mean_lower"] for row in refused} == {""}
    mine = [row for row in rows if (row["algorithm"], row["certifier"]) == ("spibb", "posterior")]
    sizes = [int(row["episodes"]) for row in mine if float(row["positive"]) >= 0.5]
    assert {row["first_certified"] for row in mine} == {str(min(sizes))}


def test_the_page_keeps_what_stands_outside_of_the_marks(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Above\n\n{BEGIN}\nold\n{END}\n\nBelow\n")
    written = write_coverage_page(page, [small_run], tmp_path / "pictures")
    assert written == [page, *(tmp_path / "pictures" / f"small.{kind}" for kind in ("svg", "csv"))]
    text = page.read_text()
    assert text.startswith(f"# Above\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\nBelow\n")
    assert "old" not in text
    assert "## a small one\n\n![a small one](pictures/small.svg)" in text
    assert "| posterior | each MDP | 4 | 3 |" in text
    assert "| posterior | families pooled | 4 | 3 |" in text
    assert "| wet-chicken: basic-rl | a-priori, beta | always refused | 2 |" in text
    again = page.read_bytes()
    write_coverage_page(page, [small_run], tmp_path / "pictures")
    assert page.read_bytes() == again


def test_what_breaks_an_assumption_is_shown_and_not_judged(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nkept\n{END}\n<!-- hard: begin --><!-- hard: end -->\n")
    write_coverage_page(page, [], tmp_path / "pictures", block="hard", beside=[small_run])
    text = page.read_text()
    assert text.startswith(f"{BEGIN}\nkept\n{END}\n<!-- hard: begin -->\n")
    assert "each MDP" not in text  # no verdict
    assert f"![a small one](pictures/small.svg)\n\n{NOT_JUDGED}\n\n| task |" in text
    assert "| wet-chicken: spibb, N∧ = 5 | posterior, c = 5 | posterior | 2 |" in text
    write_coverage_page(page, [small_run], tmp_path / "pictures", block="hard")
    assert NOT_JUDGED not in page.read_text()
    assert "| posterior | each MDP | 4 | 3 |" in page.read_text()


def test_a_page_without_marks_is_refused_and_left_alone(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{END} {BEGIN}")
    with pytest.raises(SurestepError, match="lacks the marks"):
        write_coverage_page(page, [small_run], tmp_path)
    assert page.read_text() == f"{END} {BEGIN}"
    with pytest.raises(SurestepError, match="cannot read"):
        write_coverage_page(Path(tmp_path / "missing.md"), [small_run], tmp_path)


def test_sizes_of_many_mdps_are_a_median():
    assert from_size([100]) == "100"
    assert from_size([None]) == "none of these"
    assert from_size([10, 1000, None]) == "median 1,000; 2 of 3 MDPs at all"
    assert from_size([10, None, None]) == "median none of these; 1 of 3 MDPs at all"
    assert from_size([None, None]) == "none of these, in 2 MDPs"
    assert (rate(0.12345), rate(float("nan"))) == ("12.3 %", "–")
