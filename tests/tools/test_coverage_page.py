"""The page about coverage: what is written between the marks, and what is kept outside of them."""

import csv
import math
from pathlib import Path

import pytest

from coverage_page import write_coverage_page, write_verdicts
from judged_results import JudgedResult, verdict_counts
from support.coverage_runs import run_with_certifiers
from surestep.errors import SurestepError

BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """The directory of a small run with certifiers."""
    return run_with_certifiers(tmp_path_factory.mktemp("runs") / "small")


def said(verdict, *, lower=0.0, belief=math.nan, gain=0.0, family="f", repetition=0):
    return JudgedResult(family, family, 100, repetition, 0, verdict, lower, belief, gain, 1.0)


def test_the_page_keeps_what_stands_outside_of_the_marks(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Above\n\n{BEGIN}\nold\n{END}\n\nBelow\n")
    written = write_coverage_page(page, [small_run], tmp_path / "pictures")
    names = ("small.svg", "small.csv", "by-certifier/small.csv", "by-size/small.csv")
    assert written == [page, *(tmp_path / "pictures" / name for name in names)]
    text = page.read_text()
    assert text.startswith(f"# Above\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\nBelow\n")
    assert "old" not in text
    assert "## A small one\n\n![a small one](pictures/small.svg)" in text
    assert all(f"](pictures/{name})" in text for name in names)
    assert "| posterior | each MDP | 4 | 3 |" in text
    assert "| posterior | families pooled | 4 | 3 |" in text
    with (tmp_path / "pictures" / names[2]).open(newline="", encoding="utf-8") as file:
        rows = [row[:4] for row in csv.reader(file)]
    assert ["wet-chicken: basic-rl", "a-priori, beta", "always refused", "2"] in rows
    with (tmp_path / "pictures" / names[3]).open(newline="", encoding="utf-8") as file:
        sizes = list(csv.DictReader(file))
    (refused,) = {row["refused"] for row in sizes if row["certifier"] == "a-priori, beta"} & {"1"}
    assert all(row["mean_lower"] == "" for row in sizes if row["refused"] == refused)
    again = page.read_bytes()
    write_coverage_page(page, [small_run], tmp_path / "pictures")
    assert page.read_bytes() == again


def test_a_page_without_marks_is_refused_and_left_alone(small_run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{END} {BEGIN}")
    with pytest.raises(SurestepError, match="lacks the marks"):
        write_coverage_page(page, [small_run], tmp_path)
    assert page.read_text() == f"{END} {BEGIN}"
    with pytest.raises(SurestepError, match="cannot read"):
        write_coverage_page(Path(tmp_path / "missing.md"), [small_run], tmp_path)


def test_the_page_says_how_often_better_is_wrong(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- verdicts: begin -->former<!-- verdicts: end -->\nbelow\n")
    counts = verdict_counts([said("proved better", lower=0.3, gain=0.2)] * 40)
    broken = verdict_counts([said("believed better", belief=0.3, family="hidden")])
    write_verdicts(page, counts, broken, 0.1)
    text = page.read_text()
    assert text.startswith("above\n<!-- verdicts: begin -->\n\n*Proved better* in 1 cells, refuted")
    assert "refuted at δ = 0.1: f, 100." in text
    assert "| all of these | 100 | 40 | 0.2 | 100 % | 100 % (91.2 % – 100 %) | 0 % | 0 % |" in text
    assert "| hidden | 100 | 1 | 0 |" in text
    assert text.endswith("<!-- verdicts: end -->\nbelow\n")
    assert "former" not in text
