"""`surestep completion`, and what a shell is offered."""

import os
import shlex
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


def surroundings(**added):
    """The environment, with the command on the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **added}


def needs(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"there is no {shell}")


@needs("bash")
def test_bash_completes():
    script = run_surestep("completion", "bash").stdout
    script += "COMP_WORDS=(surestep insp); COMP_CWORD=1; _surestep_completion surestep\n"
    script += 'echo "${COMPREPLY[@]}"\n'
    answer = subprocess.run(
        ["bash"], input=script, text=True, capture_output=True, env=surroundings()
    )
    assert answer.stdout.strip() == "inspect"


# What is typed, and the line after Tab: a value stays behind its option.
COMPLETED = {
    "surestep insp": "surestep inspect ",
    "surestep improve log.csv --behavior=es": "surestep improve log.csv --behavior=estimate ",
    "surestep improve log.csv --behavior=po": "surestep improve log.csv --behavior=policy.csv ",
    "surestep improve log.csv --reward lo": "surestep improve log.csv --reward lo",
}


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that are completed."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("log.csv", "policy.csv"):
        (folder / name).touch()
    return folder


@needs("zsh")
def test_zsh_completes(folder, tmp_path):
    """In a terminal, as zsh completes nowhere else; its line editor is told what is typed."""
    typed, lines = " ".join(map(shlex.quote, COMPLETED)), tmp_path / "lines"
    (tmp_path / ".zshrc").write_text(
        f"""autoload -Uz compinit; compinit -u -D
{run_surestep("completion", "zsh").stdout}
zle-line-init() {{
    for BUFFER in {typed}; do
        CURSOR=$#BUFFER
        zle expand-or-complete
        print -r -- "$BUFFER" >> {shlex.quote(str(lines))}
    done
    exit
}}
zle -N zle-line-init
"""
    )
    terminal = os.openpty()
    try:
        subprocess.run(
            ["zsh", "-d", "-i"],  # of the files that zsh reads, those of the system are left out
            stdin=terminal[1],
            stdout=terminal[1],
            stderr=terminal[1],
            start_new_session=True,
            cwd=folder,
            env=surroundings(ZDOTDIR=str(tmp_path), TERM="dumb"),
            timeout=60,
        )
    finally:
        for end in terminal:
            os.close(end)
    assert lines.read_text().splitlines() == list(COMPLETED.values())


@needs("fish")
def test_fish_completes(folder, tmp_path):
    script = run_surestep("completion", "fish").stdout
    script += "".join(f"complete -C {shlex.quote(line)}; echo\n" for line in COMPLETED)
    answer = subprocess.run(
        ["fish", "--no-config"],
        input=script,
        text=True,
        capture_output=True,
        cwd=folder,
        env=surroundings(HOME=str(tmp_path)),
    )
    lines = answer.stdout.split("\n")
    offered = "\n".join(line.partition("\t")[0] for line in lines)
    # An empty line ends what is offered for one.
    assert offered == "inspect\n\n--behavior=estimate\n\n--behavior=policy.csv\n\n\n"
    assert lines[0] == "inspect\tLook at a log: coverage, overlap, suspicious rows."


def test_other_shells_are_refused():
    answer = run_surestep("completion", "tcsh")
    assert answer.exit_code == 2
    assert "'tcsh' is not one of" in answer.stderr
