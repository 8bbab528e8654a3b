"""`surestep completion`, and what a shell is offered."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from pump_commands import run_surestep
from surestep.algorithms import ALGORITHMS
from surestep.cli.main import VERBS, main


def offered(*words):
    """What is offered for the last word: texts, or the kind of what the shell looks for itself."""
    shell = ShellComplete(main, {}, "surestep", "_SURESTEP_COMPLETE")
    items = shell.get_completions(list(words[:-1]), words[-1])
    return [item.value if item.type == "plain" else item.type for item in items]


def test_verbs_and_options_come_from_the_commands():
    assert offered("") == list(VERBS)
    assert offered("im") == ["improve"]
    assert "--n-wedge" in offered("improve", "--n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("improve", ""), ["file"]),
        (("verify", "result", "lo"), ["file"]),
        (("improve", "log.csv", "--unseen", "p"), ["pessimistic"]),
        (("improve", "log.csv", "--behavior", "est"), ["estimate"]),
        (("improve", "log.csv", "--behavior", "pol"), ["file"]),
        (("improve", "log.csv", "--kind", "sti"), ["stitched"]),
        (("improve", "log.csv", "--reward", ""), []),
        (("improve", "log.csv", "--algorithm", ""), list(ALGORITHMS)),
        (("algorithms", "lower-sp"), ["lower-spibb"]),
        (("run", "paper/gr"), ["paper/gridworld"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_values_are_names_or_files(words, expected):
    assert offered(*words) == expected


def test_commands_are_as_they_were_after_a_shell_has_asked():
    before = run_surestep("improve", "--help").output
    offered("improve", "--n")
    assert run_surestep("improve", "--help").output == before


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_read_its_script(shell):
    answer = run_surestep("completion", shell)
    assert answer.exit_code == 0
    assert "_SURESTEP_COMPLETE" in answer.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=answer.stdout, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes():
    script = run_surestep("completion", "bash").stdout
    script += "COMP_WORDS=(surestep insp); COMP_CWORD=1; _surestep_completion surestep\n"
    script += 'echo "${COMPREPLY[@]}"\n'
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash"], input=script, text=True, capture_output=True, env={**os.environ, "PATH": path}
    )
    assert answer.stdout.strip() == "inspect"


def test_other_shells_are_refused():
    answer = run_surestep("completion", "tcsh")
    assert answer.exit_code == 2
    assert "'tcsh' is not one of" in answer.stderr
