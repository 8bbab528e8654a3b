"""Every script of examples/ and benchmarks/ runs, at its smallest size.

A script that takes arguments says in SMALLEST which ones make its quickest run.
"""

import ast
import importlib
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from surestep import extensions

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    path
    for folder in ("examples", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")  # others are imported by these
)


def smallest(script):
    """The arguments of the script's quickest run; none where it takes none."""
    source = script.read_text(encoding="utf-8")
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SMALLEST":
            return ast.literal_eval(statement.value)
    assert "argparse" not in source, f"{script.name} takes arguments, but has no SMALLEST"
    return ()


@pytest.fixture
def as_before(monkeypatch):
    """Leaves kernels the threads that they had, and nothing registered by a script."""
    before = numba.get_num_threads()
    monkeypatch.setattr(extensions, "_registered", dict(extensions._registered))
    yield
    numba.set_num_threads(before)


# Those that start many processes, and some whose parts have tests of their own.
LONG = (
    *("algorithms", "certificates", "gpu", "logs", "own_policy", "planning", "posterior", "power"),
    *("practice", "rows", "run_pictures", "signals", "where_bounds_fail"),
)


THOROUGH = ("evaluation", "learned_structure", "nodes", "rules", "warehouse")


def case(script):
    """The script with its name; one that takes long is left for other runs than `make test`."""
    marks = [pytest.mark.slow] if script.stem in LONG else []
    marks += [pytest.mark.thorough] if script.stem in THOROUGH else []
    return pytest.param(script, id=f"{script.parent.name}-{script.stem}", marks=marks)


def test_what_scripts_import_of_the_package_is_there():
    for script in SCRIPTS:  # also those that only `make test-all` runs
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("surestep"):
                module = importlib.import_module(node.module)
                missing = [each.name for each in node.names if not hasattr(module, each.name)]
                assert not missing, f"{script.name} imports {missing} of {node.module}"


@pytest.mark.parametrize("script", [case(script) for script in SCRIPTS])
def test_it_runs_at_its_smallest_size(script, tmp_path, monkeypatch, capsys, as_before):
    before = set(script.parent.iterdir())
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.chdir(tmp_path)
    if "import multiprocessing" in script.read_text(encoding="utf-8"):
        # Its processes look for their work in the main module, which must be this script.
        result = subprocess.run(
            [sys.executable, str(script), *smallest(script)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        printed = result.stdout
    else:
        monkeypatch.setattr(sys, "argv", [str(script), *smallest(script)])
        monkeypatch.syspath_prepend(script.parent)
        runpy.run_path(str(script), run_name="__main__")
        printed = capsys.readouterr().out
    assert printed.strip()
    assert list(tmp_path.iterdir()) == []
    assert {path for path in script.parent.iterdir() if path.name != "__pycache__"} <= before
