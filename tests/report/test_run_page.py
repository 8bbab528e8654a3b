"""The page of a run: well formed, of its own, and it shows what the tables say."""

import math
import re

import html5lib
import pytest
from click.testing import CliRunner

from coverage_runs import run_with_certifiers
from made_runs import METHODS, made_run
from surestep.cli.main import main
from surestep.experiments import Selection, family_summaries, read_run
from surestep.experiments.findings import MOST_LINES, findings_of
from surestep.report.run_page import run_page

SECTIONS = ["short", "curves", "tables", "settings", "words"]
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    ("<script>alert(1)</script>", "", None),
    ('"><img src=x onerror=alert(1)>', "$x=1", None),
    ("spibb", "", 100),
)


def page_of(directory, methods=METHODS, **settings):
    findings = findings_of(read_run(made_run(directory, methods, **settings)), Selection())
    markup = run_page(findings)
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return findings, markup, parser.parse(markup)


def test_it_holds_every_section_curve_and_number_and_is_the_same_each_time(tmp_path):
    findings, markup, tree = page_of(tmp_path / "run")
    assert markup == page_of(tmp_path / "again")[1]
    assert [node.get("id") for node in tree.iter("section")] == SECTIONS
    assert [node.text for node in tree.findall(".//h1/bdi")] == ["A made-up run"]
    dots = [node for node in tree.iter(f"{SVG}circle") if node.get("data-place")]
    assert len(dots) == 3 * 3 * 2  # metrics, methods, sizes
    mean = findings.comparisons[1].methods[1].summary.metrics["mean"]
    shown = [d.get("data-words") for d in dots if d.get("data-place") == "100 trajectories"]
    assert any(words.startswith(f"{mean.value:.4f}".rstrip("0")) for words in shown)
    assert all(node.find(f"{SVG}title").text.endswith(node.get("data-words")) for node in dots)
    text = "".join(tree.itertext())
    assert "3 methods in 1 environment, 2 data sizes from 10 to 100 trajectories" in text
    assert "surestep = 0.1.0" in text


def test_names_stay_names_and_nothing_leaves(tmp_path):
    _, markup, tree = page_of(tmp_path / "run", HOSTILE)
    assert [node for node in tree.iter() if node.tag in ("img", "link", "iframe", "a")] == [
        node for node in tree.iter("a") if re.fullmatch(r"#[a-z]+", node.get("href"))
    ]
    assert len(list(tree.iter("script"))) == 1
    assert "http" not in re.sub(r"http://www.w3.org/2000/svg|http-equiv", "", markup)


def test_many_methods_have_a_picture_for_each_algorithm(tmp_path):
    many = [(f"own-{i % 3}", f"a={i}", None) for i in range(3 * MOST_LINES)]
    findings, _, tree = page_of(tmp_path / "run", many, repetitions=2)
    assert findings.layout.columns == "algorithm"
    assert [node.text for node in tree.findall(".//section[@id='curves']/h3")] == [
        "own-0", "own-1", "own-2",
    ]  # fmt: skip


def test_the_command_writes_it_or_nothing(tmp_path):
    run = made_run(tmp_path / "run", repetitions=3)

    def compare(*arguments):
        return CliRunner().invoke(main, ["compare", str(run), *map(str, arguments)])

    told = compare("--page", tmp_path / "run.html", "--metric", "cvar5", "--against", "spibb")
    assert told.output == f"wrote {tmp_path / 'run.html'}\n"
    assert "5 % CVaR" in (tmp_path / "run.html").read_text()
    for arguments, words in (
        (["--page", tmp_path / "missing" / "run.html"], "cannot be written: No such file"),
        (["--page", tmp_path / "x.html", "--metric", "maen"], "there is no metric 'maen'"),
        (["--page", tmp_path / "x.html", "--against", "me"], "names no method"),
    ):
        told = compare(*arguments)
        assert told.exit_code == 2
        assert words in told.output
    assert {path.name for path in tmp_path.iterdir()} == {"run", "run.html"}


@pytest.mark.parametrize("sizes", [(10,), (1, 100000)])
def test_one_size_and_few_repetitions_will_do(tmp_path, sizes):
    _, markup, _ = page_of(tmp_path / "run", METHODS[:1], episodes=sizes, repetitions=1)
    assert "1 method in 1 environment" in markup


def test_claims_have_a_page_and_tables_of_their_own(tmp_path):
    run = run_with_certifiers(tmp_path / "claims")

    def compare(*arguments):
        return CliRunner().invoke(main, ["compare", str(run), *map(str, arguments)])

    told = compare("--page", tmp_path / "claims.html")
    assert told.exit_code == 0, told.output
    markup = (tmp_path / "claims.html").read_text()
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(markup)
    assert [node.get("id") for node in tree.iter("section")] == SECTIONS
    cells = family_summaries(read_run(run).columns)
    dots = [node for node in tree.iter(f"{SVG}circle") if node.get("data-place")]
    known = sum(not math.isnan(cell.tightness) for cell in cells)
    assert len(dots) == 2 * len(cells) + known
    printed = compare("--episodes", 300)
    assert "| posterior, c = 5 |" in printed.stdout
    assert printed.stdout.count("| claim |") == 2
    assert "Clopper and Pearson" in printed.stderr
    refused = compare("--metric", "mean")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--metric is given, but the run holds claims" in refused.stderr
