"""The reference has an entry for every public name."""

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes

import surestep
from docsite.names import ENTRIES, PAGES, linked, process

ENTRY = re.compile(r"^\.\. auto(?:class|function|data|exception):: (\w+)$", re.MULTILINE)
MODULES = sorted(page.stem for page in PAGES.iterdir())


def module_of(page):
    return import_module("surestep" if page == "surestep" else f"surestep.{page}")


def explained_by(page):
    return ENTRY.findall((PAGES / f"{page}.rst").read_text(encoding="utf-8"))


def test_every_package_that_lists_names_has_a_page():
    packages = Path(surestep.__file__).parent.glob("*/__init__.py")
    names = {file.parent.name for file in packages}
    listing = {name for name in names if hasattr(module_of(name), "__all__")}
    assert listing | {"surestep", "errors"} == set(MODULES)


def test_every_public_name_is_explained_once():
    public = {id(getattr(module_of(page), name)): f"{page}.{name}" for page in MODULES
              for name in module_of(page).__all__}  # fmt: skip
    explained = [(page, name) for page in MODULES for name in explained_by(page)]
    assert all(name in module_of(page).__all__ for page, name in explained)
    ids = [id(getattr(module_of(page), name)) for page, name in explained]
    assert len(ids) == len(set(ids))
    assert [name for key, name in public.items() if key not in set(ids)] == []


def test_the_first_page_names_all_that_the_package_has():
    page = (PAGES / "surestep.rst").read_text(encoding="utf-8")
    for name in surestep.__all__:
        assert f"`surestep.{name}`" in page or f":: {name}\n" in page, name


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("evaluate", "surestep.planning.evaluate"),
        ("surestep.evaluate", "surestep.planning.evaluate"),
        ("surestep.planning.evaluate()", "surestep.planning.evaluate"),
        ("FiniteMDP.from_dense", "surestep.model.FiniteMDP.from_dense"),
        ("n_wedge", None),  # an argument, far more often than the function
        ("surestep.bounds.n_wedge", "surestep.bounds.n_wedge"),
        ("numpy", None),
        ("x + 1", None),
    ],
)
def test_a_public_name_in_a_text_is_a_link(text, entry):
    made = linked(text, "page")
    assert made.astext() == text
    assert (None if isinstance(made, nodes.literal) else made["reftarget"]) == entry


def test_a_word_alone_names_one_entry():
    names = [name for page in MODULES if page != "surestep" for name in explained_by(page)]
    assert len(names) == len(set(names))
    assert ENTRIES["register"] == "surestep.register"


def processed(text, what="function"):
    lines = text.splitlines()
    process(SimpleNamespace(), what, "name", None, None, lines)
    return "\n".join(lines)


def test_bars_and_underscores_of_a_docstring_are_themselves():
    assert processed("|S| of `|A|` and x_, rows/*") == r"\|S\| of `|A|` and x\_, rows/\*"
    assert processed(">>> a | b") == ">>> a | b"
    assert processed("dict() -> new", what="data") == ""


def test_an_indented_block_of_a_docstring_is_shown_as_it_is():
    text = "A bound.\n\n    L = |S|\n\n      + 1\n\nThat |S| is."
    assert processed(text) == "A bound.\n\n::\n\n    L = |S|\n\n      + 1\n\nThat \\|S\\| is."


def test_paragraphs_about_an_argument_are_no_block():
    text = "Parameters\n----------\nx : int\n    First.\n\n    Second, |S|."
    assert processed(text) == text.replace("|", r"\|")
