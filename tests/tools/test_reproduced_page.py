"""The page that reproduces the paper: it says what its tables say, and would say otherwise."""

import csv
import math

import pytest

import figure_3
import reproduced_page
from reproduced_page import CAPTIONS, FIGURES, FOLDER, PAGE, Curve, around_block, blocks, curves_of
from support.made_runs import made_run
from surestep.experiments import summaries
from surestep.experiments.comparison import USUAL
from surestep.experiments.tables import as_csv, row_of


def test_the_page_says_what_its_tables_say():
    text = PAGE.read_text(encoding="utf-8")
    names = []
    for name, content in blocks(FOLDER):
        before, after = around_block(PAGE, name)
        assert text == f"{before}\n\n{content}\n\n{after}", name
        names.append(name)
    assert text.count(": begin -->") == len(names)
    for figure in ("figure-3", *FIGURES.values()):
        assert f"(reproduced/{figure}.svg)" in text
        assert (FOLDER / f"{figure}.svg").stat().st_size > 10_000


def test_a_table_of_the_full_evaluation_stands_behind_it():
    for name, figure in FIGURES.items():
        found = curves_of(FOLDER / f"{figure}.csv")
        assert len(found) == 10
        assert {row["repetitions"] for one in found for row in one.rows} == {"1000"}
        assert {len(one.rows) for one in found} == {17}
        used = {one.used for one in found} - {None}
        assert used == {n for triple in CAPTIONS[name] for n in triple}


def curve(means, sizes=(1, 10, 100), behavior=1.0, optimal=2.0):
    rows = [
        {"episodes": str(size), "mean": str(mean), "cvar1": str(mean - 0.2)}
        for size, mean in zip(sizes, means, strict=True)
    ]
    return Curve("spibb", 5, 5, behavior, optimal, tuple(rows))


def test_sizes_are_interpolated_by_their_logarithm():
    assert curve([1.0, 1.0, 2.0]).reaches(0.5) == pytest.approx(math.sqrt(1000))
    assert curve([1.0, 1.5, 2.0]).reaches(0.5) == pytest.approx(10)
    assert curve([1.9, 1.5, 2.0]).reaches(0.5) == 1
    assert curve([1.0, 1.1, 1.2]).reaches(0.5) == math.inf
    assert curve([1.0, 1.15, 1.3]).below("cvar1") == [1, 10]
    assert curve([1.0, 1.15, 1.3]).below("cvar1", 0.1) == [1]


def test_figure_3_has_the_papers_numbers():
    table = figure_3.n_wedge_table()
    sizes = [row["states"] for row in table]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (2, 10**7)
    at = {row["states"]: row for row in table}
    # Values computed for the reference facts, with the paper's setting of its section 6.1.
    assert at[100]["beta"] == 15893461
    assert at[10**7]["beta"] == 44733709
    assert at[100]["spibb"] == pytest.approx(1.00226e8, rel=1e-5)
    assert at[10**6]["2s"] == pytest.approx(4.45256e7, rel=1e-5)


def drawn_before(path):
    """Figure 3, which does not depend on runs, as it is in the docs."""
    return {
        path.with_suffix(suffix): (FOLDER / f"figure-3{suffix}").read_bytes()
        for suffix in (".svg", ".csv")
    }


def only_numbers(run, path):
    """The table beside a figure, whose picture takes long and is tested elsewhere."""
    return {
        path: b"a picture",
        path.with_suffix(".csv"): as_csv(map(row_of, summaries(run.columns, USUAL))).encode(),
    }


@pytest.mark.thorough
def test_made_up_runs_are_drawn_and_do_not_agree(tmp_path, capsys, monkeypatch):
    """The quick form: other numbers, of which few agree with the paper, make another page."""
    monkeypatch.setattr(reproduced_page, "draw_run", only_numbers)
    monkeypatch.setattr(reproduced_page, "draw_n_wedge", drawn_before)
    page, folder, runs = tmp_path / "page.md", tmp_path / "reproduced", tmp_path / "runs"
    page.write_text(PAGE.read_text(encoding="utf-8"))
    for name, triples in CAPTIONS.items():
        methods = [("basic-rl", "", None)] + [
            (method, "", triple[0])
            for method in ("spibb", "spibb-2s", "spibb-beta")
            for triple in triples
        ]
        made_run(runs / name, methods, repetitions=2)
    reproduced_page.main([str(runs)], page, folder)
    assert capsys.readouterr().out.count("wrote ") == 10
    changed = page.read_text()
    assert changed != PAGE.read_text(encoding="utf-8")
    assert changed.count("**differs**") > PAGE.read_text(encoding="utf-8").count("**differs**")
    times = list(csv.DictReader((folder / "times.csv").read_text().splitlines()))
    assert {row["seconds"] for row in times} == {"2.2"}
    again = page.read_bytes()
    reproduced_page.main(["--page"], page, folder)
    assert page.read_bytes() == again
