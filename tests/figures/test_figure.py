"""Which run is drawn by what, under every name that `surestep run` takes."""

import csv
import json

import pytest

from support.coverage_runs import run_with_certifiers
from support.made_runs import made_run
from surestep.errors import SurestepError
from surestep.experiments import Selection, find_runs, list_experiments, read_experiments, read_run
from surestep.figures import curves
from surestep.figures.figure import Request, draw

PLAN = """
seed = 5
repetitions = 20
episodes = [10, 100]
environments = ["gridworld"]
algorithms = ["basic-rl"]
"""


@pytest.mark.parametrize("manifest", [{}, {"name": "a", "title": "b", "identity": 3}])
def test_a_manifest_that_does_not_say_what_was_run_is_refused(manifest, tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SurestepError, match=r"manifest\.json cannot be read: "):
        read_run(tmp_path)


def test_all_that_run_takes_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in list_experiments():
        made = tmp_path / "runs" / name
        made.mkdir(parents=True)
        (made / "manifest.json").write_text(
            json.dumps(dict.fromkeys(("name", "title", "identity"), name))
        )
    assert [str(path) for path in find_runs("paper/gridworld")] == ["runs/paper/gridworld"]
    in_folder = [name for name in list_experiments() if name.startswith("paper/")]
    assert [str(path) for path in find_runs("paper")] == [f"runs/{name}" for name in in_folder]
    runs = find_runs("coverage", tmp_path / "runs")
    assert len(runs) == sum(name.startswith("coverage/") for name in list_experiments())
    assert find_runs("runs/paper/gridworld") == find_runs("paper/gridworld")
    plan = tmp_path / "plans" / "mine.toml"
    plan.parent.mkdir()
    plan.write_text(PLAN)
    (experiment,) = read_experiments(str(plan))
    made_run(tmp_path / "runs" / "mine", name="mine", identity=experiment.identity())
    assert [str(path) for path in find_runs(str(plan))] == ["runs/mine"]
    plan.write_text(PLAN.replace("seed = 5", "seed = 6"))
    with pytest.raises(SurestepError, match=r"was run with other settings than .*mine.toml has"):
        find_runs(str(plan))


@pytest.fixture
def unseen(monkeypatch):
    """Pictures that nobody looks at need not be rendered, which takes the time."""
    monkeypatch.setattr(curves.pen, "rendered", lambda figure, kind: b"a picture")


@pytest.mark.usefixtures("unseen")
def test_several_runs_have_a_picture_each(tmp_path):
    names = [name for name in list_experiments() if name.startswith("paper/")]
    for name in names:
        made_run(tmp_path / name, name=name)
    drawn = draw("paper", tmp_path, tmp_path / "figure.svg", Request(metrics=["mean"]))
    endings = [name.split("/")[1] for name in names]
    assert [picture.name for picture in drawn[::2]] == [f"figure-{end}.svg" for end in endings]
    assert all(beside.read_bytes() for beside in drawn)


@pytest.mark.parametrize(
    ("name", "directory", "words"),
    [
        ("paper/gridworld", None, "runs/paper/gridworld holds no run; make one with: surestep run"),
        ("paper/gridworld", "made", "made holds the run 'made', expected 'paper/gridworld'"),
    ],
)
def test_a_run_that_is_not_there_is_refused_with_what_to_do(
    name, directory, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    made_run(tmp_path / "made")
    where = None if directory is None else tmp_path.relative_to(tmp_path) / directory
    with pytest.raises(SurestepError, match=words):
        draw(name, where, tmp_path / "f.png")
    assert not (tmp_path / "f.png").exists()


def test_parts_that_are_not_there_are_refused(tmp_path):
    made_run(tmp_path / "made")
    for wrong, words in (
        (
            Selection(["spibb:n_wedge=7"]),
            "no algorithm 'spibb:n_wedge=7' in this run, expected bas",
        ),
        (Selection(environments=["maze"]), "no environment 'maze' in this run, expected gridworld"),
        (Selection(episodes=[11]), "no data size 11 in this run, expected 10, 100"),
    ):
        with pytest.raises(SurestepError, match=words):
            draw("made", tmp_path / "made", tmp_path / "f.png", Request(selection=wrong))


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
