r"""Names: what people call the texts of a log, such as 'none' and 'low' for 0 and 1.

They are shown on pages and screens. Files for programs keep the texts of the log.

A rule is `COLUMN=TEXT:NAME,TEXT:NAME`; a sign of these that is meant itself has a backslash before
it. A table of the columns `column`, `value` and `name` says the same for many.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from surestep.errors import InvalidLog, InvalidParameter
from surestep.io.labels.label import Names
from surestep.io.labels.label_tables import read_label_table
from surestep.io.labels.vocabulary import Vocabulary
from surestep.io.logs.columns import closest

COLUMNS = ("column", "value", "name")
FORM = "'COLUMN=VALUE:NAME,VALUE:NAME' or a table of the columns column, value and name"
MARKS = re.compile(r"([\\=:,])")


def read_rules(given: object) -> list[str]:
    """Returns the rules that somebody gave: texts, files of a table, or a mapping of mappings.

    What files say becomes rules too, so that nothing but the rules has to be kept.
    """
    if isinstance(given, Mapping):
        return rules_of(given)
    several = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(several, Sequence):
        raise InvalidParameter(f"labels is {given!r}, expected {FORM}")
    rules = list[str]()
    for given in several:
        if isinstance(given, str) and "=" in given:
            rules.append(given)
        elif isinstance(given, str | os.PathLike) and not Path(given).is_file():
            raise InvalidParameter(f"labels is {str(given)!r}, which is no file; expected {FORM}")
        else:
            rules += rules_in(given)
    names_of(rules)
    return rules


def rules_in(source: object) -> list[str]:
    """Returns the rules of a table."""

    def chosen(columns: Sequence[str]) -> Sequence[str]:
        for name in COLUMNS:
            if name not in columns:
                raise InvalidLog(f"there is no column {name!r}; {closest(name, columns)}")
        return COLUMNS

    table = read_label_table(source, chosen)
    columns, values, names = (table.texts(place, None) for place in range(len(COLUMNS)))
    named = dict[str, dict[str, str]]()
    for row, (column, value, name) in enumerate(zip(columns, values, names, strict=True), 1):
        if named.setdefault(column, {}).setdefault(value, name) != name:
            raise InvalidLog(
                f"{table.name}, row {row:,}, column {column!r}: {value!r} is called {name!r}, but "
                f"{named[column][value]!r} before; expected one name"
            )
    return rules_of(named)


def rules_of(names: Mapping[Any, Any]) -> list[str]:
    r"""Returns the rules of names by column and text.

    >>> rules_of({"dose": {0: "none", 1: "low: a, b"}})
    ['dose=0:none,1:low\\: a\\, b']
    """
    rules = list[str]()
    for column, named in names.items():
        if not isinstance(named, Mapping):
            raise InvalidParameter(
                f"the labels of column {column!r} are {named!r}, expected a name for each value"
            )
        pairs = [f"{marked(value)}:{marked(name)}" for value, name in named.items()]
        rules.append(f"{marked(column)}={','.join(pairs)}")
    names_of(rules)
    return rules


def marked(text: object) -> str:
    """Returns a text with a backslash before every sign that means something."""
    return MARKS.sub(r"\\\1", str(text))


def names_of(rules: Iterable[str]) -> Names:
    r"""Returns the names that the rules give, by column and text.

    >>> names_of(["dose=0:none,1:low"])
    {'dose': {'0': 'none', '1': 'low'}}
    """
    names = dict[str, dict[str, str]]()
    for rule in rules:
        column, *rest = parts(rule, "=")
        pairs = [parts(pair, ":") for pair in parts("=".join(rest), ",")]
        if not column or not rest or any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise InvalidParameter(f"label is {rule!r}, expected {FORM}")
        named = names.setdefault(plain(column), {})
        for value, name in ((plain(value), plain(name)) for value, name in pairs):
            if named.setdefault(value, name) != name:
                raise InvalidParameter(
                    f"label calls {value!r} in column {plain(column)!r} both {named[value]!r} and "
                    f"{name!r}, expected one name"
                )
    return names


def parts(text: str, sign: str) -> list[str]:
    r"""Returns the parts between the signs that have no backslash before them.

    >>> parts(r"a,b\,c,", ",")
    ['a', 'b\\,c', '']
    """
    cut = [""]
    for piece in re.findall(r"\\.|[^\\]|\\$", text, re.DOTALL):
        if piece == sign:
            cut.append("")
        else:
            cut[-1] += piece
    return cut


def plain(text: str) -> str:
    """Returns a text without the backslashes before its signs."""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def with_names(vocabulary: Vocabulary, rules: Iterable[str]) -> Vocabulary:
    """Returns the words with the names that the rules give; refuses names that nothing has."""
    names = names_of(rules)
    words = replace(vocabulary, names=names)
    for columns, labels in (
        (words.state_columns, words.states),
        (words.action_columns, words.actions),
    ):
        for place, column in enumerate(columns):
            texts = {label[place] for label in labels}
            if column in names and not texts & set(names[column]):
                raise InvalidParameter(
                    f"column {column!r} is never {' or '.join(map(repr, list(names[column])[:3]))},"
                    f" which have labels; known are {', '.join(map(repr, sorted(texts)[:3]))}"
                )
    return words
