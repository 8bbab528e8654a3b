"""The other roles of a log as SQL: steps, flags, weights, propensities, and bad rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surestep.io.binning import Binning
from surestep.io.log_codes import WHOLE, Check, LabelCode, LabelCodes, as_varchar, label_codes
from surestep.io.log_columns import ColumnMapping
from surestep.io.log_tables import named

YES, NO = "('true', 't', 'yes', '1', '1.0')", "('false', 'f', 'no', '0', '0.0')"


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
    def behavior_prob(self) -> str:
        """The logged propensity as a double, NULL where it is none."""
        return f"TRY_CAST({named(str(self.mapping.behavior_prob))} AS DOUBLE)"

    @property
    def decides(self) -> str:
        """Whether the row holds a decision, and not only the last observation of an episode."""
        return f"NOT coalesce({self.flag(self.mapping.is_last)}, false)"

    @property
    def no_next(self) -> str:
        """Whether the row says nothing about where it led."""
        return " AND ".join(f"{named(column)} IS NULL" for column in self.mapping.next_state)

    def checks(self, reward: str) -> list[Check]:
        """Everything that can be wrong with one row by itself; `reward` says if that is usable."""
        mapping, codes = self.mapping, self.codes
        found = [missing(code) for code in codes.state]
        found += [missing(code, f" AND {self.decides}") for code in codes.action]
        if codes.episode is not None:
            found.append(missing(codes.episode))
        labels = (*codes.state, *codes.action, *codes.next_state)
        found += [check for code in labels for check in code.checks]
        unusable = f"{self.decides} AND NOT ({reward})"
        found.append(Check(unusable, mapping.reward, "a finite number"))
        if mapping.episode is not None and mapping.step is not None:
            step = f"coalesce({self.whole(mapping.step)}, -1) < 0"
            found.append(Check(step, mapping.step, "a whole number of at least 0"))
        found += [
            Check(f"({self.flag(name)}) IS NULL", name, "true or false")
            for name in (mapping.terminated, mapping.truncated, mapping.is_last)
            if name is not None
        ]
        return [*found, *self.next_checks(), *self.rare_checks()]

    def next_checks(self) -> list[Check]:
        """What can be wrong with the next state of a row."""
        mapping = self.mapping
        if not mapping.next_state:
            return []
        over = f"coalesce({self.flag(mapping.terminated)}, true)"
        stopped = f"coalesce({self.flag(mapping.truncated)}, true)"
        expected = "a label, or true as terminated or truncated"
        condition = f"{self.no_next} AND NOT {over} AND NOT {stopped}"
        if mapping.is_last is not None:
            condition, expected = f"{self.no_next} AND {self.decides}", "a label"
        return [
            Check(condition, mapping.next_state[0], expected),
            *(missing(code, f" AND NOT ({self.no_next})") for code in self.codes.next_state),
        ]

    def rare_checks(self) -> list[Check]:
        """What can be wrong with a propensity, a weight, or the mark of a last observation."""
        mapping, found = self.mapping, list[Check]()
        if mapping.behavior_prob is not None:
            usable = f"coalesce({self.behavior_prob} > 0 AND {self.behavior_prob} <= 1, false)"
            condition = f"{self.decides} AND NOT {usable}"
            expected = "a probability above 0 and at most 1"
            found.append(Check(condition, mapping.behavior_prob, expected))
        if mapping.weight is not None:
            condition = f"coalesce({self.whole(mapping.weight)}, 0) < 1"
            found.append(Check(condition, mapping.weight, "a whole number of at least 1"))
        if mapping.is_last is not None and mapping.terminated is not None:
            condition = f"{self.decides} AND coalesce({self.flag(mapping.terminated)}, false)"
            expected = f"false, except where {mapping.is_last!r} is true"
            found.append(Check(condition, mapping.terminated, expected))
        return found


def missing(code: LabelCode, where: str = "") -> Check:
    """No label where there must be one."""
    return Check(f"{named(code.column)} IS NULL{where}", code.column, "a label")
