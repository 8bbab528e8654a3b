"""Rewards as whole multiples of 10^−scale, exactly: what makes sums independent of their order.

A double stands for the shortest decimal that means it. Where all rewards have few digits, one
multiplication gives the whole number u of units, and u / 10^scale = reward proves it: of all
decimals with up to 15 digits, no two are the same double. The scale is guessed from the first rows
and proven for each; a full scan finds it where the guess was wrong, and text is used beyond 15
digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surestep.errors import InvalidLog
from surestep.io.logs.roles import FLOATING, WHOLE, RoleSql
from surestep.io.sql import sql_name

LARGE_WHOLE = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
SAMPLE = 10_000  # rows that a scale is guessed from
LARGEST_SCALE = 37  # of the 38 digits of a decimal
LARGEST_SUM = 9e36  # in units: some digits below what a HUGEINT holds
MANY_ROWS = 10**10  # more than anybody has
SHORT_TEXT = 16  # characters: 15 digits and a point
# Decimals with so many digits at most are told apart by numbers of that type.
SURE_DIGITS = {"FLOAT": 6, "DOUBLE": 15}


@dataclass(frozen=True, slots=True)
class Units:
    """A reward as a whole number of units of 10^−scale."""

    scale: int
    exact: str  # SQL: whether `number` is the reward, to the last digit; may be NULL
    number: str  # SQL: whole numbers of units, or decimals
    decimal: bool = False

    def whole(self, number: str) -> str:
        """SQL: a number, or a sum of them, as a whole number of units."""
        # A decimal without its point is the number of its units.
        text = f"replace(CAST({number} AS VARCHAR), '.', '')"
        return f"CAST({text} AS HUGEINT)" if self.decimal else number


@dataclass(frozen=True, slots=True)
class RewardSql:
    """The column of rewards as SQL."""

    column: str
    type: str

    @classmethod
    def of(cls, roles: RoleSql) -> RewardSql:
        """Rewards are numbers, or text that may say one."""
        column = roles.mapping.reward
        kind = roles.types[column]
        if kind not in (*LARGE_WHOLE, *FLOATING, "VARCHAR") and not kind.startswith("DECIMAL"):
            raise InvalidLog(f"column {column!r}, the reward, is of type {kind}, expected numbers")
        return cls(column, kind)

    @property
    def text(self) -> str:
        """The reward as it is written; of a float, the shortest text that means it."""
        return f"lower(trim(CAST({sql_name(self.column)} AS VARCHAR)))"

    @property
    def is_number(self) -> str:
        """Returns SQL: there is a finite number."""
        if self.type == "VARCHAR":
            name = sql_name(self.column)  # DuckDB would also take 1_000, and words
            number = f"isfinite(TRY_CAST({name} AS DOUBLE)) AND NOT contains({name}, '_')"
            return f"coalesce({number}, false)"
        if self.type in FLOATING:
            return f"coalesce(isfinite({sql_name(self.column)}), false)"
        return f"{sql_name(self.column)} IS NOT NULL"

    @property
    def size(self) -> str:
        """The absolute value, roughly."""
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
        """Returns SQL: a double holds all that is written."""
        if self.type == "VARCHAR":
            double = f"TRY_CAST({sql_name(self.column)} AS DOUBLE) IS NOT NULL"
            return f"strlen({sql_name(self.column)}) <= {SHORT_TEXT} AND {double}"
        if self.type.startswith("DECIMAL"):
            width = int(self.type.removeprefix("DECIMAL(").split(",")[0])
            return str(width <= SURE_DIGITS["DOUBLE"]).lower()
        return "true"

    def units(self, scale: int, largest: float, short: bool) -> Units:
        """Units for rewards of up to `largest` with `scale` digits after the point."""
        if self.type in WHOLE:
            return Units(0, self.is_number, sql_name(self.column))
        kind = "FLOAT" if self.type == "FLOAT" else "DOUBLE"
        if (
            not short
            or scale > SURE_DIGITS[kind]
            or largest * 10.0**scale >= 10.0 ** SURE_DIGITS[kind] / 2
        ):
            return self.wide_units(scale, most=largest)
        unit, most = f"1e{scale}::DOUBLE", 10 ** SURE_DIGITS[kind]
        number = f"TRY_CAST({sql_name(self.column)} AS {kind})"
        # Sums of small whole numbers are faster; what passes them fails the proof.
        narrow = "INTEGER" if largest * 10.0**scale < 2**28 else "BIGINT"
        whole = f"TRY_CAST(CAST({number} AS DOUBLE) * {unit} AS {narrow})"
        exact = f"CAST({whole} / {unit} AS {kind}) = {number}"
        if narrow == "BIGINT" or kind == "FLOAT":
            exact += f" AND {whole} BETWEEN {-most} AND {most}"
        if self.type == "VARCHAR":
            exact += f" AND {self.is_short} AND {self.is_number}"
        return Units(scale, exact, whole)

    def wide_units(self, scale: int, most: float) -> Units:
        """Units as decimals of 38 digits, through text, for rewards of up to `most`."""
        decimal = f"TRY_CAST({self.text} AS DECIMAL(38, {scale}))"
        fits = f"{self.size} <= {most!r}::DOUBLE AND {decimal} IS NOT NULL"
        exact = f"{self.digits} <= {scale} AND {fits} AND {self.is_number}"
        return Units(scale, exact, decimal, decimal=True)

    def needs(self) -> list[str]:
        """Returns aggregates of what units must be made for: the arguments of `units`."""
        number = f"FILTER ({self.is_number})"
        return [
            f"coalesce(max({self.digits}) {number}, 0)",
            f"coalesce(max({self.size}) {number}, 0)",
            f"coalesce(bool_and({self.is_short}) {number}, true)",
        ]

    def guess(self, database: Any) -> Units | None:
        """Returns units that are enough for the first rows, if there are any."""
        needs = database.execute(
            f"SELECT {', '.join(self.needs())} "
            f"FROM (SELECT {sql_name(self.column)} FROM log LIMIT {SAMPLE})"
        ).fetchone()
        if needs[0] > LARGEST_SCALE:
            return None
        units = self.units(*needs)
        most = LARGEST_SUM / MANY_ROWS / 10.0**units.scale
        return self.wide_units(units.scale, most) if units.decimal else units
