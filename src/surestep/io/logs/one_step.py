"""Logs of single decisions, as bandits have them: every row is an episode of one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surestep.io.sql import sql_name

ADDED = {"episode": "row_number() OVER ()", "step": "0", "terminated": "true"}  # column → SQL


@dataclass(frozen=True, slots=True)
class OneStepEpisodes:
    """Rows with the columns that a log of single decisions does not need."""

    columns: tuple[str, ...]  # that are added, of `ADDED`

    @classmethod
    def of(cls, columns: Sequence[str]) -> OneStepEpisodes:
        """Returns what is added to a log with these columns."""
        return cls(tuple(name for name in ADDED if name not in columns))

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with these columns."""
        added = [f"{ADDED[name]} AS {sql_name(name)}" for name in self.columns]
        return f"SELECT *, {', '.join(added)} FROM ({rows})" if added else rows
