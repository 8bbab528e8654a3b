"""What the pages of the documentation share as they are tested, and which tests are thorough."""

import ast
from functools import cache

import pytest
from _pytest.doctest import DoctestItem

ONCE = {"worlds": 0}

# Pages and docstrings of about a second or more; README and the first pages stay quick.
THOROUGH = (
    *("docs/bounds.md", "docs/checks.md", "docs/experiments.md", "docs/rehearsal.md"),
    *("docs/structure.md", "docs/verifying.md", "src/surestep/algorithms/node_rules.py"),
    *("src/surestep/certificates/node_tables.py", "src/surestep/pipeline/rehearse.py"),
    "src/surestep/rehearsal/nodes.py",
)


def pytest_collection_modifyitems(items):
    """Leaves long pages, and further cases of tests that say so, to `make test-thorough`."""
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        repeats = test in seen and item.get_closest_marker("one_quick")
        if repeats or item.nodeid.startswith(THOROUGH):
            item.add_marker("thorough")
        seen.add(test)


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace):
    """Examples of docstrings may use `np` and `surestep` without importing them, as NumPy's do."""
    import numpy

    import surestep

    doctest_namespace.update(np=numpy, surestep=surestep)


@cache
def improved(asked):
    """The result of an example, which several pages or docstrings ask for: it takes seconds."""
    from surestep.pipeline import improve

    source, terms = ast.literal_eval(asked)
    return improve(source, **terms)


def in_words(source, terms):
    """What is asked for, as text; None for objects, and for files that may change."""
    if isinstance(source, str) and terms != ONCE:
        return None
    asked = repr((source, terms))
    try:
        ast.literal_eval(asked)
    except (ValueError, SyntaxError):
        return None
    return asked


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Lets pages that improve an example in the same way have the same result."""
    if not isinstance(item, DoctestItem):
        return (yield)
    import surestep

    improve = surestep.improve

    def improve_once(source, *given, **terms):
        asked = None if given else in_words(source, terms)
        return improve(source, *given, **terms) if asked is None else improved(asked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surestep, "improve", improve_once)
        return (yield)
