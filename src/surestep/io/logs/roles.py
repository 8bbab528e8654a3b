"""Turns the columns of a log into SQL: labels, flags, steps, times and exact rewards.

Rows are grouped by *codes*, values that DuckDB compares fast, such as the numbers of a column of
numbers. Only the distinct codes become text. This module alone decides what the code of a column
is, which text a code stands for, and which of its values cannot be used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple, Self

from surestep.errors import InvalidLog, said
from surestep.io.labels.binning import START, Binning, number_sql
from surestep.io.logs.columns import ColumnMapping, Types
from surestep.io.sql import sql_name, sql_text

Bins = Mapping[str, Binning]  # by column of state or action
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
FLOATING = ("FLOAT", "DOUBLE")
NO_BIN = -(2**62)  # the code of `START` in a binned column
BINNED = "a finite number, since the column is binned"
NUMBER = "a number"  # what is expected if a number is missing
# Equal values of these types have equal texts; values of other types are grouped by their text.
PLAIN = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT", "VARCHAR", "BOOLEAN", "DATE", "UUID")


class RowCheck(NamedTuple):
    """A condition under which a row cannot be used, and the words to refuse it."""

    condition: str  # SQL over the user's columns
    column: str
    expected: str
    hint: str = ""  # how to mend the value; the end of the message


@dataclass(frozen=True, slots=True)
class LabelCode:
    """The code of one column of labels as SQL; NULL if the column is NULL.

    If two codes have the same label, their groups are merged.
    """

    column: str
    sql: str  # the code, over the user's columns
    type: str  # the DuckDB type of the code
    label: Callable[[str], str] = str  # makes a label of the text of a code
    checks: tuple[RowCheck, ...] = ()  # conditions for values that cannot be used
    expected: str = "a value"  # what is expected if the value is missing


def label_code(column: str, kind: str) -> LabelCode:
    """Returns the code of a column: the value itself, if equal values have equal texts."""
    if kind in FLOATING:
        # −0.0 equals 0.0 but is written differently; the sum is 0.0 for both.
        sql = f"({sql_name(column)} + 0::{kind})"
        # Some tables use NaN for missing values.
        no_nan = RowCheck(f"isnan({sql_name(column)})", column, NUMBER)
        return LabelCode(column, sql, kind, checks=(no_nan,), expected=NUMBER)
    if kind in PLAIN or kind.startswith("DECIMAL"):
        expected = NUMBER if kind in WHOLE or kind.startswith("DECIMAL") else "a value"
        return LabelCode(column, sql_name(column), kind, expected=expected)
    return LabelCode(column, as_varchar(column, kind), "VARCHAR")


def text_code(column: str, kind: str, *, numbers: bool) -> LabelCode:
    """Returns the text of a column as its code; whole `numbers` get no point."""
    text = as_varchar(column, kind)
    if not numbers:
        return LabelCode(column, text, "VARCHAR")
    plain = f"regexp_replace({text}, '\\.0$', '')"
    return LabelCode(
        column, plain, "VARCHAR", checks=label_code(column, kind).checks, expected=NUMBER
    )


def as_varchar(column: str, kind: str) -> str:
    """Returns SQL for the column as text."""
    return sql_name(column) if kind == "VARCHAR" else f"CAST({sql_name(column)} AS VARCHAR)"


# A stamp is written as ISO 8601 says (2025-03-31, 2025-03-31 14:05, 2025-03-31T14:05:09Z), or in
# the form that a user gives. The form is never guessed: 03/04/2025 may be in March or in April.
ISO = (
    r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?\s*(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?\s*"
)
TIME = '"surestep time"'
FLAGS = ("terminated", "truncated")
STAMP = "a time stamp such as 2025-03-31 14:05"
STEP = f"a whole number of at least 0, or {STAMP}"
YES = r"'true|t|yes|1|1\.0'"
NO = r"'false|f|no|0|0\.0'"


def flag_sql(column: str, kind: str) -> str:
    """Returns SQL for the column as a truth value; NULL if it is not one."""
    if kind == "BOOLEAN":
        return sql_name(column)
    written = as_varchar(column, kind)
    text = f"lower(trim({written}))"
    # The usual words come first. IN (…) would make a join of it, which loses the order of rows.
    return (
        f"CASE WHEN {written} = 'false' THEN false WHEN {written} = 'true' THEN true "
        f"WHEN regexp_full_match({text}, {YES}) THEN true "
        f"WHEN regexp_full_match({text}, {NO}) THEN false END"
    )


def is_stamp_type(kind: str) -> bool:
    """Tells whether a DuckDB type holds dates or times."""
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def stamp_sql(column: str, kind: str, form: str | None) -> str:
    """Returns SQL for the column as a TIMESTAMP; NULL if it is no time stamp."""
    name = sql_name(column)
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"({name} AT TIME ZONE 'UTC')"
    if is_stamp_type(kind):
        return f"CAST({name} AS TIMESTAMP)"
    text = f"trim(CAST({name} AS VARCHAR))"
    if form is not None:
        return f"try_strptime({text}, {sql_text(form)})"
    plain = f"replace({text}, ',', '.')"
    zoned = rf"regexp_matches({plain}, ':[0-9.]+\s*(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)$')"
    return (
        f"CASE WHEN regexp_full_match({text}, {sql_text(ISO)}) THEN CASE WHEN {zoned} "
        f"THEN TRY_CAST({plain} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' "
        f"ELSE TRY_CAST({plain} AS TIMESTAMP) END END"
    )


def other_form() -> str:
    """Returns the end of a message: how to say in which form time stamps are written."""
    option = said("reader={'timestampformat': …}", "--set reader.timestampformat=…")
    return (
        f" (if it is a date, say how it is written with {option}, such as %d/%m/%Y, %m/%d/%Y or "
        "%Y-%m; of seconds since 1970, a query makes a time stamp: to_timestamp)"
    )


@dataclass(frozen=True, slots=True)
class RoleSql:
    """SQL expressions for the roles, over the columns of a user's table.

    A next state and a state with the same label have the same code.
    """

    mapping: ColumnMapping
    types: Types
    binnings: Bins
    state: tuple[LabelCode, ...]
    action: tuple[LabelCode, ...]
    next_state: tuple[LabelCode, ...]
    episode: LabelCode | None

    @classmethod
    def of(cls, mapping: ColumnMapping, types: Types, binnings: Bins) -> Self:
        """Returns the SQL of these columns; a next state is binned like its state."""
        past = {each.name: each.column for each in mapping.memory}

        def code(name: str, binned_as: str) -> LabelCode:
            binning = binnings.get(binned_as)
            if binning is None:
                plain = label_code(name, types[name])
                text = f"CAST({plain.sql} AS VARCHAR) = {sql_text(START)}"
                taken = RowCheck(text, name, f"another text, as {START} is used by the memory")
                return (
                    replace(plain, checks=(*plain.checks, taken))
                    if name in past.values()
                    else plain
                )
            number = number_sql(name, types[name])
            if name in past:  # numbers as texts, but for the first steps
                return LabelCode(
                    name,
                    f"coalesce({binning.sql(number)}, {NO_BIN})",
                    "BIGINT",
                    lambda index: START if int(index) == NO_BIN else binning.label(int(index)),
                )
            unusable = f"{sql_name(name)} IS NOT NULL AND NOT coalesce(isfinite({number}), false)"
            return LabelCode(
                name,
                binning.sql(number),
                "BIGINT",
                lambda index: binning.label(int(index)),
                (RowCheck(unusable, name, BINNED),),
                BINNED,
            )

        state = [code(name, name) for name in mapping.state]
        following = [*map(code, mapping.next_state, mapping.state)]
        for i, (here, there) in enumerate(zip(state, following, strict=False)):
            kinds = {here.type, there.type}
            if len(kinds) > 1 and not kinds <= {*WHOLE}:
                # Whole numbers become doubles where one is missing: 2 and 2.0 are one state.
                numbers = kinds <= {*WHOLE, *FLOATING}
                state[i] = text_code(here.column, types[here.column], numbers=numbers)
                following[i] = text_code(there.column, types[there.column], numbers=numbers)
        return cls(
            mapping,
            types,
            binnings,
            tuple(state),
            tuple(code(name, name) for name in mapping.action),
            tuple(following),
            None
            if mapping.episode is None
            else label_code(mapping.episode, types[mapping.episode]),
        )

    def names(self, role: str) -> list[str]:
        """Returns our names of the columns of 'state', 'action' or 'next': ['state_0']."""
        return [f"{role}_{i}" for i in range(len(self.action if role == "action" else self.state))]

    def columns(self, sql: Callable[[LabelCode], str] = attrgetter("sql")) -> dict[str, str]:
        """Returns SQL for labels, flags, episode and step, by our names of the columns."""
        labels = {"state": self.state, "action": self.action, "next": self.next_state}
        columns = {f"{x}_{i}": sql(code) for x in labels for i, code in enumerate(labels[x])}
        columns |= {flag: self.flag(getattr(self.mapping, flag)) for flag in FLAGS}
        if self.episode is not None:
            columns |= {"episode": sql(self.episode), "step": self.step}
        return columns

    @property
    def label_checks(self) -> list[RowCheck]:
        """Returns the checks of labels that are not missing."""
        labels = (*self.state, *self.action, *self.next_state)
        return [check for code in labels for check in code.checks]

    @property
    def step(self) -> str:
        """Returns SQL for the number of a step; NULL if it is not one."""
        column = str(self.mapping.step)
        kind = self.types[column]
        if kind in WHOLE:
            return f"CAST({sql_name(column)} AS BIGINT)"
        text = as_varchar(column, kind)
        whole = rf"regexp_full_match(trim({text}), '[0-9]{{1,18}}(\.0*)?')"
        number = f"TRY_CAST({sql_name(column)} AS BIGINT)"
        plain = f"CAST({number} AS VARCHAR) = {text} AND {number} >= 0"
        slow = f"TRY_CAST(split_part(trim({text}), '.', 1) AS BIGINT)"
        return f"CASE WHEN {plain} THEN {number} WHEN {whole} THEN {slow} END"

    def flag(self, column: str | None) -> str:
        """Returns SQL for a flag as a truth value or NULL; false if no column has the role."""
        return "false" if column is None else flag_sql(column, self.types[column])

    @property
    def propensity(self) -> str:
        """Returns SQL for the logged propensity as a double; NULL if it is not a number."""
        return f"TRY_CAST({sql_name(str(self.mapping.propensity))} AS DOUBLE)"

    @property
    def time(self) -> str:
        """Returns SQL for the time at which the episode of a row began; NULL without a time stamp.

        Steps that are stamps become numbers, so their times are kept in a column of ours.
        """
        time = self.mapping.time
        column = TIME if time == self.mapping.step else sql_name(str(time))
        return f"TRY_CAST(CAST({column} AS VARCHAR) AS TIMESTAMP)"

    @property
    def no_next(self) -> str:
        """Returns SQL that is true if the row has no next state."""
        return " AND ".join(f"{sql_name(column)} IS NULL" for column in self.mapping.next_state)

    def checks(self, reward: str) -> list[RowCheck]:
        """Returns all checks of a single row; `reward` is SQL that is true for a usable reward."""
        mapping = self.mapping
        needed = (*self.state, *self.action, self.episode)
        checks = [
            *(missing(code) for code in needed if code is not None),
            *self.label_checks,
            RowCheck(f"NOT ({reward})", mapping.reward, "a finite number"),
        ]
        if mapping.episode is not None and mapping.step is not None:
            step = f"coalesce({self.step}, -1) < 0"
            checks.append(RowCheck(step, mapping.step, STEP, other_form()))
        checks += [
            RowCheck(f"({self.flag(name)}) IS NULL", name, "true or false")
            for name in filter(None, (mapping.terminated, mapping.truncated))
        ]
        if mapping.next_state:
            over = f"coalesce({self.flag(mapping.terminated)}, true)"
            stopped = f"coalesce({self.flag(mapping.truncated)}, true)"
            expected = f"{self.next_state[0].expected}, or true as terminated or truncated"
            condition = f"{self.no_next} AND NOT {over} AND NOT {stopped}"
            checks.append(RowCheck(condition, mapping.next_state[0], expected))
            checks += [missing(code, f" AND NOT ({self.no_next})") for code in self.next_state]
        return checks + self.rare_checks()

    def rare_checks(self) -> list[RowCheck]:
        """Returns the checks of a propensity and of a time."""
        checks = list[RowCheck]()
        if self.mapping.propensity is not None:
            usable = f"coalesce({self.propensity} > 0 AND {self.propensity} <= 1, false)"
            expected = "a probability above 0 and at most 1"
            checks.append(RowCheck(f"NOT {usable}", self.mapping.propensity, expected))
        if self.mapping.time is not None:
            checks.append(RowCheck(f"{self.time} IS NULL", self.mapping.time, STAMP, other_form()))
        return checks


def missing(code: LabelCode, where: str = "") -> RowCheck:
    """Returns the check for a missing label."""
    return RowCheck(f"{sql_name(code.column)} IS NULL{where}", code.column, code.expected)


# ---- rewards as whole multiples of 10^−scale --------------------------------------------------
#
# Sums of these do not depend on their order. A double stands for the shortest decimal that means
# it. Where all rewards have few digits, one multiplication gives the whole number u of units, and
# u / 10^scale = reward proves it: of all decimals with up to 15 digits, no two are the same double.
# The scale is guessed from the first rows and proven for each; a full scan finds it where the guess
# was wrong, and text is used beyond 15 digits.


LARGE_WHOLE = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT")
SAMPLE = 10_000  # rows from which the scale is guessed
LARGEST_SCALE = 37  # of the 38 digits of a decimal
LARGEST_SUM = 9e36  # in units; a HUGEINT holds up to 1.7e38
MANY_ROWS = 10**10  # an upper limit for the rows of a log
SHORT_TEXT = 16  # characters: 15 digits and a point
# Different decimals with at most this many digits are different numbers of that type.
SURE_DIGITS = {"FLOAT": 6, "DOUBLE": 15}


@dataclass(frozen=True, slots=True)
class Units:
    """A reward as a whole number of units of 10^−scale."""

    scale: int
    exact: str  # SQL: `number` equals the reward exactly; may be NULL
    number: str  # SQL: whole numbers of units, or decimals
    decimal: bool = False

    def whole(self, number: str) -> str:
        """Returns SQL for a number, or a sum of numbers, as a whole number of units."""
        # Deleting the point of a decimal with `scale` digits multiplies it by 10^scale.
        text = f"replace(CAST({number} AS VARCHAR), '.', '')"
        return f"CAST({text} AS HUGEINT)" if self.decimal else number


@dataclass(frozen=True, slots=True)
class RewardSql:
    """The column of rewards as SQL."""

    column: str
    type: str

    @classmethod
    def of(cls, roles: RoleSql) -> Self:
        """Returns the column of rewards; refuses one that has neither numbers nor texts."""
        column = roles.mapping.reward
        kind = roles.types[column]
        if kind not in (*LARGE_WHOLE, *FLOATING, "VARCHAR") and not kind.startswith("DECIMAL"):
            raise InvalidLog(f"column {column!r}, the reward, is of type {kind}, expected numbers")
        return cls(column, kind)

    @property
    def text(self) -> str:
        """Returns SQL for the reward as text; for a float, the shortest decimal that means it."""
        return f"lower(trim(CAST({sql_name(self.column)} AS VARCHAR)))"

    @property
    def is_number(self) -> str:
        """Returns SQL that is true if the reward is a finite number."""
        if self.type == "VARCHAR":
            name = sql_name(self.column)  # DuckDB would also take 1_000, and words
            number = f"isfinite(TRY_CAST({name} AS DOUBLE)) AND NOT contains({name}, '_')"
            return f"coalesce({number}, false)"
        if self.type in FLOATING:
            return f"coalesce(isfinite({sql_name(self.column)}), false)"
        return f"{sql_name(self.column)} IS NOT NULL"

    @property
    def size(self) -> str:
        """Returns SQL for the absolute value of the reward as a double."""
        return f"abs(TRY_CAST({sql_name(self.column)} AS DOUBLE))"

    @property
    def double(self) -> str:
        """Returns SQL for the double nearest to the reward; 0 has no sign."""
        kept = self.type in WHOLE or self.type == "DOUBLE"
        number = sql_name(self.column) if kept else self.text
        return f"TRY_CAST({number} AS DOUBLE) + 0.0::DOUBLE"

    @property
    def digits(self) -> str:
        """Returns SQL for the number of digits after the point that the reward needs."""
        if self.type in LARGE_WHOLE:
            return "0"
        fraction = f"length(rtrim(split_part(split_part({self.text}, 'e', 1), '.', 2), '0'))"
        power = f"coalesce(TRY_CAST(split_part({self.text}, 'e', 2) AS INTEGER), -1000)"
        return (
            f"CASE WHEN contains({self.text}, 'e') THEN greatest(0, {fraction} - {power}) "
            f"ELSE {fraction} END"
        )

    @property
    def is_short(self) -> str:
        """Returns SQL: a double holds all digits of the reward."""
        if self.type == "VARCHAR":
            double = f"TRY_CAST({sql_name(self.column)} AS DOUBLE) IS NOT NULL"
            return f"strlen({sql_name(self.column)}) <= {SHORT_TEXT} AND {double}"
        if self.type.startswith("DECIMAL"):
            width = int(self.type.removeprefix("DECIMAL(").split(",")[0])
            return str(width <= SURE_DIGITS["DOUBLE"]).lower()
        return "true"

    def units(self, scale: int, largest: float, short: bool) -> Units:
        """Returns units for rewards of up to `largest` with `scale` digits after the point."""
        if self.type in WHOLE:
            return Units(0, self.is_number, sql_name(self.column))
        kind = "FLOAT" if self.type == "FLOAT" else "DOUBLE"
        if (
            not short
            or scale > SURE_DIGITS[kind]
            or largest * 10.0**scale >= 10.0 ** SURE_DIGITS[kind] / 2
        ):
            return self.wide_units(scale, most=largest)
        unit = f"1e{scale}::DOUBLE"
        most = 10 ** SURE_DIGITS[kind]
        number = f"TRY_CAST({sql_name(self.column)} AS {kind})"
        # Sums of small integers are faster; a reward that does not fit fails `exact`.
        narrow = "INTEGER" if largest * 10.0**scale < 2**28 else "BIGINT"
        whole = f"TRY_CAST(CAST({number} AS DOUBLE) * {unit} AS {narrow})"
        exact = f"CAST({whole} / {unit} AS {kind}) = {number}"
        if narrow == "BIGINT" or kind == "FLOAT":
            exact += f" AND {whole} BETWEEN {-most} AND {most}"
        if self.type == "VARCHAR":
            exact += f" AND {self.is_short} AND {self.is_number}"
        return Units(scale, exact, whole)

    def wide_units(self, scale: int, most: float) -> Units:
        """Returns units as decimals of 38 digits, through text, for rewards of up to `most`."""
        decimal = f"TRY_CAST({self.text} AS DECIMAL(38, {scale}))"
        fits = f"{self.size} <= {most!r}::DOUBLE AND {decimal} IS NOT NULL"
        exact = f"{self.digits} <= {scale} AND {fits} AND {self.is_number}"
        return Units(scale, exact, decimal, decimal=True)

    def needs(self) -> list[str]:
        """Returns SQL aggregates for the arguments of `units`."""
        number = f"FILTER ({self.is_number})"
        return [
            f"coalesce(max({self.digits}) {number}, 0)",
            f"coalesce(max({self.size}) {number}, 0)",
            f"coalesce(bool_and({self.is_short}) {number}, true)",
        ]

    def guess(self, database: Any) -> Units | None:
        """Returns units that fit the first rows; None if their digits are too many."""
        needs = database.execute(
            f"SELECT {', '.join(self.needs())} "
            f"FROM (SELECT {sql_name(self.column)} FROM log LIMIT {SAMPLE})"
        ).fetchone()
        if needs[0] > LARGEST_SCALE:
            return None
        units = self.units(*needs)
        most = LARGEST_SUM / MANY_ROWS / 10.0**units.scale
        return self.wide_units(units.scale, most) if units.decimal else units
