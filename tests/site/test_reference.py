"""The reference has an entry for every public name, and in each an example that uses it."""

import ast
import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import surestep
from docsite import arguments, errors_of, public

PAGES = Path(__file__).parents[2] / "docs" / "api"
ENTRY = re.compile(r"^\.\. auto(class|function|data|exception):: (\w+)\n", re.MULTILINE)


def page_of(module):
    return (PAGES / f"{module.rpartition('.')[2]}.rst").read_text(encoding="utf-8")


def entries(module):
    """What stands in each entry of a page, by the name that it is about."""
    parts = ENTRY.split(page_of(module))
    return dict(zip(parts[2::3], parts[3::3], strict=True))


def used(text):
    """The names that the examples in a text use, and the words of their answers."""
    examples = doctest.DocTestParser().get_examples(text)
    nodes = [node for example in examples for node in ast.walk(ast.parse(example.source))]
    names = {getattr(node, "id", None) or getattr(node, "attr", None) for node in nodes}
    return names.union(*(re.findall(r"\w+", example.want) for example in examples))


def test_every_package_that_lists_names_has_a_page():
    listing = {
        f"surestep.{file.parent.name}"
        for file in Path(surestep.__file__).parent.glob("*/__init__.py")
        if hasattr(import_module(f"surestep.{file.parent.name}"), "__all__")
    }
    assert listing | {"surestep", "surestep.errors"} == set(public.MODULES)
    assert {page.stem for page in PAGES.iterdir()} == {
        module.rpartition(".")[2] for module in public.MODULES
    }


@pytest.mark.parametrize("module", public.MODULES)
def test_the_entries_of_a_page_are_the_public_names_of_its_module(module):
    explained = [name for _, name in ENTRY.findall(page_of(module))]
    assert len(explained) == len(set(explained))
    own = [name for name in public.names() if name.rpartition(".")[0] == module]
    assert {f"{module}.{name}" for name in explained} == set(own)


@pytest.mark.parametrize("module", public.MODULES)
def test_the_example_of_a_name_uses_it(module):
    for name, text in entries(module).items():
        assert name in used(text), name


def test_the_first_page_names_all_that_the_package_has():
    page = page_of("surestep")
    for name in surestep.__all__:
        assert f"`surestep.{name}`" in page or f":: {name}\n" in page, name


def test_every_argument_of_a_function_is_explained():
    functions = [value for value in public.names().values() if inspect.isfunction(value)]
    silent = {key for function in functions for _, key in arguments.unexplained(function)}
    assert silent == set(arguments.MEANING)  # nothing is missing, and nothing is said of nothing


def test_an_argument_that_means_something_else_in_another_function_has_a_text_of_its_own():
    def text(function):
        return arguments.MEANING[dict(arguments.unexplained(function))["method"]]

    assert "evaluate_with_bound" in text(surestep.performance)
    assert "BOUNDS" in text(surestep.bounds.zeta)


def test_errors_are_followed_through_what_is_called(monkeypatch):
    assert errors_of.names_of(surestep.estimate_mdp) == [
        f"surestep.errors.{name}" for name in ("InvalidCounts", "InvalidModel", "InvalidParameter")
    ]
    assert "surestep.errors.NotConverged" in errors_of.names_of(surestep.value_iteration)
    monkeypatch.setattr(errors_of, "MANY", 2)
    assert errors_of.names_of(surestep.estimate_mdp) == ["surestep.errors.SurestepError"]


@pytest.mark.parametrize(
    ("text", "module", "name"),
    [
        ("evaluate", "surestep.planning", "surestep.planning.evaluate"),
        ("surestep.evaluate", "", "surestep.planning.evaluate"),
        ("surestep.model.mdp.FiniteMDP", "", "surestep.model.FiniteMDP"),
        ("FiniteMDP.from_dense", "surestep.io", "surestep.model.FiniteMDP.from_dense"),
        ("n_wedge", "surestep.bounds", None),  # an argument, far more often than the function
        ("numpy", "", None),
        ("x + 1", "", None),
    ],
)
def test_what_a_text_means(text, module, name):
    assert public.find(text, module) == name
