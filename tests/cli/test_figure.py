"""`surestep figure`: the picture in each format, and the table beside it."""

import sys
from functools import partial

import pytest

from support.made_runs import METHODS, made_run
from support.pump_commands import run_surestep

MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}
figure = partial(run_surestep, "figure")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "svg" else [pytest.mark.slow]) for kind in MAGIC],
)
def test_the_picture_is_drawn_in_each_format_the_same_each_time_with_its_table(tmp_path, kind):
    first, second = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    run = made_run(tmp_path / "made", METHODS[:1], repetitions=2)
    result = figure(run, "-o", first, "--metric", "mean")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"wrote {first}", f"wrote {tmp_path / 'a.csv'}"]
    assert first.read_bytes().startswith(MAGIC[kind])
    if kind != "png":  # which has no room for a date
        assert figure(run, "-o", second, "--metric", "mean").exit_code == 0
        assert first.read_bytes() == second.read_bytes()
    assert (tmp_path / "a.csv").read_text().startswith("environment,episodes,algorithm,setting")


def test_without_matplotlib_the_command_to_install_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = made_run(tmp_path / "made", METHODS[:1], repetitions=2)
    result = figure(run, "-o", tmp_path / "n.png")
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
