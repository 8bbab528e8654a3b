"""What reaches a terminal: labels are shown, whatever they hold, and never obeyed."""

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
import termios
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import surestep.cli
from support.pump_commands import run_surestep
from surestep import sections
from surestep._progress import Lines, task_progress
from surestep._words import harmless, visible
from surestep.cli.terminal import terminal
from surestep.report.terminal import print_sections

EVIL = [
    "\x1b[31mred\x1b[0m",  # colours
    "\x1b]0;title\x07",  # the title of the window
    "\x9b2Jgone",  # C1: clears the screen
    "\u202edesrever\u2066",  # turns the direction
    "one\nconfirmed: the same bytes in every file",
    "back\rover\x7f",
]
CALLED = [harmless(label) for label in EVIL[:4]]


def obeyed(text):
    """The characters that a terminal would obey, but for ends of lines and spaces."""
    kinds = ("Cc", "Zl", "Zp")
    turns = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return [
        each
        for each in text
        if (unicodedata.category(each) in kinds and each != "\n")
        or unicodedata.bidirectional(each) in turns
        or each in "\u200e\u200f\u061c"
    ]


@given(st.text())
def test_what_would_be_obeyed_is_called_by_its_name(text):
    shown = visible(text)
    assert not obeyed(shown)
    assert "\n" not in shown
    if not obeyed(text) and "\n" not in text:
        assert shown == text


@given(st.text(max_size=20), st.sampled_from(EVIL))
def test_only_our_own_colours_reach_a_terminal(text, label):
    file = io.StringIO()
    console = terminal(file=file, force_terminal=True, color_system="standard", width=400)
    table = Table("heading")
    table.add_row(Text(label + text, style="bold red"))
    console.print(table)
    console.print(label + text, style="green", markup=False)
    ours = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue().replace(visible(label), ""))
    assert "\x1b" not in ours
    assert not obeyed(ours)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A log in which every label is evil, and a result of it."""
    home = tmp_path_factory.mktemp("evil")
    with (home / "log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["state", "action", "reward", "next_state"])
        writer.writerows([label, other, 1, label] for label in EVIL for other in EVIL)
    done = run_surestep(
        "improve", home / "log.csv", "--discount", "0.5", "--set", "method.n_wedge=2",
        "--kind", "a-priori", "--worlds", "0", "-o", home / "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert not obeyed(done.output)
    return home


@pytest.mark.parametrize(
    "given",
    [
        ("inspect", "log.csv"),
        ("inspect", "log.csv", "--json"),
        ("count", "log.csv", "-o", "counts.parquet"),
        ("explain", "out", "--state", EVIL[0]),
        ("explain", "out", "--state", EVIL[0], "--json"),
        ("explain", "out", "--state", "nowhere\x1b[31m"),
        ("explain", "nothing\x1b[31m", "--state", EVIL[0]),
        ("certify", "out", "log.csv", "--kind", "a-priori:n_wedge=900"),
    ],
    ids=" ".join,
)
def test_no_command_prints_a_label_raw(given, home, monkeypatch):
    monkeypatch.chdir(home)
    told = run_surestep(*given)
    assert told.exit_code in (0, 2), told.output
    assert not obeyed(told.output)
    assert "\nconfirmed" not in told.output
    if given[-1] == "--json":
        assert isinstance(json.loads(told.stdout), dict)
    elif given[0] == "explain" and told.exit_code == 0:
        for name in CALLED:
            assert name in told.stdout


def test_everything_is_printed_by_way_of_it():
    """Another way to print would be another place to forget a label."""
    folder = Path(surestep.cli.__file__).parent
    allowed = {"terminal.py", "main.py"}  # bars without labels, and told signals
    for path in sorted(folder.glob("*.py")):
        if path.name not in allowed:
            found = re.findall(r"click\.s?echo|(?<![\w.])print\(|[^\w]Console\(", path.read_text())
            assert not found, path.name


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("surestep._progress.monotonic", lambda: now[0])
    return now


def test_lines_come_at_the_beginning_and_every_ten_seconds(clock, capsys):
    tell = Lines()
    for second in range(31):
        clock[0] = float(second)
        tell("counting", second, 40)
    clock[0] = 31.0
    tell("reading the log", 0, 1)
    assert capsys.readouterr().err.splitlines() == [
        "counting: 0 of 40",
        "counting: 10 of 40, about 30 s left",
        "counting: 20 of 40, about 20 s left",
        "counting: 30 of 40, about 10 s left",
        "reading the log",
    ]


def test_the_time_that_is_left_is_of_what_was_not_done_before(clock, capsys):
    tell = Lines()
    tell("stress test", 30, 40)
    clock[0] = 10.0
    tell("stress test", 32, 40)
    assert capsys.readouterr().err.splitlines()[1] == "stress test: 32 of 40, about 40 s left"


def test_the_first_line_comes_before_anything_heavy():
    code = (
        "import sys\nfrom surestep._progress import task_progress\n"
        "with task_progress() as tell:\n"
        "    tell('reading the log', 0, 1)\n"
        "    print('numba' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stderr, done.stdout) == ("reading the log\n", "False\n")


def in_terminal(code, columns=80):
    """What a terminal of so many columns shows of a script, each line as it was last written."""
    shown, at = os.openpty()
    termios.tcsetwinsize(at, (24, columns))
    where = {"COLUMNS": "", "TERM": "xterm", "NO_COLOR": ""}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=at, stderr=at, env=os.environ | where
    ) as process:
        os.close(at)
        read = b""
        with contextlib.suppress(OSError):  # so a terminal ends
            while piece := os.read(shown, 4096):
                read += piece
        os.close(shown)
    assert process.returncode == 0, read
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read.decode())
    return [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]


def test_a_terminal_shows_what_is_said_apart_from_the_bar_and_whole_words():
    said = " ".join(["incomprehensibilities"] * 5)
    seen = in_terminal(
        "from surestep._progress import task_progress\n"
        "from surestep.cli.terminal import say, say_sentences\n"
        "with task_progress() as tell:\n"
        "    tell('reading the log', 0, 1)\n"
        "    say('saved it')\n"
        "    tell('stress [red] test\\\\n', 5, 10)\n"
        f"say_sentences({said!r})\n"
    )
    assert [line for line in seen if "saved" in line] == ["saved it"]
    (bar,) = (line for line in seen if line.startswith(r"stress [red] test\n"))
    assert re.search(r"5/10 0:00:0. so far -:--:-- left$", bar)
    assert [*filter(str.strip, seen)][-2:] == [said[:65], said[:43]]


def test_sections_end_their_lines_without_spaces():
    columns = sections.Column("a name"), sections.Column("text")
    section = sections.Section(
        "name",
        "title",
        sentences=("so many words " * 20,),
        items=(sections.Item("item", "a " * 90),),
        facts=(("term", "meaning " * 30),),
        tables=(sections.Table("words", "caption", columns, (("x", "y"), ("long", ""))),),
    )
    file = io.StringIO()
    print_sections([section], terminal(file=file, width=60))
    lines = file.getvalue().split("\n")
    assert len(lines) > 20
    assert not [line for line in lines if line != line.rstrip()]


def test_nothing_is_told_where_nobody_reads(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with task_progress() as tell:
        tell("reading the log", 0, 1)
    assert sys.stderr.getvalue() == ""
