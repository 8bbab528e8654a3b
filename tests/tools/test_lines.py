"""Lines of code are counted without what is only for readers."""

from collections import Counter

from lines import beyond, lines_of_code

TEXT = '''"""A module.

Of two lines.
"""

import math  # needed


# A remark.
def area(radius):
    """Returns an area."""
    text = """not a
    docstring"""
    return len(text), (
        math.pi * radius**2
    )
'''


def test_blanks_comments_and_docstrings_do_not_count():
    assert lines_of_code(TEXT) == 1 + 1 + 2 + 3


def test_rooms_above_their_budget_are_told():
    lines = Counter({".": 5, "room": 14, "room/small": 3, "hall": 7})
    assert beyond(lines, {".": 5, "room": 17, "hall": 7}) == []
    assert beyond(lines, {".": 5, "room": 14, "room/small": 3, "hall": 7}) == []
    (fault,) = beyond(lines, {".": 5, "room": 16, "hall": 7})
    assert fault == "room has 17 lines of code, and its budget is 16"
    assert len(beyond(lines, {".": 4, "room": 17, "cellar": 9})) == 3  # too many, gone, without
