"""Label codes: what a column of labels is grouped by, and what its groups are called.

Rows are grouped by *codes*, values that DuckDB compares fast, such as the numbers of a column of
numbers. Only the distinct codes become text. This is the one place that says what the code of a
column is, which text a code stands for, and which of its values cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from surestep.io.bin_rules import number_sql
from surestep.io.binning import Binning
from surestep.io.log_columns import ColumnMapping
from surestep.io.log_tables import named

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FLOATING = ("FLOAT", "DOUBLE")
# Of these types, equal values have equal texts; all others are grouped by their text.
PLAIN = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT", "VARCHAR", "BOOLEAN", "DATE", "UUID")


class Check(NamedTuple):
    """A row that cannot be used: what is wrong there."""

    condition: str  # SQL over the user's columns
    column: str
    expected: str


@dataclass(frozen=True, slots=True)
class LabelCode:
    """The code of one column of labels: NULL where the column is.

    Two codes may have one label: their groups are put together.
    """

    column: str
    sql: str  # the code, over the user's columns
    type: str  # of the code, as DuckDB calls it
    label: Callable[[str], str] = str  # from the text of a code
    checks: tuple[Check, ...] = ()  # of what is there: values without a code


@dataclass(frozen=True, slots=True)
class LabelCodes:
    """The codes of all columns of labels; those of next states compare with those of states."""

    state: tuple[LabelCode, ...]
    action: tuple[LabelCode, ...]
    next_state: tuple[LabelCode, ...]
    episode: LabelCode | None


def label_codes(
    mapping: ColumnMapping, types: Mapping[str, str], binnings: Mapping[str, Binning]
) -> LabelCodes:
    """The codes of a log with these columns of these types, some of them binned.

    The column of a next state has the bins of its column of the state.
    """

    def code(name: str, binned_as: str) -> LabelCode:
        if binned_as in binnings:
            return bin_code(name, types[name], binnings[binned_as])
        return code_of(name, types[name])

    state = [code(name, name) for name in mapping.state]
    following = [
        code(name, like) for name, like in zip(mapping.next_state, mapping.state, strict=False)
    ]
    for i, (here, there) in enumerate(zip(state, following, strict=False)):
        kinds = {here.type, there.type}
        if len(kinds) > 1 and not kinds <= {*WHOLE}:
            # Whole numbers become doubles where one of them is missing: 2 and 2.0 are one state.
            as_text = number_text_code if kinds <= {*WHOLE, *FLOATING} else text_code
            state[i], following[i] = (
                as_text(each.column, types[each.column]) for each in (here, there)
            )
    return LabelCodes(
        tuple(state),
        tuple(code(name, name) for name in mapping.action),
        tuple(following),
        None if mapping.episode is None else code_of(mapping.episode, types[mapping.episode]),
    )


def code_of(column: str, kind: str) -> LabelCode:
    """The code of a column of this type: the value itself, where equal values have equal texts."""
    if kind in FLOATING:
        # −0.0 equals 0.0 but is written differently; the sum is 0.0 for both.
        return LabelCode(column, f"({named(column)} + 0::{kind})", kind, checks=(no_nan(column),))
    if kind in PLAIN or kind.startswith("DECIMAL"):
        return LabelCode(column, named(column), kind)
    return text_code(column, kind)


def no_nan(column: str) -> Check:
    """NaN is how some tables say that there is nothing."""
    return Check(f"isnan({named(column)})", column, "a label")


def number_text_code(column: str, kind: str) -> LabelCode:
    """The code of a column of numbers that is its text, without a point where it is whole."""
    text = as_varchar(column, kind)
    if kind in WHOLE:
        return LabelCode(column, text, "VARCHAR")
    return LabelCode(
        column, f"regexp_replace({text}, '\\.0$', '')", "VARCHAR", checks=(no_nan(column),)
    )


def bin_code(column: str, kind: str, binning: Binning) -> LabelCode:
    """The code of a column of numbers that is binned: the number of the bin."""
    number = number_sql(column, kind)
    unusable = f"{named(column)} IS NOT NULL AND NOT coalesce(isfinite({number}), false)"
    return LabelCode(
        column,
        binning.sql(number),
        "BIGINT",
        lambda text: binning.label(int(text)),
        (Check(unusable, column, "a finite number, since the column is binned"),),
    )


def text_code(column: str, kind: str) -> LabelCode:
    """The code of a column that is its text."""
    return LabelCode(column, as_varchar(column, kind), "VARCHAR")


def as_varchar(column: str, kind: str) -> str:
    """The column as text."""
    return named(column) if kind == "VARCHAR" else f"CAST({named(column)} AS VARCHAR)"
