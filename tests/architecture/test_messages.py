"""Messages speak of arguments to those who call functions, and of options on the command line."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import surestep
from support.pump_commands import run_surestep
from surestep.errors import InvalidLog, install, said, speaking_of_options

SOURCE = Path(surestep.__file__).parent
OPTION = re.compile(r"(^|[\s(`'\"])--[a-z]")
# The options of keys, a command to repeat a rehearsal, and a page that names one.
OF_COMMANDS = {"description.py", "pipeline/rehearse.py", "report/pages/rehearsal.py"}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text(encoding="utf-8")
        if not name.startswith("cli/") and name not in OF_COMMANDS and OPTION.search(text):
            yield name, ast.parse(text)


def exempt(tree):
    """The constants that are docstrings, or given to `said` as the option."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "said":
            yield from ast.walk(node)


def test_an_option_is_only_named_beside_the_argument():
    for name, tree in modules():
        known = set(map(id, exempt(tree)))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in known
            ):
                assert not OPTION.search(node.value), (name, node.lineno, node.value)


def test_one_function_makes_the_command_that_installs_an_extra():
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = set(project["project"]["optional-dependencies"])
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "errors.py" or not re.search(r"pip install '", text), path
        found.update(re.findall(r"\binstall\('(\w+)'\)", text))
        found.update(re.findall(r'\boptional_module\(.*, "(\w+)"\)', text))
    assert found == extras
    assert install("plots").endswith("with: pip install '.[plots]'")


def test_who_asks_decides_and_only_as_long_as_that_lasts():
    assert said("n_wedge", "--n-wedge") == "n_wedge"
    with speaking_of_options():
        assert said("n_wedge", "--n-wedge") == "--n-wedge"
    assert said("n_wedge", "--n-wedge") == "n_wedge"


def test_the_same_slip_in_both_ways(tmp_path):
    table = {"episode": [1], "state": ["a"], "action": ["x"], "reward": [0]}
    with pytest.raises(InvalidLog, match=r"name it with columns=\{'step': …\}"):
        surestep.read_log(table)
    log = tmp_path / "log.csv"
    log.write_text("episode,state,action,reward\n1,a,x,0\n")
    told = run_surestep("inspect", log)
    assert told.exit_code == 2
    assert "name it with --step" in told.output
    with pytest.raises(InvalidLog, match="columns="):  # and not for longer than the command
        surestep.read_log(table)
