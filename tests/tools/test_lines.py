"""Lines of code are counted without what is only for readers."""

from lines import lines_of_code, main

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


def test_rooms_are_listed_with_their_modules(tmp_path, capsys):
    (tmp_path / "room").mkdir()
    for name in ("a.py", "room/b.py", "room/c.py"):
        (tmp_path / name).write_text(TEXT)
    main(str(tmp_path))
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        [".", "1", "modules", "7", "lines"],
        ["room", "2", "modules", "14", "lines"],
        ["all", "3", "modules", "21", "lines"],
    ]
