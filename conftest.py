"""What the pages of the documentation share as they are tested."""

from functools import cache

import pytest
from _pytest.doctest import DoctestItem

ONCE = {"worlds": 0}


@cache
def improved(path):
    """The result of an example log, which several pages ask for: it takes six seconds."""
    from surestep.pipeline import improve

    return improve(path, **ONCE)


@pytest.fixture(autouse=True)
def _each_example_is_improved_once(request, monkeypatch):
    if isinstance(request.node, DoctestItem):
        import surestep

        improve = surestep.improve

        def improve_once(source, *given, **terms):
            if isinstance(source, str) and (given, terms) == ((), ONCE):
                return improved(source)
            return improve(source, *given, **terms)

        monkeypatch.setattr(surestep, "improve", improve_once)
