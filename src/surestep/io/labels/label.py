"""Labels: the users' own words for a state or an action, one text a column."""

from __future__ import annotations

Label = tuple[str, ...]  # one text a column


def joined(label: Label) -> str:
    r"""One text for the texts of several columns: 'ward 3, high'. A comma inside gets a backslash.

    >>> joined(("ward 3", "a,b"))
    'ward 3, a\\,b'
    """
    if len(label) == 1:
        return label[0]
    return ", ".join(text.replace("\\", "\\\\").replace(",", "\\,") for text in label)
