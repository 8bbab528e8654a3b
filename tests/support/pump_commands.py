"""The command line in this process, and the example log to try it on."""

from pathlib import Path

from click.testing import CliRunner

from surestep.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PUMPS = ("--state", "condition", "--state", "demand", "--action", "decision", "--discount", "0.95")
UNTESTED = ("--worlds", "0")  # no stress test, which takes its time
LINES = (EXAMPLES / "pumps.csv").read_text().splitlines()
POLICY = (EXAMPLES / "pumps_policy.csv").read_text().splitlines()


def run_surestep(*arguments):
    """What the command prints, and its exit code."""
    return CliRunner().invoke(main, [str(word) for word in arguments], prog_name="surestep")


def write_lines(path, lines):
    """The lines as a file."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
