"""`surestep inspect`: in the terminal, as JSON and as a page."""

import json
import shlex
from pathlib import Path

import html5lib
import pytest
from click.testing import CliRunner

from support.pump_commands import LINES, write_lines
from surestep.cli.main import main

PUMPS = Path(__file__).parents[2] / "examples" / "pumps.csv"
HABIT = PUMPS.with_name("pumps_policy.csv")
COLUMNS = ("--state", "condition", "--state", "demand", "--action", "decision")
HOSTILE = (
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style>", "&amp;", "]]>"),
    *("\x1b[31mred", "\u202eright to left", "line\nbreak", "[bold]markup[/]", "x" * 500),
)


def surestep(*arguments, **environment):
    words = [str(word) for word in arguments]
    return CliRunner(env=environment).invoke(main, words, prog_name="surestep")


def hostile_log(path):
    """A log whose labels look like something else, and whose rows make no sense."""
    lines = ["episode,step,[/b]:ok:,action,reward"]
    for label in HOSTILE:
        cell = '"' + label.replace('"', '""') + '"'
        lines += [f"{cell},{step},{cell},{cell},{cell}" for step in (0, 2)]
    path.write_text("\n".join(lines) + "\n", newline="")
    return path


@pytest.mark.thorough
def test_the_example_tells_its_story_within_the_width():
    result = surestep("inspect", PUMPS, *COLUMNS, "--behavior", HABIT, COLUMNS="80")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    text = " ".join(result.stdout.split())
    assert "6,000 episodes: 1,419 terminated and 4,581 truncated" in text
    assert "15 states and 4 actions make 60 pairs; 7 were never visited." in text
    assert "53 pairs with more than 9 visits have 100 % of all visits." in text
    assert f"{HABIT}: fits the log" in text
    assert "None found." in text
    quoted = shlex.quote(str(PUMPS))
    assert lines[-2].startswith(f"  surestep improve {quoted} --state condition --state demand")
    assert "\x1b" not in result.stdout
    assert all(len(line) <= 80 for line in lines if str(PUMPS.parent) not in line)


def test_terminal_json_and_page_hold_the_same_numbers(tmp_path):
    log = write_lines(tmp_path / "log.csv", LINES[:9004])  # whole episodes
    pages = [tmp_path / "1.html", tmp_path / "2.html"]
    told = surestep("inspect", log, *COLUMNS, "--n-wedge", 100, "-o", pages[0], COLUMNS="80")
    assert f"wrote {pages[0]}" in told.stdout
    row = next(line for line in told.stdout.splitlines() if line.split()[:2] == ["new", "low"])
    assert row.split() == ["new", "low", "963", "(18)", "(8)", "·"]
    told = surestep("inspect", log, *COLUMNS, "--n-wedge", 100, "-o", pages[1], "--json")
    found = json.loads(told.stdout)
    assert (found["rows"], found["states"], found["n_wedge"]) == (9003, 15, 100)
    assert found["coverage"]["trusted"] == sum(
        visits > 100 for state in found["busiest"] for visits in state["visits"]
    )
    assert found["suspicions"] == []
    assert pages[0].read_bytes() == pages[1].read_bytes()
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(
        pages[0].read_text("utf-8")
    )
    assert [part.get("id") for part in tree.findall(".//main/section")] == [
        *("overview", "coverage", "limits", "checks", "suspicious", "next")
    ]
    assert len(tree.findall(".//figure")) == 4 + 3  # a picture for each check that was made
    names = [part.get("id") for part in tree.iter() if part.get("id")]
    assert len(names) == len(set(names))
    assert len(tree.findall(".//table[@id='states']/tbody/tr")) == 15
    assert "9,003" in "".join(tree.itertext())


def test_suspicious_rows_are_shown_and_not_refused(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("episode,step,state,action,reward\n1,0,s,x,1\n1,0,s,x,9\n1,3,s,x,no\n")
    result = surestep("inspect", log, COLUMNS="1000")
    assert result.exit_code == 0, result.output
    for expected in (
        "✗ 1 row without a finite number in column 'reward'",
        f"{log}, row 3, episode 1, step 3: no",
        "✗ 1 row too many: another row has the same episode and step (in 1 episode)",
        "✗ 1 row after which steps are missing (in 1 episode)",
        "! 1 episode without an end: no column says whether an episode is over",
        "Mend the rows that are refused, then:",
        f"surestep improve {shlex.quote(str(log))} --ends (complete|clock|random) --discount GAMMA",
    ):
        assert expected in result.stdout


def test_hostile_labels_stay_text_in_the_terminal_and_on_the_page(tmp_path):
    log, page = hostile_log(tmp_path / "[bold].csv"), tmp_path / "page.html"
    result = surestep("inspect", log, "--state", "[/b]:ok:", "-o", page, COLUMNS="300")
    assert result.exit_code == 0, result.output
    assert not {"\x1b", "\u202e"} & set(result.stdout)
    for text in ("[bold]markup[/]", "[/b]:ok:", str(log), HOSTILE[0]):
        assert text in result.stdout
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree = parser.parse(page.read_text("utf-8"))
    assert len(tree.findall(".//script")) == 1
    assert not tree.findall(".//img")
    cells = {"".join(cell.itertext()) for cell in tree.findall(".//table[@id='states']//td")}
    assert HOSTILE[0] in cells
    assert HOSTILE[1] in cells


def test_a_log_without_usable_rows_has_a_page_too(tmp_path):
    log, page = tmp_path / "log.csv", tmp_path / "page.html"
    log.write_text("episode,step,state,action,reward\n,,,,\n")
    result = surestep("inspect", log, "-o", page)
    assert result.exit_code == 0, result.output
    html5lib.HTMLParser(strict=True).parse(page.read_text("utf-8"))
