"""What is done to the rows of files before they are the view `log`: SQL around that of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from surestep.io.labels.bin_rules import read_bin_option
from surestep.io.logs.columns import ColumnMapping
from surestep.io.logs.notation import PLAIN, Notation
from surestep.io.logs.reading import Reading
from surestep.io.sql import sql_name


@dataclass(frozen=True, slots=True)
class Preparation:
    """The changes that a reading makes to rows; none by default."""

    notation: Notation = PLAIN
    numbers: tuple[str, ...] = ()  # the columns of text with numbers in that notation

    @classmethod
    def of(cls, reading: Reading, mapping: ColumnMapping, types: Mapping[str, str]) -> Preparation:
        """Returns what a reading means for a log with these columns of these types."""
        notation = Notation(reading.decimal, reading.thousands)
        if notation == PLAIN:
            return cls()
        binned = {read_bin_option(rule)[0] for rule in reading.bins}
        following = zip(mapping.state, mapping.next_state, strict=False)
        binned |= {then for name, then in following if name in binned}
        single = {mapping.reward, mapping.step, mapping.behavior_prob, mapping.weight}
        numbers = single | binned
        return cls(
            notation,
            tuple(name for name, kind in types.items() if name in numbers and kind == "VARCHAR"),
        )

    @property
    def changes(self) -> bool:
        """Tells whether anything is done at all."""
        return bool(self.numbers)

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows of `log`, from that of the rows of files."""
        if not self.changes:
            return rows
        written = [f"{self.notation.sql(name)} AS {sql_name(name)}" for name in self.numbers]
        return f"SELECT * REPLACE ({', '.join(written)}) FROM ({rows})"


NONE = Preparation()
