"""Episodes that are recorded to their ends: the last row of each is the one that ends it."""

from __future__ import annotations

from dataclasses import dataclass

from surestep.io.sql import sql_name

TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class EndsWithLastRow:
    """Rows with a column that says whether they are the last of their episode."""

    episode: str
    step: str

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with this column."""
        order = f"TRY_CAST({sql_name(self.step)} AS DOUBLE)"
        near = f"PARTITION BY {sql_name(self.episode)} ORDER BY {order}"
        last = f"lead({order}) OVER ({near}) IS NULL"
        return f"SELECT *, {last} AS {TERMINATED} FROM ({rows})"
