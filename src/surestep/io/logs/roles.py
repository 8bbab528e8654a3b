"""Label codes: what a column of labels is grouped by, and what its groups are called.

Rows are grouped by *codes*, values that DuckDB compares fast, such as the numbers of a column of
numbers. Only the distinct codes become text. This is the one place that says what the code of a
column is, which text a code stands for, and which of its values cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from surestep.io.labels.bin_rules import number_sql
from surestep.io.labels.binning import Binning
from surestep.io.labels.histories import PADDING, past_columns, present_columns
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.stamps import time_column
from surestep.io.sql import sql_name

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FLOATING = ("FLOAT", "DOUBLE")
NUMBER = "a number"  # what a column of numbers should have where nothing is
# Of these types, equal values have equal texts; all others are grouped by their text.
PLAIN = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT", "VARCHAR", "BOOLEAN", "DATE", "UUID")


class Check(NamedTuple):
    """A row that cannot be used: what is wrong there."""

    condition: str  # SQL over the user's columns
    column: str
    expected: str
    missing: tuple[str, ...] = ()  # rules of `missing` that help where nothing is there


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
    expected: str = "a value"  # where nothing is
    missing: tuple[str, ...] = ("drop", "label")  # rules that help there


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
    past = past_columns(mapping.state, mapping.action)

    def code(name: str, binned_as: str) -> LabelCode:
        if binned_as in binnings and binned_as in past:
            return past_bin_code(name, binnings[binned_as])
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
                as_text(label.column, types[label.column]) for label in (here, there)
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
        sql = f"({sql_name(column)} + 0::{kind})"
        return LabelCode(column, sql, kind, checks=(no_nan(column),), expected=NUMBER)
    if kind in PLAIN or kind.startswith("DECIMAL"):
        expected = NUMBER if kind in WHOLE or kind.startswith("DECIMAL") else "a value"
        return LabelCode(column, sql_name(column), kind, expected=expected)
    return text_code(column, kind)


def no_nan(column: str) -> Check:
    """Returns the check for NaN, by which some tables say that there is nothing."""
    return Check(f"isnan({sql_name(column)})", column, NUMBER, ("drop", "label"))


def number_text_code(column: str, kind: str) -> LabelCode:
    """The code of a column of numbers that is its text, without a point where it is whole."""
    text = as_varchar(column, kind)
    if kind in WHOLE:
        return LabelCode(column, text, "VARCHAR", expected=NUMBER)
    plain = f"regexp_replace({text}, '\\.0$', '')"
    return LabelCode(column, plain, "VARCHAR", checks=(no_nan(column),), expected=NUMBER)


def bin_code(column: str, kind: str, binning: Binning) -> LabelCode:
    """The code of a column of numbers that is binned: the number of the bin."""
    number = number_sql(column, kind)
    unusable = f"{sql_name(column)} IS NOT NULL AND NOT coalesce(isfinite({number}), false)"
    return LabelCode(
        column,
        binning.sql(number),
        "BIGINT",
        lambda text: binning.label(int(text)),
        (Check(unusable, column, "a finite number, since the column is binned", ("drop",)),),
        "a number, since the column is binned",
        ("drop",),
    )


NO_ROW = -(2**62)  # the code of a bin of a row that there is not


def past_bin_code(column: str, binning: Binning) -> LabelCode:
    """The code of a binned column of an earlier row; NaN says that there is no such row."""
    number = sql_name(column)
    return LabelCode(
        column,
        f"CASE WHEN isnan({number}) THEN {NO_ROW} ELSE {binning.sql(number)} END",
        "BIGINT",
        lambda text: PADDING if int(text) == NO_ROW else binning.label(int(text)),
    )


def text_code(column: str, kind: str) -> LabelCode:
    """The code of a column that is its text."""
    return LabelCode(column, as_varchar(column, kind), "VARCHAR")


def as_varchar(column: str, kind: str) -> str:
    """The column as text."""
    return sql_name(column) if kind == "VARCHAR" else f"CAST({sql_name(column)} AS VARCHAR)"


STAMP = "a time stamp such as 2025-03-31 14:05"
STEP = f"a whole number of at least 0, or {STAMP}"
YES, NO = r"'true|t|yes|1|1\.0'", r"'false|f|no|0|0\.0'"


def flag_sql(column: str, kind: str) -> str:
    """Returns SQL: true or false, NULL where a column of this type says neither."""
    if kind == "BOOLEAN":
        return sql_name(column)
    written = as_varchar(column, kind)
    text = f"lower(trim({written}))"
    # First what most files have. A list of words would be a join, which loses the order of rows.
    return (
        f"CASE WHEN {written} = 'false' THEN false WHEN {written} = 'true' THEN true "
        f"WHEN regexp_full_match({text}, {YES}) THEN true "
        f"WHEN regexp_full_match({text}, {NO}) THEN false END"
    )


@dataclass(frozen=True, slots=True)
class RoleSql:
    """SQL expressions over the columns of a user's table."""

    mapping: ColumnMapping
    types: Mapping[str, str]  # column → type, as DuckDB calls it
    binnings: Mapping[str, Binning]  # by column of state or action
    codes: LabelCodes

    @classmethod
    def of(
        cls, mapping: ColumnMapping, types: Mapping[str, str], binnings: Mapping[str, Binning]
    ) -> RoleSql:
        """The roles of these columns, some of them binned."""
        return cls(mapping, types, binnings, label_codes(mapping, types, binnings))

    def text(self, column: str) -> str:
        """The column as text."""
        return as_varchar(column, self.types[column])

    def whole(self, column: str) -> str:
        """The column as a whole number, NULL where it is none."""
        if self.types[column] in WHOLE:
            return f"CAST({sql_name(column)} AS BIGINT)"
        text = f"trim({self.text(column)})"
        whole = rf"regexp_full_match({text}, '[0-9]{{1,18}}(\.0*)?')"
        return f"CASE WHEN {whole} THEN TRY_CAST(split_part({text}, '.', 1) AS BIGINT) END"

    def flag(self, column: str | None) -> str:
        """True or false, NULL where the column says neither; false without a column."""
        return "false" if column is None else flag_sql(column, self.types[column])

    @property
    def behavior_prob(self) -> str:
        """The logged propensity as a double, NULL where it is none."""
        return f"TRY_CAST({sql_name(str(self.mapping.behavior_prob))} AS DOUBLE)"

    @property
    def time(self) -> str:
        """Returns SQL: when the episode of a row began, NULL where no stamp is there."""
        return f"TRY_CAST(CAST({time_column(self.mapping)} AS VARCHAR) AS TIMESTAMP)"

    @property
    def decides(self) -> str:
        """Returns SQL: the row holds a decision, not only the last observation of an episode."""
        return f"NOT coalesce({self.flag(self.mapping.is_last)}, false)"

    @property
    def no_next(self) -> str:
        """Returns SQL: the row does not say where it led."""
        return " AND ".join(f"{sql_name(column)} IS NULL" for column in self.mapping.next_state)

    def checks(self, reward: str) -> list[Check]:
        """Everything that can be wrong with one row by itself; `reward` says if that is usable."""
        mapping, codes = self.mapping, self.codes
        checks = [missing(code) for code in codes.state[: self.width]]
        checks += [missing(code, f" AND {self.decides}") for code in codes.action]
        if codes.episode is not None:
            checks.append(missing(codes.episode))
        labels = (*codes.state, *codes.action, *codes.next_state)
        checks += [check for code in labels for check in code.checks]
        unusable = f"{self.decides} AND NOT ({reward})"
        checks.append(Check(unusable, mapping.reward, "a finite number", ("drop",)))
        if mapping.episode is not None and mapping.step is not None:
            step = f"coalesce({self.whole(mapping.step)}, -1) < 0"
            checks.append(Check(step, mapping.step, STEP))
        checks += [
            Check(f"({self.flag(name)}) IS NULL", name, "true or false")
            for name in (mapping.terminated, mapping.truncated, mapping.is_last)
            if name is not None
        ]
        return [*checks, *self.next_checks(), *self.rare_checks()]

    @property
    def width(self) -> int:
        """Counts the columns of the state that are of the present row: the others follow."""
        return len(present_columns(self.mapping.state, self.mapping.action))

    def next_checks(self) -> list[Check]:
        """Returns the checks of the next state of a row."""
        mapping = self.mapping
        if not mapping.next_state:
            return []
        over = f"coalesce({self.flag(mapping.terminated)}, true)"
        stopped = f"coalesce({self.flag(mapping.truncated)}, true)"
        label = self.codes.next_state[0].expected
        expected = f"{label}, or true as terminated or truncated"
        condition = f"{self.no_next} AND NOT {over} AND NOT {stopped}"
        if mapping.is_last is not None:
            condition, expected = f"{self.no_next} AND {self.decides}", label
        return [
            Check(condition, mapping.next_state[0], expected),
            *(
                missing(code, f" AND NOT ({self.no_next})")
                for code in self.codes.next_state[: self.width]
            ),
        ]

    def rare_checks(self) -> list[Check]:
        """Returns the checks of a propensity, a weight, and the mark of a last observation."""
        mapping, checks = self.mapping, list[Check]()
        if mapping.behavior_prob is not None:
            usable = f"coalesce({self.behavior_prob} > 0 AND {self.behavior_prob} <= 1, false)"
            condition = f"{self.decides} AND NOT {usable}"
            expected = "a probability above 0 and at most 1"
            checks.append(Check(condition, mapping.behavior_prob, expected))
        if mapping.time is not None:
            checks.append(Check(f"{self.time} IS NULL", mapping.time, STAMP))
        if mapping.weight is not None:
            condition = f"coalesce({self.whole(mapping.weight)}, 0) < 1"
            checks.append(Check(condition, mapping.weight, "a whole number of at least 1"))
        if mapping.is_last is not None and mapping.terminated is not None:
            condition = f"{self.decides} AND coalesce({self.flag(mapping.terminated)}, false)"
            expected = f"false, except where {mapping.is_last!r} is true"
            checks.append(Check(condition, mapping.terminated, expected))
        return checks


def missing(code: LabelCode, where: str = "") -> Check:
    """Returns the check for a missing label where there must be one."""
    condition = f"{sql_name(code.column)} IS NULL{where}"
    return Check(condition, code.column, code.expected, code.missing)
