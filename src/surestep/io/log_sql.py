"""The roles of a log as SQL: what each column says, and when it says nothing usable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from surestep.errors import InvalidLog
from surestep.io.log_columns import ColumnMapping
from surestep.io.log_tables import named

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
LARGE_WHOLE = (*WHOLE, "UBIGINT", "HUGEINT", "UHUGEINT")
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
YES, NO = "('true', 't', 'yes', '1', '1.0')", "('false', 'f', 'no', '0', '0.0')"


class Check(NamedTuple):
    """A row that cannot be used: what is wrong there."""

    condition: str  # SQL
    column: str
    expected: str


@dataclass(frozen=True, slots=True)
class RoleSql:
    """SQL expressions over the columns of a user's table."""

    mapping: ColumnMapping
    types: Mapping[str, str]  # column → type, as DuckDB calls it

    def __post_init__(self) -> None:
        """Rewards are numbers, or text that may say one."""
        kind = self.types[self.mapping.reward]
        plain = (*LARGE_WHOLE, "FLOAT", "DOUBLE", "VARCHAR")
        if kind not in plain and not kind.startswith("DECIMAL"):
            raise InvalidLog(
                f"column {self.mapping.reward!r}, the reward, is of type {kind}, expected numbers"
            )

    def text(self, column: str) -> str:
        """The column as the text that labels are."""
        return (
            named(column)
            if self.types[column] == "VARCHAR"
            else f"CAST({named(column)} AS VARCHAR)"
        )

    @property
    def step(self) -> str:
        """The step as a whole number, NULL where it is none."""
        column = str(self.mapping.step)
        if self.types[column] in WHOLE:
            return f"CAST({named(column)} AS BIGINT)"
        text = f"trim({self.text(column)})"
        whole = rf"regexp_full_match({text}, '[0-9]{{1,18}}(\.0*)?')"
        return f"CASE WHEN {whole} THEN TRY_CAST(split_part({text}, '.', 1) AS BIGINT) END"

    def flag(self, column: str | None) -> str:
        """True or false, NULL where the column says neither; false without a column."""
        if column is None:
            return "false"
        if self.types[column] == "BOOLEAN":
            return named(column)
        text = f"lower(trim({self.text(column)}))"
        return f"CASE WHEN {text} IN {YES} THEN true WHEN {text} IN {NO} THEN false END"

    @property
    def reward_text(self) -> str:
        """The reward as it is written; of a float, the shortest text that means it."""
        return f"lower(trim({self.text(self.mapping.reward)}))"

    @property
    def reward_is_number(self) -> str:
        """Whether there is a finite number."""
        column = self.mapping.reward
        if self.types[column] == "VARCHAR":
            return f"coalesce(regexp_full_match({self.reward_text}, '{NUMBER}'), false)"
        if self.types[column] in ("FLOAT", "DOUBLE"):
            return f"coalesce(isfinite({named(column)}), false)"
        return f"{named(column)} IS NOT NULL"

    @property
    def digits(self) -> str:
        """How many digits after the point the reward needs."""
        if self.types[self.mapping.reward] in LARGE_WHOLE:
            return "0"
        text = self.reward_text
        fraction = f"length(rtrim(split_part(split_part({text}, 'e', 1), '.', 2), '0'))"
        power = f"coalesce(TRY_CAST(split_part({text}, 'e', 2) AS INTEGER), -1000)"
        return (
            f"CASE WHEN contains({text}, 'e') THEN greatest(0, {fraction} - {power}) "
            f"ELSE {fraction} END"
        )

    def reward(self, scale: int, largest: float) -> str:
        """The reward as a decimal with `scale` digits after the point, exactly."""
        column = self.mapping.reward
        width = 18 if scale < 18 and largest * 10.0**scale < 1e17 else 38
        # A double within 10¹⁵ units is closer to its own decimal than to any other.
        direct = self.types[column] == "DOUBLE" and largest * 10.0**scale < 1e15
        if direct or self.types[column] in LARGE_WHOLE:
            return f"CAST({named(column)} AS DECIMAL({width}, {scale}))"
        return f"CAST({self.reward_text} AS DECIMAL({width}, {scale}))"

    @property
    def no_next(self) -> str:
        """Whether the row says nothing about where it led."""
        return " AND ".join(f"{named(column)} IS NULL" for column in self.mapping.next_state)

    def checks(self) -> list[Check]:
        """Everything that can be wrong with one row by itself."""
        mapping = self.mapping
        labels = [*mapping.state, *mapping.action]
        if mapping.episode is not None:
            labels.append(mapping.episode)
        found = [Check(f"{named(name)} IS NULL", name, "a label") for name in labels]
        found.append(Check(f"NOT ({self.reward_is_number})", mapping.reward, "a finite number"))
        if mapping.episode is not None and mapping.step is not None:
            step = f"coalesce({self.step}, -1) < 0"
            found.append(Check(step, mapping.step, "a whole number of at least 0"))
        found += [
            Check(f"({self.flag(name)}) IS NULL", name, "true or false")
            for name in (mapping.terminated, mapping.truncated)
            if name is not None
        ]
        if mapping.next_state:
            over = f"coalesce({self.flag(mapping.terminated)}, true)"
            stopped = f"coalesce({self.flag(mapping.truncated)}, true)"
            expected = "a label, or true as terminated or truncated"
            condition = f"{self.no_next} AND NOT {over} AND NOT {stopped}"
            found.append(Check(condition, mapping.next_state[0], expected))
            found += [
                Check(f"{named(name)} IS NULL AND NOT ({self.no_next})", name, "a label")
                for name in mapping.next_state
            ]
        return found
