"""Docstrings of public names follow the NumPy style, so that every argument can be looked up."""

import inspect
from enum import Enum
from importlib import import_module

import pytest
from numpydoc.validate import validate

PUBLIC = (
    "surestep",
    "surestep.algorithms",
    "surestep.bounds",
    "surestep.certificates",
    "surestep.checks",
    "surestep.environments",
    "surestep.errors",
    "surestep.experiments",
    "surestep.io",
    "surestep.model",
    "surestep.offpolicy",
    "surestep.pipeline",
    "surestep.planning",
    "surestep.rehearsal",
    "surestep.results",
    "surestep.transforms",
)
# What the house does otherwise, or asks for where it helps only.
LEFT_OUT = {
    "GL01",  # the summary begins in the first line (ruff's D212)
    "SS05",  # a docstring begins with "Returns", not with "Return"
    "ES01",  # an extended summary where there is more to say
    "SA01",  # likewise "See Also"
}


def public_names():
    """Every public class and function once, by its shortest name."""
    seen = {}
    for module in PUBLIC:
        for name in import_module(module).__all__:
            value = getattr(import_module(module), name)
            if inspect.isroutine(value) or inspect.isclass(value):
                seen.setdefault(value, f"{module}.{name}")
    return seen


def methods_of(thing):
    """The public methods that a class itself defines, by name."""
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(function):
                yield name


def cases():
    for thing, name in public_names().items():
        yield name
        for method in methods_of(thing):
            yield f"{name}.{method}"


def faults(name):
    """What numpydoc says against the docstring of a name."""
    left_out = set(LEFT_OUT)
    if inspect.isclass(_found(name.rpartition(".")[0])):
        left_out |= {"EX01"}  # the example of a class shows its methods
    thing = _found(name)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        left_out |= {"EX01", "PR01"}
    if getattr(thing, "_is_protocol", False) or (
        inspect.isclass(thing) and issubclass(thing, Enum)
    ):
        left_out |= {"PR01"}  # nobody calls these
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in left_out]


def _found(name):
    value = import_module("surestep")
    for part in name.split(".")[1:]:
        value = getattr(value, part, None) or import_module(f"{value.__name__}.{part}")
    return value


@pytest.mark.parametrize("name", sorted(cases()))
def test_the_docstring_of_a_public_name_explains_its_arguments(name):
    assert faults(name) == []
