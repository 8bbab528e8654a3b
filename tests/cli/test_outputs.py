"""Outputs: nothing that a command reads is overwritten, and nothing but a regular file is."""

import os
import shutil

import pytest

from support.made_runs import made_run
from support.pump_commands import LINES, PUMPS, UNTESTED, run_surestep, write_lines

COLUMNS = PUMPS[:-2]  # without the discount
DESCRIBED = """
files = "parts/*.csv"
query = "SELECT * FROM log"
tables.beds = "beds"
behavior.policy = "pays.csv"
limits.allowed = "pays.tsv"
columns = { state = ["condition", "demand"], action = "decision" }
"""
PAYS = ["condition,demand,decision,probability", "new,low,run,1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A log, two files of counts, a result, an experiment, a run and a table of a policy."""
    home = tmp_path_factory.mktemp("made")
    log = write_lines(home / "log.csv", LINES[:151])
    other = write_lines(home / "other.csv", [LINES[0], *LINES[1501:1651]])
    for file in (log, other):
        counts = file.with_suffix(".parquet")
        assert run_surestep("count", file, *COLUMNS, "-o", counts).exit_code == 0
    terms = ("--kind", "a-priori", "--set", "method.n_wedge=5")
    told = run_surestep("improve", log, *PUMPS, *UNTESTED, *terms, "-o", home / "result")
    assert told.exit_code == 0, told.output
    made_run(home / "run")
    for folder, name in (("parts", "log.csv"), ("beds", "beds.csv"), (".", "pays.csv")):
        (home / folder).mkdir(exist_ok=True)
        write_lines(home / folder / name, PAYS if folder == "." else LINES[:151])
    write_lines(home / "pays.tsv", PAYS)
    (home / "log.toml").write_text(DESCRIBED)
    return home


@pytest.fixture
def home(made, tmp_path, monkeypatch):
    """A copy of them, which is the current folder."""
    shutil.copytree(made, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def contents_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


KIND = ("--kind", "a-priori")


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("count", "log.csv", *COLUMNS), "log.csv"),
        (("count", ".", *COLUMNS), "log.csv"),
        (("inspect", "log.csv", *COLUMNS, "--behavior", "pays.csv"), "pays.csv"),
        (("merge", "log.parquet", "other.parquet"), "other.parquet"),
        (("certify", "result", "log.csv", *KIND), "log.csv"),
        (("certify", "result", "log.csv", *KIND), "result/certificate.json"),
        (("certify", "result", "log.csv", *KIND), "result/report.html"),
    ],
)
def test_what_is_read_is_not_overwritten(words, output, home):
    before = contents_of(home)
    told = run_surestep(*words, "-o", output)
    assert (told.exit_code, told.stdout) == (2, ""), told.output
    assert told.stderr.count("\n") == 1
    assert "cannot be written: it is the input " in told.stderr
    assert contents_of(home) == before


@pytest.mark.parametrize("output", ["parts/log.csv", "beds/beds.csv", "pays.csv", "pays.tsv"])
@pytest.mark.parametrize("words", [("count",), ("inspect",), ("certify", "result", *KIND)])
def test_what_a_description_names_is_not_overwritten(words, output, home):
    before = contents_of(home)
    told = run_surestep(*words, "log.toml", "-o", output)
    assert (told.exit_code, told.stdout) == (2, ""), told.output
    assert "cannot be written: it is the input " in told.stderr
    assert contents_of(home) == before


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_an_input_is_known_by_its_links_too(link, home):
    link(home / "log.csv", home / "same.parquet")
    told = run_surestep("count", "log.csv", *COLUMNS, "-o", "same.parquet")
    assert (told.exit_code, "it is the input log.csv" in told.stderr) == (2, True)
    told = run_surestep("merge", "log.parquet", "other.parquet", "-o", "log.parquet")
    assert told.exit_code == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_no_regular_file_is_not_replaced(home):
    os.mkfifo(home / "pipe")
    (home / "folder").mkdir()
    for output, words in (
        ("pipe", "it is no regular file"),
        ("folder", "it is a folder"),
        ("n" * 300, "File name too long"),
        ("log.csv/page", "Not a directory"),
    ):
        for verb in (
            ("count", "log.csv", *COLUMNS),
            ("inspect", "log.csv", *COLUMNS),
            ("certify", "result", "log.csv", *KIND),
        ):
            told = run_surestep(*verb, "-o", output)
            assert (told.exit_code, words in told.stderr) == (2, True), told.output
    assert (home / "pipe").is_fifo()


@pytest.mark.thorough
def test_a_folder_is_named_by_a_link_or_refused_in_one_line(home):
    (home / "empty").mkdir()
    (home / "link").symlink_to("empty")
    (home / "later").symlink_to("not/yet")
    (home / "loop").symlink_to("loop")
    terms = (*PUMPS, *UNTESTED, "--kind", "a-priori", "--set", "method.n_wedge=5")
    for link, folder in (("link", "empty"), ("later", "not/yet")):
        told = run_surestep("improve", "log.csv", *terms, "-o", link)
        assert told.exit_code == 0, told.output
        assert (home / link).is_symlink()
        assert "run.json" in os.listdir(home / folder)
    for output, words in (("n" * 300, "File name too long"), ("loop", "cannot be written")):
        told = run_surestep("improve", "log.csv", *terms, "-o", output)
        assert (told.exit_code, words in told.stderr) == (2, True), told.output
        assert "Traceback" not in told.output
    assert run_surestep("verify", "link", "log.csv").exit_code == 0
