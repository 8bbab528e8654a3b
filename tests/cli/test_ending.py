"""How a command ends that is told to, or that has nowhere to print to: with one line."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from surestep.cli import main as ending
from surestep.cli.main import VERBS, Ended, main, signals_end


def ended(capfd, *arguments):
    """The exit code of a command, and what it says where errors go."""
    with pytest.raises(SystemExit) as exit_info:
        main(list(arguments), prog_name="surestep")
    return exit_info.value.code, capfd.readouterr().err


TOLD = [["--help"], *([verb, "--help"] for verb in VERBS)]
TOLD += [["algorithms"], ["run", "--list"], ["--version"]]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
@pytest.mark.parametrize("arguments", TOLD, ids=" ".join)
def test_standard_output_on_a_full_device_is_told_in_one_line(arguments, monkeypatch, capfd):
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, said = ended(capfd, *arguments)
    assert code == 2
    assert said == "Error: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", [*TOLD, ["inspect", "log.csv"]], ids=" ".join)
def test_a_pipe_that_nobody_reads_is_told_in_one_line(arguments, monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    rows = "1,0,a,x,0,false\n1,1,b,y,1,true\n"
    Path("log.csv").write_text(f"episode,step,state,action,reward,terminated\n{rows}")
    # Exit code 1 of `verify` would mean that a result is refuted.
    read, write = os.pipe()
    os.close(read)
    with contextlib.suppress(BrokenPipeError), open(write, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        code, said = ended(capfd, *arguments)
    assert code == 2
    last = said.removeprefix("looking at the log\n")
    assert last == "Error: standard output cannot be written: Broken pipe\n"


@pytest.mark.parametrize(
    ("number", "line", "code"),
    [
        (signal.SIGINT, "Error: interrupted\n", 130),
        (signal.SIGTERM, "Error: ended by SIGTERM\n", 143),
    ],
)
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_signal_ends_a_command_with_one_line(number, line, code, swallowed, monkeypatch, capfd):
    before = signal.getsignal(number)

    def listed():
        try:
            signal.raise_signal(number)
        except Ended:
            if not swallowed:
                raise
            raise RuntimeError("Query interrupted") from None  # as DuckDB makes of it

    monkeypatch.setattr("surestep.experiments.list_experiments", listed)
    assert ended(capfd, "run", "--list") == (code, line)
    assert signal.getsignal(number) is before


def test_a_second_signal_is_the_same_wish_or_an_impatient_one(monkeypatch):
    exits = []
    monkeypatch.setattr(os, "_exit", exits.append)
    with signals_end() as came:
        with pytest.raises(Ended):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert exits == []
        monkeypatch.setattr(ending, "PATIENCE", -1.0)
        signal.raise_signal(signal.SIGINT)
    assert exits == [130]
    assert came == [signal.SIGTERM]


def test_a_signal_waits_until_duckdb_is_imported(monkeypatch):
    # In 1 of 61 moments of that time an exception aborted the process in DuckDB's binding.
    later = []
    monkeypatch.setattr(ending.threading, "Timer", lambda *asked: later.append(asked) or Begun())
    with signals_end() as came:
        exec("import signal; signal.raise_signal(signal.SIGTERM)", {"__name__": "duckdb"})
        assert came == []
        ((_, again, arguments),) = later
        with pytest.raises(Ended):
            again(*arguments)
    assert came == [signal.SIGTERM]


class Begun:
    """A timer that never comes to its end."""

    def start(self):
        """Begins."""


def test_signals_that_the_caller_ignores_stay_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with signals_end() as came:
            signal.raise_signal(signal.SIGTERM)
        assert came == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_the_system_says_of_a_file_is_told_in_one_line(monkeypatch, capfd):
    def listed():
        raise PermissionError(13, "Permission denied", "a folder\nof mine")

    monkeypatch.setattr("surestep.experiments.list_experiments", listed)
    line = "Error: a folder\\nof mine: Permission denied\n"
    assert ended(capfd, "run", "--list") == (2, line)


def test_other_errors_are_not_taken_for_a_full_device(monkeypatch):
    def listed():
        raise OSError(5, "another error")

    monkeypatch.setattr("surestep.experiments.list_experiments", listed)
    with pytest.raises(OSError, match="another error"):
        main(["run", "--list"], prog_name="surestep")
