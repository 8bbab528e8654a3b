"""The command `surestep`: what it answers, and how it refuses."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import surestep
from support.pump_commands import run_surestep
from surestep.cli.main import Mistake, check_room


def run(*command):
    """What a command does, in a process of its own."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_version_is_that_of_the_package():
    result = run_surestep("--version")
    assert result.exit_code == 0
    assert result.stdout == f"surestep, version {surestep.__version__}\n"


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_says_what_it_is_for(option):
    result = run_surestep(option)
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: surestep [OPTIONS] COMMAND [ARGS]...")
    assert "a better policy from a log of past decisions" in result.stdout
    assert result.stderr == ""


def test_without_arguments_it_shows_its_help_and_fails():
    result = run_surestep()
    assert result.exit_code == 2
    assert result.output == run_surestep("--help").output


@pytest.mark.parametrize("arguments", [["conjure"], ["--conjure"], ["conjure", "--help"]])
def test_what_it_does_not_know_is_refused_with_a_hint_and_without_a_traceback(arguments):
    result = run(sys.executable, "-m", "surestep", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "conjure" in result.stderr
    assert "Try 'surestep --help' for help." in result.stderr
    assert "Traceback" not in result.stderr


def test_the_module_and_the_installed_command_are_the_same():
    command = Path(sys.executable).with_name("surestep")
    for option in ("--version", "--help"):
        as_module = run(sys.executable, "-m", "surestep", option)
        as_command = run(str(command), option)
        assert as_module.returncode == as_command.returncode == 0
        assert as_module.stdout == as_command.stdout == run_surestep(option).stdout
        assert as_module.stderr == as_command.stderr == ""


def test_help_loads_nothing_that_takes_its_time():
    code = (
        "import importlib, sys; from surestep.cli.main import VERBS\n"
        "for name in VERBS.values(): importlib.import_module('surestep.cli.' + name)\n"
        "print(*{'numpy', 'duckdb', 'numba', 'rich'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


@pytest.mark.skipif(sys.platform == "win32", reason="only Unix has this limit")
def test_many_cores_need_more_addresses(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (3_000_000_000, 3_000_000_000))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    check_room()
    monkeypatch.setattr(os, "cpu_count", lambda: 32)
    with pytest.raises(Mistake, match=r"may have 3\.0 GB of addresses .*expected 5\.5 GB at least"):
        check_room()


@pytest.mark.one_quick
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this limit")
@pytest.mark.parametrize(
    ("arguments", "code"), [("inspect log.csv", 2), ("algorithms", 2), ("--help", 0)]
)
def test_a_limit_at_which_libraries_abort_is_told_in_one_line(arguments, code):
    limited = f"ulimit -v 900000; exec {shlex.quote(sys.executable)} -m surestep {arguments}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == code
    if code:
        assert done.stderr.startswith("Error: this process may have 0.921 GB of addresses (ulimit")
        assert done.stderr.count("\n") == 1
