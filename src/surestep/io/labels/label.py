"""Labels: the users' own words for a state or an action, one text a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Label = tuple[str, ...]  # one text a column
Names = Mapping[str, Mapping[str, str]]  # column → text of the log → what people call it


def joined(label: Label) -> str:
    r"""One text for the texts of several columns: 'ward 3, high'. A comma inside gets a backslash.

    >>> joined(("ward 3", "a,b"))
    'ward 3, a\\,b'
    """
    if len(label) == 1:
        return label[0]
    return ", ".join(text.replace("\\", "\\\\").replace(",", "\\,") for text in label)


def called(label: Label, columns: Sequence[str], names: Names) -> Label:
    """Returns a label as people call it, one text a column.

    >>> called(("1", "0"), ("iv_fluid", "vasopressor"), {"iv_fluid": {"1": "low"}})
    ('low', '0')
    """
    if not names:
        return label
    return tuple(
        names.get(column, {}).get(text, text) for column, text in zip(columns, label, strict=True)
    )
