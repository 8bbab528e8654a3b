"""The figure of claims: what is drawn, and the table beside it."""

import csv

from support.coverage_runs import run_with_certifiers
from surestep.figures.figure import draw


def test_a_run_with_certifiers_is_drawn_with_its_table(tmp_path):
    small_run = run_with_certifiers(tmp_path / "small")
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
