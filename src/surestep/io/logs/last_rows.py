"""The last row of every episode ends it, or is the last one by the clock: said of all at once."""

from __future__ import annotations

from dataclasses import dataclass

from surestep.io.sql import sql_name

TERMINATED, TRUNCATED = "terminated", "truncated"


@dataclass(frozen=True, slots=True)
class MarkedLastRows:
    """Rows with a column that is true at the last of their episode, unless another flag is."""

    episode: str
    step: str
    column: str
    unless: str  # SQL
    also: str | None = None  # SQL: what the column says already, where there is one

    def sql(self, rows: str) -> str:
        """Returns the SQL of the rows with this column."""
        order = f"TRY_CAST({sql_name(self.step)} AS DOUBLE)"
        near = f"PARTITION BY {sql_name(self.episode)} ORDER BY {order}"
        last = f"(lead({order}) OVER ({near}) IS NULL AND NOT coalesce({self.unless}, false))"
        column = sql_name(self.column)
        if self.also is None:
            return f"SELECT *, {last} AS {column} FROM ({rows})"
        return f"SELECT * REPLACE (({self.also}) OR {last} AS {column}) FROM ({rows})"
