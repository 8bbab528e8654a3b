"""What is told meanwhile: lines now and then in a file, nothing where nobody reads."""

import io
import subprocess
import sys

import pytest

from surestep.cli import terminal
from surestep.cli.terminal import Lines, task_progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(terminal, "monotonic", lambda: now[0])
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
        "import sys\nimport click\nfrom surestep.cli.terminal import task_progress\n"
        "with task_progress() as tell:\n"
        "    click.echo = lambda text, err: print(text, 'numba' in sys.modules)\n"
        "    tell('reading the log', 0, 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "reading the log False\n"


def test_nothing_is_told_where_nobody_reads(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with task_progress() as tell:
        tell("reading the log", 0, 1)
    assert sys.stderr.getvalue() == ""
