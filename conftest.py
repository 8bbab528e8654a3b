"""What the pages of the documentation share as they are tested."""

from functools import cache

import pytest
from _pytest.doctest import DoctestItem

ONCE = {"worlds": 0}


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace):
    """Examples of docstrings may use `np` and `surestep` without importing them, as NumPy's do."""
    import numpy

    import surestep

    doctest_namespace.update(np=numpy, surestep=surestep)


@cache
def improved(path):
    """The result of an example log, which several pages ask for: it takes six seconds."""
    from surestep.pipeline import improve

    return improve(path, **ONCE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Lets pages that improve an example in the same way have the same result."""
    if not isinstance(item, DoctestItem):
        return (yield)
    import surestep

    improve = surestep.improve

    def improve_once(source, *given, **terms):
        if isinstance(source, str) and (given, terms) == ((), ONCE):
            return improved(source)
        return improve(source, *given, **terms)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(surestep, "improve", improve_once)
        return (yield)
