"""Simulated watches keep their promise, and docs/coverage.md has the tables of the tool."""

import numpy as np
import pytest
from scipy.stats import binom

import watches
from watches import ALPHA, DELTA, RUNS, N

KEPT = [name for name in RUNS if "mean of" not in name and not name.endswith(("0.1", "0.2"))]


@pytest.mark.one_quick
@pytest.mark.parametrize("name", KEPT)
def test_false_alarms_are_as_rare_as_promised(name, monkeypatch):
    """α, and δ of the level; 30 runs of 1,000 episodes, the test errs in 1 of 1,000."""
    monkeypatch.setattr(watches, "LAST", N)
    rng = np.random.default_rng(1)
    wrong = sum(RUNS[name](rng) <= N for _ in range(30))
    assert wrong <= binom.ppf(0.999, 30, ALPHA + DELTA)


def test_seasons_alone_raise_alarms(monkeypatch):
    monkeypatch.setattr(watches, "LAST", N)
    rng = np.random.default_rng(1)
    assert sum(RUNS["seasons of ±0.2"](rng) <= N for _ in range(10)) == 10


def test_the_tables_are_printed(monkeypatch, capsys):
    monkeypatch.setattr(watches, "LAST", N)
    monkeypatch.setattr("sys.argv", ["watches.py", *watches.SMALLEST])
    watches.main()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 + len(RUNS) + 1 + 2 + len(watches.FALLS) + 1


@pytest.mark.slow  # a minute and a half
def test_the_page_has_what_the_tool_prints(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["watches.py"])
    watches.main()
    page = (watches.ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in page
