"""`surestep figure`: the picture in each format, and the table beside it."""

import csv
import sys
from functools import cache, partial

import pytest

from support.made_runs import METHODS, made_run
from support.pump_commands import run_surestep
from surestep.figures import figure as figures

MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}
TABLE = cache(figures.n_wedge_table)


@pytest.fixture(autouse=True)
def _one_table(monkeypatch):
    """The numbers, which take a second, are made once for all pictures."""
    monkeypatch.setattr(figures, "n_wedge_table", TABLE)


figure = partial(run_surestep, "figure")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "svg" else [pytest.mark.slow]) for kind in MAGIC],
)
def test_the_picture_is_drawn_in_each_format_the_same_each_time_with_its_table(tmp_path, kind):
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    result = figure("n-wedge", "-o", first)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"wrote {first}", f"wrote {tmp_path / 'a.csv'}"]
    assert first.read_bytes().startswith(MAGIC[kind])
    if kind != "png":  # which has no room for a date
        assert figure("n-wedge", "-o", second).exit_code == 0
        assert first.read_bytes() == second.read_bytes()
    assert_holds_the_papers_numbers(tmp_path / "a.csv")


def assert_holds_the_papers_numbers(path):
    table = list(csv.DictReader(path.read_text().splitlines()))
    sizes = [int(row["states"]) for row in table]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (2, 10**7)
    at = {int(row["states"]): row for row in table}
    # Values computed for the reference facts, with the paper's setting of its section 6.1.
    assert at[100]["beta"] == "15893461"
    assert at[10**7]["beta"] == "44733709"
    assert float(at[100]["spibb"]) == pytest.approx(1.00226e8, rel=1e-5)
    assert float(at[10**6]["2s"]) == pytest.approx(4.45256e7, rel=1e-5)


def test_without_matplotlib_the_command_to_install_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = figure("n-wedge", "-o", tmp_path / "n.png")
    assert result.exit_code == 2
    assert result.stderr.rstrip().endswith("pip install '.[plots]'")


def test_a_table_that_lacks_something_and_a_place_that_cannot_be_written_are_told(tmp_path):
    lacking = made_run(tmp_path / "lacking", without=["optimal_performance"])
    told = figure(lacking, "-o", tmp_path / "f.png")
    assert told.exit_code == 2
    assert "has no column 'optimal_performance', expected environment, episodes" in told.stderr
    whole = made_run(tmp_path / "whole", METHODS[:1], repetitions=2)
    (tmp_path / "f.csv").mkdir()  # where the table would go
    told = figure(whole, "-o", tmp_path / "f.svg", "--metric", "mean")
    assert told.exit_code == 2
    assert "f.csv cannot be written: it is a folder" in told.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"lacking", "whole", "f.csv"}
