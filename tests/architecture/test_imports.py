"""What importing costs, and that the public names are what they claim to be."""

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import surestep

HEAVY = {"numpy", "scipy", "numba", "llvmlite", "pandas", "rich", "gymnasium", "stormpy"}
SOURCE = Path(surestep.__file__)


def modules_after(code, *, whole=False):
    """The modules, top-level or whole, that are loaded once an interpreter has run the code."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    names = json.loads(result.stderr.splitlines()[-1])
    return set(names) if whole else {name.partition(".")[0] for name in names}


def command(option):
    """Code that runs the command with one option, and then goes on."""
    return f"from surestep.cli.main import main\nmain(['{option}'], standalone_mode=False)"


def test_importing_the_package_imports_nothing_else():
    loaded = modules_after("import surestep")
    assert "surestep" in loaded
    assert not loaded & (HEAVY | {"click"})


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(option):
    loaded = modules_after(command(option))
    assert "click" in loaded
    assert not loaded & HEAVY


def test_the_nouns_need_no_compiler():
    loaded = modules_after("from surestep import Counts, FiniteMDP, Policy, Problem, estimate_mdp")
    assert "numpy" in loaded
    assert not loaded & (HEAVY - {"numpy"})


def test_linear_programs_and_sparse_matrices_are_loaded_when_they_are_solved():
    loaded = modules_after("import surestep.pipeline", whole=True)
    assert "surestep.algorithms.provable" in loaded
    assert not loaded & {"scipy.optimize", "scipy.sparse", "scipy.linalg"}


@pytest.mark.parametrize("name", surestep.__all__)
def test_a_public_name_resolves_and_says_what_it_is(name):
    value = getattr(surestep, name)
    assert value.__name__ == name
    assert value.__module__.startswith("surestep.")
    own_words = inspect.getdoc(value)
    assert own_words
    assert not own_words.startswith(f"{name}(")  # what a dataclass writes when nobody else does
    assert name in dir(surestep)


def typed_names():
    """name → module, as type checkers see it: the imports under TYPE_CHECKING."""
    tree = ast.parse(SOURCE.read_text())
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        for alias in line.names:
            assert alias.asname == alias.name  # or a type checker takes it for private
            found[alias.name] = line.module
    return found


def test_type_checkers_see_the_names_that_users_get():
    seen = typed_names()
    assert sorted(seen) == sorted(surestep.__all__)
    for name, home in seen.items():
        assert getattr(importlib.import_module(home), name) is getattr(surestep, name)


def test_public_names_are_imported_on_first_use_only():
    code = (
        "import sys, surestep\nassert 'surestep.errors' not in sys.modules\n"
        "first = surestep.SurestepError\nassert 'SurestepError' in vars(surestep)\n"
        "assert surestep.SurestepError is first"
    )
    assert not modules_after(code) & HEAVY


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'surestep' has no attribute 'conjure'"):
        surestep.conjure  # noqa: B018


@pytest.mark.parametrize(
    "package",
    [
        *("model", "planning", "bounds", "transforms", "offpolicy", "io"),
        *("algorithms", "environments", "rehearsal"),
    ],
)
def test_every_name_that_a_package_lists_is_there(package):
    module = importlib.import_module(f"surestep.{package}")
    assert len(set(module.__all__)) == len(module.__all__) > 0
    for name in module.__all__:
        assert inspect.getdoc(getattr(module, name)), name


def test_all_errors_are_one_family():
    errors = importlib.import_module("surestep.errors")
    classes = filter(inspect.isclass, vars(errors).values())
    found = [each for each in classes if each.__module__ == errors.__name__]
    assert len(found) > 1
    for error in found:
        assert issubclass(error, surestep.SurestepError)
        assert error.__doc__
